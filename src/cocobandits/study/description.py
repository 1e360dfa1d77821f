"""What a study is, and how far it has come, in words. Prints as a few short tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cocobandits.display import counted
from cocobandits.policies.coco.descriptions import Learner
from cocobandits.rewards import Rewards
from cocobandits.study.context import Feature
from cocobandits.study.design import StudyDesign
from cocobandits.study.events import ArmStatus
from cocobandits.study.state import StudyState


class ArmDescription(NamedTuple):
    """An arm: its status, why it has it, and its least probability while it can be chosen."""

    name: str
    status: ArmStatus
    reason: str
    floor: float


class FeatureDescription(NamedTuple):
    """A feature: its kind, its values in words, and how many users it is missing of."""

    name: str
    kind: Literal["continuous", "categories", "boolean"]
    declared: str
    num_missing: int


class ModelName(NamedTuple):
    """The population model that a policy learns, "none" if it learns none, and why this one."""

    name: str
    reason: str


@dataclass(frozen=True)
class Description:
    """What a study is, and how far it has come. Prints as tables.

    Attributes:
        arms: in their order.
        features: of a context, in their order.
        rewards: their kind, range, noise and direction.
        policy: how arms are chosen.
        model: the population that the policy learns, "none" if it learns none, and why this one.
        num_users: who are enrolled and have not withdrawn.
        num_withdrawn: users who have.
        num_decisions: of users who have not.
        num_rewards: of these, of decisions and observed, without those taken back.
    """

    arms: tuple[ArmDescription, ...]
    features: tuple[FeatureDescription, ...]
    rewards: Rewards
    policy: str
    model: ModelName
    num_users: int
    num_withdrawn: int
    num_decisions: int
    num_rewards: int

    def __str__(self) -> str:
        withdrew = f"; {counted(self.num_withdrawn, 'user')} withdrew" if self.num_withdrawn else ""
        lines = [
            *_table(
                ("arm", "status", "floor", "reason"),
                [(arm.name, arm.status, f"{arm.floor:g}", arm.reason) for arm in self.arms],
            ),
            "",
            *_table(
                ("feature", "kind", "values", "missing"),
                [(*each[:3], str(each.num_missing)) for each in self.features],
            ),
            *([""] if self.features else []),
            f"rewards     {_rewards_in_words(self.rewards)}",
            f"policy      {self.policy}",
            f"population  {self.model.name}: {self.model.reason}",
            f"so far      {counted(self.num_users, 'user')}, "
            f"{counted(self.num_decisions, 'decision')}, {counted(self.num_rewards, 'reward')}"
            f"{withdrew}",
        ]
        return "\n".join(lines)


def describe(state: StudyState) -> Description:
    """Put together what a study is."""
    design, users = state.design, state.users
    return Description(
        tuple(
            ArmDescription(arm, state.arms[arm], state.reasons[arm], floor)
            for arm, floor in zip(design.arms, design.floors, strict=True)
        ),
        tuple(
            FeatureDescription(feature.name, _kind(feature), feature.declared, num_missing)
            for feature, num_missing in zip(design.features, users.num_missing, strict=True)
        ),
        design.rewards,
        design.policy.name,
        _model(design),
        len(users.enrolled),
        len(users.withdrawn),
        sum(made.user not in users.withdrawn for made in state.decisions.values()),
        sum(
            reward.value is not None and users.names[reward.user] not in users.withdrawn
            for reward in state.rewards.values()
        ),
    )


def _model(design: StudyDesign) -> ModelName:
    if not isinstance(design.policy, Learner):
        return ModelName("none", f"{design.policy.name} does not learn a population")
    chosen = design.policy.chosen(design.problem())
    return ModelName(chosen.name, chosen.reason)


def _kind(feature: Feature) -> Literal["continuous", "categories", "boolean"]:
    if feature.is_boolean:
        return "boolean"
    return "categories" if feature.range is None else "continuous"


def _rewards_in_words(rewards: Rewards) -> str:
    better = "higher is better" if rewards.maximise else "lower is better"
    if rewards.name == "bernoulli":
        return f"bernoulli, 0 or 1, {better}"
    low, high = rewards.range
    noise = "noise learned" if rewards.noise is None else f"noise {rewards.noise:g}"
    return f"{rewards.name}, {low:g} to {high:g}, {noise}, {better}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Align columns; nothing without rows."""
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    ]
