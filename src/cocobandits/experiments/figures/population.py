"""Figures about populations: what was learned over time, and the diet example (paper, fig. 1)."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from cocobandits.experiments.figures import drawing
from cocobandits.experiments.figures.registry import figure
from cocobandits.runs.results import Results, Values


@figure(
    "diet",
    "The motivating example",
    "Densities of rewards of three diet plans: above, given the latent metabolic type; below, "
    "given the observed age group. Computed from the environment, not from this run.",
    needs="diet",
    scope="paper",
)
def diet_figure(results: Results) -> Figure:
    """Draw reward densities of the plans: by latent type above, by age group below."""
    columns = _columns(results, "diet")
    drawn = drawing.new_figure(9.6, 4.7)
    [[upper], [lower]] = drawn.subfigures(2, 1, squeeze=False)
    for part, group, title in (
        (upper, "metabolism", "{} metabolism"),
        (lower, "age group", "age group: {}"),
    ):
        names = dict.fromkeys(columns["name"][columns["group"] == group].tolist())
        [row] = part.subplots(1, len(names), sharey=True, squeeze=False)
        row[0].set_ylabel("density")
        for axes, name in zip(row, names, strict=True):
            axes.set_title(title.format(name))
            axes.set_xlabel("reward")
            for arm, (color, dashes) in enumerate(_LOOKS):
                chosen = _where(columns, group=group, name=name, arm=arm)
                rewards, density = chosen["reward"], chosen["density"]
                axes.plot(rewards, density, color=color, linestyle=dashes, linewidth=1.6)
                axes.fill_between(rewards, density, color=color, alpha=0.15, linewidth=0)
                axes.set_xlim(float(rewards[0]), float(rewards[-1]))
            axes.set_ylim(bottom=0)
    handles = [
        Line2D([], [], color=color, linestyle=dashes, label=f"plan {arm}")
        for arm, (color, dashes) in enumerate(_LOOKS, start=1)
    ]
    drawn.legend(handles=handles, **_LEGEND)
    return drawn


@figure(
    "density",
    "The population as the learner sees it",
    "Densities of the mean rewards of two arms in the mixture, at five contexts, as NPM-TS "
    "observes one user after another. Filled: learned. Outlined: true.",
    needs="densities",
    scope="paper",
)
def density_figure(results: Results) -> Figure:
    """Draw learned (filled) and true (outlined) marginals: times down, contexts across."""
    columns = _columns(results, "densities")
    times, contexts = np.unique(columns["time"]), np.unique(columns["context"])
    drawn = drawing.new_figure(2.1 * len(contexts) + 0.5, 1.4 * len(times) + 0.8)
    axes = drawn.subplots(len(times), len(contexts), sharex=True, sharey=True, squeeze=False)
    for row, time in zip(axes, times, strict=True):
        row[0].set_ylabel(f"{time} users\ndensity")
        for place, context in zip(row, contexts, strict=True):
            _draw_marginals(place, _where(columns, time=time, context=context))
    for place, context in zip(axes[0], contexts, strict=True):
        place.set_title(f"context {context:g}".replace("-", "−"))
    for place in axes[-1]:
        place.set_xlabel("mean reward of an arm")
    handles: list[Line2D | Patch] = []
    for arm, (color, dashes) in enumerate(_LOOKS[:2], start=1):
        handles.append(Patch(color=color, alpha=0.35, linewidth=0, label=f"arm {arm}, learned"))
        handles.append(Line2D([], [], color=color, linestyle=dashes, label=f"arm {arm}, truth"))
    drawn.legend(handles=handles, **_LEGEND)
    return drawn


_LOOKS = tuple(zip(drawing.ARM_COLORS, drawing.ARM_DASHES, strict=True))
_LEGEND: Any = {"loc": "outside upper center", "ncols": 4, "handlelength": 3}


def _draw_marginals(axes: Axes, columns: dict[str, Values]) -> None:
    for arm, (color, dashes) in enumerate(_LOOKS[:2]):
        chosen = _where(columns, arm=arm)
        edges = np.append(chosen["low"], chosen["high"][-1:])
        axes.stairs(chosen["density"], edges, color=color, fill=True, alpha=0.35)
        axes.stairs(chosen["truth"], edges, color=color, linestyle=dashes, linewidth=1.2)
    axes.set_ylim(bottom=0)


def _columns(results: Results, name: str) -> dict[str, Values]:
    table = results.tables[name]
    return {column: table[column].to_numpy() for column in table.column_names}


def _where(columns: dict[str, Values], **values: Any) -> dict[str, Values]:
    """Keep the rows with some values."""
    chosen = np.all([columns[name] == value for name, value in values.items()], axis=0)
    return {name: column[chosen] for name, column in columns.items()}
