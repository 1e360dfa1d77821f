"""Figures about regret and the choice of arms (paper, fig. "6plots")."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cocobandits.experiments.estimates import curve, number
from cocobandits.experiments.figures import drawing
from cocobandits.experiments.figures.registry import figure
from cocobandits.experiments.rules import THIRD_ARM
from cocobandits.runs.results import ORACLE, Results, Values

# It does worse than all others, who would be squeezed if panels were made for it.
CONTROL = "uniform"
_HEADROOM = 1.06
_MAX_POINTS = 150


class _Curve(NamedTuple):
    policy: str
    places: Values
    mean: Values
    error: Values


@figure(
    "regret",
    "Regret of learning, and of the learned prior",
    "Top: cumulative regret beyond that of OraclePrior-TS, which knows the population. Bottom: "
    "regret of newcomers served by Thompson sampling from the prior learned so far; Uniform has "
    "none. {limit}{Seeds}. Lower is better. A curve that leaves its panel is labelled with its "
    "last value.",
    needs="regrets",
)
def regret_figure(results: Results) -> Figure:
    """Draw multi-task regret per step above evaluation regret per round, per environment."""
    # Room below the title for notes about curves that leave the panel.
    drawn, axes = drawing.panels(results, 5.3, num_rows=2, pad=14)
    for (upper, lower), environment in zip(axes.T, results.environments, strict=True):
        has_oracle = (environment, ORACLE) in results.regrets
        steps = _step_curves(results, environment, results.multitask_regret) if has_oracle else ()
        _draw_curves(upper, results, steps, "no oracle-ts in this run")
        _draw_curves(lower, results, _rounds(results, environment), "no prior to evaluate")
        upper.set_xlabel("interaction step")
        lower.set_xlabel("round")
    axes[0, 0].set_ylabel("cumulative multi-task\nregret (reward units)")
    axes[1, 0].set_ylabel("evaluation regret of\n10 pulls (reward units)")
    drawing.policy_legend(drawn, results, results.policies)
    return drawn


@figure(
    "cumulative",
    "Plain cumulative regret",
    "Regret compared with every user's best arm, summed over the steps. {Seeds}. Lower is better.",
    needs="regrets",
)
def cumulative_figure(results: Results) -> Figure:
    """Draw plain cumulative regret per step, per environment."""
    drawn, [row] = drawing.panels(results, 3.1, pad=14)
    for axes, environment in zip(row, results.environments, strict=True):
        curves = _step_curves(results, environment, results.cumulative_regret)
        _draw_curves(axes, results, curves, "no steps in this run")
        axes.set_xlabel("interaction step")
    row[0].set_ylabel("cumulative regret\n(reward units)")
    drawing.policy_legend(drawn, results, results.policies)
    return drawn


@figure(
    "third-arm",
    "Pulls of the third arm",
    "Share of pulls in each fifth of the run; {seeds}. Uniform, at a third throughout, is left "
    "out. The strict reading of claim 3 is about the mixture.",
    needs="arms",
    scope="paper",
)
def third_arm_figure(results: Results) -> Figure:
    """Draw the share of the third arm in each fifth of the run; a control's third is left out."""
    drawn, [row] = drawing.panels(results, 2.9)
    policies = [policy for policy in results.policies if policy != CONTROL]
    places = np.arange(1.0, 6.0)
    for axes, environment in zip(row, results.environments, strict=True):
        for policy in policies:
            if (environment, policy) in results.arms:
                shares = 100 * results.share_of_arm(environment, policy, THIRD_ARM)
                drawing.draw_band(axes, results.line(policy), places, *curve(shares))
        axes.set_xlabel("fifth of the run")
        axes.set_xticks(places)
        axes.set_ylim(bottom=0)
    row[0].set_ylabel("pulls of the third arm (%)")
    drawing.policy_legend(drawn, results, policies)
    return drawn


def _step_curves(
    results: Results, environment: str, quantity: Callable[[str, str], Values]
) -> Iterator[_Curve]:
    """Average a quantity per step over the seeds, for every policy that ran."""
    for policy in results.policies:
        if (environment, policy) in results.regrets:
            mean, error = curve(quantity(environment, policy))
            # Thinned: 750 points of a curve look like 150.
            kept = np.unique(np.linspace(0, len(mean) - 1, _MAX_POINTS).astype(int))
            yield _Curve(policy, kept + 1.0, mean[kept], error[kept])


def _rounds(results: Results, environment: str) -> Iterator[_Curve]:
    for policy in results.policies:
        if (environment, policy) in results.evaluations:
            mean, error = curve(results.evaluations[environment, policy])
            yield _Curve(policy, np.arange(float(len(mean))), mean, error)


def _draw_curves(axes: Axes, results: Results, found: Iterable[_Curve], without: str) -> None:
    """Draw curves; a control that does worse than all others leaves, and a note says where to."""
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    curves = list(found)
    if not curves:
        axes.text(0.5, 0.5, without, transform=axes.transAxes, ha="center", fontsize=8)
        axes.set_yticks([])
        return
    for each in curves:
        drawing.draw_band(axes, results.line(each.policy), each.places, each.mean, each.error)
    # As high as the learners need; a control alone may fill the panel.
    learners = [each for each in curves if each.policy != CONTROL] or curves
    tops = [float(np.max(each.mean + np.nan_to_num(each.error))) for each in learners]
    top = _HEADROOM * (max(tops) or 1.0)
    lowest = min(float(np.min(each.mean)) for each in curves)
    axes.set_xlim(0, float(curves[0].places[-1]))
    # A little below, so that the oracle's line of zeros or a lower one is not hidden by the frame.
    axes.set_ylim(lowest - 0.025 * (top - lowest) if lowest <= 0 else 0.0, top)
    for each in curves:
        if each.mean[-1] > top:
            _note_leaving(axes, results.label(each.policy), each, top)


def _note_leaving(axes: Axes, label: str, left: _Curve, top: float) -> None:
    """Say above the panel, where a curve leaves it, what it ends at."""
    axes.annotate(
        f"{label} ↑ {number(float(left.mean[-1]), 0)}",
        (float(left.places[int(np.argmax(left.mean > top))]), top),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        fontsize=7,
        color=drawing.GREY,
        annotation_clip=False,
    )
