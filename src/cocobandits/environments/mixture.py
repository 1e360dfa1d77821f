"""Two hidden kinds of users, whose shares and spread move with the context (paper, Env. 1)."""

import numpy as np

from cocobandits.environments.base import Cohort, Environment, Recruitment

_KIND_MEANS = np.array([[1.8, 1.0, -1.0], [1.0, 1.9, -1.8]])


class MixtureEnvironment(Environment):
    """P(μ | x) = v(x)·N(m₁, s(x)² I) + (1-v(x))·N(m₂, s(x)² I), v logistic, s(x) = 0.2 + 0.1 x."""

    name = "mixture"
    arms = ("arm-1", "arm-2", "arm-3")
    context = {"x": (-1.0, 1.0)}  # noqa: RUF012 - a declaration, never changed
    reward_range = (-2.0, 2.0)
    reward_noise = 0.1
    recruitment = Recruitment(num_batches=30, batch_size=5, steps_per_user=5)

    def draw_users(self, generator: np.random.Generator, num_users: int) -> Cohort:
        """Draw contexts, hidden kinds and arm means."""
        x = generator.uniform(-1.0, 1.0, num_users)
        is_second = generator.uniform(size=num_users) >= 1 / (1 + np.exp(-x))
        spread = 0.2 + 0.1 * x
        noise = generator.normal(size=(num_users, len(self.arms)))
        means = _KIND_MEANS[is_second.astype(int)] + spread[:, None] * noise
        return Cohort([{"x": float(value)} for value in x], means)
