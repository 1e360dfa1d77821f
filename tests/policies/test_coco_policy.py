"""The CoCo policy: exact propensities, and its agreement with simpler policies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits.inference.smc import SmcConfig
from cocobandits.policies.base import Problem
from cocobandits.policies.coco.acquisition import best_mixture
from cocobandits.policies.coco.gids import GlobalInformationDirectedSampling
from cocobandits.policies.coco.npm_ts import ThompsonSampling
from cocobandits.policies.coco.policy import CocoPolicy
from cocobandits.policies.fixed import FixedPriorPolicy
from cocobandits.populations.known.flat import FlatModel
from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel
from cocobandits.users.statistics import Statistics
from support.draws import draw_means
from support.sessions import Session, SessionState

NUM_DRAWS = 100_000
PROBLEM = Problem(3, (None,), (-2.0, 2.0), 0.1)
MODEL = LogDensityModel(
    LogDensityConfig(3, (Axis(-1.0, 1.0, 5),), Axis(-2.0, 2.0, 8), num_modes=30)
)
INFERENCE = SmcConfig(num_particles=40)


def _learned(acquisition) -> tuple[Session, SessionState]:
    """Make a state with unequal weights and a user with a history."""
    policy = Session(CocoPolicy(PROBLEM, MODEL, acquisition, INFERENCE))
    state = policy.init(jax.random.key(5))
    for user, (x, rewards) in enumerate(
        [(0.3, [(0, 0.9), (1, 0.2)]), (-0.8, [(2, 1.1)]), (0.5, [(1, 0.4)])]
    ):
        state = policy.enrol(state, jnp.array([x]))
        for number, (arm, reward) in enumerate(rewards):
            statistics = state.users.of(user)[1].add(arm, reward)
            state, _ = policy.update(jax.random.key(10 * user + number), state, user, statistics)
    return policy, state


def _assert_frequencies(arms: np.ndarray, probabilities: np.ndarray) -> None:
    frequencies = np.bincount(arms, minlength=3) / len(arms)
    errors = np.sqrt(probabilities * (1 - probabilities) / len(arms)) + 1e-12
    assert np.all(np.abs(frequencies - probabilities) / errors < 4)


def test_thompson_probabilities_match_the_two_stage_procedure():
    """Draw a particle, then arm means from its belief, then the best arm: 10^5 times."""
    policy, state = _learned(ThompsonSampling())
    probabilities = np.asarray(policy.probabilities(state, 2))
    counts = np.random.default_rng(1).multinomial(
        NUM_DRAWS, np.exp(np.asarray(state.own.log_weights))
    )
    context, statistics = state.users.of(2)

    posterior = jax.jit(lambda parameters: MODEL.posterior(parameters, context, statistics))
    arms = [
        np.argmax(draw_means(posterior(state.own.particles[s]), s, int(count)), axis=1)
        for s, count in enumerate(counts)
    ]
    _assert_frequencies(np.concatenate(arms), probabilities)


def test_gids_probabilities_match_the_two_stage_procedure():
    """Draw a particle, solve its own trade-off, draw an arm from the solution: 10^5 times."""
    acquisition = GlobalInformationDirectedSampling(MODEL.reward_grid)
    policy, state = _learned(acquisition)
    probabilities = np.asarray(policy.probabilities(state, 2))
    context, statistics = state.users.of(2)
    rewards = MODEL.reward_grid.values()
    readings = policy.read(
        state, context, statistics, lambda belief: acquisition.read(belief, rewards)
    )
    log_weights = state.own.log_weights
    gains = jnp.stack(
        [acquisition._gains(log_weights, readings.values.predictive[:, a]) for a in range(3)],
        axis=1,
    )
    generator = np.random.default_rng(2)
    counts = generator.multinomial(NUM_DRAWS, np.exp(np.asarray(log_weights)))
    arms = []
    for particle, count in enumerate(counts):
        mixture = np.asarray(best_mixture(readings.values.regret[particle], gains[particle]))
        arms.append(generator.choice(3, size=count, p=mixture / mixture.sum()))
    _assert_frequencies(np.concatenate(arms), probabilities)


@pytest.mark.parametrize("seed", range(3))
def test_one_particle_at_zero_is_independent_thompson_sampling(seed):
    """A flat log-density on the grid knows what the closed-form truncated normals know."""
    policy = Session(CocoPolicy(PROBLEM, MODEL, ThompsonSampling(), SmcConfig(num_particles=1)))
    flat = FlatModel(3, *MODEL.mean_range, 0.1)
    independent = Session(FixedPriorPolicy(PROBLEM, flat))
    state, plain = policy.init(jax.random.key(0)), independent.init(jax.random.key(0))
    zero = state.own._replace(particles=jnp.zeros((1, MODEL.num_parameters)))
    state = policy.enrol(state._replace(own=zero), jnp.array([0.4]))
    plain = independent.enrol(plain, jnp.array([0.4]))
    generator = np.random.default_rng(seed)
    for _ in range(6):
        np.testing.assert_allclose(
            policy.probabilities(state, 0), independent.probabilities(plain, 0), atol=1e-9
        )
        arm, reward = int(generator.integers(3)), float(generator.uniform(-0.3, 0.3))
        statistics = state.users.of(0)[1].add(arm, reward)
        state = state._replace(users=state.users.replace(0, statistics))
        plain, _ = independent.update(jax.random.key(0), plain, 0, statistics)


def test_update_leaves_the_state_it_was_given_untouched():
    policy, state = _learned(ThompsonSampling())
    before = [np.array(leaf) for leaf in jax.tree.leaves(state)]
    policy.update(jax.random.key(0), state, 0, state.users.of(0)[1].add(1, 0.7))
    for old, leaf in zip(before, jax.tree.leaves(state), strict=True):
        np.testing.assert_array_equal(old, leaf)


def test_changing_nothing_changes_nothing():
    """The increment of unchanged statistics is zero for every particle."""
    policy, state = _learned(ThompsonSampling())
    after, info = policy.update(jax.random.key(0), state, 0, state.users.of(0)[1])
    np.testing.assert_allclose(after.own.log_weights, state.own.log_weights, atol=1e-12)
    assert abs(info.log_evidence_increment) < 1e-12


def test_enrolling_someone_changes_no_belief():
    policy, state = _learned(ThompsonSampling())
    probabilities = policy.probabilities(state, 1)
    state = policy.enrol(state, jnp.array([0.9]))
    np.testing.assert_array_equal(probabilities, policy.probabilities(state, 1))


def test_sharing_moves_the_belief_about_a_newcomer():
    """After thirty users for whom arm 2 is best, a newcomer is mostly given arm 2."""
    policy = Session(CocoPolicy(PROBLEM, MODEL, ThompsonSampling(), INFERENCE))
    state = policy.init(jax.random.key(0))
    for user in range(30):
        state = policy.enrol(state, jnp.array([0.0]))
        statistics = Statistics.empty(3).add(0, -1.0).add(1, -0.5).add(2, 1.5)
        state, _ = policy.update(jax.random.key(user), state, user, statistics)
    state = policy.enrol(state, jnp.array([0.0]))
    assert policy.probabilities(state, 30)[2] > 0.8
