"""What is missing from a context is integrated out over what others' values have been."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, norm

from cocobandits.study.users import NUM_POINTS, Completion, _order

NAN = math.nan
MIDDLES = (np.arange(NUM_POINTS) + 0.5) / NUM_POINTS


def completion_of(kinds, rows) -> Completion:
    completion = Completion(kinds)
    for row in rows:
        completion.add(np.array(row, dtype=float))
    return completion


def column(completion, num_features, feature=0):
    """Complete a context of which one feature is missing, and sort its points."""
    encoded = np.zeros(num_features)
    encoded[feature] = NAN
    return np.sort(completion.complete(encoded)[:, feature])


def test_what_is_known_stays_as_it_is():
    encoded = np.array([0.3, 2.0])
    assert completion_of((None, 3), [(-0.5, 1)]).complete(encoded) is encoded
    points = completion_of((None, 3), []).complete(np.array([NAN, 2.0]))
    assert points.shape == (NUM_POINTS, 2)
    np.testing.assert_array_equal(points[:, 1], 2.0)
    empty = np.zeros(0)
    assert completion_of((), []).complete(empty) is empty


def test_with_nobody_seen_the_distribution_is_the_prior():
    """Midpoints of eight equal parts of [-1, 1]; two categories with four points each."""
    completion = completion_of((None, 2), [])
    np.testing.assert_allclose(column(completion, 2), 2 * MIDDLES - 1, atol=1e-15)
    np.testing.assert_array_equal(column(completion, 2, 1), [0, 0, 0, 0, 1, 1, 1, 1])


def test_one_value_has_half_of_the_weight():
    """F jumps by a half at 0.2, and the other half is uniform: 0.3 below it and 0.2 above."""
    found = column(completion_of((None,), [(0.2,)]), 1)
    below = [4 * middle - 1 for middle in MIDDLES if middle <= 0.3]
    above = [4 * (middle - 0.5) - 1 for middle in MIDDLES if middle >= 0.8]
    expected = [*below, *[0.2] * (NUM_POINTS - len(below) - len(above)), *above]
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_values_are_spread_halfway_to_their_neighbours():
    """Write the distribution function of -0.6, 0 and 0.2 out, and invert it by bisection."""
    stretches = [(-0.9, -0.3), (-0.3, 0.1), (0.1, 0.3)]

    def distribution(x):
        parts = [np.clip((x - low) / (high - low), 0, 1) for low, high in stretches]
        return ((x + 1) / 2 + sum(parts)) / 4

    found = column(completion_of((None,), [(0.0,), (0.2,), (-0.6,)]), 1)
    np.testing.assert_allclose([distribution(x) for x in found], MIDDLES, atol=1e-12)


def test_stretches_end_with_the_range():
    found = column(completion_of((None,), [(-1.0,), (0.9,)] * 40), 1)
    assert np.all(np.abs(found) <= 1)
    assert found[0] == -1.0
    assert found[-1] > 0.85


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # Where (i + ½)/8 falls among (1/3 + n) / (1 + N), added up.
        ((0, 0, 0), (3, 2, 3)),
        ((1, 0, 0), (5, 2, 1)),  # 5.33, 1.33, 1.33
        ((2, 1, 0), (5, 2, 1)),  # 4.67, 2.67, 0.67
        ((0, 0, 9), (0, 1, 7)),  # 0.27, 0.27, 7.47
        ((30, 30, 30), (3, 2, 3)),
    ],
)
def test_categories_get_their_share_of_the_points(counts, expected):
    rows = [(category,) for category, count in enumerate(counts) for _ in range(count)]
    found = column(completion_of((3,), rows), 1)
    assert tuple(np.bincount(found.astype(int), minlength=3)) == expected


@pytest.mark.parametrize("counts", [(94, 6), (5,) * 12, (200, 1, 3)])
def test_what_is_rare_has_its_share_among_all_users(counts):
    """Nobody's points miss a share by more than one, and everybody's together have it exactly."""
    rows = [(category,) for category, count in enumerate(counts) for _ in range(count)]
    completion = completion_of((len(counts),), rows)
    shares = (np.array(counts) + 1 / len(counts)) / (sum(counts) + 1)
    found = np.array(
        [
            np.bincount(
                completion.complete(np.array([NAN]), user)[:, 0].astype(int), minlength=len(counts)
            )
            for user in range(1000)
        ]
    )
    assert np.abs(found - NUM_POINTS * shares).max() < 1
    np.testing.assert_allclose(found.mean(axis=0), NUM_POINTS * shares, atol=0.01)


def test_users_have_quantiles_of_their_own():
    """Together they fill the range evenly; one user's are the same whenever asked."""
    completion = completion_of((None,), [])
    points = np.array([completion.complete(np.array([NAN]), user)[:, 0] for user in range(50)])
    assert len(np.unique(points)) == points.size
    assert kstest((points.ravel() + 1) / 2, "uniform").statistic < 0.01
    again = completion.complete(np.array([NAN]), 7)
    np.testing.assert_array_equal(again[:, 0], points[7])


def test_average_over_points_is_the_integral_of_a_smooth_function():
    """One missing feature, against quadrature over a skewed true distribution; eight points."""
    rng = np.random.default_rng(1)
    seen = np.clip(rng.normal(-0.3, 0.25, 4000), -1, 1)
    points = column(completion_of((None,), [(value,) for value in seen]), 1)

    def smooth(x):
        return np.exp(1.3 * x) + x**2

    expected, _ = quad(lambda x: smooth(x) * norm.pdf(x, -0.3, 0.25), -1, 1)
    found = np.mean(smooth(points))
    print(f"\naverage over points {found:.4f}, integral {expected:.4f}")
    assert abs(found / expected - 1) < 0.02


@pytest.mark.parametrize("pair", [(0, 1), (0, 3), (2, 5), (6, 7)])
def test_two_missing_features_are_not_aligned(pair):
    """E[(x + 2)(y + 2)] of independent uniforms is 4; aligned points would give 4.33."""
    points = completion_of((None,) * 8, []).complete(np.full(8, NAN))
    first, second = points[:, pair[0]], points[:, pair[1]]
    assert abs(np.mean((first + 2) * (second + 2)) - 4) < 0.1


def test_orders_are_permutations_and_hardly_correlated():
    orders = np.array([_order(feature) for feature in range(NUM_POINTS)])
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(8), (8, 1)))
    correlation = np.corrcoef(orders) - np.eye(NUM_POINTS)
    assert -0.2 < correlation.min() < correlation.max() < 1e-12
    assert len({tuple(_order(feature)) for feature in range(40)}) == 40


def test_quantiles_converge_to_the_true_distribution():
    """The largest error at eight quantiles shrinks like 1/√n; categories go to their shares."""
    rng = np.random.default_rng(7)
    true = norm.ppf(MIDDLES, 0.2, 0.2)
    errors = []
    for num_users in (10, 100, 1000, 10_000):
        seen = np.clip(rng.normal(0.2, 0.2, num_users), -1, 1)
        found = column(completion_of((None,), [(value,) for value in seen]), 1)
        errors.append(np.abs(found - true).max())
    print(f"\nlargest error of a quantile: {np.round(errors, 4).tolist()}")
    assert errors[-1] < 0.02
    assert errors[-1] < errors[1] < 0.2
    shares = np.array([0.5, 0.375, 0.125])
    seen = rng.choice(3, size=5000, p=shares)
    found = column(completion_of((3,), [(value,) for value in seen]), 1)
    np.testing.assert_array_equal(np.bincount(found.astype(int)) / NUM_POINTS, shares)


def test_smoothing_does_not_move_the_distribution():
    """Many quantiles at once: draws by inversion are those of the values themselves."""
    rng = np.random.default_rng(2)
    seen = rng.beta(2, 5, 400) * 2 - 1
    completion = completion_of((None,), [(value,) for value in seen])
    assert kstest(column(completion, 1), seen).pvalue > 0.5


def test_order_of_enrolment_does_not_matter_and_removal_leaves_no_trace():
    rng = np.random.default_rng(4)
    rows = list(zip(rng.uniform(-1, 1, 30), rng.integers(0, 3, 30), strict=True))
    rows[3] = (NAN, 2.0)
    one = completion_of((None, 3), rows)
    other = completion_of((None, 3), [*rows[::-1], (0.123, NAN), (0.123, 1)])
    other.remove(np.array([0.123, 1.0]))
    other.remove(np.array([0.123, NAN]))
    missing = np.array([NAN, NAN])
    assert one.complete(missing).tobytes() == other.complete(missing).tobytes()
    assert (one.num_seen(0), one.num_seen(1)) == (29, 30)
