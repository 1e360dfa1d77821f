"""Means over seeds with standard errors and 95 % intervals, and how they are written.

Every policy meets the same users and noise on a seed, so two policies are compared by the
differences between them, seed by seed.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from cocobandits.runs.results import Values

DASH = "–"


class Estimate(NamedTuple):
    """A mean over seeds, its standard error and its 95 % interval; NaN where they are unknown."""

    mean: float
    error: float
    low: float
    high: float

    def is_below(self, limit: float = 0.0) -> bool | None:
        """Compare with a limit; None if the interval does not decide it."""
        return True if self.high < limit else False if self.low > limit else None

    def is_above(self, limit: float = 0.0) -> bool | None:
        """Compare with a limit; None if the interval does not decide it."""
        return True if self.low > limit else False if self.high < limit else None

    def with_error(self, digits: int = 1) -> str:
        """Write as mean ± standard error."""
        return f"{number(self.mean, digits)} ± {number(self.error, digits)}"

    def with_interval(self, digits: int = 1) -> str:
        """Write as mean and interval."""
        return f"{number(self.mean, digits)} {self.interval(digits)}"

    def interval(self, digits: int = 1) -> str:
        """Write the interval in brackets."""
        if math.isnan(self.low):
            return f"[{DASH}]"
        return f"[{number(self.low, digits)}, {number(self.high, digits)}]"

    def percent(self, digits: int = 0, unit: str = "%") -> str:
        """Write a share, or a difference of shares, with its interval in percent."""
        scaled = Estimate(*(100 * value for value in self))
        return f"{number(scaled.mean, digits)} {unit} {scaled.interval(digits)}"


def estimate(values: Values) -> Estimate:
    """Estimate the mean of one value per seed; the interval is that of a t-test."""
    mean, error = map(float, curve(values))
    return around(mean, error, len(values))


def around(mean: float, error: float, num_seeds: int) -> Estimate:
    """Reach the 97.5 % quantile of Student's t, in standard errors, to both sides of a mean."""
    reach = t_quantile(num_seeds) * error
    return Estimate(mean, error, mean - reach, mean + reach)


def curve(values: Values) -> tuple[Values, Values]:
    """Compute mean and standard error, sd / √n, over the first axis, the seeds."""
    num_seeds = len(values)
    mean = np.asarray(values.mean(axis=0))
    if num_seeds < 2:
        return mean, np.full_like(mean, np.nan)
    return mean, np.asarray(values.std(axis=0, ddof=1) / math.sqrt(num_seeds))


def ratio(first: Values, second: Values) -> Estimate:
    """Compare two policies by mean(first) / mean(second), NaN if the second is zero.

    The interval is Fieller's: all ratios ρ that a paired t-test of first - ρ · second does not
    reject, which solve (mean(first) - ρ mean(second))² = t² var(mean(first - ρ second)). It is NaN
    where it would be unbounded, since the second mean may be zero. There is no standard error.
    """
    above, below, num_seeds = float(first.mean()), float(second.mean()), len(first)
    low = high = math.nan
    if num_seeds > 1:
        variances = t_quantile(num_seeds) ** 2 * (np.cov(first, second) / num_seeds)
        square, cross = below**2 - variances[1, 1], above * below - variances[0, 1]
        if square > 0:
            root = math.sqrt(max(0.0, cross**2 - square * (above**2 - variances[0, 0])))
            low, high = (cross - root) / square, (cross + root) / square
    return Estimate(above / below if below else math.nan, math.nan, low, high)


def t_quantile(num_seeds: int) -> float:
    """Compute the 97.5 % quantile of Student's t; NaN for a single seed."""
    return float(stdtrit(num_seeds - 1, 0.975))


def number(value: float, digits: int = 1) -> str:
    """Write a number with a true minus sign; a dash if it is not one."""
    if math.isnan(value):
        return DASH
    # Adding zero turns a rounded -0.0 into 0.0.
    return f"{round(float(value), digits) + 0.0:.{digits}f}".replace("-", "−")


def percent(share: float, digits: int = 0) -> str:
    """Write a share in percent."""
    return f"{number(100 * share, digits)} %"
