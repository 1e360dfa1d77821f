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


def find_environment(environment: Environment | str) -> Environment:
    """Return the environment given, or the one of a name.

    Raises:
        UnknownNameError: there is no environment of that name.
        ConfigurationError: it does not declare what it has to.
    """
    if isinstance(environment, Environment):
        environment.check()
        return environment
    if not isinstance(environment, str) or environment not in _ENVIRONMENTS:
        names = environment_names()
        raise UnknownNameError("environment", environment, names, "Choose one of these.")
    return _ENVIRONMENTS[environment]


def environment_names() -> tuple[str, ...]:
    """List all names that `find_environment` takes."""
    return tuple(_ENVIRONMENTS)
