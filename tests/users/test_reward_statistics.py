import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits.users.statistics import Statistics, mean_deviation, sample_mean

# Sums of these are exact in binary, so that orders can be compared bit for bit.
REWARDS = [(0, 0.5), (2, -1.25), (0, 0.75), (2, 0.125)]


def test_statistics_sum_rewards_per_arm():
    """Sum by hand: arm 0 has 0.5 and 0.75, arm 2 has -1.25 and 0.125."""
    statistics = Statistics.empty(3)
    for arm, reward in REWARDS:
        statistics = statistics.add(arm, reward)
    np.testing.assert_array_equal(statistics.count, [2.0, 0.0, 2.0])
    np.testing.assert_array_equal(statistics.total, [1.25, 0.0, -1.125])
    np.testing.assert_array_equal(statistics.total_square, [0.8125, 0.0, 1.578125])


def test_order_of_rewards_does_not_matter():
    """Add the same rewards in several orders."""
    results = []
    for order in itertools.islice(itertools.permutations(REWARDS), 0, 24, 5):
        statistics = Statistics.empty(3)
        for arm, reward in order:
            statistics = statistics.add(arm, reward)
        results.append(np.stack(statistics))
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("reward", [0.1, 1 / 3, 1e6 / 7])
def test_removing_the_last_reward_leaves_exact_zeros(reward):
    """A user whose rewards were all withdrawn equals a user who never had one."""
    statistics = Statistics.empty(2).add(1, 0.1).add(1, reward)
    statistics = statistics.remove(1, 0.1).remove(1, reward)
    np.testing.assert_array_equal(np.stack(statistics), np.zeros((3, 2)))


def test_removing_a_reward_keeps_the_others():
    """Compare with statistics that never had the withdrawn reward."""
    kept = Statistics.empty(2).add(0, 0.3).add(1, -0.7)
    restored = kept.add(0, 0.9).remove(0, 0.9)
    np.testing.assert_allclose(np.stack(restored), np.stack(kept), atol=1e-15)


def test_extend_adds_the_reward_to_every_arm():
    """Add the reward arm by arm."""
    statistics = Statistics.empty(2).add(0, 0.3)
    expected = statistics.add(0, -0.4).add(1, -0.4)
    extended = statistics.extend(jnp.asarray(-0.4))
    np.testing.assert_allclose(np.stack(extended), np.stack(expected), atol=1e-15)


def test_sample_mean_and_its_deviation():
    """Compute by hand: two rewards of arm 0, none of arm 1."""
    statistics = Statistics.empty(2).add(0, 0.3).add(0, 0.5)
    np.testing.assert_allclose(sample_mean(statistics), [0.4, 0.0], atol=1e-15)
    np.testing.assert_allclose(mean_deviation(statistics, 0.2), [0.2 / np.sqrt(2), 0.2])


def test_plus_adds_up_two_histories():
    """Add one history's rewards to the other, one by one."""
    first, second = Statistics.empty(3), Statistics.empty(3)
    together = Statistics.empty(3)
    for number, (arm, reward) in enumerate(REWARDS):
        together = together.add(arm, reward)
        if number % 2:
            first = first.add(arm, reward)
        else:
            second = second.add(arm, reward)
    np.testing.assert_array_equal(np.stack(first.plus(second)), np.stack(together))
    np.testing.assert_array_equal(np.stack(second.plus(first)), np.stack(together))
    assert float(first.count.sum()) == 2.0
