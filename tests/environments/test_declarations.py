"""Environments from outside the package that declare or draw something else than they have to."""

import numpy as np
import pytest

from cocobandits import Gaussian, simulate
from cocobandits.environments.base import NOTHING_SHARED, Cohort, Environment
from cocobandits.environments.mixture import MixtureEnvironment
from cocobandits.environments.recruitment import Recruitment
from cocobandits.errors import ConfigurationError
from cocobandits.experiments.suites import Suite


class Bare(Environment):
    """Declares everything but the plan of arrivals."""

    name = "bare"
    arms = ("a", "b")
    context = {"x": (-1.0, 1.0)}  # noqa: RUF012 - a declaration, never changed
    rewards = Gaussian(-1.0, 1.0, noise=0.1)

    drawn = (3, 2)

    def __init__(self, **changes):
        vars(self).update(changes)

    def draw_users(self, generator, num_users, shared=NOTHING_SHARED):
        """Draw users alike, as many as a test asks for."""
        del generator, num_users, shared
        return Cohort([{"x": 0.0}] * self.drawn[0], np.zeros(self.drawn))

    def population(self, shared=NOTHING_SHARED):
        """Take that of another environment; nothing depends on it here."""
        del shared
        return MixtureEnvironment().population()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "recruitment as a Recruitment; got recruitment=None in Bare"),
        ({"recruitment": 5}, "recruitment as a Recruitment; got recruitment=5"),
        ({"rewards": "gaussian"}, "rewards as a Rewards; got rewards='gaussian'"),
        ({"arms": 2}, "arms as a Sequence; got arms=2"),
        ({"name": None}, "name as a str; got name=None"),
    ],
)
def test_a_declaration_that_is_missing_is_one_sentence(changes, message):
    environment = Bare(**changes)
    with pytest.raises(ConfigurationError, match=f"{message}.*Declare it in the class"):
        simulate("uniform", environment, 0)
    with pytest.raises(ConfigurationError, match=message):
        Suite("mine", [environment], ["uniform"], 1)


@pytest.mark.parametrize("drawn", [(2, 2), (4, 2), (3, 1), (3, 3)])
def test_other_users_than_declared_are_one_sentence(drawn):
    environment = Bare(recruitment=Recruitment.all_at_once(3, 2), drawn=drawn)
    expected = rf"3 users × 2 arms; got {drawn[0]} contexts and arm_means.shape=\({drawn[0]}, "
    with pytest.raises(ConfigurationError, match=expected):
        simulate("uniform", environment, 0)


def test_means_that_are_no_numbers_and_no_population_are_one_sentence():
    plan = Recruitment.all_at_once(3, 2)
    unknown = Bare(
        recruitment=plan, draw_users=lambda *_: Cohort([{}] * 3, np.full((3, 2), np.nan))
    )
    with pytest.raises(
        ConfigurationError, match=r"finite means of .*, 6 not finite. Change draw_users"
    ):
        simulate("uniform", unknown, 0)
    with pytest.raises(
        ConfigurationError, match=r"ConditionalMixture.*got None. Change population"
    ):
        simulate("uniform", Bare(recruitment=plan, population=lambda _: None), 0)
