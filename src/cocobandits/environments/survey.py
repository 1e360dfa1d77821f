"""Several features of different kinds that say which hidden group somebody is likely in.

Age, motivation, sex and smoking shift the shares of three groups, each with a best arm of its own.
In `survey-missing` every value is missing with probability 0.3, whatever it is.
"""

import numpy as np

from cocobandits.environments.base import NOTHING_SHARED, Cohort, Environment, FloatVector
from cocobandits.environments.recruitment import Recruitment
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.rewards import Gaussian

MISSING_SHARE = 0.3
_SEXES = ["female", "male"]
_SPREAD = 0.2
# Terms: one, age, motivation, female, male, no smoker, smoker.
_LOGITS = np.array(
    [
        [0.0, 2.5, 0.0, 0.0, 0.8, 0.0, 0.0],
        [0.3, 0.0, 2.0, 0.0, 0.0, 0.0, -1.0],
        [0.0, -2.5, 0.0, 0.8, 0.0, 0.0, 1.0],
    ]
)
_CENTRES = np.array([[1.2, 0.2, -0.2, 0.5], [0.0, 1.2, 0.4, 0.5], [-0.2, 0.1, 1.2, 0.5]])


class SurveyEnvironment(Environment):
    """Arm means around the centre of a group whose share depends on four features."""

    arms = ("arm-1", "arm-2", "arm-3", "arm-4")
    context = {  # noqa: RUF012 - a declaration, never changed
        "age": (-1.0, 1.0),
        "motivation": (-1.0, 1.0),
        "sex": _SEXES,
        "smoker": bool,
    }
    rewards = Gaussian(-1.5, 2.5, noise=0.3, limits=(-12.0, 12.0))
    recruitment = Recruitment.batches(num_batches=30, batch_size=5, steps_per_user=6)

    def __init__(self, name: str, missing_share: float) -> None:
        self.name = name
        self.label, self.about = (
            "Four features",
            "four features of different kinds that predict the group",
        )
        if missing_share:
            gaps = f"{100 * missing_share:.0f} %"
            self.label += f", {gaps} missing"
            self.about = f"the same people, with {gaps} of the values missing"
        self.missing_share = missing_share

    def draw_users(
        self, generator: np.random.Generator, num_users: int, shared: FloatVector = NOTHING_SHARED
    ) -> Cohort:
        """Draw features, groups and arm means; then which values are missing."""
        del shared
        age = 2 * generator.beta(2.0, 3.0, num_users) - 1
        motivation = generator.uniform(-1.0, 1.0, num_users)
        is_male, is_smoker = (generator.uniform(size=num_users) < p for p in (0.5, 0.3))
        categories = [~is_male, is_male, ~is_smoker, is_smoker]
        terms = np.stack([np.ones(num_users), age, motivation, *categories], axis=1)
        logits = terms @ _LOGITS.T
        # The largest of logits with Gumbel noise is a draw from their softmax.
        group = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
        noise = generator.normal(0.0, _SPREAD, (num_users, len(self.arms)))
        # Drawn for every share, so that the same people come with and without gaps.
        is_given = generator.uniform(size=(num_users, 4)) >= self.missing_share
        contexts: list[dict[str, float | str | bool | None]] = [
            {
                name: value if is_known else None
                for name, value, is_known in zip(self.context, values, row, strict=True)
            }
            for values, row in zip(
                zip(
                    age.tolist(),
                    motivation.tolist(),
                    (_SEXES[number] for number in is_male.astype(int)),
                    is_smoker.tolist(),
                    strict=True,
                ),
                is_given,
                strict=True,
            )
        ]
        return Cohort(contexts, _CENTRES[group] + noise)

    def population(self, shared: FloatVector = NOTHING_SHARED) -> ConditionalMixture:
        """One component per group, given all features."""
        del shared
        first = np.eye(_LOGITS.shape[1])[0]
        factor = np.multiply.outer(_SPREAD * np.eye(len(self.arms)), first)
        return ConditionalMixture.from_arrays(
            logits=_LOGITS,
            means=np.multiply.outer(_CENTRES, first),
            factors=[factor] * len(_CENTRES),
        )
