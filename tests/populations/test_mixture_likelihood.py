"""The closed form of the mixture's likelihood against automatic derivatives of dense normals.

The oracle reads parameters one after another, writes every covariance down, and knows rewards one
by one; nothing but the class of settings is the package's.
"""

import functools
import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mixture_oracles import contexts_of
from model_oracles import statistics_of

from cocobandits.populations.mixture import MixtureConfig, MixtureModel
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import UserRows

BASE = MixtureConfig(3, (None,), num_components=3, reward_noise=0.3, precision="double")
CONFIGS = {
    "independent arms": replace(BASE, features=(None, 3)),
    "one factor": replace(BASE, rank=1),
    "two arms, noise learned": replace(BASE, num_arms=2, rank=1, noise_deviation=0.8),
    "noise learned, no factor": replace(BASE, features=(), noise_deviation=0.8),
    "one component": replace(BASE, num_components=1, rank=1),
    # More arms, components and terms than are added one by one.
    "large": replace(BASE, num_arms=9, features=(None, 9), num_components=9, rank=1),
}
# More users than a chunk, and garbage beyond.
NUM_ROWS, CAPACITY, NUM_POINTS, NUM_REWARDS = 11, 13, 3, 5


def terms_of(config, context):
    """List 1, values and categories."""
    terms = [jnp.ones(1)]
    for number, kind in enumerate(config.features):
        value = context[number]
        terms.append(value[None] if kind is None else 1.0 * (jnp.arange(kind) == value))
    return jnp.concatenate(terms)


def plain_population(config, parameters):
    """Read parameter after parameter; return functions of the terms."""
    position = iter(range(len(parameters)))
    num_components, num_arms = config.num_components, config.num_arms
    owner = [None] + [
        number for number, kind in enumerate(config.features) for _ in range(kind or 1)
    ]
    crowd = math.sqrt(max(len(config.features), 1))

    def take():
        return parameters[next(position)]

    def row():
        return parameters[jnp.array([next(position) for _ in owner])]

    level = 0.9 * jnp.exp(0.5 * take())
    slopes = [0.45 / crowd * jnp.exp(0.8 * take()) for _ in config.features]
    loading = 0.15 * jnp.exp(0.8 * take()) if config.rank else 0.0
    shift = take()
    stick_scale = jnp.array([1.0 if each is None else 1 / crowd for each in owner])
    sticks = [stick_scale * row() for _ in range(num_components - 1)]
    common = 0.8 * take()
    spreads = [common + 0.4 * take() for _ in range(num_components)]
    noise = config.reward_noise
    if config.noise_deviation:
        noise = noise * jnp.exp(config.noise_deviation * take())
    line_scale = jnp.stack([0.7 if each is None else slopes[each] for each in owner])
    own_scale = jnp.stack([level if each is None else 1.5 * slopes[each] for each in owner])
    means, loadings, arm_spreads = [], [], []
    for _ in range(num_arms):
        line = line_scale * row()
        means.append([line + own_scale * row() for _ in range(num_components)])
        loadings.append(
            [loading * row() if config.rank else 0 * line for _ in range(num_components)]
        )
        arm_spreads.append(0.3 * take())
    assert next(position, None) is None
    means, loadings = (
        jnp.stack([jnp.stack(of_arm) for of_arm in part], axis=1) for part in (means, loadings)
    )
    spreads = 0.15 * jnp.exp(jnp.stack(spreads)[:, None] + jnp.stack(arm_spreads)[None])

    def at(terms):
        left, weights = 1.0, []
        for stick in sticks:
            share = jax.nn.sigmoid(shift + stick @ terms)
            weights.append(left * share)
            left = left * (1 - share)
        factors = loadings @ terms
        own = jax.vmap(jnp.diag)(spreads**2)
        covariances = own + factors[:, :, None] * factors[:, None, :]
        return jnp.stack([*weights, left]), means @ terms, covariances, noise

    return at


def plain_evidence(config, parameters, points, picks, rewards):
    """Average the density of one user's rewards, taken as one normal vector, over points."""
    at = plain_population(config, parameters)

    def joint(point):
        weights, means, covariances, noise = at(terms_of(config, point))
        density = jax.vmap(
            lambda mean, covariance: jax.scipy.stats.multivariate_normal.logpdf(
                rewards, picks @ mean, picks @ covariance @ picks.T + noise**2 * jnp.eye(len(picks))
            )
        )
        return jnp.log(weights) + density(means, covariances)

    return jax.scipy.special.logsumexp(jax.vmap(joint)(points)) - math.log(len(points))


class Case:
    """Users of unequal weights, and what the oracle says of them."""

    def __init__(self, name, with_points):
        self.config = CONFIGS[name]
        generator = np.random.default_rng(3)
        self.arms = generator.integers(0, self.config.num_arms, (CAPACITY, NUM_REWARDS))
        self.rewards = generator.normal(0.2, 0.6, self.arms.shape)
        known = contexts_of(self.config, CAPACITY)[:, None]
        self.points = known
        if with_points:
            columns = [contexts_of(self.config, CAPACITY, seed) for seed in range(NUM_POINTS)]
            self.points = np.stack(columns, axis=1)
            # Known contexts stand at all points, in between the others.
            self.points[::3] = known[::3]
        self.weights = generator.uniform(0.2, 1.0, CAPACITY)
        self.weights[4] = 0.0
        size = MixtureModel(self.config).num_parameters
        self.particles = jnp.asarray(generator.normal(size=(3, size)))

    @property
    def rows(self):
        """List all users, as a study has them."""
        contexts = self.points if self.points.shape[1] > 1 else self.points[:, 0]
        each = [
            statistics_of([given[arms == arm] for arm in range(self.config.num_arms)])
            for arms, given in zip(self.arms, self.rewards, strict=True)
        ]
        columns = zip(*each, strict=True)
        return UserRows(
            jnp.asarray(self.weights),
            jnp.asarray(contexts),
            Statistics(*map(jnp.stack, columns)),
            jnp.asarray(NUM_ROWS),
        )

    @functools.cached_property
    def expected(self):
        """Add dense normals up, user by user, and differentiate."""
        users = self.points, np.eye(self.config.num_arms)[self.arms], self.rewards
        some = tuple(jnp.asarray(part[:NUM_ROWS]) for part in users)

        def whole(parameters):
            evidence = functools.partial(plain_evidence, self.config, parameters)
            return self.weights[:NUM_ROWS] @ jax.vmap(evidence)(*some)

        return jax.jit(jax.vmap(jax.value_and_grad(whole)))(self.particles)

    def found(self, **changes):
        """Ask the package."""
        model = MixtureModel(replace(self.config, **changes))
        return jax.jit(model.log_likelihood_and_gradient)(self.particles, self.rows)


WITH_FEATURES = tuple(name for name, config in CONFIGS.items() if config.features)
CASES = [(name, False) for name in CONFIGS] + [(name, True) for name in WITH_FEATURES[:3]]
case_of = functools.cache(Case)


@pytest.mark.parametrize(("name", "with_points"), CASES)
def test_closed_form_is_the_derivative_of_dense_normals(name, with_points):
    case = case_of(name, with_points)
    values, gradients = case.found()
    np.testing.assert_allclose(values, case.expected[0], rtol=1e-11)
    scale = np.abs(case.expected[1]).max()
    np.testing.assert_allclose(gradients, case.expected[1], atol=1e-11 * scale)


@pytest.mark.parametrize("name", ["one factor", "two arms, noise learned"])
def test_closed_form_follows_finite_differences(name):
    """Three directions, there and back."""
    case, step = case_of(name, with_points=True), 1e-5
    model, rows = MixtureModel(case.config), case.rows
    evaluate = jax.jit(model.log_likelihood_and_gradient)
    directions = jnp.asarray(np.random.default_rng(5).normal(size=case.particles.shape))
    ahead, behind = (
        evaluate(case.particles + sign * step * directions, rows)[0] for sign in (1, -1)
    )
    slopes = jnp.sum(evaluate(case.particles, rows)[1] * directions, axis=1)
    np.testing.assert_allclose((ahead - behind) / (2 * step), slopes, rtol=1e-6)


@pytest.mark.parametrize(("name", "with_points"), CASES)
def test_single_precision_is_within_a_hundred_thousandth(name, with_points):
    case = case_of(name, with_points)
    values, gradients = case.found(precision="single")
    np.testing.assert_allclose(values, case.expected[0], rtol=1e-6, atol=1e-5)
    scale = np.abs(case.expected[1]).max()
    np.testing.assert_allclose(gradients, case.expected[1], atol=1e-5 * scale)


@pytest.mark.parametrize("rank", [0, 1])
def test_many_rewards_and_little_noise_stay_finite(rank):
    """A hundred thousand rewards of each arm; single precision against double."""
    config = replace(BASE, rank=rank, reward_noise=4e-4)
    particles = case_of("one factor", with_points=False).particles
    count = jnp.full((2, 3), 1e5)
    average = jnp.array([[0.3, -0.4, 0.9], [0.1, 0.2, -1.2]])
    statistics = Statistics(count, count * average, count * (average**2 + config.reward_noise**2))
    rows = UserRows(jnp.ones(2), jnp.zeros((2, 1)), statistics, jnp.asarray(2))
    answers = []
    for precision in ("single", "double"):
        model = MixtureModel(replace(config, precision=precision))
        some = particles[:, : model.num_parameters]
        answers.append(jax.jit(model.log_likelihood_and_gradient)(some, rows))
    (values, gradients), (exact, slopes) = answers
    assert np.isfinite(np.asarray(slopes)).all()
    np.testing.assert_allclose(values, exact, rtol=1e-6)
    np.testing.assert_allclose(gradients, slopes, atol=1e-5 * np.abs(slopes).max())
