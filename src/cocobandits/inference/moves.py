"""Langevin moves with Metropolis-Hastings that leave the posterior invariant (paper, App. "SMC").

    ξ' = ξ + η/2 · R Rᵀ ∇log π(ξ) + √η · R ε,    ε ~ N(0, I)

with the paper's step size η. R Rᵀ is the inverse of the prior's precision plus the information that
all users' rewards hold (`information_root`). Owns the kernel, the root, the step-size rule and the
measure of how far particles have come.

R Rᵀ is not the particles' covariance: of many parameters from few particles, it leans towards each
particle's own place, and moves that use it pull the particles together.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Int

from cocobandits.types import (
    Matrix,
    Number,
    Parameters,
    Particles,
    PerParticle,
    RngKey,
    Scalar,
)

# Values and gradients of the log-likelihood of all particles.
LikelihoodFn = Callable[[Particles], tuple[PerParticle, Particles]]

# Asymptotically optimal for Langevin proposals (Roberts & Rosenthal, 1998).
TARGET_ACCEPTANCE = 0.574
_ADAPTATION_GAIN = 2.0


class Proposal(NamedTuple):
    """Step size η, and a root R of the matrix that stretches gradients and noise.

    The root is a vector where the matrix is diagonal.
    """

    step_size: Scalar
    root: Matrix | Parameters

    def stretch(self, vectors: Particles) -> Particles:
        """Multiply every row by R."""
        return vectors * self.root[None, :] if self.root.ndim == 1 else vectors @ self.root.T

    def pull(self, vectors: Particles) -> Particles:
        """Multiply every row by Rᵀ."""
        return vectors * self.root[None, :] if self.root.ndim == 1 else vectors @ self.root


class Point(NamedTuple):
    """Particles with their log posterior density (up to a constant) and its gradient."""

    particles: Particles
    log_density: PerParticle
    gradient: Particles

    @property
    def log_likelihood(self) -> PerParticle:
        """The log-density without that of the prior."""
        return self.log_density + 0.5 * jnp.sum(self.particles**2, axis=1)


class Start(NamedTuple):
    """Copies of ancestors, where they start to move, and how."""

    ancestors: Particles
    particles: Particles
    proposal: Proposal


class Plan(NamedTuple):
    """How long to move: in blocks, after each of which copies may have parted."""

    moves_per_block: int
    max_blocks: int
    correlation_target: Number


class Walk(NamedTuple):
    """Particles on their way.

    Attributes:
        point: where they are.
        step_size: adapted after each block.
        num_moves: of every particle; -1 before the start is evaluated.
        acceptance: the acceptance rates of all moves, added up.
        looked_at: the same when the last block ended.
        correlation: of the particles with their ancestors when the last block ended.
    """

    point: Point
    step_size: Scalar
    num_moves: Int[Array, ""]
    acceptance: Scalar
    looked_at: Scalar
    correlation: Scalar


def evaluate(particles: Particles, likelihood_fn: LikelihoodFn) -> Point:
    """Compute prior times likelihood; the prior is N(0, I) for every model."""
    value, gradient = likelihood_fn(particles)
    log_density = value - 0.5 * jnp.sum(particles**2, axis=1)
    return Point(particles, log_density, gradient - particles)


def information_root(information: Matrix | Parameters) -> Matrix | Parameters:
    """Factor the inverse of the precision: the prior's identity plus the information of users."""
    if information.ndim == 1:
        return jax.lax.rsqrt(1.0 + information)
    identity = jnp.eye(len(information))
    factor = jnp.linalg.cholesky(identity + information)
    return solve_triangular(factor, identity, lower=True).T


def langevin(rng_key: RngKey, start: Start, likelihood_fn: LikelihoodFn, plan: Plan) -> Walk:
    """Move every particle in blocks until copies have parted or the budget is spent.

    The start is evaluated by the first turn of the same loop, as a proposal that is accepted: then
    the gradient is compiled once.
    """
    length = plan.moves_per_block

    def turn(walk: Walk) -> Walk:
        is_start = walk.num_moves < 0
        block, position = jnp.divmod(jnp.maximum(walk.num_moves, 0), length)
        key = jax.random.split(jax.random.fold_in(rng_key, block), length)[position]
        now = start.proposal._replace(step_size=walk.step_size)
        point, rate = _moved(key, walk.point, is_start, likelihood_fn, now)
        num_moves = walk.num_moves + 1
        walk = walk._replace(point=point, num_moves=num_moves, acceptance=walk.acceptance + rate)
        return jax.lax.cond((num_moves % length == 0) & ~is_start, look, lambda same: same, walk)

    def look(walk: Walk) -> Walk:
        rate = (walk.acceptance - walk.looked_at) / length
        return walk._replace(
            step_size=adapt(walk.step_size, rate),
            correlation=start_correlation(start.ancestors, walk.point.particles),
            looked_at=walk.acceptance,
        )

    def is_on(walk: Walk) -> Bool[Array, ""]:
        is_left = walk.num_moves < plan.max_blocks * length
        return is_left & ~(walk.correlation < plan.correlation_target)

    zero = jnp.zeros(())
    particles = start.particles
    blank = Point(particles, jnp.zeros(len(particles)), jnp.zeros_like(particles))
    count = jnp.full((), -1, dtype=int)
    first = Walk(blank, start.proposal.step_size, count, zero, zero, jnp.full((), jnp.inf))
    return jax.lax.while_loop(is_on, turn, first)


def _moved(
    rng_key: RngKey,
    point: Point,
    is_start: Bool[Array, ""],
    likelihood_fn: LikelihoodFn,
    proposal: Proposal,
) -> tuple[Point, Scalar]:
    """Move once, or evaluate the start, which is accepted; also return the acceptance rate."""
    key_noise, key_accept = jax.random.split(rng_key)
    noise = jnp.where(is_start, 0.0, jax.random.normal(key_noise, point.particles.shape))
    candidate = evaluate(_propose(point, noise, proposal), likelihood_fn)
    log_ratio = _log_ratio(point, candidate, noise, proposal)
    # A proposal whose density is not a number compares false and is rejected.
    is_accepted = jnp.log(jax.random.uniform(key_accept, log_ratio.shape)) < log_ratio
    is_next = is_accepted | is_start
    chosen = Point(
        jnp.where(is_next[:, None], candidate.particles, point.particles),
        jnp.where(is_next, candidate.log_density, point.log_density),
        jnp.where(is_next[:, None], candidate.gradient, point.gradient),
    )
    return chosen, jnp.where(is_start, 0.0, jnp.mean(is_accepted, dtype=float))


def adapt(step_size: Scalar, acceptance_rate: Scalar) -> Scalar:
    """Move the step size towards the acceptance rate that Langevin moves do best with."""
    return step_size * jnp.exp(_ADAPTATION_GAIN * (acceptance_rate - TARGET_ACCEPTANCE))


@jax.jit
def start_correlation(start: Particles, now: Particles) -> Scalar:
    """Compute the correlation of each parameter with where it started, averaged over parameters.

    One means copies that have not moved; zero means that the ancestors are forgotten. The effective
    sample size cannot see the difference.
    """
    start, now = start - jnp.mean(start, axis=0)[None], now - jnp.mean(now, axis=0)[None]
    scale = jnp.sqrt(jnp.sum(start**2, axis=0) * jnp.sum(now**2, axis=0))
    # A parameter in which all ancestors agree has not moved from where it started.
    return jnp.mean(jnp.where(scale > 0, jnp.sum(start * now, axis=0) / scale, 1.0))


def _drift(point: Point, proposal: Proposal) -> Particles:
    stretched = proposal.stretch(proposal.pull(point.gradient))
    return point.particles + proposal.step_size / 2 * stretched


def _propose(point: Point, noise: Particles, proposal: Proposal) -> Particles:
    return _drift(point, proposal) + jnp.sqrt(proposal.step_size) * proposal.stretch(noise)


def _log_ratio(source: Point, target: Point, noise: Particles, proposal: Proposal) -> PerParticle:
    """Compute log π(target) q(source | target) - log π(source) q(target | source).

    In units of the root both residuals are short: the noise that was drawn, and the noise that
    would lead back, which differs by the two drifts.
    """
    root = jnp.sqrt(proposal.step_size) / 2
    back = noise + root * proposal.pull(source.gradient + target.gradient)
    change = jnp.sum(noise**2, axis=1) - jnp.sum(back**2, axis=1)
    return target.log_density - source.log_density + change / 2
