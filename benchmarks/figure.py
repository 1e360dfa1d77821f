"""The figure of docs/performance.md: ratios to the literal reference, and growth with users."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from cocobandits.experiments.drawing import new_figure, styled

_BARS, _LINE, _BOUND = "#0072B2", "#AA1144", "#999999"
# Readable when the page shows the figure at half its size.
_LARGE = 13


@styled
def draw(results: dict[str, Any]) -> Figure:
    """Draw both panels."""
    figure = new_figure(11.0, 4.2)
    left, right = figure.subplots(1, 2)
    _draw_ratios(left, results)
    _draw_growth(right, results)
    for axes in (left, right):
        axes.tick_params(labelsize=_LARGE)
        axes.xaxis.label.set_size(_LARGE)
        axes.yaxis.label.set_size(_LARGE)
    return figure


def _draw_ratios(axes: Axes, results: dict[str, Any]) -> None:
    gradient = results["value_and_gradient"]
    ratios = {
        "a run": results["run"]["ratio"],
        "value and\ngradient": gradient["ratio"],
        "reference\nin 32 bits": gradient["ratio32"],
    }
    bars = axes.barh(list(ratios), list(ratios.values()), color=_BARS, height=0.6)
    axes.bar_label(bars, fmt=" %.3g ×", fontsize=_LARGE)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.25 * max(ratios.values()))
    axes.set_xlabel("literal reference ÷ library, seconds")


def _draw_growth(axes: Axes, results: dict[str, Any]) -> None:
    rows = results["growth_users"]
    users = [row["users"] for row in rows]
    costs = [row["ms_per_interaction"] for row in rows]
    places = np.geomspace(users[0], users[-1], 50)
    bound = costs[0] * np.log(places) / math.log(users[0])
    axes.loglog(places, bound, color=_BOUND, linestyle="--", label="as the logarithm")
    axes.loglog(users, costs, color=_LINE, marker="o", linewidth=2.4, label="an interaction")
    axes.set_ylim(min(costs) / 3, 3 * max(*costs, *bound))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("users, served once each")
    axes.set_ylabel("ms per interaction")
    axes.legend(fontsize=_LARGE)
