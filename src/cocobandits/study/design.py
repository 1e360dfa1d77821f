"""The design of a study: arms, context, rewards, floors, policy. Validated once, then frozen.

An arm that is added later makes another design, of the same study.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from cocobandits.checks import check_names, freeze, is_number, plain_name
from cocobandits.errors import ConfigurationError, UnknownNameError, brief
from cocobandits.policies.base import Problem
from cocobandits.policies.description import PolicySettings
from cocobandits.policies.plain import from_plain, to_plain
from cocobandits.policies.registry import find_policy
from cocobandits.rewards import STANDARD_RANGE, Rewards, check_rewards
from cocobandits.study.context import ContextDeclaration, Feature

Floor = float | Mapping[str, float]


@dataclass(frozen=True)
class StudyDesign:
    """Everything that is fixed when a study starts, and the arms that were added since.

    Attributes:
        arms: their names; those that were added come last.
        features: of a context.
        rewards: kind of rewards.
        policy: how arms are chosen.
        seed: fixes every decision.
        floor: least probability of every arm that can be chosen, also of those that are added; or
            one for each arm of the start, and none for those that are added.
        added: for every arm that was added, how many decisions there had been.
    """

    arms: tuple[str, ...]
    features: tuple[Feature, ...]
    rewards: Rewards
    policy: PolicySettings
    seed: int
    floor: float | tuple[float, ...] = 0.0
    added: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_names("arm", self.arms)
        check_names("feature", tuple(feature.name for feature in self.features))
        if self.num_first_arms < 2:
            raise ConfigurationError(
                f"Expected at least two arms; got arms={list(self.arms)}. Add one to choose from."
            )
        self._check_floors()
        is_whole = isinstance(self.seed, int) and not isinstance(self.seed, bool)
        if not is_whole or not 0 <= self.seed < 2**63:
            raise ConfigurationError(
                f"Expected a whole number from zero to 2^63 - 1; got seed={self.seed!r}. "
                "Use for example 0."
            )

    @classmethod
    def declare(  # noqa: PLR0913, PLR0917 - the design of a study has this many parts
        cls,
        arms: Sequence[str],
        context: ContextDeclaration,
        rewards: Rewards,
        policy: PolicySettings | str,
        floor: Floor,
        seed: int,
    ) -> "StudyDesign":
        """Read a design as a user writes it.

        Raises:
            ConfigurationError: a part of it is refused.
            UnknownNameError: there is no such policy, or arm with a floor.
        """
        if isinstance(arms, str) or not isinstance(arms, Sequence):
            raise ConfigurationError(
                f"Expected a list of arm names; got arms={brief(arms)}. Write for example "
                "['a', 'b']."
            )
        if not isinstance(context, Mapping):
            raise ConfigurationError(
                "Expected a mapping from feature to range, categories or bool; got "
                f"context={brief(context)}. Write for example {{'age': (18, 90)}}, or {{}} for no "
                "context."
            )
        names = tuple(map(plain_name, arms))
        check_names("arm", names)  # before floors are looked up by them
        return cls(
            names,
            tuple(Feature.declare(name, declared) for name, declared in context.items()),
            check_rewards(rewards),
            find_policy(policy),
            _as_whole(seed),
            _read_floor(floor, names),
        )

    def to_plain(self) -> dict[str, Any]:
        """Write the design as values that JSON can hold."""
        others = {each.name: getattr(self, each.name) for each in fields(self)}
        settings = {"rewards": to_plain(self.rewards), "policy": to_plain(self.policy)}
        return others | settings | {"features": [asdict(feature) for feature in self.features]}

    @classmethod
    def from_plain(
        cls, item: Mapping[str, Any], policies: Iterable[type[PolicySettings]] = ()
    ) -> "StudyDesign":
        """Read what `to_plain` wrote.

        Args:
            item: the mapping.
            policies: classes of policies from outside the package.

        Raises:
            ConfigurationError: a part of it is refused.
            UnknownNameError: the policy is from outside the package, and not among `policies`.
        """
        frozen = (
            {name: freeze(value) for name, value in each.items()} for each in item["features"]
        )
        features = tuple(Feature(**each) for each in frozen)
        settings = from_plain(item["rewards"]), from_plain(item["policy"], policies)
        floor, added = freeze(item["floor"]), freeze(item["added"])
        return cls(tuple(item["arms"]), features, *settings, item["seed"], floor, added)

    @property
    def num_first_arms(self) -> int:
        """How many arms the study started with."""
        return len(self.arms) - len(self.added)

    @property
    def floors(self) -> tuple[float, ...]:
        """The floor of every arm."""
        if isinstance(self.floor, tuple):
            return self.floor + (0.0,) * len(self.added)
        return (self.floor,) * len(self.arms)

    @property
    def scale(self) -> float:
        """Standardised units per unit of reward."""
        return self.rewards.scale

    def with_arm(self, name: str, num_decisions: int) -> "StudyDesign":
        """Add an arm, after this number of decisions.

        Raises:
            ConfigurationError: the name is refused.
        """
        arms = (*self.arms, plain_name(name))
        return replace(self, arms=arms, added=(*self.added, num_decisions))

    def problem(self) -> Problem:
        """Describe the study to a policy."""
        return Problem(
            len(self.arms),
            tuple(feature.num_categories for feature in self.features),
            STANDARD_RANGE,
            self.rewards.standardised_noise,
            self.rewards.kind,
        )

    def standardise(self, reward: object) -> float:
        """Translate a reward to standardised units, where more is better.

        Raises:
            InputError: it is not a finite number, or none that this study can have.
        """
        return self.rewards.standardise(reward)

    def _check_floors(self) -> None:
        if isinstance(self.floor, tuple) and len(self.floor) != self.num_first_arms:
            raise ConfigurationError(
                f"Expected a floor for each of {self.num_first_arms} arms; got floor={self.floor}. "
                "Give one for every arm of the start."
            )
        first = self.floors[: self.num_first_arms]
        for arm, value in zip(self.arms[: self.num_first_arms], first, strict=True):
            if not is_number(value) or not 0 <= value < 1:
                raise ConfigurationError(
                    f"Expected a floor of at least 0 and below 1; got floor={value!r} for "
                    f"arm={arm!r}. Give the least probability of that arm."
                )
        check_floor_sum(first)


def check_floor_sum(floors: tuple[float, ...]) -> None:
    """Refuse floors that leave nothing to choose with.

    Raises:
        ConfigurationError: they sum to one or more.
    """
    total = math.fsum(floors)
    if total >= 1:
        raise ConfigurationError(
            f"Expected floors that sum to less than 1; got a sum of {total:g} over {len(floors)} "
            "arms. Lower them."
        )


def _as_whole(value: Any) -> Any:
    """Turn NumPy's whole numbers into plain ones, which can be stored."""
    return int(value) if isinstance(value, np.integer) and is_number(value) else value


def _read_floor(floor: Any, arms: tuple[str, ...]) -> Any:
    """Lay a mapping out over the arms; the numbers themselves are left to be checked."""
    if is_number(floor):
        return float(floor)
    if not isinstance(floor, Mapping):
        raise ConfigurationError(
            f"Expected a number, or a mapping from arm to number; got floor={brief(floor)}. Write "
            "for example 0.05, or leave it out."
        )
    for arm in floor:
        if arm not in arms:
            raise UnknownNameError("arm", arm, arms, "Give floors to arms of the study.")
    values = (floor.get(arm, 0.0) for arm in arms)
    return tuple(float(value) if is_number(value) else value for value in values)
