"""The highest score wins: how rules of optimism turn scores into probabilities."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from cocobandits.policies.base import Arms
from cocobandits.types import ArmVector

# Scores closer than this are a tie: only rounding tells them apart.
_TIE = 1e-12


def highest_probability(scores: ArmVector, arms: Arms = None) -> Float[Array, " chosen"]:
    """Share probability one equally among the highest scores of the arms that can be chosen."""
    return _share(scores if arms is None else scores[jnp.asarray(arms)])


@jax.jit
def _share(scores: ArmVector) -> ArmVector:
    is_highest = scores >= jnp.max(scores) - _TIE
    return is_highest / jnp.sum(is_highest)
