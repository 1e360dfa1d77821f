"""How every figure is registered, looks and is written: style, panels, bands, legend, files.

The same figure gives the same bytes: fixed identifiers, no dates, no program versions.
"""

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cocobandits.experiments.claims import PAPER, STRESS
from cocobandits.runs.results import Line, Results, Values

_STYLE: Any = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "cocobandits",
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None, "Format": None, "Type": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}
_DPI = 160
GREY = "#555555"
ARM_COLORS = ("#0072B2", "#D55E00", "#009E73")
ARM_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)))

# Every function that makes or writes a figure is decorated, so that all look the same.
styled = mpl.rc_context(_STYLE)

Draw = Callable[[Results], Figure]


class Kind(NamedTuple):
    """A figure as it was registered; see `figure`."""

    draw: Draw
    title: str
    caption: str
    needs: str
    scope: str


class Picture(NamedTuple):
    """A figure on the page: its title and caption, its bytes, its width in CSS pixels."""

    title: str
    caption: str
    uri: str
    width: int


FIGURES: dict[str, Kind] = {}


def figure(
    name: str, title: str, caption: str, needs: str, scope: str = "split"
) -> Callable[[Draw], Draw]:
    """Register a function that draws results, and apply the style of all figures.

    Args:
        name: of its file, without the suffix.
        title: a few words.
        caption: below the figure; `{seeds}`, `{Seeds}` and `{limit}` are filled in.
        needs: the part of `Results` that has to hold something, or the name of one of its tables.
        scope: "split" draws stress environments apart from all others, "paper" draws the paper's
            environments only, "comparison" belongs to the page that compares all systems.
    """

    def register(draw: Draw) -> Draw:
        FIGURES[name] = Kind(styled(draw), title, caption, needs, scope)
        return FIGURES[name].draw

    return register


def draw(results: Results, folder: Path, *scopes: str) -> dict[str, Picture]:
    """Draw and write every figure of some scopes that results have data for."""
    return {
        f"{name}{suffix}": _draw(kind, part, folder / f"{name}{suffix}.svg")
        for scope in scopes
        for suffix, part in _parts(results, scope)
        for name, kind in FIGURES.items()
        if kind.scope == scope
        and part.environments
        and (getattr(part, kind.needs, None) or kind.needs in part.tables)
    }


def new_figure(width: float, height: float) -> Figure:
    """Start an empty figure, in inches."""
    return Figure(figsize=(width, height), dpi=_DPI, layout="constrained")


def panels(
    results: Results,
    height: float,
    labels: Sequence[str],
    steps: Sequence[str],
    pad: float | None = None,
    **options: Any,
) -> tuple[Figure, Any]:
    """Start a figure: a column per environment, a row per label of a vertical axis.

    `steps` are the labels of the horizontal axes, one per row; `pad` is the room below titles.
    """
    environments = results.environments
    figure = new_figure(2.75 * len(environments) + 0.4, height)
    axes = figure.subplots(len(labels), len(environments), squeeze=False, **options)
    for place, environment in zip(axes[0], environments, strict=True):
        place.set_title(results.environment_label(environment), pad=pad)
    for row, label, step in zip(axes, labels, steps, strict=True):
        row[0].set_ylabel(label)
        for place in row:
            place.set_xlabel(step)
    return figure, axes


def draw_band(
    axes: Axes, line: Line, places: Values, curves: Sequence[Values], alpha: float = 0.18
) -> None:
    """Draw a curve, and a band from a lower to a higher one."""
    middle, low, high = curves
    look: Any = {"color": line.color, "linestyle": line.dashes, "linewidth": line.width}
    axes.plot(places, middle, **look, zorder=line.layer)
    # One seed has no error, and a band of NaN would still be written to the file.
    if not np.isnan(low).all():
        look = {"color": line.color, "alpha": alpha, "linewidth": 0, "zorder": line.layer - 1}
        axes.fill_between(places, low, high, **look)


def policy_legend(figure: Figure, results: Results, policies: Iterable[str]) -> None:
    """Put one legend for all panels above them."""
    lines = {results.label(policy): results.line(policy) for policy in policies}
    handles = [
        Line2D([], [], color=line.color, linestyle=line.dashes, linewidth=line.width, label=label)
        for label, line in lines.items()
    ]
    # In inches: a line with a short name, or with a longer one.
    longest = max(map(len, lines), default=0)
    num_columns = max(1, int(figure.get_figwidth() / max(1.5, 0.6 + 0.063 * longest)))
    legend: Any = {"loc": "outside upper center", "handlelength": 3.4}
    figure.legend(handles=handles, ncols=min(num_columns, len(handles)), **legend)


@styled
def save(figure: Figure, path: Path) -> None:
    """Write a figure; the ending of the path says as what."""
    path.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure)
    # Laid out at one resolution, so that all kinds of files look the same.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    kind = path.suffix.removeprefix(".").lower()
    figure.savefig(path, format=kind, dpi=_DPI, metadata=_METADATA[kind])


def _draw(kind: Kind, results: Results, path: Path) -> Picture:
    drawn, num_seeds = kind.draw(results), len(results.seeds)
    save(drawn, path)
    uri = f"data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode()}"
    title = kind.title + (", under stress" if path.stem.endswith("-stress") else "")
    seeds = f"mean of {num_seeds} seeds, bands of one standard error" if num_seeds > 1 else "1 seed"
    # No name explains this policy.
    limit = "Limit knows the population and plans one reward ahead. "
    limit = limit if "oracle-plan" in results.policies else ""
    caption = kind.caption.format(seeds=seeds, Seeds=seeds.capitalize(), limit=limit)
    return Picture(title, caption, uri, round(96 * drawn.get_figwidth()))


def _parts(results: Results, scope: str) -> Iterator[tuple[str, Results]]:
    """Find the results that figures of a scope show, by the suffix of their files."""
    names = results.environments
    others = [name for name in names if name not in STRESS]
    if scope == "paper":
        yield "", results.within(name for name in names if name in PAPER)
    elif scope == "split" and 0 < len(others) < len(names):
        yield "", results.within(others)
        yield "-stress", results.within(name for name in names if name in STRESS)
    else:
        yield "", results
