"""Figures about policies: regret, the third arm, particle health (paper, fig. "6plots").

Drawn from measures and tables only; nothing is simulated. Figures about populations stand in
`population_figures`, the looks of all in `drawing`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cocobandits.experiments import drawing
from cocobandits.experiments.estimates import Values, curve, number
from cocobandits.experiments.measures import (
    ACCEPTANCE_BAND,
    ENVIRONMENT_LABELS,
    NUM_PARTS,
    Measures,
    group,
    in_display_order,
)

# It does worse than all others, who would be squeezed if panels were made for it.
CONTROL = "uniform"
_HEADROOM = 1.06
_MAX_POINTS = 150
_HEALTH_BINS = 20
_HEALTH_LABELS = {
    "acceptance_rate": "acceptance rate of moves",
    "start_correlation": "correlation with start",
}


class _Curve(NamedTuple):
    policy: str
    places: Values
    mean: Values
    error: Values

    @property
    def top(self) -> float:
        return float(np.max(self.mean + np.nan_to_num(self.error)))


@drawing.styled
def regret_figure(measures: Measures) -> Figure:
    """Draw multi-task regret per step above evaluation regret per round, per environment."""
    environments = measures.environments
    figure = drawing.new_figure(2.75 * len(environments) + 0.4, 5.3)
    axes = figure.subplots(2, len(environments), squeeze=False)
    for column, environment in enumerate(environments):
        upper, lower = axes[0, column], axes[1, column]
        # Room below the title for notes about curves that leave the panel.
        upper.set_title(ENVIRONMENT_LABELS.get(environment, environment), pad=14)
        _draw_curves(upper, _multitask_curves(measures, environment), "no oracle-ts in this run")
        _draw_curves(lower, _evaluation_curves(measures, environment), "no prior to evaluate")
        upper.set_xlabel("interaction step")
        lower.set_xlabel("round")
    axes[0, 0].set_ylabel("cumulative multi-task\nregret (reward units)")
    axes[1, 0].set_ylabel("evaluation regret of\n10 pulls (reward units)")
    drawing.policy_legend(figure, measures.policies)
    return figure


@drawing.styled
def cumulative_figure(measures: Measures) -> Figure:
    """Draw plain cumulative regret per step, per environment."""
    environments = measures.environments
    figure = drawing.new_figure(2.75 * len(environments) + 0.4, 3.1)
    [row] = figure.subplots(1, len(environments), squeeze=False)
    for axes, environment in zip(row, environments, strict=True):
        axes.set_title(ENVIRONMENT_LABELS.get(environment, environment), pad=14)
        _draw_curves(axes, _step_curves(measures, environment, measures.cumulative_regret), "")
        axes.set_xlabel("interaction step")
    row[0].set_ylabel("cumulative regret\n(reward units)")
    drawing.policy_legend(figure, measures.policies)
    return figure


@drawing.styled
def third_arm_figure(measures: Measures) -> Figure:
    """Draw the share of the third arm in each fifth of the run; a control's third is left out."""
    environments = measures.environments
    figure = drawing.new_figure(2.75 * len(environments) + 0.4, 2.9)
    [row] = figure.subplots(1, len(environments), squeeze=False)
    policies = [policy for policy in measures.policies if policy != CONTROL]
    places = np.arange(1.0, NUM_PARTS + 1)
    for axes, environment in zip(row, environments, strict=True):
        for policy in policies:
            if measures.has(environment, policy):
                shares = 100 * measures.third_arm_parts(environment, policy)
                drawing.draw_band(axes, policy, places, *curve(shares))
        axes.set_title(ENVIRONMENT_LABELS.get(environment, environment))
        axes.set_xlabel("fifth of the run")
        axes.set_xticks(places)
        axes.set_ylim(bottom=0)
    row[0].set_ylabel("pulls of the third arm (%)")
    drawing.policy_legend(figure, policies)
    return figure


@drawing.styled
def health_figure(health: pa.Table, measures: Measures) -> Figure:
    """Draw acceptance rate, between what it should be, and start correlation over the steps."""
    environments = measures.environments
    tables = {key: each for key, each in group(health).items() if key[0] in environments}
    figure = drawing.new_figure(2.75 * len(environments) + 0.4, 4.6)
    axes = figure.subplots(2, len(environments), sharey="row", squeeze=False)
    for column, environment in enumerate(environments):
        axes[0, column].set_title(ENVIRONMENT_LABELS.get(environment, environment))
        axes[1, column].set_xlabel("interaction step")
        for policy in measures.policies:
            if (environment, policy) in tables:
                columns = tables[environment, policy]
                num_steps = measures.regrets[environment, policy].shape[1]
                for row, name in enumerate(_HEALTH_LABELS):
                    _draw_binned(
                        axes[row, column], policy, columns["step"], columns[name], num_steps
                    )
    for row, (name, label) in enumerate(_HEALTH_LABELS.items()):
        axes[row, 0].set_ylabel(label)
        axes[row, 0].set_ylim(min(0.0, float(np.nanmin(health[name].to_numpy()))), 1)
    for place in axes[0]:
        for limit in ACCEPTANCE_BAND:
            place.axhline(limit, color="#555555", linestyle=(0, (1, 2)), linewidth=0.9)
    moved = in_display_order({policy for _, policy in tables})
    drawing.policy_legend(figure, moved)
    return figure


def _multitask_curves(measures: Measures, environment: str) -> list[_Curve]:
    if not measures.has(environment, "oracle-ts"):
        return []
    return _step_curves(measures, environment, measures.multitask_regret)


def _step_curves(
    measures: Measures, environment: str, quantity: Callable[[str, str], Values]
) -> list[_Curve]:
    """Average a quantity per step over the seeds, for every policy that ran."""
    curves = []
    for policy in measures.policies:
        if not measures.has(environment, policy):
            continue
        mean, error = curve(quantity(environment, policy))
        steps = np.arange(1.0, len(mean) + 1)
        # Thinned: 750 points of a curve look like 150.
        kept = np.unique(np.linspace(0, len(mean) - 1, _MAX_POINTS).astype(int))
        curves.append(_Curve(policy, steps[kept], mean[kept], error[kept]))
    return curves


def _evaluation_curves(measures: Measures, environment: str) -> list[_Curve]:
    curves = []
    for policy in measures.policies:
        if (environment, policy) in measures.evaluations:
            mean, error = curve(measures.evaluations[environment, policy])
            curves.append(_Curve(policy, np.arange(float(len(mean))), mean, error))
    return curves


def _draw_curves(axes: Axes, curves: list[_Curve], without: str) -> None:
    """Draw curves; a control that does worse than all others leaves, and a note says where to."""
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    if not curves:
        axes.text(0.5, 0.5, without, transform=axes.transAxes, ha="center", fontsize=8)
        axes.set_yticks([])
        return
    for item in curves:
        drawing.draw_band(axes, item.policy, item.places, item.mean, item.error)
    top = _HEADROOM * _limit(curves)
    lowest = min(float(np.min(item.mean)) for item in curves)
    axes.set_xlim(0, float(curves[0].places[-1]))
    # A little below, so that the oracle's line of zeros or a lower one is not hidden by the frame.
    axes.set_ylim(lowest - 0.025 * (top - lowest) if lowest <= 0 else 0.0, top)
    for item in curves:
        if item.mean[-1] > top:
            _note_leaving(axes, item, top)


def _note_leaving(axes: Axes, item: _Curve, top: float) -> None:
    """Say above the panel, where a curve leaves it, what it ends at."""
    place = item.places[int(np.argmax(item.mean > top))]
    axes.annotate(
        f"{drawing.label_of(item.policy)} ↑ {number(float(item.mean[-1]), 0)}",
        (float(place), top),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        fontsize=7,
        color="#555555",
        annotation_clip=False,
    )


def _limit(curves: list[_Curve]) -> float:
    """Make a panel as high as its learners need; a control alone may fill it."""
    tops = {item.policy: item.top for item in curves}
    learners = [top for policy, top in tops.items() if policy != CONTROL]
    return max(learners, default=max(tops.values())) or 1.0


def _draw_binned(axes: Axes, policy: str, steps: Values, values: Values, num_steps: int) -> None:
    """Draw mean, lowest and highest value per twentieth of the run, over all seeds."""
    bins = (steps * _HEALTH_BINS // num_steps).astype(int)
    filled = [number for number in range(_HEALTH_BINS) if (bins == number).any()]
    places = (np.array(filled) + 0.5) * num_steps / _HEALTH_BINS
    parts = [values[bins == number] for number in filled]
    line = drawing.line_of(policy)
    axes.plot(
        places, [part.mean() for part in parts], color=line.color, linestyle=line.dashes, lw=1.6
    )
    low, high = [part.min() for part in parts], [part.max() for part in parts]
    axes.fill_between(places, low, high, color=line.color, alpha=0.15, linewidth=0)
    axes.set_xlim(0, num_steps)
