"""What a study says about its beliefs: per arm and user, and about the population.

The variance of a user's next reward has three parts, by the law of total variance over particles
(paper, "Sources of Uncertainty"): the noise of a reward, what is not known about this person, and
what is not known about the population.
"""

import itertools
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.inference.weights import average
from cocobandits.models.base import Belief
from cocobandits.policies.base import Readings
from cocobandits.study.design import FloatVector, StudyDesign
from cocobandits.types import ArmValues, ArmVector, Values

_INTERVAL = (0.05, 0.95)
_NUM_BINS = 40


class Uncertainty(NamedTuple):
    """Variance of the next reward of an arm, by where it comes from, in squared reward units."""

    noise: float
    person: float
    population: float

    @property
    def total(self) -> float:
        """The sum of the three."""
        return self.noise + self.person + self.population


class ArmExplanation(NamedTuple):
    """What is believed about one arm for one user; `interval` covers 90 % of the belief."""

    mean: float
    interval: tuple[float, float]
    best_probability: float
    uncertainty: Uncertainty


@dataclass(frozen=True)
class Explanation:
    """What is believed about every arm for one user. Prints as a table."""

    user: str
    arms: dict[str, ArmExplanation]

    def __str__(self) -> str:
        width = max(3, *(len(arm) for arm in self.arms))
        head = f"{'arm':<{width}}  {'mean':>8}  {'90 % interval':>19}  {'P(best)':>7}"
        lines = [f"{head}  {'noise':>8}  {'person':>8}  {'population':>10}  {'total':>8}"]
        for arm, told in self.arms.items():
            low, high = told.interval
            noise, person, population = told.uncertainty
            lines.append(
                f"{arm:<{width}}  {told.mean:8.3g}  {low:8.3g} to {high:7.3g}  "
                f"{told.best_probability:7.3f}  {noise:8.3g}  {person:8.3g}  {population:10.3g}"
                f"  {told.uncertainty.total:8.3g}"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class Population:
    """Densities of arm means under the posterior mean population at one context, for plots.

    Attributes:
        edges: boundaries of the bins, in reward units.
        marginal: arm → density per bin.
        pairwise: (arm, arm) → density per square bin, first arm along the rows.
    """

    edges: FloatVector
    marginal: dict[str, FloatVector]
    pairwise: dict[tuple[str, str], np.ndarray[tuple[int, int], np.dtype[np.float64]]]


class _Summary(NamedTuple):
    mean: ArmVector
    variance: ArmVector
    best_probability: ArmVector
    values: Values
    cumulative: ArmValues


def read_summary(belief: Belief) -> _Summary:
    """Read off a belief what an explanation needs."""
    values = belief.values()
    return _Summary(
        belief.mean(),
        belief.variance(),
        belief.best_probability(),
        values,
        belief.cumulative(values),
    )


def explain(user: str, design: StudyDesign, readings: Readings) -> Explanation:
    """Average over particles and split the variance into its three parts."""
    weights, summary = readings.log_weights, readings.values
    mean = average(weights, summary.mean)
    person = average(weights, summary.variance)
    population = average(weights, (summary.mean - mean[None, :]) ** 2)
    best = average(weights, summary.best_probability)
    cumulative = np.asarray(average(weights, summary.cumulative))
    # The same for every particle: they depend on the user's rewards alone.
    values = np.asarray(summary.values[0])
    unit = design.scale**2
    arms = {}
    for number, arm in enumerate(design.arms):
        low, high = np.interp(_INTERVAL, cumulative[number], values)
        arms[arm] = ArmExplanation(
            float(design.restore(float(mean[number]))),
            (float(design.restore(low)), float(design.restore(high))),
            float(best[number]),
            Uncertainty(
                design.reward_noise**2,
                float(person[number]) / unit,
                float(population[number]) / unit,
            ),
        )
    return Explanation(user, arms)


def describe_population(
    design: StudyDesign, belief: Belief, mean_range: tuple[float, float]
) -> Population:
    """Turn a belief about somebody new into densities on bins over the range of arm means."""
    standard = jnp.linspace(*mean_range, _NUM_BINS + 1)
    pairs = tuple(itertools.combinations(range(len(design.arms)), 2))
    marginals, joints = _read_bins(belief, standard, pairs)
    edges = np.asarray(design.restore(np.asarray(standard)))
    width = edges[1] - edges[0]
    names = design.arms
    return Population(
        edges,
        dict(zip(names, np.asarray(marginals) / width, strict=True)),
        {
            (names[first], names[second]): np.asarray(joint) / width**2
            for (first, second), joint in zip(pairs, joints, strict=True)
        },
    )


@partial(jax.jit, static_argnames="pairs")
def _read_bins(
    belief: Belief, edges: Float[Array, " edge"], pairs: tuple[tuple[int, int], ...]
) -> tuple[Float[Array, "arm bin"], Float[Array, "pair bin bin"]]:
    joint = [belief.pair_probability(*pair, edges) for pair in pairs]
    return jnp.diff(belief.cumulative(edges), axis=1), jnp.stack(joint)
