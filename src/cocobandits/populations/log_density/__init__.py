"""The paper's population model: a Gaussian process on the log-density over a tensor grid."""

from cocobandits.populations.log_density.basis import BasisName
from cocobandits.populations.log_density.grid import Axis, CategoricalAxis
from cocobandits.populations.log_density.model import LogDensityConfig, LogDensityModel

__all__ = [
    "Axis",
    "BasisName",
    "CategoricalAxis",
    "LogDensityConfig",
    "LogDensityModel",
]
