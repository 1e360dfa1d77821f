"""The rewards over which expectations of the next reward are summed."""

import math
from dataclasses import dataclass

import jax.numpy as jnp

from cocobandits.types import Values

# Rewards further outside the range of arm means than this many deviations hardly ever happen.
_TAIL = 5.0
_FEWEST, _MOST = 64, 512


@dataclass(frozen=True)
class RewardGrid:
    """`lowest` to `highest` in `num_values` even steps."""

    lowest: float
    highest: float
    num_values: int

    @classmethod
    def spanning(
        cls,
        mean_range: tuple[float, float],
        noise_range: tuple[float, float],
        fewest: int = _FEWEST,
    ) -> "RewardGrid":
        """Lay out rewards one noise deviation apart, or closer, over all that can happen.

        Predictive densities are at least as wide as the noise, and sums over a grid of that
        spacing integrate a Gaussian to nine digits. Noise below about 1/500 of the range gets a
        wider spacing; the shares of rewards are normalised over the grid all the same.
        The best mean after a reward has kinks, which such sums take to two or three digits.
        """
        low, high = mean_range
        least_noise, most_noise = noise_range
        lowest, highest = low - _TAIL * most_noise, high + _TAIL * most_noise
        steps = math.ceil((highest - lowest) / least_noise)
        return cls(lowest, highest, min(max(steps + 1, fewest), _MOST))

    def values(self) -> Values:
        """List the rewards."""
        return jnp.linspace(self.lowest, self.highest, self.num_values)
