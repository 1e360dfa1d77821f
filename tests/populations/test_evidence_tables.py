"""Sums over users by tables at a few contexts, against every user's own evidence."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits.populations.log_density import (
    Axis,
    CategoricalAxis,
    LogDensityConfig,
    LogDensityModel,
)
from cocobandits.populations.log_density import model as model_module
from cocobandits.populations.log_density.context_points import ContextPoints
from cocobandits.populations.log_density.model import _USERS_PER_POINT
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import UserRows

NUM_USERS = 12
CONFIG = LogDensityConfig(
    3,
    context_axes=(Axis(-1.0, 1.0, 5),),
    arm_axis=Axis(-2.0, 2.0, 7),
    reward_noise=0.3,
    num_modes=30,
    context_points=12,
)


def rows_for(config, num_users=NUM_USERS, *, seed=0):
    """Draw users with rewards of every set of arms, among them none; weights differ, one is 0."""
    generator = np.random.default_rng(seed)
    capacity = _USERS_PER_POINT * ContextPoints(config.context_axes, config.context_points).count
    shape = (max(capacity, num_users), config.num_arms)
    count = np.zeros(shape)
    for user in range(num_users):
        pulled = [(user >> arm) & 1 for arm in range(config.num_arms)]
        count[user] = pulled * generator.integers(1, 4, config.num_arms)
    # Some averages lie beyond the range.
    total = count * generator.uniform(-2.6, 2.6, shape)
    square = np.where(count > 0, total**2 / np.maximum(count, 1), 0) + 0.1 * (count > 1)
    contexts = np.zeros((len(count), len(config.context_axes)))
    for feature, axis in enumerate(config.context_axes):
        contexts[:, feature] = (
            generator.uniform(axis.low, axis.high, len(count))
            if isinstance(axis, Axis)
            else generator.integers(0, axis.size, len(count))
        )
    weights = generator.uniform(0.2, 1.0, len(count))
    weights[5] = 0.0
    statistics = Statistics(*map(jnp.asarray, (count, total, square)))
    return UserRows(jnp.asarray(weights), jnp.asarray(contexts), statistics, jnp.asarray(num_users))


def draw(model, num_particles=3, *, seed=1):
    generator = np.random.default_rng(seed)
    return jnp.asarray(generator.normal(size=(num_particles, model.num_parameters)))


def both(config, num_users=NUM_USERS):
    """Sum by tables, and user by user in double precision."""
    fast = LogDensityModel(config)
    slow = LogDensityModel(replace(config, context_points=None, precision="double"))
    rows, particles = rows_for(config, num_users), draw(fast)
    return (jax.jit(model.log_likelihood_and_gradient)(particles, rows) for model in (fast, slow))


@pytest.mark.parametrize("num_arms", [2, 3, 4])
def test_no_context_is_exact(num_arms):
    """With one point there is nothing to read in between; every set of arms is among the users."""
    config = replace(
        CONFIG, num_arms=num_arms, context_axes=(), num_modes=15, arm_axis=Axis(-2.0, 2.0, 5)
    )
    (value, gradient), (expected, slope) = both(config, 2**num_arms)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    np.testing.assert_allclose(gradient, slope, atol=1e-9)


def test_categories_are_exact():
    """Every category is a point."""
    config = replace(CONFIG, context_axes=(CategoricalAxis(3),), context_lengthscale=1.0)
    (value, gradient), (expected, slope) = both(config)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    np.testing.assert_allclose(gradient, slope, atol=1e-9)


def test_more_points_come_closer():
    """The error falls by orders of magnitude, as for any smooth function of the context."""
    errors = []
    for num_points in (4, 8, 16):
        (value, gradient), (expected, slope) = both(replace(CONFIG, context_points=num_points))
        errors.append(float(jnp.max(jnp.abs(value - expected))))
        last = float(jnp.max(jnp.abs(gradient - slope)))
    assert errors[1] < errors[0] / 10
    assert errors[2] < errors[1] / 10
    assert errors[2] < 1e-5
    assert last < 1e-4


def test_two_features_are_read_in_between():
    """Points of both features in all combinations, where there is room for that many users."""
    config = replace(
        CONFIG,
        num_arms=2,
        context_axes=(Axis(-1.0, 1.0, 4), CategoricalAxis(2)),
        context_points=10,
    )
    (value, gradient), (expected, slope) = both(config)
    np.testing.assert_allclose(value, expected, atol=1e-4)
    np.testing.assert_allclose(gradient, slope, atol=1e-3)


@pytest.mark.parametrize("basis", ["karhunen-loeve", "hilbert"])
def test_gradient_is_that_of_the_value(basis):
    """Central differences of the value as it is computed, also in hyperparameters."""
    model = LogDensityModel(replace(CONFIG, basis=basis, context_points=6))
    rows, particles = rows_for(model.config), draw(model, 1)
    evaluate = jax.jit(model.log_likelihood_and_gradient)
    _, gradient = evaluate(particles, rows)
    directions = np.random.default_rng(2).normal(size=(4, model.num_parameters))
    for direction in [*directions, np.eye(model.num_parameters)[-1]]:
        step = 1e-5 * jnp.asarray(direction)[None, :]
        change = (evaluate(particles + step, rows)[0] - evaluate(particles - step, rows)[0]) / 2e-5
        np.testing.assert_allclose(change[0], gradient[0] @ direction, rtol=1e-6, atol=1e-7)


def test_single_precision_is_close():
    """32 bits in the densities, 64 in the sums."""
    single = LogDensityModel(replace(CONFIG, precision="single"))
    double = LogDensityModel(CONFIG)
    rows, particles = rows_for(CONFIG), draw(double)
    value, gradient = jax.jit(single.log_likelihood_and_gradient)(particles, rows)
    expected, slope = jax.jit(double.log_likelihood_and_gradient)(particles, rows)
    assert value.dtype == gradient.dtype == jnp.float64
    np.testing.assert_allclose(value, expected, atol=1e-4)
    np.testing.assert_allclose(gradient, slope, atol=1e-4)


def test_windows_leave_nothing_out():
    """A noise far narrower than a cell looks at four cells, and misses nothing."""
    config = replace(CONFIG, reward_noise=0.05, arm_axis=Axis(-2.0, 2.0, 15), context_axes=())
    model = LogDensityModel(config)
    assert model._window < 15
    (value, _), (expected, _) = both(config)
    np.testing.assert_allclose(value, expected, rtol=1e-7)


def test_few_users_are_computed_one_by_one():
    """Where the points outnumber the users, tables would be more work; the answer is exact."""
    model = LogDensityModel(CONFIG)
    exact = LogDensityModel(replace(CONFIG, context_points=None))
    rows = jax.tree.map(lambda field: field[:NUM_USERS] if field.ndim else field, rows_for(CONFIG))
    particles = draw(model)
    value, _ = jax.jit(model.log_likelihood_and_gradient)(particles, rows)
    expected, _ = jax.jit(exact.log_likelihood_and_gradient)(particles, rows)
    np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("value", [-1.0, -0.3, 0.9, 1.0])
def test_shares_read_polynomials_exactly(value):
    """Sum to one, and reproduce every power below the number of points."""
    points = ContextPoints((Axis(-1.0, 1.0, 3),), 6)
    shares = points.shares(jnp.array([value]))
    for power in range(6):
        np.testing.assert_allclose(
            shares @ points.contexts[:, 0] ** power, value**power, atol=1e-12
        )


def test_long_histories_keep_their_digits_in_32_bits():
    """Log-likelihoods of 100,000 rewards are large; what tells cells apart must not drown."""
    models = [LogDensityModel(replace(CONFIG, precision=name)) for name in ("single", "double")]
    count = jnp.array([1e5, 1e5, 0.0])
    mean = jnp.array([0.33, -1.2, 0.0])
    statistics = Statistics(count, count * mean, count * (mean**2 + 0.09))
    particle, context = draw(models[0], 1)[0], jnp.zeros(1)
    single, double = (model.posterior(particle, context, statistics) for model in models)
    np.testing.assert_allclose(single.mean(), double.mean(), atol=1e-5)
    np.testing.assert_allclose(single.best_probability(), double.best_probability(), atol=1e-5)
    evidences = [model.log_evidence(particle, context, statistics) for model in models]
    np.testing.assert_allclose(*evidences, atol=1e-4)


def test_tables_that_would_fill_the_memory_are_not_made(monkeypatch):
    """Beyond the limit every user's own evidence is computed."""
    config = replace(CONFIG, context_points=4)
    by_tables, exact = both(config)
    monkeypatch.setattr(model_module, "_MOST_COEFFICIENTS", 1)
    refused, _ = both(config)
    assert not np.allclose(by_tables[0], exact[0], rtol=1e-9)
    np.testing.assert_allclose(refused[0], exact[0], rtol=1e-9)
