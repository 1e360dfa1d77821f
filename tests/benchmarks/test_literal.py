"""The literal reference computes what the library computes, so it is slow for no other reason."""

import jax
import jax.numpy as jnp
import literal
import numpy as np
import pytest

from cocobandits.inference.smc import SmcConfig
from cocobandits.inference.weights import average
from cocobandits.policies.base import Problem
from cocobandits.policies.coco.npm_ts import ThompsonSampling
from cocobandits.policies.coco.policy import CocoPolicy
from cocobandits.populations.history_path import HistoryPath
from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change, UserTable
from support.sessions import Session

AXIS = Axis(-2.0, 2.0, 6)
MODEL = LogDensityModel(
    LogDensityConfig(2, (Axis(-1.0, 1.0, 4),), AXIS, reward_noise=0.4, num_modes=12)
)
NODES = literal.context_nodes(MODEL)[:, 0]
# (user, arm, reward): asymmetric, with a user who has played one arm only.
REWARDS = [
    (0, 0, 1.3), (1, 1, -0.4), (0, 1, 0.6), (2, 0, 1.1), (3, 1, 0.9), (2, 1, -0.8),
    (1, 0, 0.2), (3, 0, -1.6), (4, 0, 1.5), (0, 0, 1.0), (4, 0, 1.2), (3, 0, -1.2),
]  # fmt: skip
CONTEXTS = NODES[[0, 1, 3, 2, 0]]
REPLICATES = 8


def histories():
    """List each user's statistics after every reward."""
    held = [Statistics.empty(2) for _ in CONTEXTS]
    for user, arm, reward in REWARDS:
        held[user] = held[user].add(arm, reward)
        yield user, held[user]


def filled(capacity=7, seed=0, num_particles=40):
    """Enrol everybody and record all rewards at once, without learning from them."""
    posterior = literal.LiteralPosterior(MODEL, capacity, seed, num_particles)
    for context in CONTEXTS:
        posterior.enrol([context])
    for user, statistics in histories():
        posterior.record(user, statistics)
    return posterior


def evaluate(posterior):
    return literal.value_and_gradient(posterior.particles, posterior.basis, posterior.users)


def library_table():
    table = UserTable.empty(1, 2)
    for context in CONTEXTS:
        table = table.append(jnp.array([context]))
    for user, statistics in histories():
        table = table.replace(user, statistics)
    return table


def test_value_is_the_sum_of_the_librarys_evidences():
    """User by user; the table has two rows that are nobody's."""
    posterior = filled()
    contexts = jnp.asarray(CONTEXTS)[:, None]
    stacked = jax.tree.map(lambda *rows: jnp.stack(rows), *posterior.statistics)
    evidence = jax.vmap(jax.vmap(MODEL.log_evidence, (None, 0, 0)), (0, None, None))
    expected = jnp.sum(jax.jit(evidence)(posterior.particles, contexts, stacked), axis=1)
    np.testing.assert_allclose(evaluate(posterior)[0], expected, rtol=0, atol=1e-8)


def test_gradient_is_the_librarys():
    """All users at once, through the path that the library's moves follow."""
    posterior = filled()
    table = library_table()
    change = Change.of(table, jnp.asarray(0), table.of(0)[1])
    value, gradient = jax.jit(HistoryPath(MODEL).log_likelihood_and_gradient)(
        posterior.particles, change, jnp.ones(())
    )
    ours, slope = evaluate(posterior)
    np.testing.assert_allclose(ours, value, rtol=0, atol=1e-8)
    np.testing.assert_allclose(slope, gradient, rtol=0, atol=1e-8)


def test_reweighting_is_the_ratio_of_evidences():
    """From nothing to all rewards of each user: a history without rewards has evidence one."""
    posterior = filled()
    nothing = literal.Users.empty(7, 36)._replace(nodes=posterior.users.nodes)
    evidence = jax.jit(jax.vmap(MODEL.log_evidence, (0, None, None)))
    for user, context in enumerate(CONTEXTS):
        found = literal._increments(
            posterior.particles, posterior.basis, nothing, posterior.users, user
        )
        expected = evidence(posterior.particles, jnp.array([context]), posterior.statistics[user])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def test_users_count_at_the_nearest_node():
    """The four nodes are two thirds apart."""
    posterior = literal.LiteralPosterior(MODEL, 3, 0, 20)
    for context in (-0.9, 0.1, 0.99):
        posterior.enrol([context])
    assert posterior.users.nodes.tolist() == [0, 2, 3]


@jax.jit
def expected_means(particles, log_weights):
    """Average what newcomers at two contexts are expected to be like."""
    empty = Statistics.empty(2)
    read = jax.vmap(lambda p, x: MODEL.posterior(p, x, empty).mean(), (0, None))
    contexts = jnp.array([[NODES[0]], [NODES[2]]])
    return jnp.concatenate([average(log_weights, read(particles, x)) for x in contexts])


def test_posterior_is_the_librarys():
    """Expected arm means over eight seeds each, within four standard errors of the difference."""
    problem = Problem(2, (None,), (-2.0, 2.0), 0.4)
    policy = Session(CocoPolicy(problem, MODEL, ThompsonSampling(), SmcConfig(num_particles=200)))
    found = np.zeros((2, REPLICATES, 4))
    for seed in range(REPLICATES):
        key = jax.random.key(seed)
        posterior = literal.LiteralPosterior(MODEL, len(CONTEXTS), seed)
        state = policy.init(jax.random.fold_in(key, 0))
        for context in CONTEXTS:
            posterior.enrol([context])
            state = policy.enrol(state, jnp.array([context]))
        for number, (user, statistics) in enumerate(histories()):
            posterior.update(user, statistics)
            state, _ = policy.update(jax.random.fold_in(key, number + 1), state, user, statistics)
        found[0, seed] = expected_means(posterior.particles, posterior.log_weights)
        found[1, seed] = expected_means(state.own.particles, state.own.log_weights)
    gap = found[0].mean(axis=0) - found[1].mean(axis=0)
    error = np.sqrt(found.var(axis=1, ddof=1).sum(axis=0) / REPLICATES)
    prior = expected_means(
        jax.random.normal(jax.random.key(0), (200, MODEL.num_parameters)), jnp.zeros(200)
    )
    assert np.all(np.abs(gap) < 4 * error)
    # The test has power: the posterior is many such errors away from the prior.
    assert np.max(np.abs(found[0].mean(axis=0) - prior) / error) > 8


def test_weights_are_equal_after_a_resampling_and_only_then():
    """Otherwise an observation would count by its weight and by its copies."""
    posterior = literal.LiteralPosterior(MODEL, len(CONTEXTS), 3)
    for context in CONTEXTS:
        posterior.enrol([context])
    for user, statistics in histories():
        is_resampled, _ = posterior.update(user, statistics)
        assert is_resampled == (float(jnp.ptp(posterior.log_weights)) == 0)
        assert float(jnp.sum(jnp.exp(posterior.log_weights))) == pytest.approx(1)


def test_moves_keep_the_particles_apart():
    """After a resampling and five rounds, copies have parted and most proposals were accepted."""
    posterior = literal.LiteralPosterior(MODEL, len(CONTEXTS), 3)
    for context in CONTEXTS:
        posterior.enrol([context])
    updates = [posterior.update(user, statistics) for user, statistics in histories()]
    assert [is_resampled for is_resampled, _ in updates][4::5] == [True, True]
    assert all(0.5 < rate <= 1 for _, rate in updates)
    assert len({tuple(row) for row in posterior.particles.tolist()}) == 200


def test_replay_enrols_and_updates():
    """The same seed and history, call by call."""
    history = [(0, NODES[:1], 1, 0.7), (1, NODES[2:3], 0, -0.3)]
    replayed, expected = (literal.LiteralPosterior(MODEL, 2, 5, 20) for _ in range(2))
    replayed.replay(history)
    for user, context, arm, reward in history:
        expected.enrol(context)
        expected.update(user, expected.statistics[user].add(arm, reward))
    np.testing.assert_array_equal(replayed.particles, expected.particles)
    assert replayed.probabilities(0).sum() == pytest.approx(1)
