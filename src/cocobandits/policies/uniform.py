"""Every arm with the same probability, whoever asks: the control of a randomised study."""

import jax.numpy as jnp

from cocobandits.policies.base import PlainPolicy, PlainState
from cocobandits.types import ArmVector


class UniformPolicy(PlainPolicy):
    """Choose without looking."""

    def probabilities(self, state: PlainState, user: int) -> ArmVector:
        """Give 1/K to every arm."""
        del state, user
        return jnp.full(self.problem.num_arms, 1.0 / self.problem.num_arms)
