import math

import numpy as np
import pytest
from scipy import stats

from cocobandits.experiments.estimates import (
    curve,
    estimate,
    number,
    percent,
    ratio,
)


def test_mean_and_standard_error_by_hand():
    """Of 1, 2 and 6: mean 3, variance 7."""
    found = estimate(np.array([1.0, 2.0, 6.0]))
    assert found[:2] == pytest.approx((3.0, math.sqrt(7 / 3)))
    assert found.with_error(2) == "3.00 ± 1.53"


def test_one_seed_has_no_error():
    """The mean stays, and dashes stand for what is unknown."""
    assert estimate(np.array([2.5])).with_error() == "2.5 ± –"
    assert np.isnan(curve(np.ones((1, 4)))[1]).all()
    gap = estimate(np.array([-2.0]))
    assert gap.with_interval() == "−2.0 [–]"
    assert gap.is_below() is None
    assert gap.is_above() is None


def test_paired_interval_is_that_of_a_t_test():
    """Compare with SciPy, on seeds that differ more from each other than the policies do."""
    first, second = np.array([10.0, 20.5, 30.1, 41.0]), np.array([11.0, 22.0, 31.0, 43.5])
    gap = estimate(first - second)
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    np.testing.assert_allclose((gap.low, gap.high), expected, rtol=1e-4)
    assert gap.is_below()
    assert gap.is_above(-3.0)
    assert gap.is_below(-2.0) is None


def test_interval_of_a_ratio_is_the_inverted_t_test():
    """Try every ratio on a grid with SciPy: those that a paired test does not reject."""
    first, second = np.array([3.0, 5.5, 4.1, 7.0, 6.2]), np.array([4.0, 6.0, 5.5, 9.0, 7.1])
    found = ratio(first, second)
    grid = np.linspace(0.0, 2.0, 20_001)
    residuals = first[:, None] - grid * second[:, None]
    kept = grid[stats.ttest_1samp(residuals, 0, axis=0).pvalue > 0.05]
    np.testing.assert_allclose((found.low, found.high), (kept[0], kept[-1]), atol=2e-4)
    assert found.mean == pytest.approx(first.mean() / second.mean())
    # A larger sign of both changes nothing; a sign of one mirrors the interval.
    assert ratio(-first, -second) == pytest.approx(found, nan_ok=True)
    assert ratio(-first, second).high == pytest.approx(-found.low)


def test_ratio_to_what_may_be_zero_has_no_interval():
    """Two seeds whose mean could be zero; then a mean that is zero; then one seed."""
    assert ratio(np.array([3.0, 5.0]), np.array([2.0, 6.0])).with_interval(2) == "1.00 [–]"
    assert math.isnan(ratio(np.array([1.0, 2.0]), np.array([1.0, -1.0])).mean)
    assert ratio(np.array([3.0]), np.array([2.0])).with_interval() == "1.5 [–]"


def test_numbers_are_written_for_people():
    """True minus, no minus zero."""
    assert number(-1.26) == "−1.3"
    assert number(-0.04) == "0.0"
    assert percent(0.256) == "26 %"
    gap = estimate(np.array([0.1, 0.3]) - np.array([0.2, 0.4]))
    assert gap.percent(1, "points") == "−10.0 points [−10.0, −10.0]"
    assert ratio(np.array([1.0]), np.array([4.0])).percent() == "25 % [–]"
