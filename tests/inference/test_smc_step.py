import contextlib
import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from scipy.stats import multivariate_normal, norm

from cocobandits.errors import ConfigurationError, NumericalError
from cocobandits.inference import smc
from cocobandits.inference.smc import SmcConfig

NUM_PARTICLES = 2000
CONFIG = SmcConfig(num_particles=NUM_PARTICLES)
NOISE = 0.5
# Six observations of two unknowns, lopsided; the last one is nine deviations from its forecast.
ROWS = np.array([[1.0, 0.3], [0.2, -1.0], [0.9, 0.8], [-0.4, 0.7], [1.2, -0.1], [0.3, 1.0]])
VALUES = np.array([1.4, 0.9, 0.6, -1.1, 1.5, 5.5])


class Observations(NamedTuple):
    """What is observed, with what noise, and which rows count before and after the step."""

    rows: Array
    values: Array
    noise: Array
    old: Array
    new: Array


@jax.tree_util.register_static
@dataclass(frozen=True)
class LinearGaussianPath:
    """y ~ N(A x, noise²): posterior and evidence are known in closed form."""

    def ends(self, data):
        """Need all of it."""
        return data

    def increment(self, particles, data):
        """Compute the log-likelihood of what is new minus that of what is gone."""
        return self._log_densities(particles, data) @ (data.new - data.old)

    def log_likelihood_and_gradient(self, particles, data, temperature):
        """Weigh each observation by its share at this temperature."""
        shares = (1 - temperature) * data.old + temperature * data.new
        residuals = data.values[None, :] - particles @ data.rows.T
        gradient = (residuals * shares[None, :]) @ data.rows / data.noise**2
        return self._log_densities(particles, data) @ shares, gradient

    def information(self, particles, data, temperature):
        """Sum the outer products of the expected gradients: the rows, over the noise."""
        del particles
        shares = (1 - temperature) * data.old + temperature * data.new
        return (data.rows * shares[:, None]).T @ data.rows / data.noise**2

    def interweave(self, rng_key, particles):
        """Leave all as it is: one parameter, one population."""
        del rng_key
        return particles

    def _log_densities(self, particles, data):
        scaled = (data.values[None, :] - particles @ data.rows.T) / data.noise
        return -0.5 * scaled**2 - jnp.log(data.noise * math.sqrt(2 * math.pi))


class HalfSpace(NamedTuple):
    """Where the possible begins, and what the log-likelihood is before."""

    threshold: Array
    impossible: Array


@jax.tree_util.register_static
@dataclass(frozen=True)
class HalfSpacePath:
    """Only particles beyond a threshold can explain the change, all of them equally well."""

    def ends(self, data):
        """Need all of it."""
        return data

    def increment(self, particles, data):
        """Give nothing to particles beyond the threshold, and the impossible to the others."""
        return jnp.where(particles[:, 0] > data.threshold, 0.0, data.impossible)

    def log_likelihood_and_gradient(self, particles, data, temperature):
        """Forbid the other side as soon as the temperature is positive."""
        tempered = jnp.where(temperature > 0, self.increment(particles, data), 0.0)
        return tempered, jnp.zeros_like(particles)

    def information(self, particles, data, temperature):
        """Say nothing about any direction."""
        del data, temperature
        return jnp.zeros((particles.shape[1], particles.shape[1]))

    def interweave(self, rng_key, particles):
        """Leave all as it is."""
        del rng_key
        return particles


PATH = LinearGaussianPath()


def observations(num_old, num_new, noise=NOISE):
    position = np.arange(len(VALUES))
    return Observations(
        jnp.asarray(ROWS),
        jnp.asarray(VALUES),
        jnp.asarray(noise),
        jnp.asarray((position < num_old).astype(float)),
        jnp.asarray((position < num_new).astype(float)),
    )


def closed_form(count, noise=NOISE):
    """Solve the normal equations; the evidence is a Gaussian density of all observations."""
    rows, values = ROWS[:count], VALUES[:count]
    covariance = np.linalg.inv(np.eye(2) + rows.T @ rows / noise**2)
    spread = rows @ rows.T + noise**2 * np.eye(count)
    evidence = multivariate_normal.logpdf(values, np.zeros(count), spread)
    return covariance @ rows.T @ values / noise**2, covariance, evidence


def run(seed, counts, config=CONFIG, noise=NOISE):
    """Go through a sequence of observation counts; return the last state and all diagnostics."""
    init_key, *step_keys = jax.random.split(jax.random.key(seed), len(counts))
    state, infos = smc.init(init_key, 2, config), []
    for key, (old, new) in zip(step_keys, itertools.pairwise(counts), strict=True):
        state, info = smc.step(key, state, PATH, observations(old, new, noise), config)
        infos.append(info)
    return state, infos


def assert_posterior(state, count, noise=NOISE):
    """Compare mean and covariance in units of the posterior: about 5 iid standard errors."""
    mean, covariance, _ = closed_form(count, noise)
    weights = np.exp(np.asarray(state.log_weights))
    assert weights.sum() == pytest.approx(1.0, abs=1e-9)
    whitened = np.linalg.solve(
        np.linalg.cholesky(covariance), (np.asarray(state.particles) - mean).T
    )
    np.testing.assert_allclose(whitened @ weights, [0.0, 0.0], atol=0.12)
    np.testing.assert_allclose((whitened * weights) @ whitened.T, np.eye(2), atol=0.18)


def test_particles_start_from_the_prior():
    """Mean 0 and covariance I within four standard errors; equal weights, no evidence."""
    state = smc.init(jax.random.key(0), 3, CONFIG)
    particles = np.asarray(state.particles)
    assert particles.shape == (NUM_PARTICLES, 3)
    assert np.abs(particles.mean(axis=0)).max() < 4 / math.sqrt(NUM_PARTICLES)
    products = particles[:, :, None] * particles[:, None, :]
    error = products.std(axis=0) / math.sqrt(NUM_PARTICLES)
    assert np.all(np.abs(products.mean(axis=0) - np.eye(3)) < 4 * error)
    np.testing.assert_allclose(np.exp(state.log_weights), 1 / NUM_PARTICLES, rtol=1e-12)
    assert float(state.log_evidence) == 0.0


@pytest.mark.parametrize("seed", [1, 2])
def test_sequence_reaches_the_closed_form(seed):
    """One observation at a time: posterior and evidence of linear regression."""
    state, infos = run(seed, range(6))
    assert_posterior(state, 5)
    assert float(state.log_evidence) == pytest.approx(closed_form(5)[2], abs=0.1)
    increments = [info.log_evidence_increment for info in infos]
    assert sum(increments) == pytest.approx(float(state.log_evidence), abs=1e-9)
    assert any(info.is_rejuvenated for info in infos)


@pytest.mark.parametrize("seed", [1, 2])
def test_annealing_reaches_the_closed_form(seed):
    """All observations at once, from the prior, the surprising one included."""
    key = jax.random.key(seed)
    state, info = smc.anneal(key, 2, PATH, observations(0, 6), CONFIG)
    assert_posterior(state, 6)
    assert float(state.log_evidence) == pytest.approx(closed_form(6)[2], abs=0.15)
    assert info.log_evidence_increment == pytest.approx(float(state.log_evidence), abs=1e-9)
    assert len(info.temperatures) > 2
    assert info.temperatures[-1] == 1.0


def test_annealing_moves_nothing_where_weights_are_enough():
    """A vague observation is importance sampling from the prior."""
    state, info = smc.anneal(jax.random.key(3), 2, PATH, observations(0, 1, noise=5.0), CONFIG)
    likelihood = norm.pdf(VALUES[0], np.asarray(state.particles) @ ROWS[0], 5.0)
    np.testing.assert_allclose(np.exp(state.log_weights), likelihood / likelihood.sum(), rtol=1e-10)
    assert float(state.log_evidence) == pytest.approx(math.log(likelihood.mean()), abs=1e-10)
    assert info.num_moves == 0


def test_each_increment_is_a_predictive_density():
    """Divide successive closed-form evidences."""
    _, infos = run(3, range(6))
    evidences = [0.0, *(closed_form(count)[2] for count in range(1, 6))]
    increments = [info.log_evidence_increment for info in infos]
    np.testing.assert_allclose(increments, np.diff(evidences), atol=0.1)


def test_reweighting_alone_is_importance_sampling():
    """Weigh the prior particles by hand; a vague observation calls for no moves."""
    state = smc.init(jax.random.key(4), 2, CONFIG)
    after, info = smc.step(jax.random.key(5), state, PATH, observations(0, 1, noise=5.0), CONFIG)
    likelihood = norm.pdf(VALUES[0], np.asarray(state.particles) @ ROWS[0], 5.0)
    expected = likelihood / likelihood.sum()
    np.testing.assert_array_equal(after.particles, state.particles)
    np.testing.assert_allclose(np.exp(after.log_weights), expected, rtol=1e-10)
    assert info.log_evidence_increment == pytest.approx(math.log(likelihood.mean()), abs=1e-10)
    assert info.ess == pytest.approx(1 / (expected**2).sum(), rel=1e-10)
    assert (info.temperatures, info.num_moves, info.is_rejuvenated) == ((), 0, False)
    assert info.distinct_ancestors == NUM_PARTICLES
    assert math.isnan(info.acceptance_rate)
    assert math.isnan(info.start_correlation)
    assert int(after.changes_since_move) == 1


def test_surprising_observation_is_tempered():
    """The ladder rises to exactly 1 in several stages, and ends at the closed form."""
    state, infos = run(6, range(7))
    surprise = infos[-1]
    ladder = (0.0, *surprise.temperatures)
    assert len(surprise.temperatures) > 1
    assert np.all(np.diff(ladder) > 0)
    assert ladder[-1] == 1.0
    assert surprise.ess < CONFIG.stage_threshold * NUM_PARTICLES
    assert surprise.log_evidence_increment < -10
    assert_posterior(state, 6)
    assert float(state.log_evidence) == pytest.approx(closed_form(6)[2], abs=0.2)


def test_diagnostics_stay_within_their_bounds():
    """Check every field of a step with moves against what it counts."""
    _, infos = run(6, range(7))
    moved = [info for info in infos if info.is_rejuvenated]
    assert len(moved) >= 2
    for info in moved:
        blocks, rest = divmod(info.num_moves, CONFIG.moves_per_block)
        assert rest == 0
        assert len(info.temperatures) <= blocks <= CONFIG.max_blocks * len(info.temperatures)
        assert 1 <= info.ess <= NUM_PARTICLES
        assert 1 <= info.distinct_ancestors < NUM_PARTICLES
        assert 0 < info.acceptance_rate < 1
        is_spent = blocks == CONFIG.max_blocks * len(info.temperatures)
        assert info.start_correlation < CONFIG.correlation_target or is_spent
    for info in infos:
        assert info.is_rejuvenated == (info.ess < CONFIG.ess_threshold * NUM_PARTICLES)


def test_budget_of_moves_is_kept():
    """Steps too small to move anything use all blocks, and say that copies have not parted."""
    config = SmcConfig(num_particles=NUM_PARTICLES, max_blocks=2, first_step_size=1e-8)
    state, (info,) = run(7, [0, 1], config)
    assert info.num_moves == 2 * config.moves_per_block * len(info.temperatures)
    assert info.start_correlation > 0.9
    assert info.acceptance_rate > 0.9
    # All was accepted, so the step size grows for the next time.
    assert float(state.step_size) > 1e-8
    resampled = {tuple(row) for row in np.round(np.asarray(state.particles), 2)}
    assert len(resampled) < NUM_PARTICLES


def test_moves_are_due_after_a_number_of_changes():
    """Vague observations keep the ESS high: only every third step moves."""
    config = SmcConfig(num_particles=NUM_PARTICLES, move_every=3)
    state, infos = run(8, range(6), config, noise=20.0)
    assert [info.is_rejuvenated for info in infos] == [False, False, True, False, False]
    assert all(info.ess > 0.9 * NUM_PARTICLES for info in infos)
    assert infos[2].temperatures == (1.0,)
    assert int(state.changes_since_move) == 2
    assert_posterior(state, 5, noise=20.0)


def test_withdrawn_observation_is_forgotten():
    """Take a surprising observation away again: posterior and evidence of before."""
    state, infos = run(9, [0, 1, 2, 3, 4, 5, 6, 5])
    assert_posterior(state, 5)
    assert float(state.log_evidence) == pytest.approx(closed_form(5)[2], abs=0.3)
    assert infos[-1].log_evidence_increment > 10


@pytest.mark.parametrize("impossible", [-math.inf, math.nan])
def test_change_that_no_particle_explains_is_refused(impossible):
    """Put the threshold where no draw from the prior ever lies."""
    state = smc.init(jax.random.key(10), 2, CONFIG)
    far_away = HalfSpace(jnp.asarray(50.0), jnp.asarray(impossible))
    with pytest.raises(NumericalError, match=r"finite likelihood under some particle; got none"):
        smc.step(jax.random.key(11), state, HalfSpacePath(), far_away, CONFIG)
    with pytest.raises(NumericalError, match=r"finite likelihood under some particle; got none"):
        smc.anneal(jax.random.key(10), 2, HalfSpacePath(), far_away, CONFIG)


@pytest.mark.parametrize("impossible", [-math.inf, math.nan])
def test_particles_that_cannot_explain_a_change_die_out(impossible):
    """Truncated normal: 38 % of the prior lies beyond 0.3."""
    state = smc.init(jax.random.key(12), 2, CONFIG)
    upper_part = HalfSpace(jnp.asarray(0.3), jnp.asarray(impossible))
    after, info = smc.step(jax.random.key(13), state, HalfSpacePath(), upper_part, CONFIG)
    first = np.asarray(after.particles)[:, 0]
    assert first.min() > 0.3
    assert first.mean() == pytest.approx(norm.pdf(0.3) / norm.sf(0.3), abs=0.07)
    assert info.log_evidence_increment == pytest.approx(norm.logsf(0.3), abs=0.12)
    assert info.temperatures == (1.0,)
    assert np.all(np.isfinite(after.log_weights))


def test_change_that_few_particles_explain_comes_to_an_end(monkeypatch):
    """Only 7 % of the prior lies beyond 1.5: the step must end, with an answer or an error."""
    find, calls = smc.next_temperature, []

    def counted(*arguments):
        calls.append(arguments)
        assert len(calls) < 30, "the ladder does not rise"
        return find(*arguments)

    monkeypatch.setattr(smc, "next_temperature", counted)
    config = SmcConfig(num_particles=NUM_PARTICLES, max_blocks=1)
    state = smc.init(jax.random.key(12), 2, config)
    tail = HalfSpace(jnp.asarray(1.5), jnp.asarray(-math.inf))
    with contextlib.suppress(NumericalError):
        smc.step(jax.random.key(13), state, HalfSpacePath(), tail, config)


def test_same_key_gives_the_same_state_bit_for_bit():
    """Run twice; and once with another key, which must differ."""
    first, first_infos = run(14, range(7))
    second, second_infos = run(14, range(7))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    # repr, since fields that do not apply are NaN.
    assert repr(first_infos) == repr(second_infos)
    third, _ = run(15, range(7))
    assert not np.array_equal(first.particles, third.particles)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_particles": 0}, r"whole number from 1 to .*; got num_particles=0"),
        ({"moves_per_block": 0}, r"moves_per_block=0"),
        ({"max_blocks": -1}, r"max_blocks=-1"),
        ({"stage_threshold": 0.0}, r"above 0 and below 1; got stage_threshold=0\.0"),
        ({"stage_threshold": 0.6}, r"stage_threshold=0\.6, ess_threshold=0\.5"),
        ({"ess_threshold": 1.0}, r"above 0 and below 1; got ess_threshold=1\.0"),
        ({"move_every": 0}, r"whole number from 1 to .*; got move_every=0"),
        ({"first_step_size": math.nan}, r"positive number; got first_step_size=nan. The default"),
        ({"first_step_size": 0.0}, r"got first_step_size=0\.0"),
        ({"correlation_target": 1.1}, r"above 0 and at most 1; got correlation_target=1\.1"),
    ],
)
def test_config_refuses_what_cannot_work(changes, message):
    """The message shows the fields and what was given."""
    with pytest.raises(ConfigurationError, match=message):
        SmcConfig(**changes)
