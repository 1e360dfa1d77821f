"""How well each cell of an arm explains a user's rewards of that arm.

With Gaussian noise the likelihood factorises over arms, so a user's whole history becomes one short
vector per arm. Owns both readings of it: averaged over the cell (default) and at the node (the
paper's, which is wrong by a factor of up to four when nodes are two noise deviations apart).
"""

from typing import Literal

from cocobandits.models.base import Statistics
from cocobandits.models.log_density.grid import Axis
from cocobandits.models.truncated_normal import (
    interval_log_likelihood,
    sample_mean,
    spread_log_likelihood,
)
from cocobandits.types import ArmCells, Number

LikelihoodName = Literal["cell", "node"]


def arm_log_likelihood(
    statistics: Statistics, axis: Axis, reward_noise: Number, kind: LikelihoodName
) -> ArmCells:
    """Compute log p(rewards of arm a | μ_a in cell): averaged over the cell, or at its node."""
    if kind == "cell":
        return interval_log_likelihood(statistics, reward_noise, axis.edges)
    distance = (axis.nodes[None, :] - sample_mean(statistics)[:, None]) / reward_noise
    constant = spread_log_likelihood(statistics, reward_noise)[:, None]
    return constant - 0.5 * statistics.count[:, None] * distance**2
