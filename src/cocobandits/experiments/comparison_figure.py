"""Figures of a comparison: the ranking, and the regret of each policy in each environment."""

import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from cocobandits.experiments import drawing
from cocobandits.experiments.comparison import OURS, YARDSTICK, Comparison, Place
from cocobandits.experiments.measures import ENVIRONMENT_LABELS
from cocobandits.experiments.presets import PAPER_POLICIES, REFERENCE

# From an eighth of the yardstick's regret to four times; colours beyond are the same.
_LEAST, _MOST = -3.0, 2.0
_INK, _PAPER = "#1d2024", "#ffffff"
# Of cells that were not run.
_BLANK, _LINES = "#ececec", "#b8b8b8"


# Colours of a ranking: ours, the paper's policies, yardsticks and other systems.
_OURS, _PAPERS, _YARDSTICKS, _OTHERS = "#AA1144", "#D55E00", "#777777", "#9db7cf"


@drawing.styled
def ranking_figure(places: list[Place], num_environments: int) -> Figure:
    """Draw the regret of every policy as a share of the yardstick's, lowest on top."""
    ordered = sorted(places, key=lambda place: place.share)
    figure = drawing.new_figure(7.6, 0.9 + 0.21 * len(ordered))
    axes = figure.subplots()
    shares = [100 * place.share for place in ordered]
    bars = axes.barh(
        range(len(ordered)), shares, color=[_bar_color(place.policy) for place in ordered]
    )
    axes.bar_label(bars, [f"{share:.0f} %" for share in shares], padding=3, fontsize=8)
    axes.set_yticks(range(len(ordered)), [drawing.label_of(place.policy) for place in ordered])
    for text, place in zip(axes.get_yticklabels(), ordered, strict=True):
        if place.policy == OURS:
            text.set_fontweight("bold")
    axes.invert_yaxis()
    axes.axvline(100, color="#555555", linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set_xlim(0, 1.1 * max(shares))
    axes.set_xlabel(
        f"total regret, % of {drawing.label_of(YARDSTICK)}'s "
        f"(geometric mean over {num_environments} environments; lower is better)"
    )
    axes.tick_params(axis="y", length=0)
    kinds = {
        "ours": _OURS,
        "the paper's": _PAPERS,
        "other systems": _OTHERS,
        "knows the population, or shares nothing": _YARDSTICKS,
    }
    handles = [Rectangle((0, 0), 1, 1, color=color, label=kind) for kind, color in kinds.items()]
    axes.legend(handles=handles, loc="upper right", fontsize=8)
    return figure


def _bar_color(policy: str) -> str:
    if policy in (YARDSTICK, REFERENCE, "uniform"):
        return _YARDSTICKS
    if policy == OURS:
        return _OURS
    return _PAPERS if policy in PAPER_POLICIES and policy != "mtts" else _OTHERS


@drawing.styled
def heat_map(comparison: Comparison, policies: list[str]) -> Figure:
    """Draw mean total regret over the yardstick's, policies from the best to the worst."""
    environments = comparison.environments
    shares = np.full((len(policies), len(environments)), np.nan)
    for row, policy in enumerate(policies):
        for column, environment in enumerate(environments):
            if comparison.has(environment, policy):
                shares[row, column] = comparison.share(environment, policy)
    figure = drawing.new_figure(2.2 + 0.74 * len(environments), 1.9 + 0.3 * len(policies))
    axes = figure.subplots()
    logs = np.log2(np.maximum(shares, 1e-6))
    norm = TwoSlopeNorm(0.0, _LEAST, _MOST)
    image = axes.imshow(logs, cmap="RdBu_r", norm=norm, aspect="auto")
    for row, column in np.argwhere(np.isnan(shares)):
        corner = (column - 0.5, row - 0.5)
        axes.add_patch(
            Rectangle(corner, 1, 1, facecolor=_BLANK, edgecolor=_LINES, hatch="////", lw=0)
        )
    for row, column in np.ndindex(*shares.shape):
        axes.text(
            column,
            row,
            _show(float(shares[row, column])),
            ha="center",
            va="center",
            fontsize=7.5,
            color=_PAPER if abs(norm(logs[row, column]) - 0.5) > 0.3 else _INK,
        )
    axes.set_yticks(range(len(policies)), [drawing.label_of(policy) for policy in policies])
    names = [ENVIRONMENT_LABELS.get(name, name) for name in environments]
    axes.set_xticks(range(len(environments)), names, rotation=35, ha="right")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.015, extend="both")
    bar.set_ticks([-3, -2, -1, 0, 1, 2], labels=["⅛", "¼", "½", "1", "2", "4"])
    bar.set_label(f"total regret over that of {drawing.label_of(YARDSTICK)}")
    return figure


def _show(share: float) -> str:
    if np.isnan(share):
        return ""
    return f"{share:.2f}" if share < 9.995 else f"{share:.0f}"
