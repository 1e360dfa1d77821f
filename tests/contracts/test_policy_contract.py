"""The same checks for every policy in the registry."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits import Gaussian, Study, policy_names
from cocobandits.errors import UnknownNameError, UnsupportedError
from cocobandits.policies.base import Problem, SequentialPolicy
from cocobandits.policies.registry import find_policy
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.users.statistics import Statistics
from support.designs import GRID, MIXTURE, small, small_by_default
from support.draws import draw_means, one_of
from support.sessions import Session

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
PRIOR = _mixture(4)
FACTOR = replace(MIXTURE, rank=1)
POPULATIONS = {"log-density": GRID, "mixture": MIXTURE, "factor": FACTOR}
VARIANTS = ("coids, planned", "coids, log-density", "npm-ts, mixture", "npm-ts, factor")
# What they play is P(arm is best).
THOMPSON = ("npm-ts", "npm-ts, mixture", "npm-ts, factor", "mtts", "hierts", "ind-ts", "oracle-ts")
# Whose beliefs stay as they are when an arm is added. The others learn all users again; how widely
# rome explores depends on the number of arms.
KEEPING = (
    *("npm-ts, mixture", "coids", "npm-ts, factor", "mtts", "ind-ts", "uniform"),
    *("hierts", "hlinucb", "hlinucb-t", "kmtl-ucb"),
    *("gradband", "meta-ts", "ada-ts", "robustagg"),
)


def _build(description):
    """Build a policy by its name, and its variant."""
    name, _, variant = description.partition(", ")
    if variant in POPULATIONS:
        settings = small(name, population=POPULATIONS[variant])
    else:
        has_steps = variant == "planned" or name == "oracle-plan"
        settings = small_by_default(name, PRIOR, steps_per_user=5 if has_steps else None)
    return Session(settings.build(PROBLEM))


@pytest.fixture(params=[*policy_names(), *VARIANTS])
def policy(request):
    return _build(request.param)


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


SUBSETS = ((0, 1), (0, 2))


def test_probabilities_among_some_arms_are_a_distribution(policy):
    """One for each arm that can be chosen; all of them is no restriction."""
    state = _with_history(policy)
    for user in range(2):
        for arms in SUBSETS:
            probabilities = np.asarray(policy.probabilities(state, user, arms))
            assert probabilities.shape == (2,)
            assert np.all(probabilities >= 0)
            np.testing.assert_allclose(probabilities.sum(), 1.0, atol=1e-9)
        everything = policy.probabilities(state, user, (0, 1, 2))
        # Densities are held in 32 bits.
        np.testing.assert_allclose(everything, policy.probabilities(state, user), atol=1e-6)


NUM_DRAWS = 8_000


def _itself(belief):
    return belief


@pytest.mark.parametrize("name", THOMPSON)
def test_thompson_sampling_among_some_arms_counts_who_is_best_of_them(name):
    """Draw arm means from all beliefs and leave the others out; not to share out their chances."""
    policy = _build(name)
    state, distances = _with_history(policy), []
    for user in range(2):
        readings = policy.read(state, *state.users.of(user), _itself)
        weights = np.exp(readings.log_weights)
        draws = np.stack(
            [draw_means(one_of(readings.values, n), n, NUM_DRAWS) for n in range(len(weights))]
        )
        everything = np.asarray(policy.probabilities(state, user))
        for arms in (*SUBSETS, (1, 2)):
            found = np.asarray(policy.probabilities(state, user, arms))
            expected = weights @ np.mean(draws[:, :, arms[0]] > draws[:, :, arms[1]], axis=1)
            assert abs(found[0] - expected) < 4 * np.sqrt(0.25 / NUM_DRAWS)
            masked = everything[list(arms)] / everything[list(arms)].sum()
            distances.append(np.abs(found - masked).max())
    assert max(distances) > 0.01


def test_rationales_among_some_arms_sum_to_the_probabilities(policy):
    state = _with_history(policy)
    for arms in (None, (0, 2)):
        rationales = policy.rationales(state, 1, arms)
        if rationales is None:
            continue
        total = rationales.for_reward + rationales.for_person + rationales.for_population
        # Only rounding distinguishes equally good mixtures.
        np.testing.assert_allclose(total, policy.probabilities(state, 1, arms), atol=1e-6)


def test_context_can_become_known(policy):
    """Enrol with points, and learn later where the user was: as if it had been known."""
    points = jnp.array([[0.7, 1.0], [-0.2, 0.0], [0.3, 1.0]])
    statistics = Statistics.empty(3).add(1, 0.4)
    late = policy.enrol(policy.init(jax.random.key(1)), points)
    for user_statistics in (Statistics.empty(3), statistics):
        late, _, _ = policy.reweigh(jax.random.key(2), late, 0, user_statistics)
    unknown = policy.probabilities(late, 0)
    np.testing.assert_allclose(np.sum(unknown), 1.0, atol=1e-9)
    late, _, _ = policy.reweigh(jax.random.key(2), late, 0, statistics, jnp.array([0.7, 1.0]))
    early = policy.enrol(policy.init(jax.random.key(1)), jnp.array([0.7, 1.0]))
    early, _, _ = policy.reweigh(jax.random.key(2), early, 0, statistics)
    found = np.asarray(policy.probabilities(late, 0))
    np.testing.assert_allclose(found, policy.probabilities(early, 0), atol=2e-6)
    context = late.users.of(0)[0]
    np.testing.assert_allclose(context, np.tile([0.7, 1.0], (3, 1)))


@pytest.mark.parametrize("name", KEEPING)
def test_a_new_arm_leaves_what_was_learned(name):
    """The first arms are chosen among as before, and the new one can be learned."""
    policy = _build(name)
    state = _with_history(policy)
    wider, more = policy.add_arm(jax.random.key(9), state)
    for user in range(2):
        np.testing.assert_allclose(
            wider.probabilities(more, user, (0, 1, 2)), policy.probabilities(state, user), atol=1e-5
        )
        probabilities = np.asarray(wider.probabilities(more, user))
        assert probabilities.shape == (4,)
        np.testing.assert_allclose(probabilities.sum(), 1.0, atol=1e-9)
    users, old = more.users, state.users
    np.testing.assert_array_equal(users.contexts, old.contexts)
    np.testing.assert_array_equal(users.of(0)[1].total, [*old.of(0)[1].total, 0.0])
    rewards = Statistics.empty(4)
    for arm, reward in ((0, -1.5), (1, -1.4), (2, -1.6), (3, 1.8), (3, 1.7)):
        rewards = rewards.add(arm, reward)
    after, _ = wider.update(jax.random.key(3), more, 1, rewards)
    if name != "uniform":
        assert wider.probabilities(after, 1)[3] > 0.9


@pytest.mark.parametrize("name", ["npm-ts", "gids"])
def test_a_new_arm_beyond_the_grid_is_learned_from_all_users(name):
    """Three arms have a grid and four a mixture: the users stay, and somebody is served."""
    policy = _build(name)
    state = _with_history(policy)
    wider, more = policy.add_arm(jax.random.key(9), state)
    assert type(wider.model) is not type(policy.model)
    np.testing.assert_array_equal(more.users.of(0)[1].count, [1.0, 0.0, 1.0, 0.0])
    # The first user's rewards were 1.2 of arm 1 and -0.3 of arm 3.
    among = np.asarray(wider.probabilities(more, 0, (0, 2)))
    assert among.shape == (2,)
    assert among[0] > 0.8
    assert np.asarray(wider.probabilities(more, 1)).shape == (4,)


def test_a_given_population_does_not_know_a_new_arm():
    policy = _build("oracle-ts")
    with pytest.raises(UnsupportedError, match="arm"):
        policy.add_arm(jax.random.key(0), _with_history(policy))


def test_users_are_kept_in_order(policy):
    users = _with_history(policy).users
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
        pairs = (updated, reweighed) if not is_due else (updated.users, reweighed.users)
        for left, right in zip(*map(jax.tree.leaves, pairs), strict=True):
            np.testing.assert_array_equal(left, right)
        assert is_due == (info is not None and info.is_rejuvenated)
        assert own_info is None or not own_info.is_rejuvenated


def test_state_is_a_tree_of_arrays_of_fixed_shape(policy):
    """A long history has the same shapes as a short one."""
    short = _with_history(policy)
    # One after another where the order counts.
    number = 30.0 if isinstance(policy.policy, SequentialPolicy) else 1e6
    many = Statistics(*(jnp.full(3, number * power) for power in (1.0, 0.5, 0.26)))
    long, _ = policy.update(jax.random.key(3), short, 1, many)
    assert [leaf.shape for leaf in jax.tree.leaves(short)] == [
        leaf.shape for leaf in jax.tree.leaves(long)
    ]
    assert np.all(np.isfinite(np.asarray(policy.probabilities(long, 1))))


@pytest.mark.parametrize("name", [*THOMPSON, "ada-ts"])
def test_prior_serves_a_newcomer_as_the_policy_would(name):
    """Thompson sampling from the exported belief is what somebody without rewards is given."""
    policy = _build(name)
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
def test_loaded_study_decides_as_the_saved_one(name, tmp_path, caplog):
    """And it is read from the snapshot, not learned again."""
    settings = small(name, _mixture(2), steps_per_user=5, horizon=5)
    rewards = Gaussian(0.0, 1.0, noise=0.05)
    study = Study(["a", "b", "c"], {"x": (0.0, 1.0)}, rewards, settings, seed=4)
    study.enrol("anna", {"x": 0.2})
    study.enrol("bob", {"x": 0.9})
    study.reward(study.decide("anna").id, 0.6)
    waiting = study.decide("bob")
    study.save(tmp_path / "one.study")
    loaded = Study.load(tmp_path / "one.study")
    assert not caplog.messages
    assert loaded.decide("bob") == waiting
    for copy in (study, loaded):
        copy.reward(waiting.id, 0.1)
        for value in (0.5, 0.7, 0.4):
            copy.reward(copy.decide("anna").id, value)
    assert loaded.decide("anna") == study.decide("anna")
    assert loaded.num_decisions == study.num_decisions


def test_unknown_policy_lists_the_known_ones():
    known = r"policy='best'.*coids, npm-ts, gids, mtts, hierts, hlinucb.*17 in all"
    with pytest.raises(UnknownNameError, match=known):
        find_policy("best")
