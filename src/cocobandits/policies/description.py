"""A policy's settings class is its record: constructor, stored settings, label, line, assumption.

`@description(...)` makes a class of settings a frozen dataclass with the record of a policy. A
policy from outside the package derives from `PolicySettings`, where the record has defaults.
"""

import re
from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, dataclass_transform

from cocobandits.display import DEFAULT_LINE, Line
from cocobandits.errors import ConfigurationError
from cocobandits.policies.base import Policy, Problem
from cocobandits.populations.known.beta_mixture import BetaMixture
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.rewards import RewardKind

C = TypeVar("C", bound="type[PolicySettings]")
# What a policy assumes of the population, as a diagnosis compares it; None if nothing definite.
Assumption = Literal["nonparametric", "gaussian", "no-sharing"]
Population = ConditionalMixture | BetaMixture


class Facts(NamedTuple):
    """What a simulation knows about its environment, for policies that may know it too.

    Attributes:
        population: the true one, in standardised units.
        steps_per_user: rewards of each user.
        num_steps: rewards of all users together.
        unit: standardised units per unit of reward.
        mixed_model: design and moments of a linear mixed model of arm means, in units of reward,
            if there is one that comes close.
    """

    population: Population
    steps_per_user: int
    num_steps: int
    unit: float
    mixed_model: Mapping[str, Any] | None = None


class PolicySettings(ABC):
    """The settings of a policy, and its record.

    Attributes:
        name: by which studies and suites select it with default settings.
        label: in tables and figures; by default the name of the class.
        line: in figures.
        chooses: how it chooses, in a few words.
        knows: what it knows or learns of the population, in a few words.
        rewards: kinds that it can learn from.
        assumes: what it assumes of the population.
        table_one: which of the six criteria of the paper's Table 1 it meets: + yes, - no, / not
            applicable; empty if nobody has tried.
        published: what the paper's own table says.
        is_learner: whether it learns a population model with particles.
        policy: the class that is built; it names its settings: `class P(Policy, settings=S)`.
    """

    name: ClassVar[str] = "policy"
    label: ClassVar[str] = "policy"
    line: ClassVar[Line] = DEFAULT_LINE
    chooses: ClassVar[str] = ""
    knows: ClassVar[str] = ""
    rewards: ClassVar[tuple[RewardKind, ...]] = ("gaussian", "bernoulli")
    assumes: ClassVar[Assumption | None] = None
    table_one: ClassVar[str] = ""
    published: ClassVar[str] = ""
    is_learner: ClassVar[bool] = False
    policy: ClassVar[type[Policy[Any]]]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "name" not in vars(cls):
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()
        if "label" not in vars(cls):
            cls.label = cls.__name__

    def build(self, problem: Problem) -> Policy[Any]:
        """Build the policy for a problem; by default the one that names these settings.

        Raises:
            ConfigurationError: the settings do not fit the problem.
        """
        if not hasattr(self, "policy"):
            raise ConfigurationError(
                f"Expected a policy for these settings; got {type(self).__name__} without one. "
                f"Write `class P(Policy, settings={type(self).__name__})`, or override `build`."
            )
        return self.policy(problem, self)

    def informed(self, facts: Facts) -> "PolicySettings":
        """Return settings that make use of what a simulation knows; by default none."""
        return self

    def filled(self, **known: Any) -> Any:
        """Set the settings that are None; what was given stays."""
        missing = {name: value for name, value in known.items() if getattr(self, name) is None}
        return replace(self, **missing)  # type: ignore[type-var]


@dataclass_transform(frozen_default=True)
def description(name: str, **record: Any) -> Callable[[C], C]:
    """Make a class of settings a frozen dataclass, with its record; see `PolicySettings`."""

    def describe(cls: C) -> C:
        for key, value in {"name": name, **record}.items():
            setattr(cls, key, value)
        return dataclass(frozen=True)(cls)  # type: ignore[return-value]

    return describe


def build(settings: PolicySettings, problem: Problem) -> Policy[Any]:
    """Build a policy, if it can learn from the rewards of a problem.

    Raises:
        ConfigurationError: it cannot, or its settings do not fit.
    """
    if problem.rewards not in settings.rewards:
        raise ConfigurationError(
            f"Expected {' or '.join(settings.rewards)} rewards for {settings.name}; got "
            f"{problem.rewards} ones. Choose another policy, for example coids or ind-ts."
        )
    return settings.build(problem)
