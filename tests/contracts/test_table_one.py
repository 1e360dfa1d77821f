"""What the table of the six criteria says of every policy, tried on each.

Three arms and one feature that says nothing. A verdict of "no" is tried as well: the behaviour has
to be absent, so that no policy is denied what it does.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits import Mixture
from cocobandits.experiments.tables import CRITERIA
from cocobandits.policies.base import Problem
from cocobandits.policies.registry import POLICIES
from cocobandits.users.statistics import Statistics
from support.designs import small
from support.sessions import Session

PROBLEM = Problem(3, (None,), (-2.0, 2.0), 0.1)
CONTEXT = jnp.array([0.0])
TRIED = tuple(name for name, record in POLICIES.items() if record.table_one)
KINDS = np.array([[1.0, 0.8, -0.6], [-1.0, -0.6, 0.8]])


def verdict(policy, test):
    """Look up the verdict of a policy's record on the criterion that a test is for."""
    return POLICIES[policy].table_one[list(CRITERIA.values()).index(test.__name__)]


def statistics_of(rewards):
    """One reward for every arm; None for an arm without."""
    statistics = Statistics.empty(3)
    for arm, reward in enumerate(rewards):
        if reward is not None:
            statistics = statistics.add(arm, float(reward))
    return statistics


@functools.cache
def policy_of(name):
    return Session(small(name, population=Mixture(num_components=4, rank=0)).build(PROBLEM))


def after(name, users):
    """Enrol users one after another, each with rewards for the arms, given one by one."""
    policy = policy_of(name)
    state = policy.init(jax.random.key(3))
    for number, rewards in enumerate(users):
        state = policy.enrol(state, CONTEXT)
        for count in range(1, 4):
            if rewards[count - 1] is not None:
                so_far = [reward if arm < count else None for arm, reward in enumerate(rewards)]
                key = jax.random.key(10 * number + count)
                state, _ = policy.update(key, state, number, statistics_of(so_far))
    return state


def noisy(means, seed, num_users):
    generator = np.random.default_rng(seed)
    return [tuple(means + 0.1 * generator.normal(size=3)) for _ in range(num_users)]


def test_every_criterion_has_its_test_and_every_policy_its_verdicts():
    assert all(name in globals() for name in CRITERIA.values())
    for record in POLICIES.values():
        for row in filter(None, (record.table_one, record.published)):
            assert len(row) == len(CRITERIA)
            assert set(row) <= set("+-/")
        assert record.table_one or not record.published
    # They know the truth.
    assert set(POLICIES) - set(TRIED) == {"oracle-ts", "oracle-plan"}


@pytest.mark.parametrize("name", TRIED)
def test_a_newcomer_is_given_what_was_best_for_others(name):
    policy, given = policy_of(name), []
    for best in range(3):
        state = after(name, noisy(np.where(np.arange(3) == best, 0.5, -1.2), best, 15))
        newcomer = policy.enrol(state, CONTEXT)
        given.append(float(policy.probabilities(newcomer, 15)[best]))
    assert (min(given) > 0.5) == (
        verdict(name, test_a_newcomer_is_given_what_was_best_for_others) == "+"
    ), given


@functools.cache
def two_kinds(name):
    """Sixty users, who are of two hidden kinds."""
    users = [
        one for pair in zip(*(noisy(kind, 7, 30) for kind in KINDS), strict=True) for one in pair
    ]
    return after(name, users)


@pytest.mark.parametrize("name", TRIED)
def test_one_arm_informs_about_another_by_the_hidden_kind(name):
    policy, shares = policy_of(name), []
    for kind in KINDS:
        state = policy.enrol(two_kinds(name), CONTEXT)
        state, _ = policy.update(jax.random.key(0), state, 60, statistics_of((kind[0], None, None)))
        shares.append(float(policy.probabilities(state, 60, (1, 2))[0]))
    is_informed = shares[0] - shares[1] > 0.5
    assert is_informed == (
        verdict(name, test_one_arm_informs_about_another_by_the_hidden_kind) == "+"
    ), shares


@pytest.mark.parametrize("name", TRIED)
def test_two_modes_are_believed_in(name):
    prior = policy_of(name).prior(two_kinds(name), CONTEXT)
    if prior is None:
        assert verdict(name, test_two_modes_are_believed_in) == "/"
        return
    low, high = np.asarray(prior.cumulative(jnp.array([-0.4, 0.4])))[0]
    middle = high - low
    sides = min(float(low), float(1 - high))
    has_two = bool(middle < 0.1 and sides > 0.25)
    assert has_two == (verdict(name, test_two_modes_are_believed_in) == "+"), (low, high)


@pytest.mark.parametrize("name", TRIED)
def test_uncertainties_are_separated(name):
    """Other users make populations alike, and own rewards narrow what is left of the user."""
    few = spreads(name, after(name, [tuple(kind) for kind in KINDS]))
    many = spreads(name, two_kinds(name))
    known = spreads(name, two_kinds(name), statistics_of(KINDS[0]))
    is_population_apart = 0 < many[0] < 0.5 * few[0]
    is_user_apart = many[1] > 0.5 * few[1] and known[1] < 0.2 * many[1]
    assert (is_population_apart and is_user_apart) == (
        verdict(name, test_uncertainties_are_separated) == "+"
    ), (few, many, known)


def spreads(name, state, statistics=None):
    """The variance of an average arm mean between populations, and within them."""
    asked = CONTEXT, Statistics.empty(3) if statistics is None else statistics
    readings = policy_of(name).read(state, *asked, _read_moments)
    if readings is None:
        return 0.0, 0.0
    weights = np.exp(readings.log_weights - np.max(readings.log_weights))[:, None]
    weights = weights / weights.sum()
    means, squares = map(np.asarray, readings.values)
    between = np.sum(weights * means**2, axis=0) - np.sum(weights * means, axis=0) ** 2
    within = np.sum(weights * (squares - means**2), axis=0)
    return float(between.mean()), float(within.mean())


def _read_moments(belief):
    points = jnp.linspace(-4.0, 4.0, 401)
    below = belief.cumulative(points)
    mass = jnp.diff(below, axis=1)
    middle = (points[1:] + points[:-1]) / 2
    return mass @ middle, mass @ middle**2


@pytest.mark.parametrize("name", TRIED)
def test_somebody_can_join_at_any_time(name):
    """Between the rewards of others, who are served on; what the newcomer is given is learned."""
    policy, given = policy_of(name), []
    for good, bad in ((1, 0), (0, 1)):
        state = after(name, [(0.9, -0.4, None), (1.1, None, -0.3)])
        state = policy.enrol(state, CONTEXT)
        served = [np.asarray(policy.probabilities(state, user)) for user in range(3)]
        assert all(abs(each.sum() - 1) < 1e-6 for each in served)
        statistics = Statistics.empty(3)
        for arm, reward in ((good, 1.9), (bad, -1.9)):
            statistics = statistics.add(arm, reward)
            state, _ = policy.update(jax.random.key(2), state, 2, statistics)
        state, _ = policy.update(jax.random.key(3), state, 0, statistics_of((0.9, -0.4, 0.1)))
        given.append(float(policy.probabilities(state, 2)[1]))
    assert (given[0] - given[1] > 0.25) == (
        verdict(name, test_somebody_can_join_at_any_time) == "+"
    ), given


@pytest.mark.parametrize("name", TRIED)
def test_users_learn_from_each_other_while_they_are_served(name):
    """All have begun; then the others are given the third arm, which is very good or very bad."""
    policy, given = policy_of(name), []
    for reward in (1.9, -1.9):
        state = after(name, [(0.3, 0.2, None)] * 8)
        for user in range(7):
            more = statistics_of((0.3, 0.2, reward))
            state, _ = policy.update(jax.random.key(user), state, user, more)
        given.append(float(policy.probabilities(state, 7)[2]))
    assert (given[0] - given[1] > 0.5) == (
        verdict(name, test_users_learn_from_each_other_while_they_are_served) == "+"
    ), given
