"""A study: names, validation, open decisions and storage around a policy."""

from cocobandits.study.background import Adoption
from cocobandits.study.decisions import Decision
from cocobandits.study.description import Description
from cocobandits.study.explanation import ArmExplanation, Explanation, Uncertainty
from cocobandits.study.population import Population
from cocobandits.study.study import Study

__all__ = [
    "Adoption",
    "ArmExplanation",
    "Decision",
    "Description",
    "Explanation",
    "Population",
    "Study",
    "Uncertainty",
]
