"""Beliefs that learn further rewards, and the average of all particles' beliefs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_oracles import repeated, statistics_of

from cocobandits.populations.known.flat import FlatModel
from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel

NOISE = 0.25
CONTEXT = jnp.array([0.3])
LOG_WEIGHTS = jnp.log(jnp.array([0.45, 0.05, 0.3, 0.2]))
VALUES = jnp.array([-0.7, -0.3, 0.1, 0.5, 1.0])
EARLY = statistics_of(([0.21, 0.35], [], [0.6]))
LATE = statistics_of(([0.1], [0.3, -0.2], []))
NOTHING = statistics_of(([], [], []))


@functools.cache
def grid_model():
    return LogDensityModel(
        LogDensityConfig(
            3,
            context_axes=(Axis(0.0, 1.0, 3),),
            arm_axis=Axis(-0.6, 0.9, 4),
            reward_noise=NOISE,
            num_modes=9,
        )
    )


FLAT = FlatModel(3, -0.85, 1.15, NOISE)
PARTICLES = jnp.asarray(np.random.default_rng(2).normal(size=(4, 9)))

posterior = jax.jit(lambda model, *user: model.posterior(*user), static_argnums=0)
average = jax.jit(lambda model, *rest: model.average(*rest), static_argnums=0)
evidences = jax.jit(
    lambda model, *user: jax.vmap(model.log_evidence, (0, None, None))(*user), static_argnums=0
)
learn = jax.jit(lambda belief, statistics: belief.condition(statistics))


@jax.jit
def ask(belief):
    return {
        "mean": belief.mean(),
        "variance": belief.variance(),
        "best": belief.best_probability(),
        "expected_best": belief.expected_best(),
        "cumulative": belief.cumulative(VALUES),
        "predictive": belief.predictive(VALUES),
    }


def assert_same(actual, expected):
    first, second = ask(actual), ask(expected)
    for name in first:
        np.testing.assert_allclose(first[name], second[name], atol=1e-11, err_msg=name)


@pytest.mark.parametrize("kind", ["cell", "flat"])
def test_conditioning_is_the_posterior_of_the_summed_statistics(kind):
    model = FLAT if kind == "flat" else grid_model()
    parameters = jnp.zeros(0) if kind == "flat" else PARTICLES[0]
    early = posterior(model, parameters, CONTEXT, EARLY)
    together = posterior(model, parameters, CONTEXT, EARLY.plus(LATE))
    assert_same(learn(early, LATE), together)
    # Order does not matter, and the rewards did change something.
    late = posterior(model, parameters, CONTEXT, LATE)
    assert_same(learn(late, EARLY), together)
    assert np.abs(np.asarray(early.mean() - together.mean())).max() > 0.01


def test_average_is_the_weighted_average_of_cell_probabilities():
    """Average the softmax of each particle's log-density, one after another."""
    model = grid_model()
    expected = np.zeros((4, 4, 4))
    for weight, parameters in zip(np.exp(LOG_WEIGHTS), PARTICLES, strict=True):
        density = np.exp(np.asarray(jax.jit(model.log_density)(parameters, CONTEXT)))
        expected += weight * density / density.sum()
    # Log-weights count up to a constant.
    for shift in (0.0, -700.0):
        actual = average(model, PARTICLES, LOG_WEIGHTS + shift, CONTEXT, NOTHING)
        np.testing.assert_allclose(actual.probabilities, expected, atol=1e-14)
    np.testing.assert_array_equal(actual.statistics.count, np.zeros(3))


def test_conditioned_average_is_a_mixture_over_reweighted_particles():
    """Σ_s w_s p(rewards | s) P_s(best) / Σ_s w_s p(rewards | s), an identity."""
    model = grid_model()
    statistics = EARLY.plus(LATE)
    evidence = np.exp(np.asarray(evidences(model, PARTICLES, CONTEXT, statistics)))
    shares = np.exp(LOG_WEIGHTS) * evidence
    shares /= shares.sum()
    assert np.abs(shares - np.exp(LOG_WEIGHTS)).max() > 0.05
    each = [ask(posterior(model, parameters, CONTEXT, statistics)) for parameters in PARTICLES]
    actual = ask(learn(average(model, PARTICLES, LOG_WEIGHTS, CONTEXT, NOTHING), statistics))
    for name in ("mean", "best", "expected_best", "predictive"):
        expected = sum(
            share * np.asarray(one[name]) for share, one in zip(shares, each, strict=True)
        )
        np.testing.assert_allclose(actual[name], expected, atol=1e-12, err_msg=name)


def test_average_of_the_flat_model_is_its_prior():
    prior = average(FLAT, jnp.zeros((2, 0)), jnp.zeros(2), CONTEXT, NOTHING)
    assert_same(learn(prior, LATE), posterior(FLAT, jnp.zeros(0), CONTEXT, LATE))


@pytest.mark.parametrize("mean", [-11.0, 12.0])
def test_average_survives_rewards_far_outside_the_range(mean):
    """Forty deviations out: all mass moves to the nearest cell, and nothing becomes NaN."""
    prior = average(grid_model(), PARTICLES, LOG_WEIGHTS, CONTEXT, NOTHING)
    answers = ask(learn(prior, repeated([0, 3, 0], [0.0, mean, 0.0])))
    nearest = 1.15 if mean > 0 else -0.85
    assert float(answers["mean"][1]) == pytest.approx(nearest, abs=0.01)
    for name in ("best", "cumulative", "variance"):
        assert np.all(np.isfinite(np.asarray(answers[name]))), name
    np.testing.assert_allclose(np.sum(answers["best"]), 1.0, atol=1e-12)
