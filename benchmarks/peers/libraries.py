"""MABWiser and bayesianbandits as contextual bandits: how each library is configured.

A library knows what the study declares before the first decision: arms, features, the range of
rewards and their noise, and the number of users. Nothing here has seen a reward.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from bayesianbandits import (
    Arm,
    BayesianGLM,
    ContextualAgent,
    DirichletClassifier,
    LaplaceApproximator,
    NormalInverseGammaRegressor,
    NormalRegressor,
    ThompsonSampling,
)
from mabwiser.mab import MAB, LearningPolicy

from cocobandits.environments.base import Environment, FloatVector
from cocobandits.study.context import Feature, read_context

# Standard deviation of the logit of an unknown probability: that of the standard logistic law.
LOGIT_DEVIATION = math.pi / math.sqrt(3)
# The largest standard deviation that a reward of 0 or 1 can have.
YES_NO_NOISE = 0.5
# Two is the smallest whole number at which the prior of a variance b / (a - 1) has a mean.
_NOISE_SHAPE = 2.0
# Newton steps; the default of five does not always converge.
_MOST_STEPS = 50

Sharing = Literal["per user", "pooled", "user effects"]


@dataclass(frozen=True)
class Task:
    """A regression per arm.

    Attributes:
        sharing: a bandit per user, one for all, or one for all with a one-hot column per user.
        num_columns: length of a vector of features.
        num_terms: of the sum that a mean is: intercept, features, and the user if it has a column.
        middle, width: of the range of rewards. Priors are around the middle.
        noise: standard deviation of a reward around the line.
        is_yes_no: whether rewards are 0 or 1.
    """

    sharing: Sharing
    num_arms: int
    num_columns: int
    num_terms: int
    middle: float
    width: float
    noise: float
    is_yes_no: bool

    @classmethod
    def of(cls, environment: Environment, sharing: Sharing) -> "Task":
        """Take a task from what an environment declares.

        All use the declared noise, also where one line serves users who differ: with the variance
        of a user who is anywhere in the range added to it, pooled peers lost more in most
        environments, on seeds 100 and 101.
        """
        rewards, has_users = environment.rewards, sharing == "user effects"
        low, high = rewards.range
        num_users = environment.recruitment.num_users if has_users else 0
        return cls(
            sharing,
            len(environment.arms),
            num_columns=len(encode(environment, {})) + num_users,
            num_terms=1 + len(environment.context) + has_users,
            middle=(low + high) / 2,
            width=high - low,
            noise=YES_NO_NOISE if rewards.noise is None else rewards.noise,
            is_yes_no=rewards.kind == "bernoulli",
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

    @property
    def is_counting(self) -> bool:
        """Whether to count yes and no per arm: the context of a single user never changes."""
        return self.is_yes_no and self.sharing == "per user"


def encode(environment: Environment, context: Mapping[str, Any]) -> FloatVector:
    """Write a context as (1, numbers on [-1, 1], truths as ±1, categories one-hot).

    A missing value is zero: the middle of a range, neither true nor false, no category.
    """
    features = tuple(Feature.declare(*declared) for declared in environment.context.items())
    pairs = zip(features, read_context(features, context), strict=True)
    return np.concatenate([[1.0], *(_columns(feature, number) for feature, number in pairs)])


def _columns(feature: Feature, number: float) -> FloatVector:
    if math.isnan(number):
        return np.zeros(len(feature.categories) or 1)
    if feature.categories:
        return np.eye(len(feature.categories))[int(number)]
    return np.array([2 * number - 1 if feature.is_boolean else feature.standardise(number)])


class MabwiserBandit:
    """MABWiser: LinTS, a ridge regression per arm whose coefficients are drawn.

    LinTS draws from N(β, α² (XᵀX + λI)⁻¹). With α the noise and λ = (noise / deviation)² that is
    the posterior of a Bayesian regression with normal coefficients. An arm without rewards, though,
    has covariance α²λ I in MABWiser 2.7, not α²/λ I; both agree at λ = 1, so features are
    multiplied by deviation / noise instead, which is equivalent.

    Yes/no rewards: Thompson sampling with Beta(1, 1) for each arm per user; LinTS on 0 and 1 (a
    linear probability model) where users are pooled, as MABWiser has no logistic one.
    """

    def __init__(self, task: Task, seed: int) -> None:
        self.is_counting = task.is_counting
        self.middle = 0.0 if task.is_counting else task.middle
        self.scale = task.deviation / task.noise
        linear = LearningPolicy.LinTS(alpha=task.noise, l2_lambda=1.0)
        policy = LearningPolicy.ThompsonSampling() if task.is_counting else linear
        self.mab = MAB(list(range(task.num_arms)), policy, seed=seed)
        # It refuses to predict before it was fitted; fitted to nothing, it has its prior.
        self.mab.fit([], [], *self._rows(np.zeros((0, task.num_columns))))

    def choose(self, features: FloatVector) -> int:
        """Draw coefficients or a probability for every arm, and take the best."""
        return int(self.mab.predict(*self._rows(features[None])))

    def learn(self, features: FloatVector, arm: int, reward: float) -> None:
        """Refit the arm."""
        self.mab.partial_fit([arm], [reward - self.middle], *self._rows(features[None]))

    def _rows(self, features: Any) -> tuple[Any, ...]:
        return () if self.is_counting else (self.scale * features,)


class BayesianBandit:
    """bayesianbandits: a Bayesian regression per arm, with its policy ThompsonSampling.

    Per user, and with effects of users, the noise is the declared one (NormalRegressor). Pooled, it
    is learned (NormalInverseGammaRegressor), since nobody declares how much users differ; its prior
    mean is the declared one.

    Yes/no rewards: a Beta law per arm (DirichletClassifier) per user; logistic regression
    (BayesianGLM) where users are pooled.
    """

    def __init__(self, task: Task, seed: int) -> None:
        self.middle = 0.0 if task.is_yes_no else task.middle
        # A DirichletClassifier has a law for each value of its one column: here, the intercept.
        self.num_columns = 1 if task.is_counting else task.num_columns
        reward_function = (
            (lambda probabilities: probabilities[..., 1]) if task.is_counting else None
        )
        arms = [Arm(arm, reward_function, self._learner(task)) for arm in range(task.num_arms)]
        self.agent = ContextualAgent(arms, ThompsonSampling(), random_seed=seed)

    def choose(self, features: FloatVector) -> int:
        """Draw from the posterior of every arm, and take the best."""
        [arm] = self.agent.pull(features[None, : self.num_columns])
        return int(arm)

    def learn(self, features: FloatVector, arm: int, reward: float) -> None:
        """Update the learner of the arm."""
        row, value = features[None, : self.num_columns], np.array([reward - self.middle])
        self.agent.select_for_update(arm).update(row, value)

    @staticmethod
    def _learner(task: Task) -> Any:
        if task.is_counting:
            return DirichletClassifier({0: 1.0, 1: 1.0})
        if task.is_yes_no:
            steps = LaplaceApproximator(n_iter=_MOST_STEPS)
            return BayesianGLM(task.logit_deviation**-2, link="logit", approximator=steps)
        if task.sharing == "pooled":
            variance = task.noise**2
            return NormalInverseGammaRegressor(
                lam=variance / task.deviation**2, a=_NOISE_SHAPE, b=(_NOISE_SHAPE - 1) * variance
            )
        return NormalRegressor(alpha=task.deviation**-2, beta=task.noise**-2)


Bandit = MabwiserBandit | BayesianBandit
LIBRARIES: dict[str, type[Bandit]] = {
    "mabwiser": MabwiserBandit,
    "bayesianbandits": BayesianBandit,
}
