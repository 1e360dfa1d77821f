"""Three diet plans, an age group that is seen and a metabolic type that is not (paper, figure 1).

Plan 2 suits a low metabolism and plan 3 a high one; the wrong one of the two does nothing. Plan 1
is (almost) never best, yet its reward lies near one for a low and near two for a high metabolism.
Young people mostly have a high metabolism and old people a low one; in middle age both are as
likely, and there plan 1 loses 1.0 on average where a guess between the others loses 1.25.

The paper shows its figure without numbers; those below were chosen to match its words.
"""

import numpy as np

from cocobandits.environments.base import NOTHING_SHARED, Cohort, Environment, FloatVector
from cocobandits.environments.recruitment import Recruitment
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.rewards import Gaussian

AGE_GROUPS = ("young", "middle-aged", "old")
METABOLIC_TYPES = ("low", "high")
_HIGH_METABOLISM = {"young": 0.9, "middle-aged": 0.5, "old": 0.1}
_MEANS = {"low": (1.0, 2.5, 0.0), "high": (2.0, 0.0, 2.5)}
_SPREADS = (0.1, 0.15, 0.15)


class DietEnvironment(Environment):
    """The paper's motivating example."""

    name = "diet"
    label = "Diet plans"
    about = "the diet example of `coco demo`"
    arms = ("plan-1", "plan-2", "plan-3")
    context = {"age": list(AGE_GROUPS)}  # noqa: RUF012 - a declaration, never changed
    rewards = Gaussian(-0.5, 3.5, noise=0.2)
    recruitment = Recruitment.batches(num_batches=20, batch_size=3, steps_per_user=4)

    def draw_users(
        self, generator: np.random.Generator, num_users: int, shared: FloatVector = NOTHING_SHARED
    ) -> Cohort:
        """Draw age groups, hidden metabolic types and arm means."""
        del shared
        ages = [AGE_GROUPS[number] for number in generator.integers(0, len(AGE_GROUPS), num_users)]
        shares = np.array([_HIGH_METABOLISM[age] for age in ages])
        is_high = generator.uniform(size=num_users) < shares
        centres = np.where(is_high[:, None], _MEANS["high"], _MEANS["low"])
        noise = generator.normal(size=(num_users, len(self.arms)))
        return Cohort([{"age": age} for age in ages], centres + np.array(_SPREADS) * noise)

    def population(self, shared: FloatVector = NOTHING_SHARED) -> ConditionalMixture:
        """One component per metabolic type, low first; its share depends on the age group."""
        del shared
        shares = np.array([_HIGH_METABOLISM[age] for age in AGE_GROUPS])
        # Terms: one, then a column per age group.
        logits = np.stack([np.zeros(4), np.concatenate([[0.0], np.log(shares / (1 - shares))])])
        first_term = np.eye(4)[0]
        means = np.array([_MEANS[kind] for kind in METABOLIC_TYPES])
        factor = np.multiply.outer(np.diag(_SPREADS), first_term)
        return ConditionalMixture.from_arrays(
            logits=logits,
            means=np.multiply.outer(means, first_term),
            factors=[factor, factor],
        )
