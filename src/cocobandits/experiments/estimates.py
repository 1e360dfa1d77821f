"""Means over seeds with their errors, and paired differences between two policies.

Every policy meets the same users and noise on a seed, so differences are taken seed by seed.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from cocobandits.runs.results import Values

DASH = "–"


class Estimate(NamedTuple):
    """A mean over seeds and its standard error, NaN for one seed."""

    mean: float
    error: float

    def show(self, digits: int = 1) -> str:
        """Write as mean ± standard error."""
        error = DASH if math.isnan(self.error) else f"{self.error:.{digits}f}"
        return f"{number(self.mean, digits)} ± {error}"


class Difference(NamedTuple):
    """A paired difference (or ratio) over seeds with its 95 % interval, NaN for one seed."""

    mean: float
    error: float
    low: float
    high: float

    def is_below(self, limit: float = 0.0) -> bool | None:
        """Compare with a limit; None if the interval does not decide it."""
        if self.high < limit:
            return True
        return False if self.low > limit else None

    def is_above(self, limit: float = 0.0) -> bool | None:
        """Compare with a limit; None if the interval does not decide it."""
        is_below = self.is_below(limit)
        return None if is_below is None else not is_below

    def show(self, digits: int = 1) -> str:
        """Write as mean and interval."""
        return f"{number(self.mean, digits)} {self.show_interval(digits)}"

    def show_interval(self, digits: int = 1) -> str:
        """Write the interval in brackets."""
        if math.isnan(self.low):
            return f"[{DASH}]"
        return f"[{number(self.low, digits)}, {number(self.high, digits)}]"


def estimate(values: Values) -> Estimate:
    """Compute the mean and sd / √n (one less degree of freedom) of one value per seed."""
    mean, error = curve(values)
    return Estimate(float(mean), float(error))


def curve(values: Values) -> tuple[Values, Values]:
    """Compute mean and standard error over the first axis, the seeds."""
    num_seeds = len(values)
    mean = np.asarray(values.mean(axis=0))
    if num_seeds < 2:
        return mean, np.full_like(mean, np.nan)
    return mean, np.asarray(values.std(axis=0, ddof=1) / math.sqrt(num_seeds))


def difference(first: Values, second: Values) -> Difference:
    """Compare two policies seed by seed: first minus second."""
    mean, error = estimate(first - second)
    reach = t_quantile(len(first) - 1) * error
    return Difference(mean, error, mean - reach, mean + reach)


def ratio(first: Values, second: Values) -> Difference:
    """Compare the means of two policies: mean(first) / mean(second), NaN if the second is zero.

    The interval is Fieller's: all ratios ρ that a paired t-test of first - ρ · second does not
    reject. It is NaN where it would be unbounded, since the second mean may be zero.
    """
    above, below = float(first.mean()), float(second.mean())
    share = above / below if below else math.nan
    error = estimate(first - share * second).error / abs(below) if below else math.nan
    low, high = _fieller(first, second) if len(first) > 1 else (math.nan, math.nan)
    return Difference(share, error, low, high)


def _fieller(first: Values, second: Values) -> tuple[float, float]:
    """Solve (mean(first) - ρ mean(second))² = t² var(mean(first - ρ second)) for ρ."""
    squared_t = t_quantile(len(first) - 1) ** 2
    covariance = np.cov(first, second) / len(first)
    square = float(second.mean()) ** 2 - squared_t * covariance[1, 1]
    cross = float(first.mean() * second.mean()) - squared_t * covariance[0, 1]
    constant = float(first.mean()) ** 2 - squared_t * covariance[0, 0]
    if square <= 0:
        return math.nan, math.nan
    root = math.sqrt(max(0.0, cross**2 - square * constant))
    return (cross - root) / square, (cross + root) / square


def t_quantile(degrees: int) -> float:
    """Compute the 97.5 % quantile of Student's t; NaN without a degree of freedom."""
    return float(stdtrit(degrees, 0.975))


def number(value: float, digits: int = 1) -> str:
    """Write a number with a true minus sign; a dash if it is not one."""
    if math.isnan(value):
        return DASH
    # Adding zero turns a rounded -0.0 into 0.0.
    return f"{round(float(value), digits) + 0.0:.{digits}f}".replace("-", "−")


def percent(share: float, digits: int = 0) -> str:
    """Write a share in percent."""
    return f"{number(100 * share, digits)} %"


def points(gap: Difference, digits: int = 0, unit: str = "points") -> str:
    """Write a share or a difference of shares, with its interval, in percent."""
    scaled = Difference(*(100 * value for value in gap))
    return f"{number(scaled.mean, digits)} {unit} {scaled.show_interval(digits)}"
