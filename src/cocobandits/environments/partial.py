"""Arm means linear in four features, of which one is seen (paper, Env. 2)."""

import numpy as np

from cocobandits.environments.base import NOTHING_SHARED, Cohort, Environment, FloatVector
from cocobandits.environments.recruitment import Recruitment
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.rewards import Gaussian

# Row a: weights of the seen feature, the hidden continuous one, the hidden binary one, and one.
_WEIGHTS = np.array(
    [
        [0.6, 0.1, 1.0, -0.9],
        [0.3, 0.3, -1.0, 0.9],
        [0.1, -0.2, -0.3, 0.1],
    ]
)
_HIDDEN_MEAN, _HIDDEN_DEVIATION = 0.5, 0.1


class PartialEnvironment(Environment):
    """μ = W (x, c, d, 1) with c ~ N(0.5, 0.1²) and d ~ Bernoulli(logistic(x)), both hidden."""

    name = "partial"
    label = "Partially observed context"
    about = "the paper's: four features, of which one is seen"
    arms = ("arm-1", "arm-2", "arm-3")
    context = {"x": (-1.0, 1.0)}  # noqa: RUF012 - a declaration, never changed
    rewards = Gaussian(-2.0, 2.0, noise=0.1)
    recruitment = Recruitment.batches(num_batches=30, batch_size=5, steps_per_user=5)

    def draw_users(
        self, generator: np.random.Generator, num_users: int, shared: FloatVector = NOTHING_SHARED
    ) -> Cohort:
        """Draw all four features, and the arm means they imply."""
        del shared
        x = generator.uniform(-1.0, 1.0, num_users)
        continuous = generator.normal(_HIDDEN_MEAN, _HIDDEN_DEVIATION, num_users)
        binary = (generator.uniform(size=num_users) < 1 / (1 + np.exp(-x))).astype(float)
        features = np.stack([x, continuous, binary, np.ones(num_users)], axis=1)
        return Cohort([{"x": float(value)} for value in x], features @ _WEIGHTS.T)

    def population(self, shared: FloatVector = NOTHING_SHARED) -> ConditionalMixture:
        """One component per value of the binary feature, each a line in the continuous one."""
        del shared
        seen, continuous, binary, constant = _WEIGHTS.T
        means = [
            np.stack([constant + _HIDDEN_MEAN * continuous + value * binary, seen], axis=1)
            for value in (1.0, 0.0)
        ]
        factor = np.multiply.outer(_HIDDEN_DEVIATION * continuous[:, None], (1.0, 0.0))
        return ConditionalMixture.from_arrays(
            logits=((0.0, 1.0), (0.0, 0.0)),
            means=means,
            factors=[factor, factor],
        )
