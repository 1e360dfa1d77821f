"""Thompson sampling with the learned population (paper, App. "Thompson Sampling")."""

from dataclasses import dataclass

import jax

from cocobandits.policies.coco.acquisition import Acquisition, UserReadings
from cocobandits.populations.base import Belief
from cocobandits.types import ArmVector


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ThompsonSampling(Acquisition):
    """Play each arm as often as it is best: Σ_s w_s P(a* = a | particle s).

    This is the marginal law of the paper's two stages, a particle and then an arm.
    """

    def read(self, belief: Belief, rewards: None) -> None:
        """Compute nothing: the mixture of all particles is enough."""

    def read_together(self, belief: Belief, rewards: None) -> ArmVector:
        """Compute P(arm is best)."""
        return belief.best_probability()

    def combine(self, readings: UserReadings) -> ArmVector:
        """Play it."""
        return readings.together
