"""Environments by name."""

from cocobandits.environments import lmm, stress
from cocobandits.environments.base import Environment
from cocobandits.environments.diet import DietEnvironment
from cocobandits.environments.groups import GroupsEnvironment
from cocobandits.environments.mixture import MixtureEnvironment
from cocobandits.environments.partial import PartialEnvironment
from cocobandits.environments.survey import MISSING_SHARE, SurveyEnvironment
from cocobandits.environments.yes_no import YesNoEnvironment
from cocobandits.errors import UnknownNameError

_ENVIRONMENTS: dict[str, Environment] = {
    environment.name: environment
    for environment in (
        MixtureEnvironment(),
        PartialEnvironment(),
        lmm.matched(),
        lmm.misspecified(),
        DietEnvironment(),
        GroupsEnvironment(),
        YesNoEnvironment(),
        SurveyEnvironment("survey", 0.0),
        SurveyEnvironment("survey-missing", MISSING_SHARE),
        stress.skewed(),
        stress.groups(),
        stress.ring(),
        stress.heteroscedastic(),
    )
}


def build_environment(name: str) -> Environment:
    """Find an environment by name.

    Raises:
        UnknownNameError: nobody registered that name.
    """
    if name not in _ENVIRONMENTS:
        raise UnknownNameError("environment", name, environment_names(), "Choose one of these.")
    return _ENVIRONMENTS[name]


def environment_names() -> tuple[str, ...]:
    """List all names that `build_environment` takes."""
    return tuple(_ENVIRONMENTS)
