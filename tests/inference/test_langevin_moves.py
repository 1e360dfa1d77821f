import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from cocobandits.inference import moves

NUM_PARTICLES = 4000

# Likelihood exp(-(x - b)' P (x - b) / 2) times the prior N(0, I): a shifted, correlated Gaussian.
PRECISION = np.array([[3.0, 1.6], [1.6, 1.2]])
CENTRE = np.array([1.5, -0.4])
COVARIANCE = np.linalg.inv(np.eye(2) + PRECISION)
MEAN = COVARIANCE @ PRECISION @ CENTRE
# Neither diagonal nor symmetric: a root applied once where twice is right, or transposed, would be
# seen.
ROOT = jnp.array([[0.35, 0.1], [-0.25, 0.7]])


def gaussian_likelihood(particles):
    difference = particles - CENTRE[None, :]
    gradient = -difference @ PRECISION
    return 0.5 * jnp.sum(difference * gradient, axis=1), gradient


def skewed_likelihood(particles):
    value = 2 * particles - jnp.exp(particles)
    return value[:, 0], 2 - jnp.exp(particles)


@functools.partial(jax.jit, static_argnames=("likelihood_fn", "is_patched"))
def run(rng_key, start, likelihood_fn, step_size, root, *, is_patched=False):
    """Move 20 times; `is_patched` keeps a monkeypatched formula from meeting a cached one."""
    del is_patched
    proposal = moves.Proposal(jnp.asarray(step_size), root)
    begin = moves.Start(start, start, proposal)
    walk = moves.langevin(rng_key, begin, likelihood_fn, moves.Plan(20, 1, 0.0))
    return walk.point, walk.acceptance / 20


def move_gaussian(seed, start, **options):
    return run(jax.random.key(seed), jnp.asarray(start), gaussian_likelihood, 1.5, ROOT, **options)


def gaussian_start(seed):
    generator = np.random.default_rng(seed)
    return generator.multivariate_normal(MEAN, COVARIANCE, NUM_PARTICLES)


def gaussian_scores(particles):
    """Standardise the errors of all first, second and third moments."""
    centred = np.asarray(particles) - MEAN
    first = [(centred[:, i], 0.0) for i in range(2)]
    second = [
        (centred[:, i] * centred[:, j], COVARIANCE[i, j]) for i, j in [(0, 0), (0, 1), (1, 1)]
    ]
    third = [
        (centred[:, i] * centred[:, j] * centred[:, k], 0.0)
        for i, j, k in itertools.combinations_with_replacement(range(2), 3)
    ]
    return np.array([score(values, expected) for values, expected in first + second + third])


def skewed_density(x):
    return math.exp(2 * x - math.exp(x) - 0.5 * x**2)


def skewed_start(seed):
    """Invert the distribution function on a fine grid: exact draws."""
    grid = np.linspace(-8, 6, 20_001)
    cumulated = np.cumsum([skewed_density(x) for x in grid])
    uniform_draws = np.random.default_rng(seed).uniform(size=NUM_PARTICLES)
    return np.interp(uniform_draws, cumulated / cumulated[-1], grid)[:, None]


def skewed_scores(particles):
    total = quad(skewed_density, -12, 8)[0]
    values = np.asarray(particles)[:, 0]
    return np.array(
        [
            score(
                values**power, quad(lambda x, p=power: x**p * skewed_density(x), -12, 8)[0] / total
            )
            for power in (1, 2, 3)
        ]
    )


def score(values, expected):
    return (values.mean() - expected) / (values.std() / math.sqrt(len(values)))


def test_moves_leave_a_correlated_gaussian_invariant():
    """Start from exact draws; after 20 moves all moments are those of the closed form."""
    start = gaussian_start(1)
    point, acceptance_rate = move_gaussian(2, start)
    assert np.abs(gaussian_scores(point.particles)).max() < 4
    # The test means something only if particles moved and some proposals were refused.
    assert 0.4 < float(acceptance_rate) < 0.95
    assert float(moves.start_correlation(jnp.asarray(start), point.particles)) < 0.3


def test_moves_leave_a_skewed_target_invariant():
    """Compare three moments with quadrature of prior times exp(2x - e^x)."""
    start = jnp.asarray(skewed_start(3))
    root = jnp.array([[0.8]])
    point, acceptance_rate = run(jax.random.key(4), start, skewed_likelihood, 2.0, root)
    assert np.abs(skewed_scores(point.particles)).max() < 4
    assert 0.4 < float(acceptance_rate) < 0.95
    assert float(moves.start_correlation(start, point.particles)) < 0.3


def test_moves_find_the_target_from_elsewhere():
    """Start all particles at one distant place: 100 moves bring them to the closed form."""
    particles = np.full((NUM_PARTICLES, 2), 2.5)
    for seed in range(5):
        point, _ = move_gaussian(seed, particles)
        particles = point.particles
    assert np.abs(gaussian_scores(particles)).max() < 4


def test_wrong_acceptance_is_noticed(monkeypatch):
    """Leave the proposal out of the ratio: the very check above must fail."""
    monkeypatch.setattr(
        moves, "_log_ratio", lambda source, target, *_: target.log_density - source.log_density
    )
    point, _ = move_gaussian(2, gaussian_start(1), is_patched=True)
    assert np.abs(gaussian_scores(point.particles)).max() > 6


def test_small_steps_follow_the_preconditioned_gradient():
    """Langevin refuses O(η^1.5) of its proposals; any other drift would refuse O(η^0.5)."""
    key, start = jax.random.key(3), jnp.asarray(gaussian_start(1))
    _, acceptance_rate = run(key, start, gaussian_likelihood, 0.02, ROOT)
    assert float(acceptance_rate) > 0.999


def test_point_carries_its_own_density_and_gradient():
    """Evaluate the final particles afresh in numpy: blocks of moves must chain."""
    point, _ = move_gaussian(2, gaussian_start(1))
    particles = np.asarray(point.particles)
    pull = (particles - CENTRE) @ PRECISION
    expected = -0.5 * ((particles - CENTRE) * pull).sum(axis=1) - 0.5 * (particles**2).sum(axis=1)
    np.testing.assert_allclose(point.log_density, expected, atol=1e-10)
    np.testing.assert_allclose(point.gradient, -pull - particles, atol=1e-10)


def test_proposals_of_undefined_density_are_refused():
    """A likelihood that is not a number below zero keeps all particles above it."""

    def half_line(particles):
        value = jnp.where(particles[:, 0] > 0, -particles[:, 0], jnp.nan)
        return value, jnp.where(particles > 0, -1.0, jnp.nan)

    start = jnp.linspace(0.05, 2.0, 40)[:, None]
    point, acceptance_rate = run(jax.random.key(7), start, half_line, 1.0, jnp.ones((1, 1)))
    assert np.all(np.asarray(point.particles) > 0)
    assert 0 < float(acceptance_rate) < 1
    assert np.all(np.isfinite(point.log_density))


def test_information_root_is_a_root_of_the_inverse_precision():
    """Invert prior precision plus information with numpy; for a Gaussian it is the covariance."""
    root = np.asarray(moves.information_root(jnp.asarray(PRECISION)))
    np.testing.assert_allclose(root @ root.T, COVARIANCE, rtol=1e-12)
    singular = np.outer([1.0, -2.0, 0.5], [1.0, -2.0, 0.5])
    root = np.asarray(moves.information_root(jnp.asarray(singular)))
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(np.eye(3) + singular), atol=1e-12)


def test_root_of_no_information_is_that_of_the_prior():
    """Rounding may leave eigenvalues slightly below zero: they count as zero."""
    root = np.asarray(moves.information_root(jnp.array([[-1e-12, 0.0], [0.0, 0.0]])))
    np.testing.assert_allclose(root @ root.T, np.eye(2), atol=1e-15)


def test_step_size_moves_towards_the_target_acceptance():
    """Grow when too much is accepted, shrink alike when too little, stay at 57.4 %."""
    step_size = jnp.asarray(0.3)
    assert float(moves.adapt(step_size, jnp.asarray(0.9))) > 0.3
    assert float(moves.adapt(step_size, jnp.asarray(0.1))) < 0.3
    assert float(moves.adapt(step_size, jnp.asarray(0.574))) == pytest.approx(0.3, rel=1e-12)
    up, down = (float(moves.adapt(step_size, jnp.asarray(0.574 + d))) for d in (0.2, -0.2))
    assert up * down == pytest.approx(0.3**2, rel=1e-12)


def test_start_correlation_of_known_cases():
    """Copies correlate fully, mirror images negatively, independent draws hardly."""
    generator = np.random.default_rng(9)
    start, other = jnp.asarray(generator.normal(size=(2, 4000, 3)))
    assert float(moves.start_correlation(start, start)) == pytest.approx(1.0, rel=1e-12)
    assert float(moves.start_correlation(start, 5 - 2 * start)) == pytest.approx(-1.0, rel=1e-12)
    assert abs(float(moves.start_correlation(start, other))) < 4 / math.sqrt(3 * 4000)


def test_start_correlation_is_the_mean_of_columns():
    """Average np.corrcoef over parameters; one in which all ancestors agree counts as unmoved."""
    generator = np.random.default_rng(10)
    start, noise = generator.normal(size=(2, 200, 3))
    now = start + np.array([0.1, 1.0, 10.0]) * noise
    expected = [np.corrcoef(start[:, i], now[:, i])[0, 1] for i in range(3)]
    actual = moves.start_correlation(jnp.asarray(start), jnp.asarray(now))
    assert float(actual) == pytest.approx(np.mean(expected), rel=1e-10)
    start[:, 2] = 4.0
    actual = moves.start_correlation(jnp.asarray(start), jnp.asarray(now))
    assert float(actual) == pytest.approx((expected[0] + expected[1] + 1) / 3, rel=1e-10)


def test_diagonal_information_stretches_each_parameter_by_itself():
    """A vector stands for the matrix with it on the diagonal."""
    information = jnp.array([3.0, 0.0, 8.0])
    root = moves.information_root(information)
    np.testing.assert_allclose(root, [0.5, 1.0, 1 / 3])
    vectors = jnp.asarray(np.random.default_rng(1).normal(size=(4, 3)))
    one, other = (moves.Proposal(jnp.ones(()), each) for each in (root, jnp.diag(root)))
    np.testing.assert_allclose(one.stretch(vectors), other.stretch(vectors))
    np.testing.assert_allclose(one.pull(vectors), other.pull(vectors))


@functools.partial(jax.jit, static_argnames=("moves_per_block", "max_blocks"))
def walk_in_blocks(rng_key, start, target, moves_per_block, max_blocks):
    plan = moves.Plan(moves_per_block, max_blocks, target)
    return moves.langevin(rng_key, start, gaussian_likelihood, plan)


def literal_blocks(key, start, target, *, step_size=0.9, moves_per_block=3, max_blocks=4):
    """Move in NumPy, with densities of proposals written down; the same draws."""

    def drift(x, step):
        slope = -(x - CENTRE) @ PRECISION - x
        return x + step / 2 * slope @ ROOT_ROOT

    def log_posterior(x):
        return -((x - MEAN) @ np.linalg.inv(COVARIANCE) * (x - MEAN)).sum(axis=1) / 2

    def log_proposal(x, origin, step):
        gap = x - drift(origin, step)
        return -(gap @ np.linalg.inv(step * ROOT_ROOT) * gap).sum(axis=1) / 2

    x, rates = np.asarray(start), []
    for block in range(max_blocks):
        for each in jax.random.split(jax.random.fold_in(key, block), moves_per_block):
            key_noise, key_accept = jax.random.split(each)
            noise = np.asarray(jax.random.normal(key_noise, x.shape))
            y = drift(x, step_size) + math.sqrt(step_size) * noise @ np.asarray(ROOT).T
            ratio = log_posterior(y) - log_posterior(x)
            ratio += log_proposal(x, y, step_size) - log_proposal(y, x, step_size)
            is_accepted = np.log(np.asarray(jax.random.uniform(key_accept, (len(x),)))) < ratio
            x = np.where(is_accepted[:, None], y, x)
            rates.append(is_accepted.mean())
        step_size *= math.exp(2.0 * (np.mean(rates[-moves_per_block:]) - 0.574))
        found = [np.corrcoef(np.asarray(start)[:, i], x[:, i])[0, 1] for i in range(2)]
        if np.mean(found) < target:
            break
    return x, step_size, rates, np.mean(found)


ROOT_ROOT = np.asarray(ROOT @ ROOT.T)


@pytest.mark.parametrize(("target", "num_blocks"), [(-2.0, 4), (0.9, 1), (0.2, 3)])
def test_blocks_are_those_of_a_literal_loop(target, num_blocks):
    """Step sizes follow each block, and the loop ends once particles have parted."""
    key, begin = jax.random.key(8), jnp.asarray(gaussian_start(2)[:200])
    start = moves.Start(begin, begin, moves.Proposal(jnp.asarray(0.9), ROOT))
    walk = walk_in_blocks(key, start, target, moves_per_block=3, max_blocks=4)
    particles, step_size, rates, correlation = literal_blocks(key, begin, target)
    assert int(walk.num_moves) == len(rates) == 3 * num_blocks
    np.testing.assert_allclose(walk.point.particles, particles, atol=1e-10)
    assert float(walk.step_size) == pytest.approx(step_size, rel=1e-12)
    assert float(walk.acceptance) == pytest.approx(sum(rates), rel=1e-12)
    assert float(walk.correlation) == pytest.approx(correlation, rel=1e-10)
