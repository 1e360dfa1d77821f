"""Which figures there are, which of them results have data for, and their files."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from cocobandits.experiments.claims import PAPER, STRESS
from cocobandits.experiments.figures.drawing import save, styled
from cocobandits.runs.results import Results

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
