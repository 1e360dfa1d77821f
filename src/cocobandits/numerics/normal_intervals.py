"""Logarithms of normal probabilities of intervals, exact in both tails."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float

Logs = Float[Array, "arm interval"]

_TINY = float(np.finfo(float).tiny)


def log_normal_intervals(bounds: Float[Array, "arm edge"]) -> Float[Array, "arm interval"]:
    """Compute log(Φ(next) - Φ(this)) between successive bounds, with Φ evaluated once for each."""
    log_tail = log_ndtr(-jnp.abs(bounds))
    # The left tail is where differences of Φ are exact, so intervals to the right are mirrored.
    low, high = bounds[:, :-1], bounds[:, 1:]
    left, right = log_tail[:, :-1], log_tail[:, 1:]
    is_right = low >= 0
    one_sided = _log_difference(jnp.where(is_right, left, right), jnp.where(is_right, right, left))
    around_zero = jnp.log1p(-jnp.exp(left) - jnp.exp(right))
    return jnp.where((low < 0) & (high > 0), around_zero, one_sided)


def _log_difference(log_high: Logs, log_low: Logs) -> Logs:
    """Compute log(exp(log_high) - exp(log_low))."""
    return log_high + jnp.log(-jnp.expm1(jnp.minimum(log_low - log_high, -_TINY)))
