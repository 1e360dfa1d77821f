"""The rewards over which expectations of the next reward are summed."""

import math
from dataclasses import dataclass

import jax.numpy as jnp

from cocobandits.numerics.traced import traced
from cocobandits.types import Values

# Rewards further outside the range of arm means than this many deviations hardly ever happen.
_TAIL = 5.0
_FEWEST, _MOST = 64, 512
# Numbers of rewards that functions are compiled for. The paper's noise asks for 51, and a noise
# that is learned for 345.
_CAPACITIES = (32, 52, 64, 80, 104, 136, 184, 256, 352, 512)
# How far away rewards lie that are not summed over, in widths of the grid: their density is zero.
_FAR = 100.0


@traced("lowest", "highest", "num_values", choices=("capacity", "is_dense"))
@dataclass(frozen=True)
class RewardGrid:
    """`lowest` to `highest` in `num_values` even steps, with room for `capacity`.

    It is dense if rewards are any numbers, of which these are a few, and else all there are.
    """

    lowest: float
    highest: float
    num_values: int
    capacity: int
    is_dense: bool = True

    @classmethod
    def even(
        cls, lowest: float, highest: float, num_values: int, is_dense: bool = False
    ) -> "RewardGrid":
        """Lay out a number of rewards, with no room for more."""
        return cls(lowest, highest, num_values, num_values, is_dense)

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
        num_values = min(max(steps + 1, fewest), _MOST)
        capacity = next(each for each in _CAPACITIES if each >= num_values)
        return cls(lowest, highest, num_values, capacity)

    def values(self) -> Values:
        """List the rewards; what is beyond their number lies where no reward can be."""
        numbers = jnp.arange(self.capacity)
        width = jnp.asarray(self.highest, dtype=float) - self.lowest
        inside = self.lowest + width * (numbers / (self.num_values - 1))
        return jnp.where(numbers < self.num_values, inside, self.highest + _FAR * width)
