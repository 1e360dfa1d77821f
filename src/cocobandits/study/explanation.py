"""What a study says about its beliefs, per arm and user.

The variance of a user's next reward has three parts, by the law of total variance over particles
(paper, "Sources of Uncertainty"): the noise of a reward, the uncertainty about this person, and the
uncertainty about the population.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cocobandits.policies.base import Readings
from cocobandits.policies.coco.acquisition import Rationales
from cocobandits.populations.base import Belief, Hyperparameters
from cocobandits.rewards import STANDARD_RANGE
from cocobandits.study.context import FEATURE_RANGE
from cocobandits.study.design import StudyDesign
from cocobandits.study.events import ArmStatus
from cocobandits.types import FloatVector

FloatTable = np.ndarray[tuple[int, int], np.dtype[np.float64]]

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


class Rationale(NamedTuple):
    """Cost and information of an arm, and what its probability is for.

    Attributes:
        regret: reward that pulling the arm now is expected to lose.
        about_person: information in its reward about this user's best arm, in nats.
        about_population: information in its reward about the population, in nats.
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
    arms, also of those that are suspended or withdrawn: `status` says which are. `rationale` is
    None for policies that do not weigh information against reward, and for arms that are not
    active.
    """

    mean: float
    interval: tuple[float, float]
    best_probability: float
    uncertainty: Uncertainty
    rationale: Rationale | None
    status: ArmStatus = "active"


@dataclass(frozen=True)
class Explanation:
    """What is believed about every arm for one user. Prints as a table that marks inactive arms."""

    user: str
    arms: dict[str, ArmExplanation]

    def __str__(self) -> str:
        return "\n".join(self._beliefs() + self._rationales())

    def _beliefs(self) -> list[str]:
        width = self._width()
        head = f"{'arm':<{width}}  {'mean':>8}  {'90 % interval':>19}  {'P(best)':>7}"
        lines = [f"{head}  {'noise':>8}  {'person':>8}  {'population':>10}  {'total':>8}"]
        for arm, belief in self.arms.items():
            low, high = belief.interval
            noise, person, population = belief.uncertainty
            mark = "" if belief.status == "active" else f"  {belief.status}"
            lines.append(
                f"{arm:<{width}}  {belief.mean:8.3g}  {low:8.3g} to {high:7.3g}  "
                f"{belief.best_probability:7.3f}  {noise:8.3g}  {person:8.3g}  {population:10.3g}"
                f"  {belief.uncertainty.total:8.3g}{mark}"
            )
        return lines

    def _rationales(self) -> list[str]:
        """List the cost and the information of active arms, and the parts of their probability."""
        if all(belief.rationale is None for belief in self.arms.values()):
            return []
        width = self._width()
        lines = [
            "",
            f"{'':<{width}}  {'expected':>8}  {'information (nats)':>19}  "
            f"{'probability of being chosen':>39}",
            f"{'arm':<{width}}  {'loss':>8}  {'user':>8}  {'population':>9}  "
            f"{'total':>7}  {'reward':>7} + {'user':>7} + {'later users':>11}",
        ]
        for arm, belief in self.arms.items():
            rationale = belief.rationale
            if rationale is None:
                continue
            lines.append(
                f"{arm:<{width}}  {rationale.regret:8.3g}  {rationale.about_person:8.3g}  "
                f"{rationale.about_population:9.3g}  {rationale.probability:7.3f}  "
                f"{rationale.for_reward:7.3f} + {rationale.for_person:7.3f} + "
                f"{rationale.for_population:11.3f}"
            )
        return lines

    def _width(self) -> int:
        return max(3, *(len(arm) for arm in self.arms))


class _Summary(NamedTuple):
    """Of one particle as JAX computes it, and then of all of them in NumPy."""

    noise_variance: Any
    mean: Any
    variance: Any
    best_probability: Any
    values: Any
    cumulative: Any


def read_summary(belief: Belief) -> _Summary:
    """Compute the numbers of an explanation from a belief."""
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
    user: str,
    design: StudyDesign,
    readings: Readings,
    rationales: dict[int, Rationale],
    statuses: Mapping[str, ArmStatus] | None = None,
) -> Explanation:
    """Average over particles and split the variance into its three parts.

    Without statuses, all arms are active.
    """
    # NumPy's: every small function of JAX is compiled.
    weights = _normalised(np.asarray(readings.log_weights))
    summary = _Summary(*map(np.asarray, readings.values))
    mean = weights @ summary.mean
    person = weights @ summary.variance
    noise = weights @ _noise_variance(design, summary)
    population = weights @ (summary.mean - mean) ** 2
    sources = np.stack([noise, person, population], axis=1) / design.rewards.scale**2
    best = weights @ summary.best_probability
    values, cumulative = _average_cumulative(weights, summary)
    arms = {}
    for number, arm in enumerate(design.arms):
        ends = np.interp(_INTERVAL, cumulative[number], values)
        low, high = sorted(float(design.rewards.restore(float(end))) for end in ends)
        arms[arm] = ArmExplanation(
            float(design.rewards.restore(float(mean[number]))),
            (low, high),
            float(best[number]),
            Uncertainty(*sources[number].tolist()),
            rationales.get(number),
            "active" if statuses is None else statuses[arm],
        )
    return Explanation(user, arms)


def _noise_variance(design: StudyDesign, summary: _Summary) -> FloatTable:
    """Compute the variance of a reward around the mean of its arm, per particle."""
    if design.rewards.kind == "bernoulli":
        # E[(high - μ)(μ - low)]: rewards are one end of the range or the other.
        low, high = STANDARD_RANGE
        return (high - summary.mean) * (summary.mean - low) - summary.variance
    return np.broadcast_to(summary.noise_variance[:, None], summary.mean.shape)


def _average_cumulative(weights: FloatVector, summary: _Summary) -> tuple[FloatVector, FloatTable]:
    """Average the particles' distribution functions, at values they share."""
    values, cumulative = summary.values, summary.cumulative
    if np.all(values == values[:1]):
        return values[0], np.tensordot(weights, cumulative, axes=1)
    # Particles with a noise of their own lay out their own values.
    common = np.sort(values.ravel())[:: len(values)]
    shared = np.stack(
        [
            [np.interp(common, places, row) for row in rows]
            for places, rows in zip(values, cumulative, strict=True)
        ]
    )
    return common, np.tensordot(weights, shared, axes=1)


def _normalised(log_weights: FloatVector) -> FloatVector:
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def rationales_of(
    design: StudyDesign, arms: tuple[int, ...], rationales: Rationales | None
) -> dict[int, Rationale]:
    """Convert rationales to units of reward; nothing if the policy weighs no information."""
    if rationales is None:
        return {}
    columns = np.stack([np.asarray(part) for part in rationales], axis=1).tolist()
    return {
        arm: Rationale(regret / design.rewards.scale, *others)
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
        columns["arm lengthscale"] = learned.arm_lengthscale / design.rewards.scale
    if learned.context_lengthscales is not None:
        for number, feature in enumerate(design.features):
            low, high = feature.range or FEATURE_RANGE
            unit = (high - low) / (FEATURE_RANGE[1] - FEATURE_RANGE[0])
            columns[f"{feature.name} lengthscale"] = learned.context_lengthscales[:, number] * unit
    if learned.amplitude is not None:
        columns["amplitude"] = learned.amplitude
    if learned.noise is not None:
        columns["noise"] = learned.noise / design.rewards.scale
    weights = np.exp(np.asarray(readings.log_weights))
    return {name: _quantiles(np.asarray(column), weights) for name, column in columns.items()}


def _quantiles(values: FloatVector, weights: FloatVector) -> tuple[float, float, float]:
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / np.sum(weights)
    low, middle, high = values[order][np.searchsorted(reached, (_INTERVAL[0], 0.5, _INTERVAL[1]))]
    return float(low), float(middle), float(high)
