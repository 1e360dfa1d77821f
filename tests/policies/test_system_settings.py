"""Settings of other systems: whatever is given, they are built, or refused with our own error."""

import dataclasses
from fractions import Fraction

import pytest

from cocobandits.checks import check_numbers, check_whole
from cocobandits.errors import ConfigurationError
from cocobandits.inference.smc import SmcConfig
from cocobandits.policies.base import Problem
from cocobandits.policies.hierts import HierTsSettings
from cocobandits.policies.kmtl_ucb import KmtlUcbSettings
from cocobandits.policies.mtts import MttsSettings
from cocobandits.policies.settings import SYSTEM_SETTINGS, CocoSettings

# Checked against the number of arms, when they are laid out for a problem.
MATRICES = ("design", "user_covariance", "similarity")
FIELDS = [
    (system, field.name)
    for system, settings in SYSTEM_SETTINGS.items()
    for field in dataclasses.fields(settings)
    if field.name not in MATRICES
]
# What JSON, a command line or a typing slip may bring.
TEXTS, CONTAINERS = ("three", "0.5"), ([], [None], {})
NUMBERS = (float("nan"), float("inf"), -1e300, 10**400, 1j)
WRONG = (None, object(), *TEXTS, *CONTAINERS, *NUMBERS)


def built(kind, name, value):
    """Build settings with one value; annotations are checked in tests alone, so not here."""
    settings = kind()
    object.__setattr__(settings, name, value)
    settings.__post_init__()
    return settings


def may_be(system, name, value):
    """Tell which of these are right after all."""
    if value is None:
        return name in ("prior_users", "alpha") and system != "kmtl_ucb"
    return value == -1e300 and name.endswith("_mean")


@pytest.mark.parametrize(("system", "name"), FIELDS)
def test_wrong_values_are_refused_by_name(system, name):
    kind = SYSTEM_SETTINGS[system]
    for value in WRONG:
        if may_be(system, name, value):
            assert getattr(built(kind, name, value), name) == value
        else:
            with pytest.raises(ConfigurationError, match=f"{name}="):
                built(kind, name, value)


@pytest.mark.parametrize("value", ["three", [], [None], {}, [[1.0, 2.0]], 5])
def test_wrong_matrices_are_refused_by_name(value):
    problem = Problem(2, (None,), (-2.0, 2.0), 0.2)
    for build, name in (
        (lambda: built(MttsSettings, "design", value).tensor(problem), "design"),
        (lambda: built(HierTsSettings, "user_covariance", value).covariance(2), "user_covariance"),
        (lambda: built(KmtlUcbSettings, "similarity", value).matrix(2), "similarity"),
    ):
        with pytest.raises(ConfigurationError, match=name):
            build()


@pytest.mark.parametrize("name", [*SYSTEM_SETTINGS, "inference", "prior"])
def test_wrong_kinds_of_settings_are_refused_by_name(name):
    for value in ("x", {}, 3.0, CocoSettings):
        with pytest.raises(ConfigurationError, match=f"{name}="):
            built(CocoSettings, name, value)


@pytest.mark.parametrize(
    "name", ["ess_threshold", "stage_threshold", "first_step_size", "correlation_target"]
)
def test_wrong_values_of_the_inference_are_refused_by_name(name):
    for value in (None, "x", float("nan"), []):
        with pytest.raises(ConfigurationError, match=f"{name}="):
            built(SmcConfig, name, value)


@pytest.mark.parametrize(
    "name", ["population_weight", "num_modes", "rank", "steps_per_user", "amplitude"]
)
def test_wrong_values_of_our_own_are_refused_by_name(name):
    for value in ("three", [], float("nan"), -1):
        with pytest.raises(ConfigurationError, match=f"{name}="):
            built(CocoSettings, name, value)


@dataclasses.dataclass
class Given:
    value: object


@pytest.mark.parametrize(
    ("kind", "allowed", "refused"),
    [
        ("finite", [-2, 0.0, 3.5], [float("inf"), 10**400, None, True, "1", Fraction(1, 2)]),
        ("positive", [1e-300, 2], [0, -1.0, float("nan")]),
        ("not negative", [0, 0.0, 7], [-1e-300, float("inf")]),
        ("fraction", [1e-9, 0.999], [0, 1, 1.5]),
        ("share", [1, 0.2], [0.0, 1.0001]),
    ],
)
def test_kinds_of_numbers(kind, allowed, refused):
    for value in allowed:
        check_numbers(Given(value), kind, "value")
    for value in refused:
        with pytest.raises(ConfigurationError, match=r"got value=.*Twice"):
            check_numbers(Given(value), kind, "value", remedy="Twice.")


def test_whole_numbers_have_limits():
    for value in (2, 5):
        check_whole(Given(value), "value", least=2, most=5, remedy="")
    for value in (1, 6, 3.0, True, None):
        with pytest.raises(ConfigurationError, match="from 2 to 5; got value="):
            check_whole(Given(value), "value", least=2, most=5, remedy="")
    check_whole(Given(10**9), "value", remedy="")
    for value in (0, 10**9 + 1):
        with pytest.raises(ConfigurationError, match=f"from 1 to 1,000,000,000; got value={value}"):
            check_whole(Given(value), "value", remedy="")
