"""Figures of a comparison: the ranking, and the regret of each policy in each environment."""

from itertools import product
from typing import Any

import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from cocobandits.experiments.claims import OURS
from cocobandits.experiments.figures import drawing
from cocobandits.experiments.figures.drawing import figure
from cocobandits.experiments.ranking import rank, share, shared_environments
from cocobandits.experiments.rules import ALONE
from cocobandits.runs.results import ORACLE, Results

# From an eighth of Ind-TS's regret to four times; colours beyond are the same.
_LEAST, _MOST = -3.0, 2.0
_INK, _PAPER = "#1d2024", "#ffffff"
# Of cells that were not run.
_BLANK, _HATCHES = "#ececec", "#b8b8b8"
_OTHERS = "#9db7cf"
# Colours of a ranking; all other policies are other systems.
_KINDS = {
    "ours": ("#AA1144", (OURS,)),
    "the paper's": ("#D55E00", ("npm-ts", "gids")),
    "other systems": (_OTHERS, ()),
    "knows the population, or shares nothing": ("#777777", (ALONE, ORACLE, "uniform")),
}
_COLORS = {policy: color for color, policies in _KINDS.values() for policy in policies}


@figure(
    "comparison",
    "Total regret of every policy in every environment, over that of Ind-TS",
    "Total regret over that of Ind-TS, who serves every user alone.",
    needs="cells",
    scope="comparison",
)
def heat_map(results: Results) -> Figure:
    """Draw mean total regret over that of Ind-TS, policies from the best to the worst."""
    policies, environments = [each.policy for each in rank(results)], results.environments
    cells = product(policies, environments)
    known = [share(results, e, p) if results.has(e, p) else np.nan for p, e in cells]
    shares = np.reshape(known, (len(policies), len(environments)))
    drawn = drawing.new_figure(2.2 + 0.74 * len(environments), 1.9 + 0.3 * len(policies))
    axes = drawn.subplots()
    logs = np.log2(np.maximum(shares, 1e-6))
    norm = TwoSlopeNorm(0.0, _LEAST, _MOST)
    image = axes.imshow(logs, cmap="RdBu_r", norm=norm, aspect="auto")
    blank: Any = {"facecolor": _BLANK, "edgecolor": _HATCHES, "hatch": "////", "linewidth": 0}
    for row, column in np.argwhere(np.isnan(shares)):
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **blank))
    for (row, column), value in np.ndenumerate(shares):
        text = "" if np.isnan(value) else f"{value:.2f}" if value < 9.995 else f"{value:.0f}"
        color = _PAPER if abs(norm(logs[row, column]) - 0.5) > 0.3 else _INK
        axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color=color)
    axes.set_yticks(range(len(policies)), [results.label(policy) for policy in policies])
    names = [results.environment_label(name) for name in environments]
    axes.set_xticks(range(len(environments)), names, rotation=35, ha="right")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = drawn.colorbar(image, ax=axes, shrink=0.8, pad=0.015, extend="both")
    bar.set_ticks([-3, -2, -1, 0, 1, 2], labels=["⅛", "¼", "½", "1", "2", "4"])
    bar.set_label(f"total regret over that of {results.label(ALONE)}")
    return drawn


@figure(
    "ranking",
    "Total regret of every policy, as a share of Ind-TS's",
    "Geometric mean over the environments in which all ran.",
    needs="cells",
    scope="comparison",
)
def ranking_figure(results: Results) -> Figure:
    """Draw the regret of every policy as a share of that of Ind-TS, lowest on top."""
    ordered = sorted(rank(results), key=lambda each: each.share)
    drawn = drawing.new_figure(7.6, 0.9 + 0.21 * len(ordered))
    axes = drawn.subplots()
    shares = np.nan_to_num([100 * each.share for each in ordered])
    colors = [_COLORS.get(each.policy, _OTHERS) for each in ordered]
    bars = axes.barh(range(len(ordered)), shares, color=colors)
    axes.bar_label(bars, [f"{share:.0f} %" for share in shares], padding=3, fontsize=8)
    axes.set_yticks(range(len(ordered)), [results.label(each.policy) for each in ordered])
    for text, each in zip(axes.get_yticklabels(), ordered, strict=True):
        if each.policy == OURS:
            text.set_fontweight("bold")
    axes.invert_yaxis()
    axes.axvline(100, color=drawing.GREY, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set_xlim(0, 1.1 * max(100, *shares))
    num_environments = len(shared_environments(results) or results.environments)
    axes.set_xlabel(
        f"total regret, % of {results.label(ALONE)}'s (geometric mean over {num_environments} "
        "environments; lower is better)"
    )
    axes.tick_params(axis="y", length=0)
    handles = [
        Rectangle((0, 0), 1, 1, color=color, label=kind) for kind, (color, _) in _KINDS.items()
    ]
    axes.legend(handles=handles, loc="upper right", fontsize=8)
    return drawn
