"""A linear mixed model: arm means on a line, and each user's deviation (paper, Env. 3 and 4).

The paper says of neither environment how often the coefficients θ are drawn. In `lmm` they are
drawn once per run: that is the model MTTS is made for. In `lmm-misspecified` they are drawn for
every user, from two modes: drawn once, a Gaussian prior would soon forget that it was wrong, and
MTTS could not fail as reported. The oracle knows θ where it is shared, and its law where it is not.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cocobandits.environments.base import NOTHING_SHARED, Cohort, Environment, FloatVector
from cocobandits.environments.recruitment import Recruitment
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.rewards import Gaussian

SLOPES = (0.9, -1.1, 0.2)
COEFFICIENT_DEVIATION = 0.5
USER_DEVIATION = 0.05
# Φ(x) as arm × coefficient × (1, x): the first coefficient is of ρ_a x, the second a constant.
DESIGN = tuple(((0.0, slope), (1.0, 0.0)) for slope in SLOPES)

ThetaScope = Literal["run", "user"]


@dataclass
class LmmEnvironment(Environment):
    """μ_i = Φ(x_i) θ + δ_i, Φ(x) = (ρ_a x, 1), δ_i ~ N(0, 0.05² I).

    Attributes:
        modes: means of θ, the same for both coefficients; each as likely as the others.
        theta_scope: whether θ is drawn once per run or for every user.
    """

    name: str
    modes: tuple[float, ...]
    theta_scope: ThetaScope
    recruitment: Recruitment
    label: str = ""
    about: str = ""

    arms = ("arm-1", "arm-2", "arm-3")
    context = {"x": (-1.0, 1.0)}  # noqa: RUF012 - a declaration, never changed
    # In lmm-misspecified 16 users in a thousand have an arm beyond the range, and such rewards.
    rewards = Gaussian(-3.0, 3.0, noise=0.1, limits=(-12.0, 12.0))

    @property
    def mixed_model(self) -> dict[str, Any]:  # type: ignore[override]
        """The model that MTTS assumes: the truth, or the moments of the coefficients over modes."""
        return {
            "design": DESIGN,
            "coefficient_mean": float(np.mean(self.modes)),
            "coefficient_deviation": float(np.sqrt(np.var(self.modes) + COEFFICIENT_DEVIATION**2)),
            "user_deviation": USER_DEVIATION,
        }

    def draw_shared(self, generator: np.random.Generator) -> FloatVector:
        """Draw θ, if all users share it."""
        return self._draw_theta(generator, 1)[0] if self.theta_scope == "run" else NOTHING_SHARED

    def draw_users(
        self, generator: np.random.Generator, num_users: int, shared: FloatVector = NOTHING_SHARED
    ) -> Cohort:
        """Draw contexts, coefficients where they differ, and deviations."""
        x = generator.uniform(-1.0, 1.0, num_users)
        if self.theta_scope == "run":
            theta = np.tile(shared, (num_users, 1))
        else:
            theta = self._draw_theta(generator, num_users)
        deviations = generator.normal(0.0, USER_DEVIATION, (num_users, len(self.arms)))
        means = x[:, None] * np.outer(theta[:, 0], SLOPES) + theta[:, 1:2] + deviations
        return Cohort([{"x": float(value)} for value in x], means)

    def population(self, shared: FloatVector = NOTHING_SHARED) -> ConditionalMixture:
        """One component around the line of θ, or one per mode with θ integrated out."""
        design = np.array(DESIGN)
        own = np.multiply.outer(USER_DEVIATION * np.eye(len(self.arms)), (1.0, 0.0))
        if self.theta_scope == "run":
            centres, factor = [shared], own
        else:
            centres = [np.full(2, mode) for mode in self.modes]
            factor = np.concatenate([COEFFICIENT_DEVIATION * design, own], axis=1)
        return ConditionalMixture.from_arrays(
            logits=[[0.0, 0.0]] * len(centres),
            means=[np.einsum("acx,c->ax", design, centre) for centre in centres],
            factors=[factor] * len(centres),
        )

    def _draw_theta(self, generator: np.random.Generator, num_draws: int) -> np.ndarray:
        modes = np.array(self.modes)[generator.integers(0, len(self.modes), num_draws)]
        return modes[:, None] + COEFFICIENT_DEVIATION * generator.normal(size=(num_draws, 2))


def matched() -> LmmEnvironment:
    """Build Env. 3: a Gaussian θ for the whole run, 50 users at once, 5 steps each."""
    plan = Recruitment.all_at_once(num_users=50, steps_per_user=5)
    about = "the paper's: a linear mixed model, with coefficients drawn once per run"
    return LmmEnvironment("lmm", (1.0,), "run", plan, "LMM: Gaussian latent", about)


def misspecified() -> LmmEnvironment:
    """Build Env. 4: θ of every user from two modes, 20 batches of 5 users, 5 steps each."""
    plan = Recruitment.batches(num_batches=20, batch_size=5, steps_per_user=5)
    about = "the paper's: coefficients of every user from one of two modes"
    label = "LMM: non-Gaussian latent"
    return LmmEnvironment("lmm-misspecified", (-1.0, 1.0), "user", plan, label, about)
