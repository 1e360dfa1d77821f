"""A study: names, validation, open decisions and events around a policy."""

from cocobandits.study.description import Description
from cocobandits.study.explanation import ArmExplanation, Explanation, Uncertainty
from cocobandits.study.population import Population
from cocobandits.study.queries import Decision
from cocobandits.study.replay import Difference
from cocobandits.study.study import Study

__all__ = [
    "ArmExplanation",
    "Decision",
    "Description",
    "Difference",
    "Explanation",
    "Population",
    "Study",
    "Uncertainty",
]
