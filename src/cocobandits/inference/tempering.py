"""Adaptive tempering: how far along a path of targets one reweighting may go.

(Paper, App. "SMC": tempered transitions; here the path runs from the current posterior to the next
one, not from the prior, so that a single surprising reward is the only thing tempered.)
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from cocobandits.inference.weights import effective_sample_size
from cocobandits.types import LogWeights, PerParticle, Scalar

_BISECTIONS = 40


@jax.jit
def next_temperature(
    log_weights: LogWeights, increments: PerParticle, temperature: Scalar, target_ess: Scalar
) -> Scalar:
    """Find the largest temperature, at most 1, that keeps the ESS at the target.

    Args:
        log_weights: weights at the present temperature.
        increments: log-likelihood at temperature 1 minus that at temperature 0.
        temperature: where the particles are now.
        target_ess: the ESS after reweighting that is still acceptable.
    """

    def ess_at(candidate: Scalar) -> Scalar:
        return effective_sample_size(log_weights + (candidate - temperature) * increments)

    def halve(_: Int[Array, ""], bracket: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
        low, high = bracket
        middle = (low + high) / 2
        is_enough: Bool[Array, ""] = ess_at(middle) >= target_ess
        return jnp.where(is_enough, middle, low), jnp.where(is_enough, high, middle)

    one = jnp.ones(())
    low, _ = jax.lax.fori_loop(0, _BISECTIONS, halve, (temperature, one))
    return jnp.where(ess_at(one) >= target_ess, one, low)
