"""The same checks for every policy in the registry."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits import CocoSettings, SmcConfig, Study, policy_names
from cocobandits.errors import UnknownNameError
from cocobandits.models.base import Statistics
from cocobandits.models.gaussian_mixture import ConditionalMixture
from cocobandits.policies.base import Problem
from cocobandits.policies.registry import build_policy

PROBLEM = Problem(3, (None, 2), (-2.0, 2.0), 0.1)


def _mixture(num_terms: int) -> ConditionalMixture:
    """Make two kinds of users, lopsided in every term of the context."""
    generator = np.random.default_rng(3)
    return ConditionalMixture.from_arrays(
        generator.normal(size=(2, num_terms)),
        0.5 * generator.normal(size=(2, 3, num_terms)),
        0.3 * generator.normal(size=(2, 3, 2, num_terms)),
    )


# The terms of PROBLEM: one, the continuous feature, and two categories.
SMALL = CocoSettings(
    nodes_per_arm=6,
    nodes_per_feature=4,
    num_modes=20,
    inference=SmcConfig(num_particles=40),
    prior=_mixture(4),
    steps_per_user=5,
)
UNTOLD = replace(SMALL, steps_per_user=None)


@pytest.fixture(params=[*policy_names(), "coids, planned"])
def policy(request):
    name, _, variant = request.param.partition(", ")
    knows_steps = variant == "planned" or name == "oracle-plan"
    return build_policy(name, PROBLEM, SMALL if knows_steps else UNTOLD)


def _with_history(policy):
    state = policy.init(jax.random.key(1))
    for user, x in enumerate((-0.4, 0.7)):
        state = policy.enrol(state, jnp.array([x, float(user)]))
    statistics = Statistics.empty(3).add(0, 1.2).add(2, -0.3)
    state, _ = policy.update(jax.random.key(2), state, 0, statistics)
    return state


def test_probabilities_are_a_distribution(policy):
    state = _with_history(policy)
    for user in range(2):
        probabilities = np.asarray(policy.probabilities(state, user))
        assert probabilities.shape == (3,)
        assert np.all(probabilities >= 0)
        np.testing.assert_allclose(probabilities.sum(), 1.0, atol=1e-9)


def test_users_are_kept_in_order(policy):
    users = policy.users(_with_history(policy))
    assert int(users.num_users) == 2
    np.testing.assert_allclose(users.of(1)[0], [0.7, 1.0])
    np.testing.assert_allclose(users.of(0)[1].count, [1.0, 0.0, 1.0])
    np.testing.assert_allclose(users.of(1)[1].count, 0.0)


def test_same_key_same_state(policy):
    first, second = _with_history(policy), _with_history(policy)
    for left, right in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(left, right)


def test_reweighing_is_an_update_without_moves(policy):
    """Unless moves are due it is the update itself; the table of users is the same in any case."""
    state, key = _with_history(policy), jax.random.key(4)
    for statistics in (Statistics.empty(3).add(1, 0.1), Statistics.empty(3).add(1, -1.9)):
        updated, info = policy.update(key, state, 1, statistics)
        reweighed, own_info, is_due = policy.reweigh(key, state, 1, statistics)
        pairs = (updated, reweighed) if not is_due else (policy.users(updated), reweighed.users)
        for left, right in zip(*map(jax.tree.leaves, pairs), strict=True):
            np.testing.assert_array_equal(left, right)
        assert is_due == (info is not None and info.is_rejuvenated)
        assert own_info is None or not own_info.is_rejuvenated


def test_state_is_a_tree_of_arrays_of_fixed_shape(policy):
    """A long history has the same shapes as a short one."""
    short = _with_history(policy)
    many = Statistics(jnp.full(3, 1e6), jnp.full(3, 5e5), jnp.full(3, 2.6e5))
    long, _ = policy.update(jax.random.key(3), short, 1, many)
    assert [leaf.shape for leaf in jax.tree.leaves(short)] == [
        leaf.shape for leaf in jax.tree.leaves(long)
    ]
    assert np.all(np.isfinite(np.asarray(policy.probabilities(long, 1))))


@pytest.mark.parametrize("name", ["npm-ts", "mtts", "ind-ts", "oracle-ts"])
def test_prior_serves_a_newcomer_as_the_policy_would(name):
    """Thompson sampling from the exported belief is what somebody without rewards is given."""
    policy = build_policy(name, PROBLEM, SMALL)
    state = policy.enrol(_with_history(policy), jnp.array([0.1, 1.0]))
    belief = policy.prior(state, jnp.array([0.1, 1.0]))
    np.testing.assert_allclose(
        belief.best_probability(), policy.probabilities(state, 2), atol=1e-12
    )


def test_prior_is_a_belief_unless_there_are_none(policy):
    state, context = _with_history(policy), jnp.array([0.1, 1.0])
    belief = policy.prior(state, context)
    readings = policy.read(state, context, Statistics.empty(3), _read_mean)
    assert (belief is None) == (readings is None)
    if belief is not None:
        expected = np.exp(readings.log_weights) @ np.asarray(readings.values)
        # Densities are held in 32 bits.
        np.testing.assert_allclose(belief.mean(), expected, rtol=1e-6)


def _read_mean(belief):
    return belief.mean()


@pytest.mark.parametrize("name", policy_names())
def test_loaded_study_decides_as_the_saved_one(name, tmp_path):
    settings = replace(SMALL, prior=_mixture(2))
    study = Study(
        ["a", "b", "c"], {"x": (0.0, 1.0)}, (0.0, 1.0), 0.05, policy=name, seed=4, settings=settings
    )
    study.enrol("anna", {"x": 0.2})
    study.enrol("bob", {"x": 0.9})
    study.reward(study.decide("anna").id, 0.6)
    waiting = study.decide("bob")
    study.save(tmp_path / "one.study")
    loaded = Study.load(tmp_path / "one.study")
    assert loaded.decide("bob") == waiting
    for copy in (study, loaded):
        copy.reward(waiting.id, 0.1)
        for value in (0.5, 0.7, 0.4):
            copy.reward(copy.decide("anna").id, value)
    assert loaded.decide("anna") == study.decide("anna")
    assert loaded.num_decisions == study.num_decisions


def test_unknown_policy_lists_the_known_ones():
    known = r"policy='best'.*coids, npm-ts, gids, mtts, ind-ts, oracle-ts, oracle-plan, uniform"
    with pytest.raises(UnknownNameError, match=known):
        build_policy("best", PROBLEM, SMALL)
