"""How every figure looks and how it is written: lines, colours, sizes, kinds of file.

The same figure gives the same bytes: fixed identifiers, no dates, no program versions.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cocobandits.experiments.estimates import Values
from cocobandits.experiments.measures import POLICY_LABELS

_RC: Any = {
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
_PNG_DPI = 160


class LineStyle(NamedTuple):
    """How one policy is drawn."""

    color: str
    dashes: Any
    width: float = 1.6
    layer: float = 2.0


# The paper's dashes, in the colours of Okabe and Ito, which colour-blind readers can tell apart.
POLICY_LINES = {
    "coids": LineStyle("#AA1144", "-", 2.6, 3.0),
    "npm-ts": LineStyle("#0072B2", "-"),
    "gids": LineStyle("#D55E00", (0, (4, 1.5))),
    "mtts": LineStyle("#CC79A7", (0, (6, 1.5, 1, 1.5, 1, 1.5))),
    "hierts": LineStyle("#CC79A7", "-", 1.2),
    "hlinucb": LineStyle("#E69F00", (0, (2, 1.2)), 1.2),
    "hlinucb-t": LineStyle("#E69F00", "-", 1.2),
    "kmtl-ucb": LineStyle("#56B4E9", (0, (4, 1.5, 1, 1.5)), 1.2),
    "gradband": LineStyle("#8C6D31", (0, (1, 1.2)), 1.2),
    "meta-ts": LineStyle("#8C6D31", (0, (4, 1.5)), 1.2),
    "ada-ts": LineStyle("#8C6D31", "-", 1.2),
    "robustagg": LineStyle("#6A51A3", "-", 1.2),
    "rome": LineStyle("#6A51A3", (0, (4, 1.5)), 1.2),
    "ind-ts": LineStyle("#009E73", (0, (1, 1.2))),
    "oracle-ts": LineStyle("#000000", (0, (5, 1.5, 1, 1.5))),
    "oracle-plan": LineStyle("#444444", "-", 0.8, 1.5),
    "uniform": LineStyle("#999999", (0, (6, 5)), 0.9),
}
_STRANGER = LineStyle("#56B4E9", "-", 1.0)
ARM_COLORS = ("#0072B2", "#D55E00", "#009E73")
ARM_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)))


# Every function that makes a figure is decorated, so that all have the same fonts and frames.
styled = mpl.rc_context(_RC)


def new_figure(width: float, height: float) -> Figure:
    """Start an empty figure, in inches."""
    return Figure(figsize=(width, height), dpi=_PNG_DPI, layout="constrained")


def line_of(policy: str) -> LineStyle:
    """Choose the line of a policy."""
    return POLICY_LINES.get(policy, _STRANGER)


def label_of(policy: str) -> str:
    """Name a policy as the paper does."""
    return POLICY_LABELS.get(policy, policy)


def draw_band(axes: Axes, policy: str, places: Values, mean: Values, error: Values) -> None:
    """Draw a mean curve and a band of one standard error around it."""
    line = line_of(policy)
    look: Any = {"color": line.color, "linestyle": line.dashes, "linewidth": line.width}
    axes.plot(places, mean, **look, zorder=line.layer)
    # One seed has no error, and a band of NaN would still be written to the file.
    if np.isfinite(error).all():
        axes.fill_between(
            places,
            mean - error,
            mean + error,
            color=line.color,
            alpha=0.18,
            linewidth=0,
            zorder=line.layer - 1,
        )


def policy_legend(figure: Figure, policies: Iterable[str]) -> None:
    """Put one legend for all panels above them."""
    handles = [
        Line2D([], [], color=line.color, linestyle=line.dashes, linewidth=line.width, label=label)
        for line, label in ((line_of(policy), label_of(policy)) for policy in policies)
    ]
    # In inches: a line with a short name, and what a longer name takes.
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    num_columns = max(1, int(figure.get_figwidth() / max(1.5, 0.6 + 0.063 * longest)))
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=min(num_columns, len(handles)),
        handlelength=3.4,
    )


@styled
def save(figure: Figure, folder: Path, name: str) -> dict[str, Path]:
    """Write a figure as SVG, and return the path by the kind of file."""
    FigureCanvasAgg(figure)
    # Laid out at the resolution of a PNG, as figures that were committed have been.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    path = folder / f"{name}.svg"
    save_as(figure, path)
    return {"svg": path}


@styled
def save_as(figure: Figure, path: Path) -> None:
    """Write a figure to one file; the ending of its name says as what."""
    path.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure)
    kind = path.suffix.removeprefix(".")
    figure.savefig(path, format=kind, dpi=_PNG_DPI, metadata=_METADATA[kind])
