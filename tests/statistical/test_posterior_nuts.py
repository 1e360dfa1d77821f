"""The posterior of a frozen history against a long run of NUTS (BlackJAX).

The paper's preset on a smaller grid: three arms, eight nodes each, 80 coefficients, 30 users with
five rewards. The distances stated are root-mean-square over coefficients, in posterior deviations,
and total variation of P(arm is best) for newcomers.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from histories import draw_history, nuts_draws, policy_for, run_smc

from cocobandits.inference.smc import SmcConfig
from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel
from cocobandits.users.statistics import Statistics

MODEL = LogDensityModel(LogDensityConfig(3, arm_axis=Axis(-2.0, 2.0, 8)))
HISTORY = draw_history(
    MODEL, jax.random.normal(jax.random.key(42), (80,)), seed=11, num_users=30, per_user=5
)
RUNS = 4
NUM_PARTICLES = 200


def best_probabilities(particles: jax.Array, weights: jax.Array) -> np.ndarray:
    """Average P(arm is best) over particles, for newcomers at five contexts."""

    def at(context: jax.Array) -> jax.Array:
        def one(parameters: jax.Array) -> jax.Array:
            return MODEL.posterior(parameters, context, Statistics.empty(3)).best_probability()

        return weights @ jax.vmap(one)(particles)

    contexts = jnp.linspace(-0.9, 0.9, 5)[:, None]
    return np.asarray(jax.jit(lambda: jax.lax.map(at, contexts))())


@pytest.mark.slow
def test_particles_agree_with_nuts():
    draws = nuts_draws(MODEL, HISTORY, num_warmup=400, num_draws=2000)
    mean, deviation = np.asarray(draws.mean(axis=0)), np.asarray(draws.std(axis=0))
    policy = policy_for(MODEL, SmcConfig(num_particles=NUM_PARTICLES))
    states = [run_smc(policy, HISTORY, seed) for seed in range(RUNS)]
    weights = [np.exp(np.asarray(state.own.log_weights)) for state in states]
    particles = [np.asarray(state.own.particles) for state in states]
    means = np.array([w @ p for w, p in zip(weights, particles, strict=True)])
    deviations = np.sqrt(
        np.mean([w @ (p - w @ p) ** 2 for w, p in zip(weights, particles, strict=True)], axis=0)
    )
    one_run = np.sqrt(np.mean(((means - mean) / deviation) ** 2))
    all_runs = np.sqrt(np.mean(((means.mean(axis=0) - mean) / deviation) ** 2))
    spread = np.mean(deviations / deviation)
    sampled = best_probabilities(draws[::4], jnp.full(len(draws[::4]), 1 / len(draws[::4])))
    learned = np.mean(
        [
            best_probabilities(jnp.asarray(p), jnp.asarray(w))
            for p, w in zip(particles, weights, strict=True)
        ],
        axis=0,
    )
    variation = 0.5 * np.abs(sampled - learned).sum(axis=1).max()
    print(
        f"\nNUTS: distance of means {one_run:.3f} deviations for one run, {all_runs:.3f} for the "
        f"average of {RUNS}; ratio of deviations {spread:.3f}; total variation {variation:.4f}"
    )
    # 200 independent draws would have a distance of 0.07, four times as many 0.035.
    assert one_run < 0.14
    assert all_runs < 0.07
    assert 0.95 < spread < 1.05
    assert variation < 0.02
