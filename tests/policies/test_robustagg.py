"""RobustAgg against the width minimised numerically, and loops over players and rewards."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from cocobandits.errors import ConfigurationError
from cocobandits.policies.base import Problem
from cocobandits.policies.baselines.robustagg import (
    RobustAgg,
    RobustAggPolicy,
    best_share,
    upper_bounds,
)
from cocobandits.users.statistics import Statistics
from support.sessions import Session

PROBLEM = Problem(3, (None,), (-2.0, 2.0), 0.2)
# Unequal histories: nobody but the second has the last arm, and the third has nothing.
HISTORIES = [
    [(0, 0.9), (1, -0.2), (0, 1.1)],
    [(2, 0.5), (2, 0.7), (2, 0.4), (0, 0.6), (2, 0.55)],
    [],
    [(1, -1.0), (0, 0.2), (1, -0.6), (1, -0.7)],
]


def width(share, own, others, dissimilarity, scale):
    square = share**2 / own + (1 - share) ** 2 / others
    return math.sqrt(scale * square) + (1 - share) * dissimilarity


def narrowest(own, others, dissimilarity, scale):
    """Search the share of own rewards with the smallest width; the ends count too."""
    given = own, others, dissimilarity, scale
    inside = minimize_scalar(
        width, bounds=(0.0, 1.0), args=given, method="bounded", options={"xatol": 1e-12}
    ).x
    return min((inside, 0.0, 1.0), key=lambda share: width(share, *given))


def bound(user, arm, histories, dissimilarity, scale):
    """Add up rewards one by one, and try out shares of own rewards."""
    own, others = [], []
    for player, history in enumerate(histories):
        for pulled, reward in history:
            if pulled == arm:
                (own if player == user else others).append(reward)
    if not own and not others:
        return math.inf
    if not own:
        return np.mean(others) + math.sqrt(scale / len(others)) + dissimilarity
    if not others:
        return np.mean(own) + math.sqrt(scale / len(own))
    share = narrowest(len(own), len(others), dissimilarity, scale)
    average = share * np.mean(own) + (1 - share) * np.mean(others)
    return average + width(share, len(own), len(others), dissimilarity, scale)


def statistics_of(history, num_arms=3) -> Statistics:
    statistics = Statistics.empty(num_arms)
    for arm, reward in history:
        statistics = statistics.add(arm, reward)
    return statistics


def learned(policy, histories=HISTORIES):
    state = policy.init(jax.random.key(0))
    for user, history in enumerate(histories):
        state = policy.enrol(state, jnp.array([0.1 * user]))
        statistics = statistics_of(history, policy.problem.num_arms)
        state, _ = policy.update(jax.random.key(0), state, user, statistics)
    return state


def test_share_of_own_rewards_has_the_smallest_width():
    generator = np.random.default_rng(2)
    num_ends = num_inside = 0
    for _ in range(20):
        dissimilarity, scale = generator.uniform(0.0, 1.5), generator.uniform(0.05, 8.0)
        own, others = generator.integers(1, 60, (2, 12)).astype(float)
        shares = np.asarray(best_share(jnp.asarray(own), jnp.asarray(others), dissimilarity, scale))
        for share, *counts in zip(shares, own, others, strict=True):
            expected = narrowest(*counts, dissimilarity, scale)
            # A minimum is flat: half of the digits are all that a search can find.
            np.testing.assert_allclose(share, expected, atol=1e-6)
            least = width(expected, *counts, dissimilarity, scale)
            assert width(share, *counts, dissimilarity, scale) <= least + 1e-12
            num_ends += share == 1.0
            num_inside += counts[0] / sum(counts) + 0.01 < share < 1
    assert num_ends > 50
    assert num_inside > 50


def test_alike_users_are_averaged_over_all_rewards():
    own, others = jnp.array([3.0, 1.0, 0.0, 5.0]), jnp.array([1.0, 7.0, 4.0, 0.0])
    np.testing.assert_allclose(best_share(own, others, 0.0, 0.4), [0.75, 0.125, 0.0, 1.0])


@pytest.mark.parametrize("dissimilarity", [0.0, 0.3, 0.9, 5.0])
def test_bounds_match_loops_over_players_and_rewards(dissimilarity):
    scale = 8 * 0.2**2 * math.log(300)
    policy = Session(RobustAggPolicy(PROBLEM, RobustAgg(300, dissimilarity)))
    table = learned(policy).users.statistics
    for user in range(4):
        expected = [bound(user, arm, HISTORIES, dissimilarity, scale) for arm in range(3)]
        found = upper_bounds(table, user, dissimilarity, scale)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_highest_bound_is_played():
    policy = Session(RobustAggPolicy(PROBLEM, RobustAgg(300, 0.3)))
    state, scale = learned(policy), 8 * 0.2**2 * math.log(300)
    chosen = set()
    for user in range(4):
        for arms in (None, (0, 1), (1, 2), (0, 2)):
            known = arms or (0, 1, 2)
            bounds = [bound(user, arm, HISTORIES, 0.3, scale) for arm in known]
            found = policy.probabilities(state, user, arms)
            np.testing.assert_array_equal(found, np.arange(len(known)) == np.argmax(bounds))
            chosen.add(known[int(np.argmax(bounds))])
    assert len(chosen) > 1


def test_ties_are_shared():
    """Nobody has been given an arm; then two arms have given the same."""
    policy = Session(RobustAggPolicy(PROBLEM, RobustAgg()))
    state = learned(policy, [[], []])
    np.testing.assert_allclose(policy.probabilities(state, 0), 1 / 3)
    alike = [(0, 0.1), (0, 0.7), (2, 0.1), (2, 0.7), (1, -1.9)]
    state = learned(policy, [alike, [], alike])
    for user in range(3):
        np.testing.assert_array_equal(policy.probabilities(state, user), [0.5, 0.0, 0.5])


@pytest.mark.parametrize(
    ("yes", "chosen"), [((9, 2), {1.5: 0, 2.0: 1}), ((8, 1), {2.0: 0, 3.0: 1})]
)
@pytest.mark.parametrize(("noise", "rewards"), [(2.0, "gaussian"), (None, "bernoulli")])
def test_widths_follow_the_noise_or_half_of_the_range(yes, chosen, noise, rewards):
    """Of nine and four rewards `yes` are high; a little less or more would turn the choice."""
    problem = Problem(2, (None,), (-2.0, 2.0), noise, rewards)
    policy = Session(RobustAggPolicy(problem, RobustAgg(300, 0.3)))
    counts = enumerate(zip(yes, (9, 4), strict=True))
    history = [(a, 2.0 if n < high else -2.0) for a, (high, size) in counts for n in range(size)]
    for deviation, arm in chosen.items():
        scale = 8 * deviation**2 * math.log(300)
        assert np.argmax([bound(0, a, [history], 0.3, scale) for a in range(2)]) == arm
    state = learned(policy, [history])
    assert policy.probabilities(state, 0)[chosen[2.0]] == 1


def test_withdrawn_rewards_leave_no_trace():
    policy = Session(RobustAggPolicy(PROBLEM, RobustAgg()))
    state = learned(policy)
    state, _ = policy.update(jax.random.key(0), state, 1, Statistics.empty(3))
    without = learned(policy, [HISTORIES[0], [], HISTORIES[2], HISTORIES[3]])
    for left, right in zip(jax.tree.leaves(state), jax.tree.leaves(without), strict=True):
        np.testing.assert_array_equal(left, right)
    # Nobody has the last arm any more.
    np.testing.assert_array_equal(policy.probabilities(state, 0), [0.0, 0.0, 1.0])


def test_a_new_arm_comes_first_and_is_then_weighed():
    policy = Session(RobustAggPolicy(PROBLEM, RobustAgg(300, 0.3)))
    state = learned(policy)
    wider, more = policy.add_arm(jax.random.key(0), state)
    np.testing.assert_array_equal(wider.probabilities(more, 3), [0.0, 0.0, 0.0, 1.0])
    for user in range(4):
        among = wider.probabilities(more, user, (0, 1, 2))
        np.testing.assert_array_equal(among, policy.probabilities(state, user))
    bad = [(3, -1.5), (3, -1.4)]
    after, _ = wider.update(jax.random.key(0), more, 2, statistics_of(bad, 4))
    scale = 8 * 0.2**2 * math.log(300)
    histories = [HISTORIES[0], HISTORIES[1], bad, HISTORIES[3]]
    expected = [bound(3, arm, histories, 0.3, scale) for arm in range(4)]
    found = upper_bounds(after.users.statistics, 3, 0.3, scale)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert wider.probabilities(after, 3)[3] == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("horizon", value) for value in (1, 0, True)),
        *(("dissimilarity", value) for value in (-0.1, float("nan"), float("inf"))),
    ],
)
def test_settings_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=f"got {name}={value}"):
        RobustAgg(**{name: value})


def test_a_noise_is_needed():
    with pytest.raises(ConfigurationError, match="got noise=None"):
        Session(RobustAggPolicy(Problem(3, (None,), (-2.0, 2.0), None), RobustAgg()))
