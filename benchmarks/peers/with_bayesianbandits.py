"""bayesianbandits: a Bayesian regression per arm, with its policy ThompsonSampling.

Per user, and with effects of users, the noise is the declared one (NormalRegressor). Pooled, it is
learned (NormalInverseGammaRegressor), since nobody declares how much users differ; it is the
declared one at first, on average.

Yes/no rewards: a Beta law per arm (DirichletClassifier) per user, whose context never changes;
logistic regression (BayesianGLM) where users are pooled.
"""

from typing import Any

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

from cocobandits.environments.base import FloatVector
from peers.task import Task

# Two is the smallest whole number at which the prior of a variance b / (a - 1) has a mean.
_NOISE_SHAPE = 2.0
# Newton steps; the default of five does not always converge.
_MOST_STEPS = 50


class AgentBandit:
    """An agent with one learner per arm."""

    def __init__(self, task: Task, seed: int) -> None:
        self.is_counting = task.is_yes_no and task.sharing == "per user"
        self.middle = 0.0 if task.is_yes_no else task.middle
        reward_function = _chance_of_yes if self.is_counting else None
        arms = [Arm(arm, reward_function, _learner(task)) for arm in range(task.num_arms)]
        self.agent = ContextualAgent(arms, ThompsonSampling(), random_seed=seed)

    def choose(self, features: FloatVector) -> int:
        """Draw from the posterior of every arm, and take the best."""
        [arm] = self.agent.pull(self._row(features))
        return int(arm)

    def learn(self, features: FloatVector, arm: int, reward: float) -> None:
        """Update the learner of the arm."""
        chosen = self.agent.select_for_update(arm)
        chosen.update(self._row(features), np.array([reward - self.middle]))

    def _row(self, features: FloatVector) -> np.ndarray[Any, np.dtype[np.float64]]:
        # A DirichletClassifier has a law for each value of its one column: here, the intercept.
        return features[None, :1] if self.is_counting else features[None]


def build(task: Task, seed: int) -> AgentBandit:
    """Make the bandit for a task."""
    return AgentBandit(task, seed)


def _learner(task: Task) -> Any:
    if task.is_yes_no:
        if task.sharing == "per user":
            return DirichletClassifier({0: 1.0, 1: 1.0})
        steps = LaplaceApproximator(n_iter=_MOST_STEPS)
        return BayesianGLM(task.logit_deviation**-2, link="logit", approximator=steps)
    if task.sharing == "pooled":
        variance = task.noise**2
        return NormalInverseGammaRegressor(
            lam=variance / task.deviation**2, a=_NOISE_SHAPE, b=(_NOISE_SHAPE - 1) * variance
        )
    return NormalRegressor(alpha=task.deviation**-2, beta=task.noise**-2)


def _chance_of_yes(
    chances: np.ndarray[Any, np.dtype[np.float64]],
) -> np.ndarray[Any, np.dtype[np.float64]]:
    return chances[..., 1]
