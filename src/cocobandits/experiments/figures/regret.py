"""Figures about regret and the choice of arms (paper, fig. "6plots")."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cocobandits.experiments.estimates import curve, number
from cocobandits.experiments.figures import drawing
from cocobandits.experiments.figures.drawing import figure
from cocobandits.experiments.rules import THIRD_ARM
from cocobandits.runs.results import ORACLE, Key, Results, Values

Read = Callable[[str, str], Values]

# It does worse than all others, who would be squeezed if panels were made for it.
CONTROL = "uniform"
_HEADROOM = 1.06
_MAX_POINTS = 150
# Below the names of environments, for notes about curves that leave the panel.
_PAD = 14


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
    labels = (
        "cumulative multi-task\nregret (reward units)",
        "evaluation regret of\n10 pulls (reward units)",
    )
    drawn, axes = drawing.panels(results, 5.3, labels, ("interaction step", "round"), _PAD)
    for (upper, lower), environment in zip(axes.T, results.environments, strict=True):
        known = results.regrets if (environment, ORACLE) in results.regrets else {}
        steps = _by_policy(results, environment, known, results.multitask_regret)
        _draw_curves(upper, results, steps, 1.0, "no oracle-ts in this run")
        rounds = _by_policy(results, environment, results.evaluations)
        _draw_curves(lower, results, rounds, 0.0, "no prior to evaluate")
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
    labels = ("cumulative regret\n(reward units)",)
    drawn, [row] = drawing.panels(results, 3.1, labels, ("interaction step",), _PAD)
    for axes, environment in zip(row, results.environments, strict=True):
        curves = _by_policy(results, environment, results.regrets, results.cumulative_regret)
        _draw_curves(axes, results, curves, 1.0, "no steps in this run")
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
    learners = results.only(name for name in results.policies if name != CONTROL)
    labels = ("pulls of the third arm (%)",)
    drawn, [row] = drawing.panels(results, 2.9, labels, ("fifth of the run",))
    places = np.arange(1.0, 6.0)
    for axes, environment in zip(row, results.environments, strict=True):
        for policy in _by_policy(learners, environment, learners.arms):
            shares = 100 * results.share_of_arm(environment, policy, THIRD_ARM)
            drawing.draw_band(axes, results.line(policy), places, _around(*curve(shares)))
        axes.set_xticks(places)
        axes.set_ylim(bottom=0)
    drawing.policy_legend(drawn, results, learners.policies)
    return drawn


def _by_policy(
    results: Results, environment: str, known: Mapping[Key, Values], read: Read | None = None
) -> dict[str, Values]:
    """Find the curves of all policies that are known, or a quantity of these policies."""
    keys = [(environment, name) for name in results.policies if (environment, name) in known]
    return {key[1]: read(*key) if read else known[key] for key in keys}


def _around(mean: Values, error: Values) -> tuple[Values, Values, Values]:
    return mean, mean - error, mean + error


def _draw_curves(
    axes: Axes, results: Results, found: dict[str, Values], start: float, without: str
) -> None:
    """Draw means over seeds; a control that does worse than all others leaves, with a note."""
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    if not found:
        axes.text(0.5, 0.5, without, transform=axes.transAxes, ha="center", fontsize=8)
        axes.set_yticks([])
        return
    num_points = len(next(iter(found.values()))[0])
    # Thinned: 750 points of a curve look like 150.
    kept = np.unique(np.linspace(0, num_points - 1, _MAX_POINTS).astype(int))
    curves = {policy: _around(*curve(values[:, kept])) for policy, values in found.items()}
    for policy, each in curves.items():
        drawing.draw_band(axes, results.line(policy), kept + start, each)
    # As high as the learners need; a control alone may fill the panel.
    learners = [policy for policy in curves if policy != CONTROL] or list(curves)
    top = _HEADROOM * (max(float(np.nanmax(curves[policy])) for policy in learners) or 1.0)
    lowest = min(float(np.min(mean)) for mean, *_ in curves.values())
    axes.set_xlim(0, float(kept[-1] + start))
    # A little below, so that the oracle's line of zeros or a lower one is not hidden by the frame.
    axes.set_ylim(lowest - 0.025 * (top - lowest) if lowest <= 0 else 0.0, top)
    note: Any = {"textcoords": "offset points", "ha": "center", "annotation_clip": False}
    for policy, (mean, *_) in curves.items():
        if mean[-1] > top:
            text = f"{results.label(policy)} ↑ {number(float(mean[-1]), 0)}"
            leaves_at = float(kept[int(np.argmax(mean > top))] + start), top
            axes.annotate(text, leaves_at, (0, 2), fontsize=7, color=drawing.GREY, **note)
