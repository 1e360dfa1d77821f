"""Which matrix may stretch the moves: the information may, the own covariance may not.

All start from exact draws of a Gaussian, so a right kernel keeps their spread. The information is
that of the particles' own gradients, as in a step of the particles, and here it is exactly what the
likelihood says.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits.inference import moves

NUM_BLOCKS, MOVES_PER_BLOCK = 8, 5


class Target(NamedTuple):
    """Prior N(0, I) and observations y = A x + noise: the posterior is Gaussian."""

    rows: jax.Array
    values: jax.Array

    def posterior(self) -> tuple[np.ndarray, np.ndarray]:
        """Solve the normal equations."""
        rows, values = np.asarray(self.rows), np.asarray(self.values)
        covariance = np.linalg.inv(np.eye(rows.shape[1]) + rows.T @ rows)
        return covariance @ rows.T @ values, covariance

    def log_likelihood(self, particles):
        residuals = self.values[None, :] - particles @ self.rows.T
        return -0.5 * jnp.sum(residuals**2, axis=1), residuals @ self.rows

    def information(self, particles):
        """Sum the outer products of the gradients of all observations, averaged over particles."""
        residuals = self.values[None, :] - particles @ self.rows.T
        return (self.rows.T * jnp.mean(residuals**2, axis=0)[None, :]) @ self.rows


def make_target(num_parameters: int, seed: int) -> Target:
    """Observe each parameter through a mixture of it with others; some sharply, some hardly."""
    generator = np.random.default_rng(seed)
    sharpness = np.geomspace(0.3, 6.0, num_parameters)
    rows = np.eye(num_parameters) + generator.normal(size=(num_parameters,) * 2) / 15
    rows = sharpness[:, None] * rows
    truth = generator.normal(size=num_parameters)
    return Target(
        jnp.asarray(rows), jnp.asarray(rows @ truth + generator.normal(size=num_parameters))
    )


def own_covariance_root(particles):
    covariance = jnp.cov(particles.T)
    return jnp.linalg.cholesky(0.9 * covariance + 0.1 * jnp.diag(jnp.diag(covariance)))


ROOTS = {
    "information": lambda target, particles: moves.information_root(target.information(particles)),
    "covariance": lambda _, particles: own_covariance_root(particles),
}


@jax.jit
def move_block(rng_key, particles, target, step_size, root):
    start = moves.Start(particles, particles, moves.Proposal(step_size, root))
    plan = moves.Plan(MOVES_PER_BLOCK, 1, 0.0)
    walk = moves.langevin(rng_key, start, target.log_likelihood, plan)
    return walk.point.particles, walk.step_size, walk.acceptance / MOVES_PER_BLOCK


def spread_after_moves(seed, num_particles, num_parameters, kind):
    """Move exact draws 40 times; return the ratio of deviations and the correlation with before."""
    target = make_target(num_parameters, seed)
    mean, covariance = target.posterior()
    generator = np.random.default_rng(100 + seed)
    start = jnp.asarray(generator.multivariate_normal(mean, covariance, num_particles))
    particles, step_size = start, jnp.full((), 0.5, dtype=float)
    for block in range(NUM_BLOCKS):
        # Once per stage of a step; the covariance before every block, as adaptive samplers do.
        if block % 4 == 0 or kind == "covariance":
            root = ROOTS[kind](target, particles)
        key = jax.random.key(1000 * seed + block)
        particles, step_size, rate = move_block(key, particles, target, step_size, root)
    # The acceptance rate has settled near its target, so the moves are as long as they can be.
    assert 0.4 < float(rate) < 0.75
    centred = np.asarray(particles) - mean
    spread = np.sqrt((centred**2).mean(axis=0) / np.diag(covariance))
    return float(spread.mean()), float(moves.start_correlation(start, particles))


def average_over_seeds(num_particles, num_parameters, kind):
    runs = [spread_after_moves(seed, num_particles, num_parameters, kind) for seed in range(3)]
    spread, correlation = np.mean(runs, axis=0)
    print(
        f"\n{num_particles} particles, {num_parameters} parameters, {kind}: spread after 40 moves "
        f"{spread:.3f}, correlation with the start {correlation:.2f}"
    )
    return spread, correlation


@pytest.mark.parametrize("num_particles", [200, 40])
def test_exact_draws_stay_exact_draws(num_particles):
    """The spread of N draws of 80 parameters, three times over, is known to 1/√(2 · 3 · N · 80).

    Information serves fewer particles than parameters too, since users are what it is a sum over.
    """
    spread, correlation = average_over_seeds(num_particles, 80, "information")
    error = 1 / np.sqrt(2 * 3 * num_particles * 80)
    assert abs(spread - 1) < 4 * error
    # They moved: the test would pass for any kernel that stands still.
    assert correlation < 0.8


def test_own_covariance_pulls_particles_together():
    spread, _ = average_over_seeds(200, 80, "covariance")
    assert spread < 0.97
