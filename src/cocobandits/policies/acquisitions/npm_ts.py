"""Thompson sampling with the learned population (paper, App. "Thompson Sampling")."""

from dataclasses import dataclass

from cocobandits.inference.weights import average
from cocobandits.models.base import Belief
from cocobandits.policies.acquisitions.base import Acquisition
from cocobandits.types import ArmVector, LogWeights, Particles, Scalar


@dataclass(frozen=True)
class ThompsonSampling(Acquisition[ArmVector]):
    """Play each arm as often as it is best: Σ_s w_s P(a* = a | particle s).

    This is the marginal law of the paper's two stages, a particle and then an arm.
    """

    def read(self, belief: Belief) -> ArmVector:
        """Read P(arm is best)."""
        return belief.best_probability()

    def combine(
        self, log_weights: LogWeights, readings: Particles, num_rewards: Scalar
    ) -> ArmVector:
        """Average over particles."""
        del num_rewards
        return average(log_weights, readings)
