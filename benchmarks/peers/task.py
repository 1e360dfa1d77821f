"""What a user of another library knows before the first decision, and how a context is written.

Everything is read off what the study declares: arms, features, the range of rewards and their
noise, and how many users there will be. Nothing here has seen a reward.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cocobandits.environments.base import Environment, FloatVector
from cocobandits.study.context import Feature, read_context

Sharing = Literal["per user", "pooled", "user effects"]
SHARINGS: tuple[Sharing, ...] = ("per user", "pooled", "user effects")
# Standard deviation of the logit of a chance about which nothing is known: a standard logistic law.
LOGIT_DEVIATION = math.pi / math.sqrt(3)
# A reward of 0 or 1 varies by no more than this, whoever is asked.
YES_NO_NOISE = 0.5


@dataclass(frozen=True)
class Task:
    """A regression per arm, as a library has to be told it.

    Attributes:
        sharing: who learns from whom.
        num_arms: how many there are.
        num_users: how many will come; one-hot users need it.
        num_columns: length of the vector of a context.
        num_terms: what a mean is the sum of: an intercept, each feature, and the user if told.
        middle: of the range of rewards; it is taken off them, since priors are around zero.
        width: of that range.
        noise: standard deviation of a reward around the line.
        is_yes_no: whether rewards are 0 or 1.
    """

    sharing: Sharing
    num_arms: int
    num_users: int
    num_columns: int
    num_terms: int
    middle: float
    width: float
    noise: float
    is_yes_no: bool

    @classmethod
    def of(cls, environment: Environment, sharing: Sharing) -> "Task":
        """Take a task from what an environment declares.

        The noise is the declared one for all, also where one line serves users who differ: with the
        variance of a user who is anywhere in the range added to it, pooled peers lost more in most
        environments, on seeds 100 and 101.
        """
        (low, high), noise = environment.rewards.range, environment.rewards.noise
        with_users = sharing == "user effects"
        num_users = environment.recruitment.num_users
        return cls(
            sharing,
            len(environment.arms),
            num_users,
            num_columns=Encoder(environment).num_columns + with_users * num_users,
            num_terms=1 + len(environment.context) + with_users,
            middle=(low + high) / 2,
            width=high - low,
            noise=YES_NO_NOISE if noise is None else noise,
            is_yes_no=environment.rewards.kind == "bernoulli",
        )

    @property
    def deviation(self) -> float:
        """Standard deviation of a coefficient.

        All terms together vary as a mean that is anywhere in the range: by its width / √12.
        """
        return self.width / math.sqrt(12 * self.num_terms)

    @property
    def logit_deviation(self) -> float:
        """The same on the scale of logits."""
        return LOGIT_DEVIATION / math.sqrt(self.num_terms)


class Encoder:
    """Write a context as (1, numbers on [-1, 1], truths as ±1, categories one-hot).

    What is missing is zero: the middle of a range, neither true nor false, no category.
    """

    def __init__(self, environment: Environment) -> None:
        self.features = tuple(
            Feature.declare(name, declared) for name, declared in environment.context.items()
        )
        self.num_columns = 1 + sum(len(feature.categories) or 1 for feature in self.features)

    def encode(self, context: dict[str, Any]) -> FloatVector:
        """Write one context."""
        numbers = read_context(self.features, context)
        pairs = zip(self.features, numbers, strict=True)
        return np.concatenate([[1.0], *(_columns(feature, number) for feature, number in pairs)])


def _columns(feature: Feature, number: float) -> FloatVector:
    if math.isnan(number):
        return np.zeros(len(feature.categories) or 1)
    if feature.categories:
        return np.eye(len(feature.categories))[int(number)]
    return np.array([2 * number - 1 if feature.is_boolean else feature.standardise(number)])
