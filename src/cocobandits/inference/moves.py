"""Langevin moves with Metropolis-Hastings that leave the posterior invariant (paper, App. "SMC").

    ξ' = ξ + η/2 · D² ∇log π(ξ) + √η · D ε,    ε ~ N(0, I)

with the paper's step size η and D the particles' own deviation per parameter. Owns the kernel, the
scales, the step-size rule and the measure of how far particles have come.

Scales and not a covariance: a covariance of 80 parameters from 200 particles leans towards each
particle's own place, and moves that use it pull the particles together.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from cocobandits.inference.weights import average
from cocobandits.types import LogWeights, Parameters, Particles, PerParticle, RngKey, Scalar

# Values and gradients of the log-likelihood of all particles.
LikelihoodFn = Callable[[Particles], tuple[PerParticle, Particles]]

# Asymptotically optimal for Langevin proposals (Roberts & Rosenthal, 1998).
TARGET_ACCEPTANCE = 0.574
_ADAPTATION_GAIN = 2.0
# A parameter in which all particles agree must still be able to move.
_LEAST_SCALE = 1e-4


class Proposal(NamedTuple):
    """Step size, and the scale of each parameter."""

    step_size: Scalar
    scales: Parameters


class Point(NamedTuple):
    """Particles with their log posterior density (up to a constant) and its gradient."""

    particles: Particles
    log_density: PerParticle
    gradient: Particles


def evaluate(particles: Particles, likelihood_fn: LikelihoodFn) -> Point:
    """Compute prior times likelihood; the prior is N(0, I) for every model."""
    value, gradient = likelihood_fn(particles)
    log_density = value - 0.5 * jnp.sum(particles**2, axis=1)
    return Point(particles, log_density, gradient - particles)


@jax.jit
def spread(particles: Particles, log_weights: LogWeights) -> Parameters:
    """Compute the weighted standard deviation of each parameter."""
    centred = particles - average(log_weights, particles)[None, :]
    return jnp.maximum(jnp.sqrt(average(log_weights, centred**2)), _LEAST_SCALE)


def langevin(
    rng_key: RngKey, start: Point, likelihood_fn: LikelihoodFn, proposal: Proposal, num_moves: int
) -> tuple[Point, Scalar]:
    """Move every particle `num_moves` times; return them and the mean acceptance rate."""

    def move(point: Point, key: RngKey) -> tuple[Point, Scalar]:
        key_noise, key_accept = jax.random.split(key)
        noise = jax.random.normal(key_noise, point.particles.shape)
        candidate = evaluate(_propose(point, noise, proposal), likelihood_fn)
        log_ratio = (
            candidate.log_density
            - point.log_density
            + _log_transition(candidate, point, proposal)
            - _log_transition(point, candidate, proposal)
        )
        # A proposal whose density is not a number compares false and is rejected.
        is_accepted = jnp.log(jax.random.uniform(key_accept, log_ratio.shape)) < log_ratio
        chosen = Point(
            jnp.where(is_accepted[:, None], candidate.particles, point.particles),
            jnp.where(is_accepted, candidate.log_density, point.log_density),
            jnp.where(is_accepted[:, None], candidate.gradient, point.gradient),
        )
        return chosen, jnp.mean(is_accepted, dtype=float)

    last, acceptance = jax.lax.scan(move, start, jax.random.split(rng_key, num_moves))
    return last, jnp.mean(acceptance)


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
    return point.particles + proposal.step_size / 2 * proposal.scales[None] ** 2 * point.gradient


def _propose(point: Point, noise: Particles, proposal: Proposal) -> Particles:
    return _drift(point, proposal) + jnp.sqrt(proposal.step_size) * proposal.scales[None] * noise


def _log_transition(source: Point, target: Point, proposal: Proposal) -> PerParticle:
    """Compute log q(target | source) up to a constant that cancels."""
    residual = (target.particles - _drift(source, proposal)) / proposal.scales[None]
    return -0.5 * jnp.sum(residual**2, axis=1) / proposal.step_size
