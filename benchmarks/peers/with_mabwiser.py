"""MABWiser: LinTS, a ridge regression per arm whose coefficients are drawn.

LinTS draws from N(β, α² (XᵀX + λI)⁻¹). With α the noise and λ = (noise / deviation)² that is the
posterior of a Bayesian regression with normal coefficients. An arm without rewards, though, has
covariance α²λ I in MABWiser 2.7, not α²/λ I; both agree at λ = 1, so features are multiplied by
deviation / noise instead, which says the same.

Yes/no rewards: Beta-Bernoulli Thompson sampling per user, whose context never changes; LinTS on
0 and 1 (a linear probability model) where users are pooled, as MABWiser has no logistic one.
"""

import numpy as np
from mabwiser.mab import MAB, LearningPolicy

from cocobandits.environments.base import FloatVector
from peers.task import Task


class LinearBandit:
    """LinTS on rewards around the middle of their range."""

    def __init__(self, task: Task, seed: int) -> None:
        self.middle = task.middle
        self.scale = task.deviation / task.noise
        policy = LearningPolicy.LinTS(alpha=task.noise, l2_lambda=1.0)
        self.mab = MAB(list(range(task.num_arms)), policy, seed=seed)
        # It refuses to predict before it was fitted; fitted to nothing, it has its prior.
        self.mab.fit([], [], np.zeros((0, task.num_columns)))

    def choose(self, features: FloatVector) -> int:
        """Draw coefficients for every arm, and take the best."""
        return int(self.mab.predict(self.scale * features[None]))

    def learn(self, features: FloatVector, arm: int, reward: float) -> None:
        """Refit the arm."""
        self.mab.partial_fit([arm], [reward - self.middle], self.scale * features[None])


class CountingBandit:
    """Thompson sampling with Beta(1, 1) for each arm; features are not looked at."""

    def __init__(self, task: Task, seed: int) -> None:
        self.mab = MAB(list(range(task.num_arms)), LearningPolicy.ThompsonSampling(), seed=seed)
        self.mab.fit([], [])

    def choose(self, features: FloatVector) -> int:
        """Draw a chance for every arm, and take the best."""
        del features
        return int(self.mab.predict())

    def learn(self, features: FloatVector, arm: int, reward: float) -> None:
        """Count a yes or a no."""
        del features
        self.mab.partial_fit([arm], [reward])


def build(task: Task, seed: int) -> LinearBandit | CountingBandit:
    """Make the bandit for a task."""
    if task.is_yes_no and task.sharing == "per user":
        return CountingBandit(task, seed)
    return LinearBandit(task, seed)
