"""Figures about populations: what was learned over time, and the diet example (paper, fig. 1).

The last of them is the picture of `coco demo`, and on no page.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from cocobandits.experiments.figures import drawing
from cocobandits.experiments.figures.drawing import figure
from cocobandits.runs.results import Results, Values

Columns = Mapping[str, Values]


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


@drawing.styled
def diet_picture(
    age: str, edges: Values, learned: Columns, settled: Columns, given: Columns
) -> Figure:
    """Draw the belief about an age group, what plan 1 settles, and which plans came first.

    Args:
        age: the age group.
        edges: of the bins of mean rewards.
        learned: density per bin, by plan.
        settled: P(plan is best), before and after rewards of plan 1.
        given: share of people who were given each plan first, by age group.
    """
    drawn = drawing.new_figure(10.5, 3.6)
    beliefs, *bars = drawn.subplots(1, 3)
    beliefs.set_title(f"1. Learned about {age} people")
    for (color, dashes), density in zip(_LOOKS, learned.values(), strict=True):
        beliefs.stairs(density, edges, color=color, fill=True, alpha=0.25)
        beliefs.stairs(density, edges, color=color, linestyle=dashes, linewidth=1.5)
    beliefs.set(xlabel="mean reward of a plan", ylabel="density over people")
    beliefs.set_ylim(bottom=0)
    bars[0].set_title(f"2. What plan 1 settles for {age} people")
    _draw_bars(bars[0], settled, "P(plan is best)")
    bars[1].set_title("3. Plan given first, later half")
    _draw_bars(bars[1], given, "share of people")
    handles = [
        Patch(facecolor=color, hatch=hatch, edgecolor="white", label=f"plan {plan}")
        for plan, (color, hatch) in enumerate(_FILLS, start=1)
    ]
    drawn.legend(handles=handles, loc="outside upper center", ncols=3)
    return drawn


_LOOKS = tuple(zip(drawing.ARM_COLORS, drawing.ARM_DASHES, strict=True))
_FILLS = tuple(zip(drawing.ARM_COLORS, ("", "///", "..."), strict=True))
_LEGEND: Any = {"loc": "outside upper center", "ncols": 4, "handlelength": 3}


def _draw_marginals(axes: Axes, columns: dict[str, Values]) -> None:
    for arm, (color, dashes) in enumerate(_LOOKS[:2]):
        chosen = _where(columns, arm=arm)
        edges = np.append(chosen["low"], chosen["high"][-1:])
        axes.stairs(chosen["density"], edges, color=color, fill=True, alpha=0.35)
        axes.stairs(chosen["truth"], edges, color=color, linestyle=dashes, linewidth=1.2)
    axes.set_ylim(bottom=0)


def _draw_bars(axes: Axes, columns: Columns, label: str) -> None:
    places = np.arange(len(columns))
    for plan, (color, hatch) in enumerate(_FILLS):
        heights = [column[plan] for column in columns.values()]
        places_of_plan = places + 0.27 * (plan - 1)
        axes.bar(places_of_plan, heights, 0.25, color=color, hatch=hatch, edgecolor="white")
    axes.set_xticks(places, list(columns))
    axes.set(ylabel=label, ylim=(0, 1.02))


def _columns(results: Results, name: str) -> dict[str, Values]:
    table = results.tables[name]
    return {column: table[column].to_numpy() for column in table.column_names}


def _where(columns: dict[str, Values], **values: Any) -> dict[str, Values]:
    """Keep the rows with some values."""
    chosen = np.all([columns[name] == value for name, value in values.items()], axis=0)
    return {name: column[chosen] for name, column in columns.items()}
