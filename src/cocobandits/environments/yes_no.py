"""Rewards that are yes or no: two hidden groups, and four arms that suit them differently."""

import numpy as np

from cocobandits.environments.base import NOTHING_SHARED, Cohort, Environment, FloatVector
from cocobandits.environments.recruitment import Recruitment
from cocobandits.populations.known.beta_mixture import BetaMixture
from cocobandits.rewards import Bernoulli

# Probabilities of a yes, group × arm; and the earlier pulls they are worth: users differ a little.
_MEANS = np.array([[0.8, 0.2, 0.4, 0.5], [0.2, 0.8, 0.5, 0.4]])
_PULLS = 40.0
_LOGITS = np.array([[0.0, 1.0], [0.0, 0.0]])


class YesNoEnvironment(Environment):
    """A user's arm means are Beta laws around those of the group; the logit of the first is x."""

    name = "yes-no"
    label = "Yes or no"
    about = "four arms, two latent groups, yes/no rewards"
    arms = ("arm-1", "arm-2", "arm-3", "arm-4")
    context = {"x": (-1.0, 1.0)}  # noqa: RUF012 - a declaration, never changed
    rewards = Bernoulli()
    recruitment = Recruitment.batches(num_batches=30, batch_size=5, steps_per_user=10)

    def draw_users(
        self, generator: np.random.Generator, num_users: int, shared: FloatVector = NOTHING_SHARED
    ) -> Cohort:
        """Draw contexts, hidden groups and arm means."""
        del shared
        x = generator.uniform(-1.0, 1.0, num_users)
        is_second = generator.uniform(size=num_users) >= 1 / (1 + np.exp(-x))
        centres = _MEANS[is_second.astype(int)]
        means = generator.beta(_PULLS * centres, _PULLS * (1 - centres))
        return Cohort([{"x": float(value)} for value in x], means)

    def population(self, shared: FloatVector = NOTHING_SHARED) -> BetaMixture:
        """One Beta law per group and arm."""
        del shared
        return BetaMixture(_LOGITS, _PULLS * _MEANS, _PULLS * (1 - _MEANS))
