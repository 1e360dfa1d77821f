"""The picture of `coco demo`: why plan 1 is given to middle-aged people first."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cocobandits.experiments import drawing
from cocobandits.experiments.diet_story import TELLING_REWARDS, AgeStory
from cocobandits.study import Population

_HATCHES = ("", "///", "...")


@drawing.styled
def diet_picture(population: Population, stories: dict[str, AgeStory], age: str) -> Figure:
    """Draw what is believed of an age group, what plan 1 settles, and what was given first."""
    figure = drawing.new_figure(10.5, 3.6)
    believed, settled, given = figure.subplots(1, 3)
    _draw_beliefs(believed, population)
    believed.set_title(f"1. Learned about {age} people")
    story = stories[age]
    columns = {"before": story.best_probability} | {
        f"plan 1 paid {reward:g}": story.best_after[reward] for reward in TELLING_REWARDS
    }
    _draw_bars(settled, columns, "P(plan is best)")
    settled.set_title(f"2. What plan 1 settles for {age} people")
    _draw_bars(
        given, {name: told.first_shares for name, told in stories.items()}, "share of people"
    )
    given.set_title("3. Plan given first, later half")
    handles = [
        Patch(facecolor=color, hatch=hatch, edgecolor="white", label=f"plan {plan}")
        for plan, (color, hatch) in enumerate(
            zip(drawing.ARM_COLORS, _HATCHES, strict=True), start=1
        )
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def write(figure: Figure, path: Path) -> None:
    """Write the picture; the ending of the path says as what."""
    drawing.save_as(figure, path)


def _draw_beliefs(axes: Axes, population: Population) -> None:
    for plan, density in enumerate(population.marginal.values()):
        color = drawing.ARM_COLORS[plan]
        axes.stairs(density, population.edges, color=color, fill=True, alpha=0.25)
        axes.stairs(
            density,
            population.edges,
            color=color,
            linestyle=drawing.ARM_DASHES[plan],
            linewidth=1.5,
        )
    axes.set(xlabel="mean reward of a plan", ylabel="density over people")
    axes.set_ylim(bottom=0)


def _draw_bars(axes: Axes, columns: dict[str, np.ndarray], label: str) -> None:
    places = np.arange(len(columns))
    for plan, (color, hatch) in enumerate(zip(drawing.ARM_COLORS, _HATCHES, strict=True)):
        heights = [column[plan] for column in columns.values()]
        axes.bar(
            places + 0.27 * (plan - 1), heights, 0.25, color=color, hatch=hatch, edgecolor="white"
        )
    axes.set_xticks(places, list(columns))
    axes.set(ylabel=label, ylim=(0, 1.02))
