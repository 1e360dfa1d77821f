"""A population model for many arms: a mixture whose components are conjugate."""

from cocobandits.models.mixture.config import MixtureConfig, RewardKind
from cocobandits.models.mixture.model import MixtureModel

__all__ = ["MixtureConfig", "MixtureModel", "RewardKind"]
