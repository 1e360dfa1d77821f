import math

import numpy as np
import pytest
from scipy import stats
from synthetic_run import NUM_STEPS, Scenario, write_run

from cocobandits.experiments.estimates import (
    curve,
    difference,
    estimate,
    number,
    percent,
    points,
    ratio,
    t_quantile,
)
from cocobandits.experiments.measures import (
    fifths,
    in_display_order,
    measure,
    particle_health,
    slopes,
)
from cocobandits.experiments.reading import load_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return load_run(write_run(tmp_path_factory.mktemp("run")))


def test_total_regret_is_a_geometric_sum(run):
    """NPM-TS: 0.1 per step, 0.5 · 0.9^t on top, 0.001 per seed."""
    geometric = 0.5 * (1 - 0.9**NUM_STEPS) / (1 - 0.9)
    expected = [NUM_STEPS * (0.1 + 0.001 * seed) + geometric for seed in range(4)]
    np.testing.assert_allclose(measure(run).total_regret("partial", "npm-ts"), expected)


def test_cumulative_regret_at_every_step(run):
    """GIDS after three steps, on seed 2."""
    found = measure(run).cumulative_regret("mixture", "gids")[2, :3]
    np.testing.assert_allclose(found, np.cumsum([0.504, 0.464, 0.428]))


def test_multitask_regret_is_what_the_oracle_does_not_lose(run):
    """Seeds drift alike in both, so only the geometric part is left."""
    found = measure(run).multitask_regret("partial", "npm-ts")
    expected = 0.5 * (1 - 0.9 ** np.arange(1, NUM_STEPS + 1)) / (1 - 0.9)
    np.testing.assert_allclose(found, np.tile(expected, (4, 1)))


def test_multitask_regret_needs_an_oracle(tmp_path):
    """Leave the oracle out."""
    policies = ("gids", "ind-ts")
    measures = measure(load_run(write_run(tmp_path, Scenario().only(policies=policies))))
    with pytest.raises(KeyError, match="oracle-ts"):
        measures.multitask_regret("mixture", "gids")


def test_third_arm_shares_by_fifth(run):
    """GIDS pulls it 8 times in the first twenty steps and once in the last twenty."""
    measures = measure(run)
    parts = measures.third_arm_parts("mixture", "gids")
    np.testing.assert_allclose(parts, np.tile([8 / 20, 0, 0, 0, 1 / 20], (4, 1)))
    np.testing.assert_allclose(measures.third_arm_share("mixture", "gids"), 9 / 100)


def test_rows_of_a_table_may_come_in_any_order(run):
    """Reverse records and evaluations."""
    last_first = np.arange(run.records.num_rows)[::-1]
    evaluations = np.arange(run.evaluations.num_rows)[::-1]
    turned = type(run)(
        **vars(run)
        | {
            "records": run.records.take(last_first),
            "evaluations": run.evaluations.take(evaluations),
        }
    )
    for name in ("regrets", "arms", "evaluations"):
        straight, reverse = (getattr(measure(each), name) for each in (run, turned))
        assert straight.keys() == reverse.keys()
        for key, values in straight.items():
            np.testing.assert_array_equal(values, reverse[key])


def test_particle_health_over_all_seeds(run):
    """Acceptance 0.6 - 0.001 · (0, ..., 90); correlations 0.4 to 0.7; ten updates of 3 moves."""
    health = particle_health(run)["lmm", "gids"]
    np.testing.assert_allclose(health, [40, 0.555, 0.51, 0.6, 0.55, 0.7, 30, 87.0, 30.0])
    assert health.is_accepting


def test_particle_health_knows_the_target_of_each_policy(tmp_path):
    """Coids was to end below 0.65, so only the last of four seeds has spent its budget."""
    own = load_run(write_run(tmp_path, Scenario.of_coids().only(("lmm",), ("coids",))))
    health = particle_health(own)["lmm", "coids"]
    assert health.num_above_target == 10
    for rate, is_accepting in ((0.29, False), (0.3, True)):
        assert health._replace(lowest_acceptance=rate).is_accepting == is_accepting
    assert not health._replace(highest_acceptance=0.81).is_accepting


def test_second_half_is_a_geometric_sum_too(run):
    """GIDS: fifty steps from the fiftieth on."""
    rest = 0.4 * 0.9**50 * (1 - 0.9**50) / (1 - 0.9)
    expected = [50 * (0.1 + 0.002 * seed) + rest for seed in range(4)]
    np.testing.assert_allclose(measure(run).second_half_regret("mixture", "gids"), expected)


def test_fifths_cover_the_run():
    """Equal parts if they can be; never an empty one."""
    assert fifths(750) == [slice(150 * part, 150 * (part + 1)) for part in range(5)]
    assert [part.stop - part.start for part in fifths(12)] == [2, 2, 3, 2, 3]
    assert fifths(3)[0] == slice(0, 1)
    assert fifths(3)[-1] == slice(2, 3)


def test_slope_is_the_rise_per_step():
    """A curve that rises by 2 per step, then by 5."""
    cumulative = np.cumsum([[2.0, 2.0, 5.0, 5.0]], axis=1)
    assert slopes(cumulative, slice(0, 2)).tolist() == [2.0]
    assert slopes(cumulative, slice(2, 4)).tolist() == [5.0]


def test_mean_and_standard_error_by_hand():
    """Of 1, 2 and 6: mean 3, variance 7."""
    found = estimate(np.array([1.0, 2.0, 6.0]))
    assert found == pytest.approx((3.0, math.sqrt(7 / 3)))
    assert found.show(2) == "3.00 ± 1.53"


def test_one_seed_has_no_error():
    """The mean stays, and dashes stand for what is unknown."""
    assert estimate(np.array([2.5])).show() == "2.5 ± –"
    assert np.isnan(curve(np.ones((1, 4)))[1]).all()
    gap = difference(np.array([1.0]), np.array([3.0]))
    assert gap.show() == "−2.0 [–]"
    assert gap.is_below() is None
    assert gap.is_above() is None


def test_paired_interval_is_that_of_a_t_test():
    """Compare with SciPy, on seeds that differ more from each other than the policies do."""
    first, second = np.array([10.0, 20.5, 30.1, 41.0]), np.array([11.0, 22.0, 31.0, 43.5])
    gap = difference(first, second)
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
    assert ratio(-first, -second) == pytest.approx(found)
    assert ratio(-first, second).high == pytest.approx(-found.low)


def test_ratio_to_what_may_be_zero_has_no_interval():
    """Two seeds whose mean could be zero; then a mean that is zero; then one seed."""
    assert ratio(np.array([3.0, 5.0]), np.array([2.0, 6.0])).show(2) == "1.00 [–]"
    assert math.isnan(ratio(np.array([1.0, 2.0]), np.array([1.0, -1.0])).mean)
    assert ratio(np.array([3.0]), np.array([2.0])).show() == "1.5 [–]"


@pytest.mark.parametrize("degrees", [1, 3, 9, 10, 11, 15, 30, 200])
def test_t_quantile_is_that_of_scipy(degrees):
    """In the table and beyond it."""
    assert t_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), abs=5e-4)


def test_numbers_are_written_for_people():
    """True minus, no minus zero."""
    assert number(-1.26) == "−1.3"
    assert number(-0.04) == "0.0"
    assert percent(0.256) == "26 %"
    gap = difference(np.array([0.1, 0.3]), np.array([0.2, 0.4]))
    assert points(gap, digits=1) == "−10.0 points [−10.0, −10.0]"
    assert points(ratio(np.array([1.0]), np.array([4.0])), unit="%") == "25 % [–]"


def test_policies_are_shown_in_the_order_of_the_paper():
    """Strangers come last."""
    assert in_display_order(["new", "uniform", "gids", "npm-ts"]) == [
        "npm-ts",
        "gids",
        "uniform",
        "new",
    ]
