"""Ten arms and four hidden groups: more arms than any user is served often enough to try.

Each group has its own centre in the space of arm means, drawn once per run, and users deviate from
it. One feature is seen; it says which groups are likelier, no more. Who does not learn the groups
has to try ten arms in ten steps.
"""

import numpy as np

from cocobandits.environments.base import NOTHING_SHARED, Cohort, Environment, FloatVector
from cocobandits.environments.recruitment import Recruitment
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.rewards import Gaussian

NUM_ARMS = 10
CENTRE_DEVIATION, USER_DEVIATION = 1.0, 0.25
# Logits of the groups in the terms (1, x).
_LOGITS = np.array([[0.0, -1.0], [0.3, -0.3], [-0.3, 0.3], [0.0, 1.0]])


class GroupsEnvironment(Environment):
    """μ = centre of the user's group + N(0, 0.25² I); centres are N(0, I), one draw per run."""

    name = "groups"
    label = "Ten arms, four groups"
    about = "ten arms and four latent groups, whose centres are drawn once per run"
    arms = tuple(f"arm-{number}" for number in range(1, NUM_ARMS + 1))
    context = {"x": (-1.0, 1.0)}  # noqa: RUF012 - a declaration, never changed
    rewards = Gaussian(-3.0, 3.0, noise=0.3, limits=(-12.0, 12.0))
    recruitment = Recruitment.batches(num_batches=40, batch_size=5, steps_per_user=10)

    def draw_shared(self, generator: np.random.Generator) -> FloatVector:
        """Draw the centres of all groups, one after another."""
        return CENTRE_DEVIATION * generator.normal(size=len(_LOGITS) * NUM_ARMS)

    def draw_users(
        self, generator: np.random.Generator, num_users: int, shared: FloatVector = NOTHING_SHARED
    ) -> Cohort:
        """Draw contexts, hidden groups and deviations."""
        x = generator.uniform(-1.0, 1.0, num_users)
        logits = _LOGITS[:, 0] + np.outer(x, _LOGITS[:, 1])
        # The largest of logits with Gumbel noise is a draw from their softmax.
        group = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
        deviations = generator.normal(0.0, USER_DEVIATION, (num_users, NUM_ARMS))
        means = shared.reshape(-1, NUM_ARMS)[group] + deviations
        return Cohort([{"x": float(value)} for value in x], means)

    def population(self, shared: FloatVector = NOTHING_SHARED) -> ConditionalMixture:
        """One component per group."""
        centres = shared.reshape(-1, NUM_ARMS)
        factor = np.multiply.outer(USER_DEVIATION * np.eye(NUM_ARMS), (1.0, 0.0))
        return ConditionalMixture.from_arrays(
            logits=_LOGITS,
            means=np.multiply.outer(centres, (1.0, 0.0)),
            factors=[factor] * len(centres),
        )
