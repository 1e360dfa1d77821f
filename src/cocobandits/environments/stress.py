"""Populations that the paper does not have, to put a learner under stress.

Each is a Gaussian mixture by definition, so the declared truth is exact: a long upper tail, three
groups, a ring, and a spread that changes with the context.
"""

from dataclasses import dataclass

import numpy as np

from cocobandits.environments.base import NOTHING_SHARED, Cohort, Environment, FloatVector
from cocobandits.environments.recruitment import Recruitment
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.rewards import Gaussian


@dataclass
class PopulationEnvironment(Environment):
    """x ~ U(-1, 1); then μ from the mixture: a component j, and m_j(x) + F_j(x) z with z ~ N(0, I).

    Attributes:
        truth: the population, in the terms (1, x).
    """

    name: str
    truth: ConditionalMixture
    rewards: Gaussian
    label: str = ""
    about: str = ""

    arms = ("arm-1", "arm-2", "arm-3")
    context = {"x": (-1.0, 1.0)}  # noqa: RUF012 - a declaration, never changed
    recruitment = Recruitment.batches(num_batches=20, batch_size=5, steps_per_user=5)

    def draw_users(
        self, generator: np.random.Generator, num_users: int, shared: FloatVector = NOTHING_SHARED
    ) -> Cohort:
        """Draw contexts, hidden components and arm means."""
        del shared
        x = generator.uniform(-1.0, 1.0, num_users)
        terms = np.stack([np.ones(num_users), x], axis=1)
        # The largest of logits with Gumbel noise is a draw from their softmax.
        logits = terms @ np.array(self.truth.logits).T
        chosen = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
        means = np.einsum("nat,nt->na", np.array(self.truth.means)[chosen], terms)
        factors = np.einsum("nart,nt->nar", np.array(self.truth.factors)[chosen], terms)
        sources = generator.normal(size=(num_users, factors.shape[2]))
        return Cohort(
            [{"x": float(value)} for value in x], means + np.einsum("nar,nr->na", factors, sources)
        )

    def population(self, shared: FloatVector = NOTHING_SHARED) -> ConditionalMixture:
        """Return the mixture."""
        del shared
        return self.truth


def skewed() -> PopulationEnvironment:
    """Build a long upper tail of arm 1: eight components with weights that fall geometrically.

    Further out they lie further apart and spread more. The better arm 1 is for a user, the worse is
    arm 2, and the better, but more slowly, is arm 3.
    """
    number = np.arange(8)
    distance = 0.25 * (1.4**number - 1)
    gains = np.array([1.0, -0.4, 0.35])
    constants = np.array([-0.4, 0.4, 0.0]) + np.outer(distance, gains)
    spread = 0.05 + 0.1 * distance
    # One source moves users along the tail; two leave arms 2 and 3 a little off it.
    sources = np.stack([gains, [0.0, 0.5, 0.0], [0.0, 0.0, 0.5]], axis=1)
    return PopulationEnvironment(
        "stress-skewed",
        ConditionalMixture.from_arrays(
            logits=np.outer(number, [np.log(0.7), 0.1]),
            means=_constant(constants),
            factors=_constant(np.multiply.outer(spread, sources)),
        ),
        _rewards(-1.5, 3.0),
        "Stress: skewed",
        "one arm with a long upper tail",
    )


def groups() -> PopulationEnvironment:
    """Build three groups, each with a best arm of its own; the first gives way to the third."""
    centres = np.array([[1.2, 0.0, 0.6], [0.6, 1.2, 0.0], [0.0, 0.6, 1.2]])
    return PopulationEnvironment(
        "stress-groups",
        ConditionalMixture.from_arrays(
            logits=((0.0, -1.5), (0.3, 0.0), (0.0, 1.5)),
            means=_constant(centres),
            factors=[_constant(0.12 * np.eye(3))] * 3,
        ),
        _rewards(-1.0, 2.0),
        "Stress: three groups",
        "three groups, each with its own best arm",
    )


def ring() -> PopulationEnvironment:
    """Build a ring in the plane of arms 1 and 2, around a centre that moves with x.

    Its dense side turns from arm 2 to arm 1 as x grows. Arm 3 is about the same for everybody. One
    of the first two arms leaves two candidates for the other.
    """
    angles = 2 * np.pi * np.arange(16) / 16
    constants = np.stack([np.cos(angles), np.sin(angles), np.full(16, -0.4)], axis=1)
    slopes = np.tile([0.3, -0.3, 0.0], (16, 1))
    return PopulationEnvironment(
        "stress-ring",
        ConditionalMixture.from_arrays(
            logits=np.multiply.outer(np.cos(angles + np.pi / 4), (0.0, 2.0)),
            means=np.stack([constants, slopes], axis=2),
            factors=[_constant(0.1 * np.eye(3))] * 16,
        ),
        _rewards(-2.0, 2.0),
        "Stress: ring",
        "a ring in the plane of two arms",
    )


def heteroscedastic() -> PopulationEnvironment:
    """Build one Gaussian whose means cross in x, and whose spread grows with x."""
    means = [[[0.1, 0.6], [0.1, -0.6], [0.0, 0.1]]]
    factors = [
        [
            [[0.4, 0.35], [0.0, 0.0], [0.0, 0.0]],
            [[-0.2, -0.15], [0.3, 0.2], [0.0, 0.0]],
            [[0.1, 0.05], [0.0, 0.0], [0.2, 0.1]],
        ]
    ]
    return PopulationEnvironment(
        "stress-heteroscedastic",
        ConditionalMixture.from_arrays([[0.0, 0.0]], means, factors),
        _rewards(-2.5, 3.0),
        "Stress: uneven spread",
        "a spread that grows with the context",
    )


def _rewards(low: float, high: float) -> Gaussian:
    # Gaussian tails reach beyond any range; those rewards are possible too.
    return Gaussian(low, high, noise=0.1, limits=(-12.0, 12.0))


def _constant(values: np.ndarray) -> np.ndarray:
    """Add the axis of terms (1, x), without a slope."""
    return np.multiply.outer(values, (1.0, 0.0))
