"""The picture of `coco demo`: why plan 1 is given to middle-aged people first."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cocobandits.experiments.figures import drawing
from cocobandits.runs.results import Values

_LOOKS = tuple(zip(drawing.ARM_COLORS, ("", "///", "..."), strict=True))
Columns = Mapping[str, Values]


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
    looks = zip(drawing.ARM_COLORS, drawing.ARM_DASHES, learned.values(), strict=True)
    for color, dashes, density in looks:
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
        for plan, (color, hatch) in enumerate(_LOOKS, start=1)
    ]
    drawn.legend(handles=handles, loc="outside upper center", ncols=3)
    return drawn


def _draw_bars(axes: Axes, columns: Columns, label: str) -> None:
    places = np.arange(len(columns))
    for plan, (color, hatch) in enumerate(_LOOKS):
        heights = [column[plan] for column in columns.values()]
        places_of_plan = places + 0.27 * (plan - 1)
        axes.bar(places_of_plan, heights, 0.25, color=color, hatch=hatch, edgecolor="white")
    axes.set_xticks(places, list(columns))
    axes.set(ylabel=label, ylim=(0, 1.02))
