"""Coefficients and hyperparameters that are learned together, against a long run of NUTS.

Two arms, eight nodes each, about thirty waves, a lengthscale and an amplitude; twenty users with
four rewards. The moves know the information, and walk in the hyperparameters while the population
stays; NUTS does neither.
"""

import math

import jax
import numpy as np
from histories import draw_history, nuts_draws, policy_for, run_smc

from cocobandits.inference.smc import SmcConfig
from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel

MODEL = LogDensityModel(
    LogDensityConfig(
        2,
        (),
        Axis(-2.0, 2.0, 8),
        reward_noise=0.3,
        arm_lengthscale=0.8,
        amplitude=2.0,
        num_modes=30,
        basis="hilbert",
        lengthscale_deviation=0.5,
        amplitude_deviation=0.7,
    )
)
NUM_MODES = MODEL.num_parameters - 2
# An amplitude well above and a lengthscale below their medians, so that there is much to learn.
TRUTH = (
    jax.random.normal(jax.random.key(8), (MODEL.num_parameters,)).at[-2:].set(np.array([-0.8, 1.2]))
)
HISTORY = draw_history(MODEL, TRUTH, seed=3, num_users=20, per_user=4)
RUNS, NUM_PARTICLES = 4, 200


def effective_draws(column: np.ndarray) -> float:
    """Divide the chain in 30 batches and compare the variance of their means with that of draws."""
    batches = column[: len(column) // 30 * 30].reshape(30, -1)
    return min(len(column), 30 * column.var() / batches.mean(axis=1).var(ddof=1))


def test_particles_with_hyperparameters_agree_with_nuts():
    draws = np.asarray(nuts_draws(MODEL, HISTORY, num_warmup=500, num_draws=4000))
    mean, deviation = draws.mean(axis=0), draws.std(axis=0)
    policy = policy_for(MODEL, SmcConfig(num_particles=NUM_PARTICLES))
    states = [run_smc(policy, HISTORY, seed) for seed in range(RUNS)]
    weights = [np.exp(np.asarray(state.own.log_weights)) for state in states]
    particles = [np.asarray(state.own.particles) for state in states]
    means = np.array([w @ p for w, p in zip(weights, particles, strict=True)])
    squares = [w @ (p - mean) ** 2 for w, p in zip(weights, particles, strict=True)]
    ratios = np.sqrt(np.mean(squares, axis=0)) / deviation
    distances = (means - mean) / deviation
    one_run = np.sqrt(np.mean(distances[:, :NUM_MODES] ** 2))
    all_runs = np.sqrt(np.mean(distances[:, :NUM_MODES].mean(axis=0) ** 2))
    print(
        f"\nNUTS, {NUM_MODES} coefficients: distance of means {one_run:.3f} deviations for one "
        f"run, {all_runs:.3f} for the average of {RUNS}; ratio of deviations "
        f"{ratios[:NUM_MODES].mean():.3f}"
    )
    # 200 independent draws would have a distance of 0.07, four times as many 0.035.
    assert one_run < 0.14
    assert all_runs < 0.07
    assert 0.95 < ratios[:NUM_MODES].mean() < 1.05
    for name, place in (("lengthscale", -2), ("amplitude", -1)):
        distance, chain = distances[:, place].mean(), effective_draws(draws[:, place])
        error = math.sqrt(2 / (RUNS * NUM_PARTICLES) + 1 / chain)
        print(
            f"NUTS, {name}: posterior {mean[place]:.2f} ± {deviation[place]:.2f} (prior 0 ± 1), "
            f"distance {distance:.3f} with error {error:.3f}, ratio of deviations "
            f"{ratios[place]:.3f}, {chain:.0f} effective draws"
        )
        assert abs(distance) < 4 * error
        assert abs(ratios[place] - 1) < 4 * error
        assert chain > 200
    # Hyperparameters were learned: the posterior is not the prior.
    assert np.abs(mean[-2:]).max() > 0.5 or deviation[-2:].min() < 0.8
