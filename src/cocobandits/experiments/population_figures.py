"""Figures about populations: what was learned over time, and the diet example (paper, fig. 1)."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from cocobandits.experiments import drawing
from cocobandits.experiments.estimates import Values

_NUM_ARMS_SHOWN = 2


@drawing.styled
def density_figure(densities: pa.Table) -> Figure:
    """Draw learned (filled) and true (outlined) marginals: times down, contexts across."""
    columns = {name: densities[name].to_numpy() for name in densities.column_names}
    times, contexts = np.unique(columns["time"]), np.unique(columns["context"])
    figure = drawing.new_figure(2.1 * len(contexts) + 0.5, 1.4 * len(times) + 0.8)
    axes = figure.subplots(len(times), len(contexts), sharex=True, sharey=True, squeeze=False)
    for row, time in enumerate(times):
        axes[row, 0].set_ylabel(f"{time} users\ndensity")
        for column, context in enumerate(contexts):
            chosen = (columns["time"] == time) & (columns["context"] == context)
            _draw_marginals(
                axes[row, column], {name: values[chosen] for name, values in columns.items()}
            )
    for column, context in enumerate(contexts):
        axes[0, column].set_title(f"context {context:g}".replace("-", "−"))
        axes[-1, column].set_xlabel("mean reward of an arm")
    _legend(figure, _density_handles())
    return figure


@drawing.styled
def diet_figure(
    rewards: Values, by_type: Mapping[str, Values], by_age: Mapping[str, Values]
) -> Figure:
    """Draw reward densities, plan × reward: given what is hidden, above given what is seen."""
    figure = drawing.new_figure(9.6, 4.7)
    [[upper], [lower]] = figure.subfigures(2, 1, squeeze=False)
    for part, rows, kind in ((upper, by_type, "metabolism"), (lower, by_age, "age group")):
        [row] = part.subplots(1, len(rows), sharey=True, squeeze=False)
        row[0].set_ylabel("density")
        for axes, (label, densities) in zip(row, rows.items(), strict=True):
            axes.set_title(f"{label} {kind}" if kind == "metabolism" else f"{kind}: {label}")
            axes.set_xlabel("reward")
            axes.set_xlim(float(rewards[0]), float(rewards[-1]))
            for arm, density in enumerate(densities):
                _draw_density(axes, arm, rewards, density)
            axes.set_ylim(bottom=0)
    handles = [
        Line2D([], [], color=color, linestyle=dashes, label=f"plan {arm}")
        for arm, (color, dashes) in enumerate(
            zip(drawing.ARM_COLORS, drawing.ARM_DASHES, strict=True), start=1
        )
    ]
    _legend(figure, handles)
    return figure


def _draw_marginals(axes: Axes, columns: dict[str, Values]) -> None:
    for arm in range(_NUM_ARMS_SHOWN):
        chosen = columns["arm"] == arm
        order = np.argsort(columns["low"][chosen])
        low, high, learned, truth = (
            columns[name][chosen][order] for name in ("low", "high", "density", "truth")
        )
        edges = np.append(low, high[-1:])
        color = drawing.ARM_COLORS[arm]
        axes.stairs(learned, edges, color=color, fill=True, alpha=0.35)
        axes.stairs(truth, edges, color=color, linestyle=drawing.ARM_DASHES[arm], linewidth=1.2)
    axes.set_ylim(bottom=0)


def _draw_density(axes: Axes, arm: int, rewards: Values, density: Values) -> None:
    color = drawing.ARM_COLORS[arm]
    axes.plot(rewards, density, color=color, linestyle=drawing.ARM_DASHES[arm], linewidth=1.6)
    axes.fill_between(rewards, density, color=color, alpha=0.15, linewidth=0)


def _density_handles() -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = []
    for arm in range(_NUM_ARMS_SHOWN):
        color, name = drawing.ARM_COLORS[arm], f"arm {arm + 1}"
        handles.append(Patch(color=color, alpha=0.35, linewidth=0, label=f"{name}, learned"))
        dashes = drawing.ARM_DASHES[arm]
        handles.append(Line2D([], [], color=color, linestyle=dashes, label=f"{name}, truth"))
    return handles


def _legend(figure: Figure, handles: list[Line2D | Patch] | list[Line2D]) -> None:
    figure.legend(handles=handles, loc="outside upper center", ncols=4, handlelength=3)
