"""Thompson sampling with the learned population (paper, App. "Thompson Sampling")."""

from dataclasses import dataclass

from cocobandits.models.base import Belief
from cocobandits.policies.coco.acquisition import Acquisition, Evidence
from cocobandits.types import ArmVector


@dataclass(frozen=True)
class ThompsonSampling(Acquisition[None, ArmVector]):
    """Play each arm as often as it is best: Σ_s w_s P(a* = a | particle s).

    This is the marginal law of the paper's two stages, a particle and then an arm.
    """

    def read(self, belief: Belief) -> None:
        """Read nothing: particles need not be told apart."""
        del belief

    def read_together(self, belief: Belief) -> ArmVector:
        """Read P(arm is best)."""
        return belief.best_probability()

    def combine(self, evidence: Evidence) -> ArmVector:
        """Play it."""
        return evidence.together
