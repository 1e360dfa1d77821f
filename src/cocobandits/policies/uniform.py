"""Every arm with the same probability, whoever asks: the control of a randomised study."""

import jax.numpy as jnp

from cocobandits.models.histories import UserTable
from cocobandits.policies.base import Arms, PlainPolicy, Problem
from cocobandits.types import ArmVector


class UniformPolicy(PlainPolicy):
    """Choose without looking."""

    def probabilities(
        self, state: None, users: UserTable, user: int, arms: Arms = None
    ) -> ArmVector:
        """Give the same to every arm that can be chosen."""
        del state, users, user
        num_arms = self.problem.num_arms if arms is None else len(arms)
        return jnp.full(num_arms, 1.0 / num_arms)

    def widened(self, problem: Problem) -> "UniformPolicy":
        """Make the same policy for a problem with another arm."""
        return UniformPolicy(problem)
