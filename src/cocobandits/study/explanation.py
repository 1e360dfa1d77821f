"""What a study says about its beliefs, per arm and user.

The variance of a user's next reward has three parts, by the law of total variance over particles
(paper, "Sources of Uncertainty"): the noise of a reward, what is not known about this person, and
what is not known about the population.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.inference.weights import average
from cocobandits.models.base import Belief, Hyperparameters
from cocobandits.policies.base import Readings
from cocobandits.policies.coco.acquisition import Motives
from cocobandits.rewards import STANDARD_RANGE
from cocobandits.study.context import FEATURE_RANGE
from cocobandits.study.design import StudyDesign
from cocobandits.types import ArmValues, ArmVector, FloatVector, LogWeights, Scalar, Values

_INTERVAL = (0.05, 0.95)


class Uncertainty(NamedTuple):
    """Variance of the next reward of an arm, by where it comes from, in squared reward units."""

    noise: float
    person: float
    population: float

    @property
    def total(self) -> float:
        """The sum of the three."""
        return self.noise + self.person + self.population


class Motive(NamedTuple):
    """What an arm costs and tells, and what its probability is for.

    Attributes:
        regret: reward that pulling the arm now is expected to lose.
        about_person: nats that its reward would tell about this user's best arm.
        about_population: nats that its reward would tell about the population.
        for_reward: its probability if only reward counted.
        for_person: what is added, or taken away, in order to know this user.
        for_population: what is added, or taken away, for later users; the three sum to the
            probability.
    """

    regret: float
    about_person: float
    about_population: float
    for_reward: float
    for_person: float
    for_population: float

    @property
    def probability(self) -> float:
        """The sum of the three parts."""
        return self.for_reward + self.for_person + self.for_population


class ArmExplanation(NamedTuple):
    """What is believed about one arm for one user; `interval` covers 90 % of the belief.

    The best arm is the one with the highest mean, or the lowest if lower rewards are better, of all
    arms. `motive` is None for policies that do not weigh information against reward, and for arms
    that are not active.
    """

    mean: float
    interval: tuple[float, float]
    best_probability: float
    uncertainty: Uncertainty
    motive: Motive | None


@dataclass(frozen=True)
class Explanation:
    """What is believed about every arm for one user. Prints as a table."""

    user: str
    arms: dict[str, ArmExplanation]

    def __str__(self) -> str:
        return "\n".join(self._beliefs() + self._motives())

    def _beliefs(self) -> list[str]:
        width = self._width()
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
        return lines

    def _motives(self) -> list[str]:
        """List what each active arm would cost and tell, and what its probability is made of."""
        if all(told.motive is None for told in self.arms.values()):
            return []
        width = self._width()
        lines = [
            "",
            f"{'':<{width}}  {'expected':>8}  {'nats told about':>19}  "
            f"{'probability of being chosen':>39}",
            f"{'arm':<{width}}  {'loss':>8}  {'user':>8}  {'population':>9}  "
            f"{'total':>7}  {'reward':>7} + {'user':>7} + {'later users':>11}",
        ]
        for arm, told in self.arms.items():
            motive = told.motive
            if motive is None:
                continue
            lines.append(
                f"{arm:<{width}}  {motive.regret:8.3g}  {motive.about_person:8.3g}  "
                f"{motive.about_population:9.3g}  {motive.probability:7.3f}  "
                f"{motive.for_reward:7.3f} + {motive.for_person:7.3f} + "
                f"{motive.for_population:11.3f}"
            )
        return lines

    def _width(self) -> int:
        return max(3, *(len(arm) for arm in self.arms))


class _Summary(NamedTuple):
    noise_variance: Scalar
    mean: ArmVector
    variance: ArmVector
    best_probability: ArmVector
    values: Values
    cumulative: ArmValues


def read_summary(belief: Belief) -> _Summary:
    """Read off a belief what an explanation needs."""
    values = belief.values()
    return _Summary(
        jnp.asarray(belief.reward_noise, dtype=float) ** 2,
        belief.mean(),
        belief.variance(),
        belief.best_probability(),
        values,
        belief.cumulative(values),
    )


def explain(
    user: str, design: StudyDesign, readings: Readings, motives: dict[int, Motive]
) -> Explanation:
    """Average over particles and split the variance into its three parts."""
    weights, summary = readings.log_weights, readings.values
    mean = average(weights, summary.mean)
    person = average(weights, summary.variance)
    noise = average(weights, _noise_variance(design, summary))
    population = average(weights, (summary.mean - mean[None, :]) ** 2)
    best = average(weights, summary.best_probability)
    values, cumulative = _average_cumulative(weights, summary)
    unit = design.scale**2
    arms = {}
    for number, arm in enumerate(design.arms):
        ends = np.interp(_INTERVAL, cumulative[number], values)
        low, high = sorted(float(design.restore(float(end))) for end in ends)
        arms[arm] = ArmExplanation(
            float(design.restore(float(mean[number]))),
            (low, high),
            float(best[number]),
            Uncertainty(
                float(noise[number]) / unit,
                float(person[number]) / unit,
                float(population[number]) / unit,
            ),
            motives.get(number),
        )
    return Explanation(user, arms)


def _noise_variance(design: StudyDesign, summary: _Summary) -> Float[Array, "particle arm"]:
    """Tell each arm's variance of a reward around its mean, particle by particle."""
    if design.rewards.kind == "bernoulli":
        # E[(high - μ)(μ - low)]: rewards are one end of the range or the other.
        low, high = STANDARD_RANGE
        return (high - summary.mean) * (summary.mean - low) - summary.variance
    return jnp.broadcast_to(summary.noise_variance[:, None], summary.mean.shape)


def _average_cumulative(
    weights: LogWeights, summary: _Summary
) -> tuple[FloatVector, np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    """Average the particles' distribution functions, at values they share."""
    values, cumulative = np.asarray(summary.values), np.asarray(summary.cumulative)
    if np.all(values == values[:1]):
        return values[0], np.asarray(average(weights, summary.cumulative))
    # Particles with a noise of their own lay out their own values.
    common = np.sort(values.ravel())[:: len(values)]
    shared = np.stack(
        [
            [np.interp(common, places, row) for row in rows]
            for places, rows in zip(values, cumulative, strict=True)
        ]
    )
    return common, np.asarray(average(weights, jnp.asarray(shared)))


def motives_of(
    design: StudyDesign, arms: tuple[int, ...], motives: Motives | None
) -> dict[int, Motive]:
    """Bring what speaks for some arms to units of reward; nothing if the policy cannot tell."""
    if motives is None:
        return {}
    columns = np.stack([np.asarray(part) for part in motives], axis=1).tolist()
    return {
        arm: Motive(regret / design.scale, *others)
        for arm, (regret, *others) in zip(arms, columns, strict=True)
    }


def summarise_hyperparameters(
    design: StudyDesign, readings: Readings | None
) -> dict[str, tuple[float, float, float]]:
    """Weigh the particles' hyperparameters, in the study's units."""
    if readings is None:
        return {}
    learned: Hyperparameters = readings.values
    columns = {}
    if learned.arm_lengthscale is not None:
        columns["arm lengthscale"] = learned.arm_lengthscale / design.scale
    if learned.context_lengthscales is not None:
        for number, feature in enumerate(design.features):
            low, high = feature.range or FEATURE_RANGE
            unit = (high - low) / (FEATURE_RANGE[1] - FEATURE_RANGE[0])
            columns[f"{feature.name} lengthscale"] = learned.context_lengthscales[:, number] * unit
    if learned.amplitude is not None:
        columns["amplitude"] = learned.amplitude
    if learned.noise is not None:
        columns["noise"] = learned.noise / design.scale
    weights = np.exp(np.asarray(readings.log_weights))
    return {name: _quantiles(np.asarray(column), weights) for name, column in columns.items()}


def _quantiles(values: FloatVector, weights: FloatVector) -> tuple[float, float, float]:
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / np.sum(weights)
    low, middle, high = values[order][np.searchsorted(reached, (_INTERVAL[0], 0.5, _INTERVAL[1]))]
    return float(low), float(middle), float(high)
