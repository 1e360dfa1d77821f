"""hLinUCB against loops over a log of what every reward was entered with."""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits.errors import ConfigurationError
from cocobandits.policies.base import Problem
from cocobandits.policies.baselines.hlinucb import HLinUCB, HLinUCBT
from cocobandits.users.statistics import Statistics
from support.sessions import Session

PROBLEM = Problem(3, (None, 2), (-2.0, 2.0), 0.2)
# The unknown feature of the fourth comes as equally likely points.
POINTS = np.array([[0.7, 1.0], [-0.2, 0.0], [0.3, 1.0]])
CONTEXTS = [np.array([0.4, 0.0]), np.array([-0.7, 1.0]), np.array([0.9, 1.0]), POINTS]
NUMBERS = (2, 0.4, 0.6, 0.3, 0.7)
KEY = jax.random.key(5)
# Users come back, and have all arms, one arm often, two arms; the fourth has none.
TRACE = [
    *[(0, 0, 0.9), (1, 2, 0.5), (0, 1, -0.2), (2, 1, -1.0), (1, 2, 0.7), (0, 2, 0.3)],
    *[(2, 0, 0.2), (1, 2, 0.4), (0, 0, 1.1), (2, 1, -0.6), (1, 0, 1.7), (1, 2, 0.6)],
]


class Entry(NamedTuple):
    user: int
    arm: int
    z: np.ndarray
    reward: float
    weights: np.ndarray
    residual: float


class Literal:
    """Keep every reward with what it was entered with, and add up all sums from there."""

    def __init__(self, settings):
        self.settings, self.num_arms = settings, 3
        self.contexts, self.log = list(CONTEXTS), []

    def seen(self, user, arm):
        if not self.settings.is_transposed:
            return np.eye(self.num_arms)[arm]
        points = np.atleast_2d(self.contexts[user])
        return np.mean([[1.0, x, group == 0, group == 1] for x, group in points], axis=0)

    def hidden(self, user, arm):
        """C⁻¹ d of the arm, or of the user if transposed; C as well."""
        owner = user if self.settings.is_transposed else arm
        mine = [e for e in self.log if (e.user if self.settings.is_transposed else e.arm) == owner]
        size = self.settings.num_hidden
        precision, shift = self.settings.ridge * np.eye(size), np.zeros(size)
        for entry in mine:
            precision = precision + np.outer(entry.weights, entry.weights)
            shift = shift + entry.weights * entry.residual
        start = jax.random.normal(jax.random.fold_in(KEY, owner), (size,))
        value = np.linalg.inv(precision) @ shift
        return (value if mine else self.settings.start_deviation * np.asarray(start)), precision

    def theta(self, user, arm, further=()):
        """A⁻¹ b of the user, or of the arm if transposed; A as well."""
        owner = arm if self.settings.is_transposed else user
        mine = [e for e in self.log if (e.arm if self.settings.is_transposed else e.user) == owner]
        pairs = [(entry.z, entry.reward) for entry in mine] + list(further)
        size = len(self.seen(user, arm)) + self.settings.num_hidden
        precision, shift = self.settings.ridge * np.eye(size), np.zeros(size)
        for z, reward in pairs:
            precision = precision + np.outer(z, z)
            shift = shift + z * reward
        return np.linalg.inv(precision) @ shift, precision

    def observe(self, user, arm, rewards):
        """Enter rewards together: one sweep, first θ and then v."""
        seen = self.seen(user, arm)
        z = np.concatenate([seen, self.hidden(user, arm)[0]])
        theta, _ = self.theta(user, arm, [(z, reward) for reward in rewards])
        outer, inner = theta[: len(seen)], theta[len(seen) :]
        self.log += [Entry(user, arm, z, r, inner, r - seen @ outer) for r in rewards]

    def scores(self, user):
        scores = []
        for arm in range(self.num_arms):
            alpha, hidden_alpha = self.settings.alpha, self.settings.hidden_alpha
            seen = self.seen(user, arm)
            hidden, hidden_precision = self.hidden(user, arm)
            theta, precision = self.theta(user, arm)
            z, inner = np.concatenate([seen, hidden]), theta[len(seen) :]
            scores.append(
                z @ theta
                + alpha * np.sqrt(z @ np.linalg.inv(precision) @ z)
                + hidden_alpha * np.sqrt(inner @ np.linalg.inv(hidden_precision) @ inner)
            )
        return np.array(scores)


@pytest.fixture(params=[HLinUCB, HLinUCBT], ids=["published", "transposed"])
def policy(request):
    return Session(request.param(*NUMBERS).build(PROBLEM))


def literal_of(policy, trace=TRACE):
    literal = Literal(policy.settings)
    for user, arm, reward in trace:
        literal.observe(user, arm, [reward])
    return literal


def enrolled(policy):
    state = policy.init(KEY)
    for context in CONTEXTS:
        state = policy.enrol(state, jnp.asarray(context))
    return state


def learned(policy, trace=TRACE):
    state = enrolled(policy)
    for user, arm, reward in trace:
        statistics = state.users.of(user)[1].add(arm, reward)
        state, _ = policy.update(jax.random.key(0), state, user, statistics)
    return state


def assert_same_scores(policy, state, literal):
    for user in range(4):
        np.testing.assert_allclose(policy.scores(state, user), literal.scores(user), atol=1e-10)


def test_a_trace_of_rewards_matches_the_literal_sums(policy):
    state, literal = enrolled(policy), Literal(policy.settings)
    assert_same_scores(policy, state, literal)
    for user, arm, reward in TRACE:
        statistics = state.users.of(user)[1].add(arm, reward)
        state, _ = policy.update(jax.random.key(0), state, user, statistics)
        literal.observe(user, arm, [reward])
        assert_same_scores(policy, state, literal)


def test_one_reward_worked_out_by_hand():
    """One user, two arms, no context, l = λ = 1, v = ±1 and a reward of 2 for the first arm.

    A = (2 1; 1 2), b = (2, 2), θ̂ = (2/3, 2/3); C = 1 + 4/9, d = 2/3 · 4/3, v̂ = 8/13. With v = -1
    the second entries change their sign, and no score does.
    """
    start = float(jax.random.normal(jax.random.fold_in(KEY, 0), (1,))[0])
    settings = HLinUCBT(1, 1.0, 0.5, 0.25, 1 / abs(start))
    policy = Session(settings.build(Problem(2, (), (-2.0, 2.0), 0.1)))
    state = policy.enrol(policy.init(KEY), jnp.zeros(0))
    state, _ = policy.update(KEY, state, 0, Statistics.empty(2).add(0, 2.0))
    first = 14 / 13 + 0.5 * np.sqrt(86) / 13 + 0.25 * 2 / np.sqrt(13)
    np.testing.assert_allclose(
        policy.scores(state, 0), [first, 0.5 * np.sqrt(233) / 13], atol=1e-12
    )
    np.testing.assert_array_equal(policy.probabilities(state, 0), [1.0, 0.0])


def test_nothing_hidden_is_learned_from_a_zero_start(policy):
    """The hidden weights and features stay zero; from a random start they do not."""
    still = replace(policy.settings, start_deviation=0.0)
    zero, num_hidden = learned(Session(still.build(PROBLEM))), still.num_hidden
    assert np.all(np.asarray(zero.weights.precision)[:, -num_hidden:] == 0)
    assert np.all(np.asarray(zero.features.precision) == 0)
    moved = learned(policy)
    assert np.asarray(moved.weights.precision)[:, -num_hidden:].max() > 0.01
    assert np.asarray(moved.features.precision).max() > 0.01


def test_several_rewards_are_one_sweep_each(policy):
    state, literal = learned(policy), literal_of(policy)
    before = state.users.of(1)[1]
    further = before.add(0, 0.3).add(0, -0.5).add(2, 1.3).add(1, 0.8).add(1, 0.1).add(1, 0.3)
    state, _ = policy.update(jax.random.key(0), state, 1, further)
    for arm, average, count in ((0, -0.1, 2), (1, 0.4, 3), (2, 1.3, 1)):
        for _ in range(count):
            literal.observe(1, arm, [average])
    assert_same_scores(policy, state, literal)


def test_withdrawing_everything_leaves_no_trace(policy):
    state = learned(policy)
    for user in (1, 0, 2):
        state, _ = policy.update(jax.random.key(0), state, user, Statistics.empty(3))
    for left, right in zip(*map(jax.tree.leaves, (state.own, enrolled(policy).own)), strict=True):
        np.testing.assert_array_equal(left, right)


def test_only_the_arms_given_are_compared(policy):
    state = learned(policy)
    for user in range(4):
        scores = np.asarray(policy.scores(state, user))
        np.testing.assert_array_equal(policy.probabilities(state, user), scores == scores.max())
        for arms in ((0, 1), (0, 2), (1, 2)):
            part = scores[list(arms)]
            found = policy.probabilities(state, user, arms)
            np.testing.assert_array_equal(found, part == part.max())


def test_a_new_arm_has_its_start(policy):
    state, literal = learned(policy), literal_of(policy)
    wider, more = policy.add_arm(jax.random.key(9), state)
    old = [np.asarray(policy.scores(state, user)) for user in range(4)]
    literal.num_arms = 4
    if not policy.settings.is_transposed:
        # One more column of one-hot features, which is zero for the arms there were.
        literal.log = [entry._replace(z=np.insert(entry.z, 3, 0.0)) for entry in literal.log]
    for user in range(4):
        found = np.asarray(wider.scores(more, user))
        np.testing.assert_allclose(found, literal.scores(user), atol=1e-10)
        np.testing.assert_allclose(found[:3], old[user], atol=1e-10)


def test_entries_grow_with_the_table(policy):
    state, literal = learned(policy), literal_of(policy)
    full = state._replace(users=state.users._replace(num_users=jnp.asarray(256)))
    grown = policy.enrol(full, jnp.asarray([0.2, 1.0]))
    owned = grown.features if policy.settings.is_transposed else grown.weights
    assert {len(leaf) for leaf in owned} == {1024}
    assert_same_scores(policy, grown, literal)
    literal.contexts += [np.array([0.2, 1.0])] * 253
    np.testing.assert_allclose(policy.scores(grown, 256), literal.scores(256), atol=1e-10)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("num_hidden", value) for value in (0, True, 101)],
        *[("ridge", value) for value in (0.0, -1.0, float("nan"))],
        *[(name, -0.1) for name in ("alpha", "hidden_alpha", "start_deviation")],
        *[(name, float("inf")) for name in ("alpha", "hidden_alpha", "start_deviation")],
    ],
)
def test_settings_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=f"got {name}={value}"):
        HLinUCB(**{name: value})
