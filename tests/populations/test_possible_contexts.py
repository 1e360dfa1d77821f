"""Users of whom not all is known: evidences, gradients and beliefs, averaged point by point."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_examples import CONTEXT, KINDS, LOG_WEIGHTS, MIXTURES, POINTS, example

from cocobandits.populations.features import expected_terms, feature_vector
from cocobandits.populations.history_path import HistoryPath
from cocobandits.users.table import Change, UserTable

LEARNING = ("cell", *MIXTURES)
VALUES = jnp.array([-0.6, 0.1, 0.5, 1.0])
STEP = 1e-5


def jitted(name):
    """Compile a method of a model; the model is a part of the key."""
    return jax.jit(lambda model, *rest: getattr(model, name)(*rest), static_argnums=0)


evidence, evidence_at = jitted("log_evidence"), jitted("log_evidence_at")
with_gradient = jitted("log_evidence_and_gradient")
posterior, posterior_at, average = jitted("posterior"), jitted("posterior_at"), jitted("average")


@jax.jit
def ask(belief):
    return {
        "mean": belief.mean(),
        "best": belief.best_probability(),
        "expected_best": belief.expected_best(),
        "cumulative": belief.cumulative(VALUES),
        "predictive": belief.predictive(VALUES),
    }


def mixed(shares, answers):
    """Average answers by shares."""
    return {
        name: sum(s * np.asarray(one[name]) for s, one in zip(shares, answers, strict=True))
        for name in answers[0]
    }


# Light components of a mixture, a millionth of its weight, are left out where the best arm is read.
LIGHT = 2e-6


def assert_same(actual, expected, atol=1e-12):
    assert actual.keys() == expected.keys()
    for name in expected:
        allowed = max(atol, LIGHT) if name in ("best", "expected_best") else atol
        np.testing.assert_allclose(actual[name], expected[name], atol=allowed, err_msg=name)


@functools.cache
def by_hand(kind):
    """Ask the first particle at each of the points: evidences, and answers of the beliefs."""
    model, particles, early, _ = example(kind)
    values = [float(evidence_at(model, particles[0], point, early)) for point in POINTS]
    answers = [ask(posterior_at(model, particles[0], point, early)) for point in POINTS]
    return np.array(values), answers


@pytest.mark.parametrize("kind", KINDS)
def test_evidence_is_averaged_over_points(kind):
    model, particles, early, _ = example(kind)
    values, _ = by_hand(kind)
    actual = float(evidence(model, particles[0], POINTS, early))
    assert actual == pytest.approx(np.log(np.mean(np.exp(values))), abs=1e-12)
    assert np.ptp(values) > 0.01 or kind == "flat"


@pytest.mark.parametrize("kind", KINDS)
def test_rewards_say_which_points_are_likelier(kind):
    model, particles, early, _ = example(kind)
    values, answers = by_hand(kind)
    shares = np.exp(values) / np.exp(values).sum()
    assert_same(ask(posterior(model, particles[0], POINTS, early)), mixed(shares, answers))


@pytest.mark.parametrize("kind", LEARNING)
def test_gradient_over_points_matches_finite_differences(kind):
    """Move every parameter by itself; the slope of the average over points, by hand."""
    model, particles, early, _ = example(kind)
    value, gradient = with_gradient(model, particles[0], POINTS, early)

    @functools.partial(jax.jit, static_argnums=0)
    def around(model, at):
        steps = STEP * jnp.eye(model.num_parameters)
        moved = jnp.concatenate([at[None] + steps, at[None] - steps])
        over_points = jax.vmap(model.log_evidence_at, (None, 0, None))
        return jax.vmap(lambda each: over_points(each, POINTS, early))(moved)

    means = np.log(np.mean(np.exp(np.asarray(around(model, particles[0]))), axis=1))
    slopes = (means[: model.num_parameters] - means[model.num_parameters :]) / (2 * STEP)
    # Series of the Gamma function have eight digits, of which a difference leaves fewer.
    np.testing.assert_allclose(gradient, slopes, atol=1e-6 if kind == "bernoulli" else 1e-8)
    assert np.abs(slopes).max() > 0.1
    assert float(value) == pytest.approx(float(evidence(model, particles[0], POINTS, early)))
    exact = jax.jit(jax.grad(model.log_evidence))(particles[0], POINTS, early)
    np.testing.assert_allclose(gradient, exact, atol=1e-11)


def test_a_model_without_parameters_has_no_slope():
    model, particles, early, _ = example("given")
    value, gradient = with_gradient(model, particles[0], POINTS, early)
    assert gradient.shape == (0,)
    assert float(value) == pytest.approx(float(evidence(model, particles[0], POINTS, early)))


@pytest.mark.parametrize("kind", KINDS)
def test_points_that_are_all_the_same_are_a_known_context(kind):
    model, particles, early, _ = example(kind)
    same = jnp.broadcast_to(CONTEXT, (3, 1))
    known, repeated = (
        ask(posterior(model, particles[0], context, early)) for context in (CONTEXT, same)
    )
    assert_same(repeated, known)
    values = [float(evidence(model, particles[0], context, early)) for context in (CONTEXT, same)]
    assert values[0] == pytest.approx(values[1], abs=1e-12)


@pytest.mark.parametrize("context", [CONTEXT, POINTS], ids=["known", "points"])
@pytest.mark.parametrize("kind", KINDS)
def test_average_mixes_the_beliefs_of_all_particles(kind, context):
    """Weights know of the rewards already, so the beliefs given the rewards are mixed by them."""
    model, particles, early, late = example(kind)
    for statistics in (early, early.plus(late)):
        each = [ask(posterior(model, parameters, context, statistics)) for parameters in particles]
        expected = mixed(np.exp(LOG_WEIGHTS), each)
        # Log-weights count up to a constant.
        for shift in (0.0, -700.0):
            found = average(model, particles, LOG_WEIGHTS + shift, context, statistics)
            assert_same(ask(found), expected)


USERS = (
    (jnp.array([0.2]), "early"),
    (POINTS, "late"),
    (jnp.array([0.8]), "late"),
    (POINTS[::-1] / 2, "early"),
)


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind", LEARNING)
def test_likelihood_of_all_users_adds_theirs_up(kind, temperature):
    """Known and unknown contexts side by side; one user's context and rewards change."""
    model, particles, *rewards = example(kind)
    of = dict(zip(("early", "late"), rewards, strict=True))
    table = UserTable.empty(1, 3)
    for number, (context, name) in enumerate(USERS):
        table = table.append(context).replace(number, of[name])
    now = jnp.array([0.45]), of["early"].plus(of["late"])
    change = Change.of(table, 1, now[1], now[0])
    values, gradients = jax.jit(HistoryPath(model).log_likelihood_and_gradient)(
        particles, change, jnp.asarray(temperature)
    )
    terms = [(1.0, context, of[name]) for context, name in USERS]
    terms[1] = (1.0 - temperature, *terms[1][1:])
    terms.append((temperature, *now))
    for row, parameters in enumerate(particles):
        parts = [with_gradient(model, parameters, *rest) for _, *rest in terms]
        weights = [weight for weight, *_ in terms]
        value = sum(w * float(part[0]) for w, part in zip(weights, parts, strict=True))
        slope = sum(w * np.asarray(part[1]) for w, part in zip(weights, parts, strict=True))
        assert float(values[row]) == pytest.approx(value, abs=1e-11)
        np.testing.assert_allclose(gradients[row], slope, atol=1e-10)


def test_expected_terms_are_averaged_over_points():
    """Two continuous features and one of three categories, at two points."""
    kinds, points = (None, 3, None), jnp.array([[0.2, 1.0, -0.6], [0.6, 2.0, 0.0]])
    np.testing.assert_allclose(
        expected_terms(kinds, points), [1.0, 0.4, 0.0, 0.5, 0.5, -0.3], atol=1e-15
    )
    np.testing.assert_array_equal(
        expected_terms(kinds, points[0]), feature_vector(kinds, points[0])
    )
