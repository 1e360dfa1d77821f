"""A population model for many arms: a mixture whose components are conjugate."""

from cocobandits.populations.mixture.config import MixtureConfig, RewardKind
from cocobandits.populations.mixture.model import MixtureModel

__all__ = ["MixtureConfig", "MixtureModel", "RewardKind"]
