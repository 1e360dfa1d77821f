"""Users that an environment draws come from the population it describes.

Each user's arm means are compared with the population at that very context, weighted towards two
contexts by a smooth bump: the expectation of the weighted difference is exactly zero, so no bin has
a width that could hide or feign an error.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits.environments.lmm import SLOPES, USER_DEVIATION, LmmEnvironment
from cocobandits.environments.recruitment import Recruitment
from cocobandits.environments.registry import environment_names, find_environment
from cocobandits.numerics.orthant import best_probability
from cocobandits.simulation.world import draw_evaluation, draw_world

NUM_USERS = 200_000
NODES = np.linspace(-1.0, 1.0, 2001)
PLAN = Recruitment.all_at_once(5, 2)
# With several features, or yes/no rewards: they have tests of their own.
STUDIES = ("groups", "yes-no", "survey", "survey-missing")
# Both scopes of θ with both laws; two of the four are in the registry.
EXTRA = {
    "two modes, shared": LmmEnvironment("extra", (-1.0, 1.0), "run", PLAN),
    "one mode, own": LmmEnvironment("extra", (0.7,), "user", PLAN),
}

bests = jax.jit(jax.vmap(best_probability))


def environment_of(name):
    return EXTRA[name] if name in EXTRA else find_environment(name)


def terms_of(environment, contexts):
    """Lay out (1, x), or one and a column per category."""
    ((feature, declared),) = environment.context.items()
    values = [context[feature] for context in contexts]
    ones = np.ones((len(values), 1))
    if isinstance(declared, tuple):
        return np.concatenate([ones, np.array(values)[:, None]], axis=1)
    return np.concatenate([ones, np.array([[v == d for d in declared] for v in values])], axis=1)


def components(mixture, terms):
    """Evaluate weights, means and covariances for each row of terms; two components always."""
    logits = terms @ np.array(mixture.logits).T
    means = np.einsum("jax,nx->nja", np.array(mixture.means), terms)
    factors = np.einsum("jarx,nx->njar", np.array(mixture.factors), terms)
    weights = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    covariances = factors @ factors.transpose(0, 1, 3, 2)
    if weights.shape[1] == 1:
        weights = np.repeat(weights / 2, 2, axis=1)
        means, covariances = np.repeat(means, 2, axis=1), np.repeat(covariances, 2, axis=1)
    return weights, means, covariances


def best_shares(mixture, terms):
    """Compute P(arm is best) for each row of terms; one number of rows, so few compilations."""
    weights, means, covariances = components(mixture, terms)
    rows = np.resize(np.arange(len(terms)), len(NODES))
    wins = bests(
        jnp.asarray(means[rows].reshape(-1, 3)), jnp.asarray(covariances[rows].reshape(-1, 3, 3))
    )
    shares = np.asarray(wins).reshape(len(NODES), -1, 3)[: len(terms)]
    return np.einsum("nj,nja->na", weights, shares)


@cache
def drawn(name):
    environment, generator = environment_of(name), np.random.default_rng(21)
    shared = environment.draw_shared(generator)
    cohort = environment.draw_users(generator, NUM_USERS, shared)
    mixture = environment.population(shared)
    return cohort.arm_means, mixture, terms_of(environment, cohort.contexts)


def bumps(terms):
    """Weight users around two contexts: x near -0.6 or 0.5, or two of three categories."""
    if terms.shape[1] == 2:
        return [np.exp(-(((terms[:, 1] - x) / 0.15) ** 2) / 2) for x in (-0.6, 0.5)]
    return [terms[:, 1], terms[:, 3]]


def shares_at(mixture, terms):
    """Interpolate P(best) between 2001 values of x, or look it up by category."""
    if terms.shape[1] > 2:
        table = best_shares(mixture, np.concatenate([np.ones((3, 1)), np.eye(3)], axis=1))
        return terms[:, 1:] @ table
    table = best_shares(mixture, np.stack([np.ones(len(NODES)), NODES], axis=1))
    return np.stack([np.interp(terms[:, 1], NODES, column) for column in table.T], axis=1)


# Those with more arms or features have tests of their own.
NAMES = [*(name for name in environment_names() if name not in STUDIES), *EXTRA]


@pytest.mark.parametrize("name", NAMES)
def test_moments_match_the_population(name):
    """Means, and all products of two arm means; |error| / standard error < 4."""
    arm_means, mixture, terms = drawn(name)
    weights, means, covariances = components(mixture, terms)
    average = np.einsum("nj,nja->na", weights, means)
    second = covariances + means[..., :, None] * means[..., None, :]
    centred = arm_means - average
    outer = centred[:, :, None] * centred[:, None, :]
    covariance = np.einsum("nj,njab->nab", weights, second)
    covariance -= average[:, :, None] * average[:, None, :]
    for bump in bumps(terms):
        first = bump[:, None] * centred
        products = bump[:, None] * (outer - covariance).reshape(NUM_USERS, -1)
        for terms_of_sum in (first, products):
            errors = terms_of_sum.std(axis=0) / np.sqrt(NUM_USERS)
            assert np.max(np.abs(terms_of_sum.mean(axis=0)) / errors) < 4


@pytest.mark.parametrize("name", NAMES)
def test_best_arms_match_the_population(name):
    arm_means, mixture, terms = drawn(name)
    shares = shares_at(mixture, terms)
    is_best = np.eye(3)[arm_means.argmax(axis=1)]
    for bump in [*bumps(terms), np.ones(NUM_USERS)]:
        difference = np.mean(bump[:, None] * (is_best - shares), axis=0)
        variance = np.mean(bump[:, None] ** 2 * shares * (1 - shares), axis=0) / NUM_USERS
        assert np.max(np.abs(difference) / np.sqrt(variance + 1e-18)) < 4


@pytest.mark.parametrize(
    ("name", "targets"),
    [
        ("mixture", [0.496, 0.504, 0.0]),
        ("partial", [0.386, 0.614, 0.0]),
        ("lmm-misspecified", [0.474, 0.484, 0.042]),
    ],
)
def test_best_arm_shares_are_the_known_ones(name, targets):
    """The targets were simulated, to within 1e-3 (the first is 0.4967 by numerical integration)."""
    arm_means, mixture, _ = drawn(name)
    table = best_shares(mixture, np.stack([np.ones(len(NODES)), NODES], axis=1))
    np.testing.assert_allclose(np.trapezoid(table, NODES, axis=0) / 2, targets, atol=1e-3)
    counted = np.bincount(arm_means.argmax(axis=1), minlength=3) / NUM_USERS
    np.testing.assert_allclose(counted, targets, atol=4 * 0.5 / np.sqrt(NUM_USERS) + 1e-3)


def fitted_theta(cohort):
    """Fit θ by least squares to all arm means, with its standard error."""
    x = np.array([context["x"] for context in cohort.contexts])
    rows = np.stack([np.outer(x, SLOPES).ravel(), np.ones(3 * len(x))], axis=1)
    errors = USER_DEVIATION * np.sqrt(np.diag(np.linalg.inv(rows.T @ rows)))
    return np.linalg.lstsq(rows, cohort.arm_means.ravel())[0], errors


@pytest.mark.parametrize("name", ["lmm", "two modes, shared"])
def test_theta_is_shared_within_a_seed_and_differs_between_seeds(name):
    environment = environment_of(name)
    thetas = []
    for seed in range(6):
        world = draw_world(environment, seed)
        # The line of arm 1 is θ₂ + 0.9 θ₁ x.
        constant, slope = world.population.means[0][0]
        thetas.append(np.array([slope / SLOPES[0], constant]))
        for cohort in (world.cohort, draw_evaluation(environment, seed, 300, 1).cohort):
            fitted, errors = fitted_theta(cohort)
            assert np.max(np.abs(fitted - thetas[-1]) / errors) < 4
    assert np.min(np.abs(np.diff(thetas, axis=0))) > 0.01
    if len(environment.modes) == 2:
        assert np.min(thetas) < -0.3 < 0.3 < np.max(thetas)


def test_theta_of_every_user_is_another():
    """Users with their own θ lie far off any common line; nothing is shared."""
    environment = find_environment("lmm-misspecified")
    batch = draw_evaluation(environment, 0, 300, 1)
    fitted, _ = fitted_theta(batch.cohort)
    x = np.array([context["x"] for context in batch.cohort.contexts])
    line = np.outer(x, SLOPES) * fitted[0] + fitted[1]
    assert (batch.cohort.arm_means - line).std() > 10 * USER_DEVIATION
    assert environment.draw_shared(np.random.default_rng(0)).size == 0
