"""The Hilbert-space basis: its prior against the kernel, symmetries, and hyperparameters."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_oracles import statistics_of
from scipy.integrate import quad

from cocobandits.errors import ConfigurationError
from cocobandits.populations.log_density import (
    Axis,
    CategoricalAxis,
    LogDensityConfig,
    LogDensityModel,
)
from cocobandits.populations.log_density import hilbert as hilbert_module

AXIS = Axis(-0.7, 1.3, 8)
AGE, SITE = Axis(0.0, 2.0, 5), CategoricalAxis(3)
AMPLITUDE = 1.7


def hilbert_model(num_arms=2, num_modes=30, context_axes=(), arm_axis=AXIS, **changes):
    settings = {"amplitude": AMPLITUDE, "arm_lengthscale": 0.4, "context_lengthscale": 0.9}
    return LogDensityModel(
        LogDensityConfig(
            num_arms,
            context_axes,
            arm_axis,
            reward_noise=0.25,
            num_modes=num_modes,
            basis="hilbert",
            **settings | changes,
        )
    )


def num_modes_of(model):
    return len(model.basis.arm_indices)


def kernel(scaled):
    return np.exp(-0.5 * scaled**2)


def wrapped(distances, lengthscale, half_width):
    """Add up the kernel at all images of a box that is bent to a ring."""
    images = 2 * half_width * np.arange(-40, 41)
    return kernel((distances[..., None] + images) / lengthscale).sum(axis=-1)


def prior_covariance(model, contexts=((),), hyperparameters=0.0):
    """Push unit vectors through the model: the covariance of f over (context, arm, …) nodes."""
    num_modes = num_modes_of(model)
    rows = jnp.full((num_modes, model.num_parameters), hyperparameters, dtype=float)
    rows = rows.at[:, :num_modes].set(jnp.eye(num_modes))
    by_context = jax.vmap(model.log_density, in_axes=(None, 0))
    pushed = jax.jit(jax.vmap(by_context, in_axes=(0, None)))(rows, jnp.asarray(contexts))
    functions = np.asarray(pushed)
    flat = functions.reshape(num_modes, -1)
    return (flat.T @ flat).reshape(functions.shape[1:] * 2)


def test_waves_have_the_kernel_wrapped_around_the_box():
    """Sum the kernel over its images; what more waves would add is bounded by the spectrum."""
    waves = hilbert_module._Waves(AXIS, 1.6)
    points = np.array([-0.7, -0.31, 0.02, 0.5, 1.29])
    functions = np.asarray(waves.at(jnp.asarray(points)))
    covariance = (functions * np.exp(waves.log_spectrum(0.45))[None, :]) @ functions.T
    distances = np.subtract.outer(points, points)
    expected = wrapped(distances, 0.45, waves.half_width)
    np.testing.assert_allclose(covariance, expected, atol=1e-12)
    assert waves.half_width == pytest.approx(1.6)


def test_prior_is_the_kernel_inside_the_range():
    """Wrapping adds at most the kernel at the shortest way around, here four lengthscales."""
    waves = hilbert_module._Waves(AXIS, 1.6)
    lengthscale = (2 * waves.half_width - (AXIS.high - AXIS.low)) / 4
    points = np.asarray(AXIS.nodes)
    functions = np.asarray(waves.at(AXIS.nodes))
    covariance = (functions * np.exp(waves.log_spectrum(lengthscale))[None, :]) @ functions.T
    distances = np.abs(np.subtract.outer(points, points))
    tolerance = 1.2 * kernel(4.0) + 3e-3
    np.testing.assert_allclose(covariance, kernel(distances / lengthscale), atol=tolerance)
    assert tolerance < 0.015


def test_prior_of_the_model_is_a_product_less_what_is_the_same_for_all_arms():
    """Multiply wrapped kernels; the constant wave of all arms is left out on purpose."""
    # The spectrum falls below all digits long before the waves end.
    model = hilbert_model(2, 400, arm_axis=Axis(-0.7, 1.3, 4))
    nodes, half_width = np.linspace(-0.7, 1.3, 4), model.basis._arm.half_width
    gram = wrapped(np.subtract.outer(nodes, nodes), 0.4, half_width)
    area = 2 * quad(lambda d: kernel(d / 0.4), 0, 20)[0]
    constant = (area / (2 * half_width)) ** 2
    expected = AMPLITUDE**2 * (np.einsum("ik,jl->ijkl", gram, gram) - constant)
    np.testing.assert_allclose(prior_covariance(model)[0, :, :, 0], expected, atol=1e-10)


@pytest.mark.parametrize(
    ("num_arms", "num_modes", "axes"),
    [(2, 3, ()), (2, 40, ()), (3, 25, ()), (2, 60, (AGE,)), (2, 50, (AGE, SITE))],
)
def test_prior_variance_is_the_same_everywhere(num_arms, num_modes, axes):
    """At every node and context, between nodes too, however few modes are kept."""
    model = hilbert_model(num_arms, num_modes, axes)
    places = [[0.0, 0.31, 1.0, 2.0] if axis is AGE else [0.0, 1.0, 2.0] for axis in axes]
    contexts = list(itertools.product(*places)) if axes else [()]
    covariance = prior_covariance(model, contexts)
    size = math.isqrt(covariance.size)
    variances = np.diag(covariance.reshape(size, size))
    assert np.ptp(variances) < 1e-12 * variances[0]
    assert 0.05 * AMPLITUDE**2 < variances[0] < AMPLITUDE**2
    if axes:
        # Where all places are alike, their average over the grid is each of them.
        share = variances[0] / AMPLITUDE**2
        assert model.captured_variance == pytest.approx(share, rel=1e-9)


def test_captured_variance_needs_no_features():
    model = hilbert_model(2, 30)
    variance = prior_covariance(model)[0, 2, 5, 0, 2, 5]
    assert model.captured_variance == pytest.approx(variance / AMPLITUDE**2, rel=1e-9)


@pytest.mark.parametrize("num_modes", [1, 7, 20, 41])
def test_arms_are_exchangeable_in_the_prior(num_modes):
    """Permute three arms: the covariance of the whole log-density stays."""
    covariance = prior_covariance(hilbert_model(3, num_modes, arm_axis=Axis(-0.7, 1.3, 4)))[0]
    covariance = covariance[:, :, :, 0]
    for order in itertools.permutations(range(3)):
        axes = (*order, *(3 + arm for arm in order))
        np.testing.assert_allclose(covariance.transpose(axes), covariance, atol=1e-12)


@pytest.mark.parametrize("axes", [(), (AGE,), (SITE,)], ids=["none", "age", "site"])
def test_modes_come_in_whole_groups(axes):
    """At least as many as asked for; without the weakest group there are too few."""
    for num_modes in (1, 2, 5, 6, 24, 25, 70):
        model = hilbert_model(2, num_modes, axes)
        indices = np.concatenate([model.basis.arm_indices, model.basis._context_indices], axis=1)
        strengths = np.asarray(model.basis._log_scales(jnp.zeros(model.num_parameters)))
        is_last = strengths < strengths.min() + 1e-7
        assert len(indices) >= num_modes > (~is_last).sum()
        # Closed under exchanging the arms, and every cosine (odd) with its sine.
        kept = {tuple(row) for row in indices.tolist()}
        waves = 2 + sum(axis is not SITE for axis in axes)
        for row in kept:
            assert (row[1], row[0], *row[2:]) in kept
            for place in range(waves):
                if row[place]:
                    partner = row[place] + (1 if row[place] % 2 else -1)
                    assert (*row[:place], partner, *row[place + 1 :]) in kept
        assert all(row[0] or row[1] for row in kept)


def test_more_modes_than_there_are_are_refused():
    """Count by hand: a constant and pairs of waves on two arms, but for the constant of both."""
    most = (2 * hilbert_module._MOST_WAVES + 1) ** 2 - 1
    with pytest.raises(ConfigurationError, match=rf"at most {most} modes .*num_modes={most + 1}"):
        hilbert_model(2, most + 1)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_categories_have_the_exchangeable_kernel(size):
    """One on the diagonal, the kernel at distance one elsewhere, for every lengthscale."""
    contrasts = hilbert_module._Contrasts(CategoricalAxis(size))
    functions = np.asarray(contrasts.at(jnp.arange(float(size))))
    np.testing.assert_allclose(functions.T @ functions, np.eye(size), atol=1e-12)
    for lengthscale in (0.2, 0.7, 1.5, 6.0):
        expected = np.full((size, size), kernel(1 / lengthscale))
        np.fill_diagonal(expected, 1.0)
        spectrum = np.exp(contrasts.log_spectrum(lengthscale))
        np.testing.assert_allclose((functions * spectrum) @ functions.T, expected, atol=1e-12)


def test_categories_are_exchangeable_in_a_model_that_keeps_few_modes():
    """All pairs of sites covary alike, at medians and elsewhere."""
    model = hilbert_model(2, 21, (SITE,), arm_axis=Axis(-0.7, 1.3, 3))
    for hyperparameters in (-1.0, 0.0, 1.5):
        covariance = prior_covariance(model, [[0.0], [1.0], [2.0]], hyperparameters)
        for order in itertools.permutations(range(3)):
            permuted = covariance[list(order)][:, :, :, list(order)]
            np.testing.assert_allclose(permuted, covariance, rtol=1e-9, atol=1e-10)
        assert np.abs(covariance[0, :, :, 0] - covariance[0, :, :, 1]).max() > 0.01


def test_whitened_hyperparameters_scale_the_prior():
    """The prior with a particle's own hyperparameters is that of a model with these as medians."""
    learned = hilbert_model(2, 30, lengthscale_deviation=0.3, amplitude_deviation=0.5)
    hyper = jnp.array([0.8, -1.1])
    parameters = jnp.concatenate([jnp.zeros(num_modes_of(learned)), hyper])
    found = learned.hyperparameters(parameters)
    lengthscale, amplitude = 0.4 * math.exp(0.3 * 0.8), AMPLITUDE * math.exp(-0.5 * 1.1)
    assert float(found.arm_lengthscale) == pytest.approx(lengthscale, rel=1e-12)
    assert float(found.amplitude) == pytest.approx(amplitude, rel=1e-12)
    assert found.context_lengthscales.shape == (0,)
    assert found.noise is None
    # The same modes, as their order does not depend on the lengthscale of two equal axes.
    fixed = hilbert_model(2, 30, arm_lengthscale=lengthscale, amplitude=amplitude)
    np.testing.assert_array_equal(fixed.basis.arm_indices, learned.basis.arm_indices)
    coefficients = jnp.asarray(np.random.default_rng(1).normal(size=num_modes_of(fixed)))
    at = jax.jit(LogDensityModel.log_density, static_argnums=0)
    np.testing.assert_allclose(
        at(learned, jnp.concatenate([coefficients, hyper]), jnp.zeros(0)),
        at(fixed, jnp.concatenate([coefficients, jnp.zeros(2)]), jnp.zeros(0)),
        atol=1e-11,
    )


def test_noise_of_a_particle_is_log_normal():
    model = hilbert_model(noise_deviation=0.6)
    parameters = jnp.zeros(model.num_parameters).at[-1].set(-1.5)
    expected = 0.25 * math.exp(-0.9)
    assert float(model.noise(parameters)) == pytest.approx(expected, rel=1e-12)
    assert float(model.hyperparameters(parameters).noise) == pytest.approx(expected, rel=1e-12)
    assert model.num_parameters == hilbert_model().num_parameters + 1
    np.testing.assert_allclose(model.noise_range, (0.25 * math.exp(-1.2), 0.25 * math.exp(1.2)))
    fixed = hilbert_model()
    assert fixed.noise_range == (0.25, 0.25)
    assert fixed.hyperparameters(parameters[:-1]).noise is None


def test_karhunen_loeve_learns_no_hyperparameters():
    config = LogDensityConfig(2, (), AXIS, num_modes=12)
    found = LogDensityModel(config).hyperparameters(jnp.zeros(12))
    assert found == (None, None, None, None)


HISTORIES = [([0.3, 0.1, 0.4], [-0.2]), ([0.9], [0.2, 0.5]), ([-0.4], [1.0])]


@functools.partial(jax.jit, static_argnums=0)
def evidences(model, parameters):
    """Compute the evidence of each history, and of all of them together, for every particle."""
    given = [
        jax.vmap(model.log_evidence, in_axes=(0, None, None))(
            parameters, jnp.zeros(0), statistics_of(history)
        )
        for history in HISTORIES
    ]
    return jnp.exp(jnp.stack([*given, sum(given)]))


def marginal_evidences(model, seed):
    """Average over draws from the prior: estimates and their standard errors."""
    draws = jax.random.normal(jax.random.key(seed), (20_000, model.num_parameters))
    values = np.asarray(evidences(model, draws))
    return values.mean(axis=1), values.std(axis=1) / math.sqrt(len(draws))


def test_both_bases_give_the_same_marginal_evidence(monkeypatch):
    """At fixed hyperparameters they are the same Gaussian process, so histories are as probable."""
    # A box so wide that wrapping around it, four lengthscales, does not count.
    monkeypatch.setattr(hilbert_module, "_ARM_PADDING", 1.6)
    half_width, lengthscale = 1.6, 0.3
    fixed = {
        "arm_lengthscale": lengthscale,
        "lengthscale_deviation": 0.0,
        "amplitude_deviation": 0.0,
    }
    waves = hilbert_model(2, 200, **fixed)
    assert waves.basis._arm.half_width == half_width
    eigenvectors = LogDensityModel(
        LogDensityConfig(
            2,
            (),
            AXIS,
            reward_noise=0.25,
            arm_lengthscale=lengthscale,
            amplitude=AMPLITUDE,
            num_modes=64,
        )
    )
    assert np.sum(eigenvectors.basis.eigenvalues) / AXIS.size**2 > 0.99
    left_out = (math.sqrt(2 * math.pi) * lengthscale / (2 * half_width)) ** 2
    assert prior_covariance(waves)[0, 0, 0, 0, 0, 0] / AMPLITUDE**2 + left_out > 0.99
    one, one_error = marginal_evidences(waves, 1)
    other, other_error = marginal_evidences(eigenvectors, 2)
    print(
        f"\nevidence ratios {one / other}, relative errors {np.hypot(one_error, other_error) / one}"
    )
    assert np.all(np.abs(one - other) < 4 * np.hypot(one_error, other_error))
    # Sharp enough to see an amplitude that is off by a third.
    wrong, wrong_error = marginal_evidences(hilbert_model(2, 200, **fixed | {"amplitude": 2.3}), 1)
    assert np.any(np.abs(wrong - other) > 6 * np.hypot(wrong_error, other_error))


@pytest.mark.parametrize("noise_deviation", [0.0, 0.5], ids=["known noise", "learned noise"])
def test_gradient_matches_automatic_differentiation(noise_deviation):
    """Differentiate through lengthscales, amplitude and noise as well."""
    model = hilbert_model(
        2,
        20,
        (AGE, SITE),
        Axis(-0.7, 1.3, 4),
        noise_deviation=noise_deviation,
    )
    parameters = jnp.asarray(np.random.default_rng(3).normal(size=model.num_parameters))
    user = jnp.array([0.83, 2.0]), statistics_of(([0.2, 0.45], [-0.3]))

    @jax.jit
    def both(at):
        return model.log_evidence_and_gradient(at, *user), jax.value_and_grad(model.log_evidence)(
            at, *user
        )

    (value, gradient), (expected_value, expected) = both(parameters)
    assert float(value) == pytest.approx(float(expected_value), abs=1e-12)
    np.testing.assert_allclose(gradient, expected, atol=1e-10)
    num_modes = num_modes_of(model)
    assert np.all(np.abs(gradient[num_modes:]) > 1e-4)
    assert len(gradient) == num_modes + 4 + (noise_deviation > 0)


def interweaving_model():
    return hilbert_model(2, 12, (AGE,), Axis(-0.7, 1.3, 4), noise_deviation=0.5)


def test_interweaving_keeps_every_population():
    """Evidence of every history, and the noise, to nine digits; the hyperparameters move."""
    model = interweaving_model()
    particles = jax.random.normal(jax.random.key(4), (50, model.num_parameters))
    keys = jax.random.split(jax.random.key(5), 50)
    moved = jax.jit(jax.vmap(model.interweave))(keys, particles)
    for history, age in zip(HISTORIES, (0.0, 0.7, 1.9), strict=True):
        evidence = jax.jit(jax.vmap(model.log_evidence, in_axes=(0, None, None)))
        user = jnp.array([age]), statistics_of(history)
        np.testing.assert_allclose(
            evidence(moved, *user), evidence(particles, *user), rtol=0, atol=1e-9
        )
    np.testing.assert_array_equal(moved[:, -1], particles[:, -1])
    distance = np.abs(np.asarray(moved - particles))
    num_modes = num_modes_of(model)
    assert np.mean(distance[:, num_modes:-1].max(axis=1) > 0.05) > 0.8
    assert np.mean(distance[:, :num_modes].max(axis=1) > 0.01) > 0.8


def prior_scores(parameters, num_modes):
    """Standardise the errors of moments of N(0, I), and of hyperparameters with coefficients."""
    values = np.asarray(parameters)
    energy = (values[:, :num_modes] ** 2).sum(axis=1) - num_modes
    hyper = values[:, num_modes:]
    columns = [values, values**2 - 1, values**3, hyper * energy[:, None], energy[:, None]]
    columns.append((energy**2 - 2 * num_modes)[:, None])
    table = np.concatenate(columns, axis=1)
    return table.mean(axis=0) / (table.std(axis=0) / math.sqrt(len(table)))


def test_interweaving_keeps_the_prior():
    """Exact draws of N(0, I) stay so, in all moments up to the third and across."""
    model = interweaving_model()
    start = jax.random.normal(jax.random.key(6), (20_000, model.num_parameters))
    keys = jax.random.split(jax.random.key(7), len(start))
    moved = jax.jit(jax.vmap(model.interweave))(keys, start)
    num_modes = num_modes_of(model)
    hyper = slice(num_modes, -1)
    correlation = np.mean(
        [
            np.corrcoef(one, other)[0, 1]
            for one, other in zip(start[:, hyper].T, moved[:, hyper].T, strict=True)
        ]
    )
    scores = prior_scores(moved, num_modes)
    print(f"\nlargest score {np.abs(scores).max():.2f} of {len(scores)}; {correlation:.2f} left")
    # About sixty scores: four and a half deviations is a chance of one in two thousand.
    assert np.abs(scores).max() < 4.5
    assert correlation < 0.9


def test_interweaving_without_hyperparameters_does_nothing():
    model = LogDensityModel(LogDensityConfig(2, (), AXIS, num_modes=12))
    parameters = jnp.arange(12.0)
    np.testing.assert_array_equal(model.interweave(jax.random.key(0), parameters), parameters)
