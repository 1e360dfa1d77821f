"""Two hidden kinds of users, whose shares and spread move with the context (paper, Env. 1)."""

import numpy as np

from cocobandits.environments.base import NOTHING_SHARED, Cohort, Environment, FloatVector
from cocobandits.environments.recruitment import Recruitment
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.rewards import Gaussian

_KIND_MEANS = np.array([[1.8, 1.0, -1.0], [1.0, 1.9, -1.8]])
_SPREAD = (0.2, 0.1)  # constant, and slope in x


class MixtureEnvironment(Environment):
    """P(μ | x) = v(x)·N(m₁, s(x)² I) + (1-v(x))·N(m₂, s(x)² I), v logistic, s(x) = 0.2 + 0.1 x."""

    name = "mixture"
    label = "Mixture of Gaussians"
    about = "the paper's: two latent kinds"
    arms = ("arm-1", "arm-2", "arm-3")
    context = {"x": (-1.0, 1.0)}  # noqa: RUF012 - a declaration, never changed
    # Three users in a thousand have an arm beyond the range; those rewards are possible too.
    rewards = Gaussian(-2.5, 2.5, noise=0.1, limits=(-12.0, 12.0))
    recruitment = Recruitment.batches(num_batches=30, batch_size=5, steps_per_user=5)

    def draw_users(
        self, generator: np.random.Generator, num_users: int, shared: FloatVector = NOTHING_SHARED
    ) -> Cohort:
        """Draw contexts, hidden kinds and arm means."""
        del shared
        x = generator.uniform(-1.0, 1.0, num_users)
        is_second = generator.uniform(size=num_users) >= 1 / (1 + np.exp(-x))
        spread = _SPREAD[0] + _SPREAD[1] * x
        noise = generator.normal(size=(num_users, len(self.arms)))
        means = _KIND_MEANS[is_second.astype(int)] + spread[:, None] * noise
        return Cohort([{"x": float(value)} for value in x], means)

    def population(self, shared: FloatVector = NOTHING_SHARED) -> ConditionalMixture:
        """Two components; the logit of the first is x."""
        del shared
        factor = np.multiply.outer(np.eye(3), _SPREAD)
        return ConditionalMixture.from_arrays(
            logits=((0.0, 1.0), (0.0, 0.0)),
            means=np.stack([_KIND_MEANS, np.zeros_like(_KIND_MEANS)], axis=2),
            factors=[factor, factor],
        )
