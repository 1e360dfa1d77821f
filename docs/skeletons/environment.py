"""Two kinds of users with different favourites; the context says which kind is likelier.

Copy this file to `src/cocobandits/environments/<name>.py`. Replace this text by what the population
is, and where its formulas come from.
"""

import numpy as np

from cocobandits.environments.base import NOTHING_SHARED, Cohort, Environment, FloatVector
from cocobandits.environments.recruitment import Recruitment
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.rewards import Gaussian

# Kind × arm, in units of reward.
_KIND_MEANS = np.array([[7.0, 5.0, 2.0], [4.0, 6.0, 3.0]])
_SPREAD = 0.5
# Logit of the first kind: constant, and slope in x.
_LOGIT = (0.4, 1.5)


class TwoKindsEnvironment(Environment):
    """μ ~ N(m_kind, 0.5² I), P(first kind | x) = logistic(0.4 + 1.5 x)."""

    # The design of its studies. Continuous features lie on [-1, 1]; a list of names is a category.
    name = "two-kinds"
    label = "Two kinds of users"
    arms = ("walk", "swim", "rest")
    context = {"x": (-1.0, 1.0)}  # noqa: RUF012 - a declaration, never changed
    rewards = Gaussian(0.0, 10.0, noise=0.4)
    recruitment = Recruitment.batches(num_batches=4, batch_size=5, steps_per_user=3)

    # All chance comes from the generator that is given. What all users of a run have in common is
    # drawn by `draw_shared`, and comes as `shared`.
    def draw_users(
        self, generator: np.random.Generator, num_users: int, shared: FloatVector = NOTHING_SHARED
    ) -> Cohort:
        """Draw contexts, hidden kinds and arm means."""
        del shared
        x = generator.uniform(-1.0, 1.0, num_users)
        chance = 1 / (1 + np.exp(-(_LOGIT[0] + _LOGIT[1] * x)))
        is_second = generator.uniform(size=num_users) >= chance
        deviations = _SPREAD * generator.normal(size=(num_users, len(self.arms)))
        means = _KIND_MEANS[is_second.astype(int)] + deviations
        return Cohort([{"x": float(value)} for value in x], means)

    # The law of what `draw_users` draws, for those who know the truth: logits, means and
    # factors of the covariance, each linear in the terms (1, x).
    def population(self, shared: FloatVector = NOTHING_SHARED) -> ConditionalMixture:
        """Two components, whose weights alone move with x."""
        del shared
        factor = np.multiply.outer(_SPREAD * np.eye(len(self.arms)), (1.0, 0.0))
        return ConditionalMixture.from_arrays(
            logits=(_LOGIT, (0.0, 0.0)),
            means=np.stack([_KIND_MEANS, np.zeros_like(_KIND_MEANS)], axis=2),
            factors=[factor, factor],
        )
