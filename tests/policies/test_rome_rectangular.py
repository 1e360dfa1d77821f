"""RoME in the simulation of its authors, against the regret that they published."""

import numpy as np
import pytest
import rome_rectangular as simulation


def test_prior_precision_has_a_graph_of_users():
    """Rows of the Laplacian sum to zero, so equal effects cost only their own prior."""
    effects = simulation.true_effects("heterogeneous")
    graph = simulation.laplacian(effects)
    np.testing.assert_array_equal(graph, graph.T)
    np.testing.assert_array_equal(graph.sum(axis=1), 0.0)
    assert np.trace(graph) == 2 * 5 * 100
    assert graph.min() == -2
    distance = np.linalg.norm(effects[7] - effects, axis=1)
    assert set(np.argsort(distance)[1:6]) <= set(np.flatnonzero(graph[7] < 0))
    prior = simulation.prior_precision(effects)
    same = np.concatenate([np.zeros(3), np.tile([1.0, -2.0, 0.5], 100), np.zeros(300)])
    own = np.linalg.solve(np.cov(effects.T), [1.0, -2.0, 0.5]) @ [1.0, -2.0, 0.5]
    np.testing.assert_allclose(same @ prior @ same, 100 * own)


def test_every_user_is_served_at_every_time_once():
    effects = simulation.true_effects("homogeneous")
    generator = np.random.default_rng(0)
    stages = [simulation.draw_stage(generator, number, effects) for number in range(199)]
    served = np.sum([stage.blocks[:, 0, 3::3] != 0 for stage in stages], axis=0)
    np.testing.assert_array_equal(served[:, :100], 100 * np.eye(100))
    np.testing.assert_array_equal(served[:, 100:], 1)


def test_baseline_takes_gradient_steps():
    """Two rewards and two bags by hand; the second reward is in the first bag only."""
    inputs, rewards = np.array([[1.0, 0.5], [1.0, -2.0]]), np.array([3.0, -1.0])
    is_in = np.array([[True, True], [True, False]])
    found = simulation.learn_baseline(np.zeros((2, 2)), inputs, rewards, is_in)
    second = 2 * 3.0 * np.array([0.1, 0.01]) * inputs[0]
    error = inputs[1] @ second - rewards[1]
    first = second - 2 * error * np.array([0.1, 0.01]) * inputs[1]
    np.testing.assert_allclose(found, [first, second], atol=1e-12)


def test_coefficients_match_dense_inverses():
    """Mean, V̄ and Λ of one user at one time, from V⁻¹ written out; asymmetric b."""
    generator = np.random.default_rng(3)
    prior = simulation.prior_precision(simulation.true_effects("heterogeneous"))[:303, :303]
    rows = generator.normal(size=(40, 303)) * (generator.uniform(size=(40, 303)) < 0.1)
    memory = simulation.Memory(prior + rows.T @ rows, np.arange(303.0), np.zeros(0))
    added_up = np.zeros((3, 303))
    added_up[:, :3] = added_up[:, 33:36] = np.eye(3)
    inverse = np.linalg.inv(memory.precision)
    found = simulation.read_coefficients(memory, prior, added_up[None])
    expected = added_up @ inverse @ memory.shift, added_up @ inverse @ added_up.T
    np.testing.assert_allclose(found.mean[0], expected[0], rtol=1e-8)
    np.testing.assert_allclose(found.covariance[0], expected[1], rtol=1e-8)
    share = added_up @ inverse @ prior @ inverse @ added_up.T
    np.testing.assert_allclose(found.prior_share[0], share, rtol=1e-8)
    assert np.linalg.slogdet(expected[1])[1] > np.linalg.slogdet(share)[1] + 0.1


def test_a_stage_is_learned_from():
    """The second stage serves users 0 and 1, at times 1 and 0; nobody else's blocks change."""
    effects = simulation.true_effects("heterogeneous")
    prior = simulation.prior_precision(effects)
    memory = simulation.Memory(prior, np.zeros(len(prior)), np.zeros((simulation.NUM_BAGS, 10)))
    stage = simulation.draw_stage(np.random.default_rng(4), 1, effects)
    after, regret = simulation.play(memory, stage, prior)
    assert np.all(np.asarray(regret) >= 0)
    assert not np.any(regret[2:])
    is_pulled = np.abs(np.asarray(after.shift)).reshape(-1, 3).sum(axis=1) > 0
    np.testing.assert_array_equal(np.flatnonzero(is_pulled), [0, 1, 2, 101, 102])
    is_learned = np.diag(np.asarray(after.precision))[:303] > np.diag(prior)[:303]
    np.testing.assert_array_equal(np.flatnonzero(is_learned), np.arange(9))


def check(found, setting):
    """Within 25 percent of the published mean, and four standard errors of the later one."""
    mean, error = simulation.LATER[setting]
    assert abs(found["mean"] / simulation.PUBLISHED[setting][0] - 1) < 0.25
    assert abs(found["mean"] - mean) < 4 * np.hypot(found["standard_error"], error)


@pytest.mark.parametrize("setting", list(simulation.PUBLISHED))
def test_recorded_regret_is_near_the_published(setting):
    """The test below computes the recorded values."""
    check(simulation.RECORDED[setting], setting)


@pytest.mark.slow
@pytest.mark.parametrize("setting", list(simulation.PUBLISHED))
def test_regret_is_near_the_published(setting):
    """All repetitions again, and as recorded."""
    repetitions = [simulation.run(setting, seed) for seed in range(simulation.NUM_REPETITIONS)]
    found = simulation.mean_and_error(repetitions)
    print(f"{setting}: {found}")
    assert found == pytest.approx(simulation.RECORDED[setting], abs=2e-3)
    check(found, setting)
