"""A study: names, validation, open decisions and storage around a policy."""

from cocobandits.study.background import Adoption
from cocobandits.study.decisions import Decision
from cocobandits.study.explanation import ArmExplanation, Explanation, Population, Uncertainty
from cocobandits.study.study import Study

__all__ = [
    "Adoption",
    "ArmExplanation",
    "Decision",
    "Explanation",
    "Population",
    "Study",
    "Uncertainty",
]
