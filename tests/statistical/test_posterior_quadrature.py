"""The posterior of a tiny model against quadrature over its three coefficients.

Whatever the order of the rewards, and whatever was corrected or withdrawn on the way, the particles
must end at the same posterior: that of the statistics that are left.
"""

import itertools
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from histories import History, Reward, draw_history, policy_for, run_smc, tiny_model

from cocobandits.inference.smc import SmcConfig
from cocobandits.populations.history_path import HistoryPath
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change

MODEL = tiny_model()
TRUTH = jnp.array([1.2, -0.8, 0.9])
HISTORY = draw_history(MODEL, TRUTH, seed=7, num_users=12, per_user=4)
POLICY = policy_for(MODEL, SmcConfig(num_particles=200))
REPLICATES = 12


@cache
def quadrature(history_length: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Integrate prior × likelihood on a 41³ product rule: means, variances, log-evidence."""
    history = History(HISTORY.contexts, HISTORY.rewards[:history_length])
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    grid = np.array(list(itertools.product(nodes, repeat=3)))
    log_prior = np.log(
        np.array([np.prod(w) for w in itertools.product(weights, repeat=3)]) / np.sum(weights) ** 3
    )
    table = history.table(2)
    change = Change.of(table, jnp.asarray(0), table.of(0)[1])
    evaluate = jax.jit(HistoryPath(MODEL).log_likelihood_and_gradient)
    padded = np.concatenate([grid, np.zeros((-len(grid) % 20, 3))])
    values, _ = evaluate(jnp.asarray(padded), change, jnp.ones(()))
    log_joint = log_prior + np.asarray(values)[: len(grid)]
    log_evidence = np.logaddexp.reduce(log_joint)
    posterior = np.exp(log_joint - log_evidence)
    mean = posterior @ grid
    return mean, posterior @ (grid - mean) ** 2, float(log_evidence)


def _learn(steps: list[tuple[int, Statistics]], seed: int):
    """Apply changes of statistics one after the other."""
    key = jax.random.key(seed)
    state = POLICY.init(jax.random.fold_in(key, 0))
    for context in HISTORY.contexts:
        state = POLICY.enrol(state, jnp.asarray(context))
    for number, (user, statistics) in enumerate(steps):
        state, _ = POLICY.update(jax.random.fold_in(key, number + 1), state, user, statistics)
    return state


def _steps(rewards: list[Reward]) -> list[tuple[int, Statistics]]:
    held = {user: Statistics.empty(2) for user in range(len(HISTORY.contexts))}
    steps = []
    for reward in rewards:
        held[reward.user] = held[reward.user].add(reward.arm, reward.value)
        steps.append((reward.user, held[reward.user]))
    return steps


def _in_order() -> list[tuple[int, Statistics]]:
    return _steps(HISTORY.rewards)


def _reversed() -> list[tuple[int, Statistics]]:
    return _steps(HISTORY.rewards[::-1])


def _with_corrections() -> list[tuple[int, Statistics]]:
    """Every fifth reward is first recorded wrongly, and put right at the very end."""
    wrong = [
        reward._replace(value=-reward.value) if number % 5 == 0 else reward
        for number, reward in enumerate(HISTORY.rewards)
    ]
    steps = _steps(wrong)
    last = dict(steps)
    for right, mistaken in zip(HISTORY.rewards, wrong, strict=True):
        if right != mistaken:
            corrected = last[right.user].remove(right.arm, mistaken.value)
            last[right.user] = corrected.add(right.arm, right.value)
            steps.append((right.user, last[right.user]))
    return steps


def _check(states, mean: np.ndarray, variance: np.ndarray, log_evidence: float) -> None:
    """Compare the average over independent runs, in units of its own standard error."""
    weights = [np.exp(np.asarray(state.own.log_weights)) for state in states]
    particles = [np.asarray(state.own.particles) for state in states]
    means = np.array([w @ p for w, p in zip(weights, particles, strict=True)])
    squares = np.array([w @ (p - mean) ** 2 for w, p in zip(weights, particles, strict=True)])
    for estimates, truth in ((means, mean), (squares, variance)):
        errors = estimates.std(axis=0, ddof=1) / np.sqrt(len(states))
        # A standard error from few runs is itself uncertain: four of them, plus one per cent.
        assert np.all(
            np.abs(estimates.mean(axis=0) - truth) < 4 * errors + 0.01 * np.sqrt(variance)
        )
    evidences = np.array([float(state.own.log_evidence) for state in states])
    assert abs(evidences.mean() - log_evidence) < 0.1


@pytest.mark.parametrize("make_steps", [_in_order, _reversed, _with_corrections])
def test_any_order_ends_at_the_quadrature_posterior(make_steps):
    states = [_learn(make_steps(), seed) for seed in range(REPLICATES)]
    _check(states, *quadrature(len(HISTORY.rewards)))


def test_removing_users_gives_what_never_having_seen_them_gives():
    """Learn from all twelve users, then take the last three away."""
    steps = _in_order() + [(user, Statistics.empty(2)) for user in (9, 10, 11)]
    states = [_learn(steps, seed) for seed in range(REPLICATES)]
    _check(states, *quadrature(9 * 4))
    everything, _, _ = quadrature(len(HISTORY.rewards))
    remaining, variance, _ = quadrature(9 * 4)
    # The check above could not fail if the three users had taught nothing.
    assert np.max(np.abs(everything - remaining) / np.sqrt(variance)) > 0.1


def test_every_five_observations_is_as_right():
    """The paper's schedule moves more often; it must end at the same posterior."""
    policy = policy_for(MODEL, SmcConfig(num_particles=200, move_every=5))
    states = [run_smc(policy, HISTORY, seed) for seed in range(REPLICATES)]
    _check(states, *quadrature(len(HISTORY.rewards)))
