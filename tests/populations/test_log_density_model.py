import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_oracles import (
    cell_edges,
    equal_rewards_log_likelihoods,
    likelihood_table,
    statistics_of,
)

from cocobandits.populations.log_density import (
    Axis,
    CategoricalAxis,
    LogDensityConfig,
    LogDensityModel,
)

log_evidence = jax.jit(LogDensityModel.log_evidence, static_argnums=0)
log_density = jax.jit(LogDensityModel.log_density, static_argnums=0)
closed_form = jax.jit(LogDensityModel.log_evidence_and_gradient, static_argnums=0)

AGE, DOSE, SITE = Axis(-1.0, 1.0, 3), Axis(0.0, 2.0, 4), CategoricalAxis(3)
TWO_ARMS = ([0.12, 0.41], [])
THREE_ARMS = ([0.12, 0.41], [-0.35], [0.8, 0.77, 0.6])


def small_model(num_arms, context_axes=(), cells=3, num_modes=7, **changes):
    config = LogDensityConfig(
        num_arms,
        context_axes=context_axes,
        arm_axis=Axis(-0.6, 0.9, cells),
        reward_noise=0.25,
        num_modes=num_modes,
        **changes,
    )
    return LogDensityModel(config)


def draw_parameters(model, seed):
    return jnp.asarray(np.random.default_rng(seed).normal(size=model.num_parameters))


def enumerate_evidence(model, parameters, context, rewards):
    """Sum P(cells) times the product of likelihoods over every tuple of cells."""
    density = np.asarray(log_density(model, parameters, context))
    table = likelihood_table(model.config.arm_axis, rewards, 0.25)
    every = list(itertools.product(range(density.shape[0]), repeat=len(rewards)))
    total = sum(math.exp(density[cells]) for cells in every)
    return sum(
        math.exp(density[cells])
        / total
        * math.prod(table[arm, cell] for arm, cell in enumerate(cells))
        for cells in every
    )


@pytest.mark.parametrize("rewards", [TWO_ARMS, THREE_ARMS], ids=["2 arms", "3 arms"])
def test_evidence_matches_enumeration(rewards):
    """Enumerate all cell tuples by hand, without any context."""
    model = small_model(len(rewards))
    parameters = draw_parameters(model, 1)
    actual = log_evidence(model, parameters, jnp.zeros(0), statistics_of(rewards))
    expected = enumerate_evidence(model, parameters, jnp.zeros(0), rewards)
    np.testing.assert_allclose(np.exp(actual), expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("axes", "context"),
    [
        ((AGE,), [0.37]),
        ((AGE, DOSE), [-0.8, 1.1]),
        ((SITE,), [2.0]),
        ((DOSE, SITE), [0.3, 1.0]),
    ],
    ids=["one feature", "two features", "categorical", "mixed"],
)
def test_evidence_with_context_matches_enumeration(axes, context):
    """Enumerate all cell tuples of 2 arms x 4 cells at a context off the nodes."""
    model = small_model(2, axes, cells=4, num_modes=12)
    parameters, rewards = draw_parameters(model, 2), ([0.5], [-0.2, 0.1])
    at = jnp.array(context)
    actual = float(log_evidence(model, parameters, at, statistics_of(rewards)))
    expected = enumerate_evidence(model, parameters, at, rewards)
    assert math.exp(actual) == pytest.approx(expected, rel=1e-10)
    elsewhere = float(log_evidence(model, parameters, jnp.zeros(len(axes)), statistics_of(rewards)))
    assert abs(elsewhere - actual) > 1e-3


def test_user_without_rewards_has_evidence_one():
    """Probabilities of all cells sum to one, whatever the particle."""
    model = small_model(3)
    nothing = statistics_of([[], [], []])
    actual = log_evidence(model, 3 * draw_parameters(model, 4), jnp.zeros(0), nothing)
    assert float(actual) == pytest.approx(0.0, abs=1e-13)


def test_gradient_matches_automatic_and_numerical_differentiation():
    """Differentiate log_evidence with jax.grad, and by central differences of step 1e-5."""
    model = small_model(3, (AGE,), cells=4, num_modes=8)
    context, rewards = jnp.array([0.45]), statistics_of(THREE_ARMS)

    def evidence(at):
        return model.log_evidence(at, context, rewards)

    @jax.jit
    def compare(parameters):
        steps = 1e-5 * jnp.eye(8)
        around = jnp.concatenate(
            [parameters[None], parameters[None] + steps, parameters[None] - steps]
        )
        values, gradients = jax.vmap(jax.value_and_grad(evidence))(around)
        exact = model.log_evidence_and_gradient(parameters, context, rewards)
        return exact, (values[0], gradients[0]), (values[1:9] - values[9:]) / 2e-5

    exact, automatic, numerical = compare(draw_parameters(model, 3))
    assert float(exact[0]) == pytest.approx(float(automatic[0]), abs=1e-12)
    np.testing.assert_allclose(exact[1], automatic[1], atol=1e-10)
    np.testing.assert_allclose(exact[1], numerical, atol=1e-6)
    assert np.abs(exact[1]).max() > 0.1


@pytest.mark.parametrize("order", list(itertools.permutations(range(3)))[1:])
def test_permuting_arms_changes_nothing(order):
    """Solve, by least squares on pushed unit vectors, for the particle with its arms permuted."""
    # All modes of the grid, so that the cut does not fall between modes that arms exchange.
    model = small_model(3, (AGE,), num_modes=81)
    parameters, context = draw_parameters(model, 6), jnp.array([-0.4])
    push = jax.jit(jax.vmap(jax.vmap(model.log_density, in_axes=(None, 0)), in_axes=(0, None)))
    nodes = jnp.array([[-1.0], [0.0], [1.0]])
    functions = np.asarray(push(jnp.eye(81), nodes))
    wanted = np.tensordot(parameters, functions, axes=1).transpose(0, *(1 + i for i in order))
    permuted, *_ = np.linalg.lstsq(functions.reshape(81, -1).T, wanted.ravel())
    assert np.abs(permuted - np.asarray(parameters)).max() > 0.1

    original = log_evidence(model, parameters, context, statistics_of(THREE_ARMS))
    rewards = statistics_of([THREE_ARMS[arm] for arm in order])
    actual = log_evidence(model, jnp.asarray(permuted), context, rewards)
    assert float(actual) == pytest.approx(float(original), rel=1e-9)
    unpermuted = log_evidence(model, parameters, context, rewards)
    assert abs(float(unpermuted) - float(original)) > 1e-3


def test_evidence_stays_finite_for_long_and_distant_histories():
    """Enumerate in log space with scipy: 400 rewards per arm, far outside the grid."""
    model = small_model(2, num_modes=6)
    parameters = draw_parameters(model, 9)
    rewards = ([2.5] * 400, [-1.9] * 400)
    density = np.asarray(log_density(model, parameters, jnp.zeros(0)))
    edges = cell_edges(-0.6, 0.9, 3)
    fits = [equal_rewards_log_likelihoods(len(arm), arm[0], edges, 0.25) for arm in rewards]
    joint = density - np.logaddexp.reduce(density, axis=None) + np.add.outer(*fits)
    expected = np.logaddexp.reduce(joint, axis=None)
    value, gradient = closed_form(model, parameters, jnp.zeros(0), statistics_of(rewards))
    assert float(value) == pytest.approx(expected, rel=1e-10)
    assert np.all(np.isfinite(gradient))


def test_models_are_equal_and_hashed_by_configuration():
    """Two models built apart from equal configurations are one key of a dictionary."""
    first, second = small_model(2, (AGE,)), small_model(2, (AGE,))
    other = small_model(2, (AGE,), amplitude=2.5)
    assert first == second
    assert len({first: "a", second: "b"}) == 1
    assert first != other
    assert first != first.config


def test_model_describes_itself():
    """Read the sizes and range off the configuration by hand."""
    model = small_model(3, (AGE,), num_modes=5)
    assert (model.num_parameters, model.num_arms, model.reward_noise) == (5, 3, 0.25)
    assert model.mean_range == pytest.approx((-0.975, 1.275))
