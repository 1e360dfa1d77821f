"""The heat map of a comparison: what each policy loses in each environment."""

import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from cocobandits.experiments import drawing
from cocobandits.experiments.comparison import YARDSTICK, Comparison
from cocobandits.experiments.measures import ENVIRONMENT_LABELS

# From an eighth of the yardstick's regret to four times; colours beyond are the same.
_LEAST, _MOST = -3.0, 2.0
_INK, _PAPER = "#1d2024", "#ffffff"
# Of cells that were not run.
_BLANK, _LINES = "#ececec", "#b8b8b8"


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
