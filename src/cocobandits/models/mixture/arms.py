"""What each component of a mixture believes about each arm: conjugate families.

A *type* is one component of one particle, at one place of its common factors. Within a type the
arms are independent, so a reward of one arm reweights the types and moves that arm alone. Owns the
two families, Gaussian and Beta; knows nothing of users or particles.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln, ndtr
from jaxtyping import Array, Float, Int

from cocobandits.models.base import Statistics
from cocobandits.types import ArmVector, RngKey, Values

TypeArms = Float[Array, "type arm"]
TypeValues = Float[Array, "type arm value"]

_LEAST_VARIANCE = 1e-14
# Nodes on which the best of all arms is found, and how many deviations they reach. Against 10^6
# draws these are good to four digits.
_NUM_NODES, _REACH = 32, 4.5
# The same in logits of chances, and how many times 1/α and 1/β further where few were seen.
_NUM_LOGITS, _TAIL = 64, 5.0
_FAR = 2.0
_NUM_ANGLES = 96


class Contest(NamedTuple):
    """Who is best within each type, and how good the best is."""

    best_probability: TypeArms
    mean: Float[Array, " type"]
    variance: Float[Array, " type"]


@runtime_checkable
class Arms(Protocol):
    """Independent arms within each type."""

    def mean(self) -> TypeArms:
        """Compute E[μ_a]."""

    def variance(self) -> TypeArms:
        """Compute Var(μ_a)."""

    def contest(self) -> Contest:
        """Integrate over the largest of all means."""

    def joint(self, shares: Float[Array, " type"], rewards: Values) -> TypeValues:
        """Compute how likely, or how dense, a type and the next reward of every arm are."""

    def after(self, rewards: Values) -> tuple[TypeValues, Float[Array, "type arm #value"]]:
        """Compute mean and variance of every arm once its next reward is seen."""

    def cumulative(self, values: Values) -> TypeValues:
        """Compute P(μ_a ≤ value)."""

    def condition(self, statistics: Statistics) -> tuple["Arms", Float[Array, " type"]]:
        """Learn from rewards; the second answer is the log of their density under each type."""

    def sample(self, rng_key: RngKey, types: Int[Array, " draw"]) -> Float[Array, "draw arm"]:
        """Draw arm means, given types."""

    def among(self, arms: Int[Array, " chosen"]) -> "Arms":
        """Keep some arms."""

    def expanded(self, log_weights: Float[Array, " type"]) -> tuple[Float[Array, " place"], "Arms"]:
        """List types within which arms are independent."""

    def noise_variance(self) -> Float[Array, " type"]:
        """Compute the variance of a reward around its arm mean, averaged over arms."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GaussianArms:
    """Normal arm means, and normal rewards around them."""

    location: Float[Array, "*each type arm"]
    spread: Float[Array, "*each type arm"]  # variances
    noise: Float[Array, "*each type"]  # standard deviation of a reward

    def mean(self) -> TypeArms:
        """Compute E[μ_a]."""
        return self.location

    def variance(self) -> TypeArms:
        """Compute Var(μ_a)."""
        return self.spread

    def noise_variance(self) -> Float[Array, " type"]:
        """Square the deviation."""
        return self.noise**2

    def contest(self) -> Contest:
        """Integrate ∏ Φ_b(t) · φ_a(t)/Φ_a(t) over t.

        Below `low` some arm is almost surely better. What an arm of deviation v may still win
        lies within 2 · reach · v above it, so nodes whose distance grows in proportion to that
        from `low` suit narrow and wide arms alike: t = low + scale · sinh(u), u in even steps.
        """
        deviation = jnp.sqrt(jnp.maximum(self.spread, _LEAST_VARIANCE))
        low = jnp.max(self.location - _REACH * deviation, axis=1, keepdims=True)
        tops = self.location + _REACH * deviation
        scale = jnp.min(jnp.where(tops >= low, deviation, jnp.inf), axis=1, keepdims=True)
        end = jnp.arcsinh((jnp.max(tops, axis=1, keepdims=True) - low) / scale)
        even = jnp.linspace(0.0, 1.0, _NUM_NODES, dtype=low.dtype)[None, :]
        points = low + scale * jnp.sinh(end * even)
        weights = scale * end * jnp.cosh(end * even)
        inverse = (1 / deviation)[:, :, None]
        distance = (points[:, None, :] - self.location[:, :, None]) * inverse
        below = _normal_cumulative(distance)
        hazard = inverse * jnp.exp(-(distance**2) / 2) / below
        return _settle(points, hazard, jnp.prod(below, axis=1) * weights)

    def joint(self, shares: Float[Array, " type"], rewards: Values) -> TypeValues:
        """Compute a density as wide as the belief and the noise together."""
        variance = self.spread + self.noise[:, None] ** 2
        # All that does not depend on the reward comes first: five times as fast.
        height = (shares[:, None] / jnp.sqrt(2 * math.pi * variance))[:, :, None]
        sharpness = (-0.5 / variance)[:, :, None]
        distance = rewards[None, None, :] - self.location[:, :, None]
        return height * jnp.exp(sharpness * distance**2)

    def after(self, rewards: Values) -> tuple[TypeValues, Float[Array, "type arm #value"]]:
        """Move the mean towards the reward, by the share of the variance that is not noise."""
        noise = self.noise[:, None] ** 2
        share = self.spread / (self.spread + noise)
        start = (1 - share) * self.location
        mean = start[:, :, None] + share[:, :, None] * rewards[None, None, :]
        return mean, (share * noise)[:, :, None]

    def cumulative(self, values: Values) -> TypeValues:
        """Compute Φ((value - mean) / deviation)."""
        deviation = jnp.sqrt(jnp.maximum(self.spread, _LEAST_VARIANCE))[:, :, None]
        return ndtr((values[None, None, :] - self.location[:, :, None]) / deviation)

    def condition(self, statistics: Statistics) -> tuple["GaussianArms", Float[Array, " type"]]:
        """Weigh each arm's rewards against its own spread."""
        noise = self.noise[:, None] ** 2
        count, total = statistics.count[None, :], statistics.total[None, :]
        share = noise / (noise + count * self.spread)
        location = share * self.location + self.spread * share * total / noise
        log_evidence = gaussian_log_evidence(self.location, self.spread, self.noise, statistics)
        return GaussianArms(location, self.spread * share, self.noise), log_evidence

    def sample(self, rng_key: RngKey, types: Int[Array, " draw"]) -> Float[Array, "draw arm"]:
        """Draw every arm by itself."""
        normals = jax.random.normal(rng_key, (len(types), self.location.shape[1]))
        return self.location[types] + jnp.sqrt(self.spread)[types] * normals

    def among(self, arms: Int[Array, " chosen"]) -> "GaussianArms":
        """Keep some columns."""
        return GaussianArms(self.location[:, arms], self.spread[:, arms], self.noise)

    def expanded(
        self, log_weights: Float[Array, " type"]
    ) -> tuple[Float[Array, " place"], "GaussianArms"]:
        """Return them as they are."""
        return log_weights, self


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BetaArms:
    """Beta-distributed chances of success; a reward is the top or the bottom of the range."""

    successes: Float[Array, "*each type arm"]  # α
    failures: Float[Array, "*each type arm"]  # β
    range: tuple[float, float] = field(metadata={"static": True})

    @property
    def width(self) -> float:
        """From failure to success, in units of reward."""
        return self.range[1] - self.range[0]

    def mean(self) -> TypeArms:
        """Compute E[μ_a]."""
        return self.range[0] + self.width * self.successes / (self.successes + self.failures)

    def variance(self) -> TypeArms:
        """Compute Var(μ_a)."""
        return self.width**2 * _beta_variance(self.successes, self.failures)

    def noise_variance(self) -> Float[Array, " type"]:
        """Average p(1 - p) over the belief, and over arms."""
        total = self.successes + self.failures
        spread = self.successes * self.failures / (total * (total + 1))
        return self.width**2 * jnp.mean(spread, axis=1)

    def contest(self) -> Contest:
        """Integrate as for Gaussian arms, over the logit, in which all Beta laws are smooth.

        Distribution functions are summed up from the top, each step by values and slopes at both
        its ends, since the incomplete Beta function takes ten times as long.
        """
        alpha, beta = self.successes.astype(float), self.failures.astype(float)
        nodes = _logit_nodes(alpha, beta)
        speed, bend = nodes.speed[:, None, :], nodes.bend[:, None, :]
        density, slope = _beta_density(
            alpha[:, :, None], beta[:, :, None], nodes.logits[:, None, :]
        )
        mass, slope = density * speed, slope * speed**2 + density * bend
        ends = (mass[..., :-1] + mass[..., 1:]) / 2
        steps = ends + (slope[..., :-1] - slope[..., 1:]) / 12
        above = jnp.cumsum(steps[..., ::-1], axis=2)[..., ::-1]
        below = jnp.clip(1 - jnp.pad(above, ((0, 0), (0, 0), (0, 1))), _LEAST_VARIANCE, 1.0)
        points = self.range[0] + self.width * nodes.chances
        contest = _settle(points, mass / below, jnp.prod(below, axis=1))
        return jax.tree.map(lambda part: part.astype(self.successes.dtype), contest)

    def joint(self, shares: Float[Array, " type"], rewards: Values) -> TypeValues:
        """Compute the probability of failure or success."""
        chance = self.successes / (self.successes + self.failures)
        is_success = (rewards > sum(self.range) / 2)[None, None, :]
        outcome = jnp.where(is_success, chance[:, :, None], 1 - chance[:, :, None])
        return shares[:, None, None] * outcome

    def after(self, rewards: Values) -> tuple[TypeValues, TypeValues]:
        """Count one more success or failure."""
        success = (rewards > sum(self.range) / 2).astype(self.successes.dtype)[None, None, :]
        alpha = self.successes[:, :, None] + success
        beta = self.failures[:, :, None] + 1 - success
        mean = self.range[0] + self.width * alpha / (alpha + beta)
        return mean, self.width**2 * _beta_variance(alpha, beta)

    def cumulative(self, values: Values) -> TypeValues:
        """Read the summed masses between the nodes."""
        chances, mass = self._masses()
        places = self.range[0] + self.width * chances
        reached = jnp.cumsum(mass, axis=2) - mass / 2

        def read(row: Float[Array, " node"]) -> Values:
            return jnp.interp(values, places, row, left=0.0, right=1.0)

        return jax.vmap(jax.vmap(read))(reached)

    def condition(self, statistics: Statistics) -> tuple["BetaArms", Float[Array, " type"]]:
        """Count successes and failures."""
        successes, failures = count_outcomes(statistics, self.range)
        log_evidence = beta_log_evidence(self.successes, self.failures, successes, failures)
        return (
            BetaArms(
                self.successes + successes[None, :], self.failures + failures[None, :], self.range
            ),
            log_evidence,
        )

    def sample(self, rng_key: RngKey, types: Int[Array, " draw"]) -> Float[Array, "draw arm"]:
        """Draw every arm by itself."""
        chances = jax.random.beta(rng_key, self.successes[types], self.failures[types])
        return self.range[0] + self.width * chances

    def among(self, arms: Int[Array, " chosen"]) -> "BetaArms":
        """Keep some columns."""
        return BetaArms(self.successes[:, arms], self.failures[:, arms], self.range)

    def expanded(
        self, log_weights: Float[Array, " type"]
    ) -> tuple[Float[Array, " place"], "BetaArms"]:
        """Return them as they are."""
        return log_weights, self

    def _masses(self) -> tuple[Values, TypeValues]:
        chances = _chances()
        logs = (self.successes - 0.5)[:, :, None] * jnp.log(chances)[None, None, :]
        logs += (self.failures - 0.5)[:, :, None] * jnp.log1p(-chances)[None, None, :]
        return chances, jax.nn.softmax(logs, axis=2)


def gaussian_log_evidence(
    location: TypeArms,
    spread: TypeArms,
    noise: Float[Array, " type"],
    statistics: Statistics,
) -> Float[Array, " type"]:
    """Sum log p(rewards of an arm | type) over arms; an arm without rewards adds nothing."""
    variance = noise[:, None] ** 2
    count = statistics.count[None, :]
    average = (statistics.total / jnp.maximum(statistics.count, 1.0))[None, :]
    stretch = 1 + count * spread / variance
    misfit = count * (average - location) ** 2 / (variance * stretch)
    scatter = statistics.total_square[None, :] - statistics.total[None, :] * average
    constant = count * jnp.log(2 * math.pi * variance) + scatter / variance
    return -jnp.sum(jnp.log(stretch) + misfit + constant, axis=1) / 2


def beta_log_evidence(
    alpha: TypeArms, beta: TypeArms, successes: ArmVector, failures: ArmVector
) -> Float[Array, " type"]:
    """Sum log B(α + s, β + f) - log B(α, β) over arms."""
    total = alpha + beta
    return jnp.sum(
        log_rising(alpha, successes[None, :])
        + log_rising(beta, failures[None, :])
        - log_rising(total, (successes + failures)[None, :]),
        axis=1,
    )


def log_rising(base: Array, steps: Array) -> Array:
    """Compute log Γ(base + steps) - log Γ(base), to eight digits.

    By Stirling's series four steps further up, where it is good to that, and the product that leads
    back. Faster by an order than the library's functions, above all in the gradient.
    """
    return _stirling(base + steps) - _stirling(base)


def _stirling(value: Array) -> Array:
    climbed = value + 4
    inverse = 1 / climbed
    series = inverse * (1 / 12 - inverse**2 * (1 / 360 - inverse**2 / 1260))
    product = value * (value + 1) * (value + 2) * (value + 3)
    return (climbed - 0.5) * jnp.log(climbed) - climbed + series - jnp.log(product)


def count_outcomes(
    statistics: Statistics, reward_range: tuple[float, float]
) -> tuple[Float[Array, "*user arm"], Float[Array, "*user arm"]]:
    """Turn sums of rewards at the two ends of the range into numbers of successes and failures."""
    low, high = reward_range
    successes = (statistics.total - low * statistics.count) / (high - low)
    return successes, statistics.count - successes


def _settle(
    points: Float[Array, "type node"], hazard: TypeValues, best: Float[Array, "type node"]
) -> Contest:
    wins = jnp.einsum("tan,tn->ta", hazard, best)
    density = jnp.sum(hazard, axis=1) * best
    density = density / jnp.sum(density, axis=1, keepdims=True)
    mean = jnp.sum(points * density, axis=1)
    variance = jnp.sum((points - mean[:, None]) ** 2 * density, axis=1)
    return Contest(wins / jnp.sum(wins, axis=1, keepdims=True), mean, variance)


def _normal_cumulative(distance: Array) -> Array:
    # Not `ndtr`, whose tails cost three times as much and do not matter within the reach.
    return 0.5 + 0.5 * jax.lax.erf(distance / math.sqrt(2))


class _LogitNodes(NamedTuple):
    """Nodes for chances: logits, their first and second differences, and what chances are there."""

    logits: Float[Array, "type node"]
    speed: Float[Array, "type node"]
    bend: Float[Array, "type node"]
    chances: Float[Array, "type node"]


def _logit_nodes(alpha: TypeArms, beta: TypeArms) -> _LogitNodes:
    """Lay out nodes as for Gaussian arms, further where the tails e^(α·logit) are long."""
    centre = _logit_mean(alpha) - _logit_mean(beta)
    deviation = jnp.sqrt(_logit_variance(alpha) + _logit_variance(beta))
    tops = centre + _REACH * deviation + _TAIL / beta
    low = jnp.max(centre - _REACH * deviation - _TAIL / alpha, axis=1, keepdims=True)
    scale = jnp.min(jnp.where(tops >= low, deviation, jnp.inf), axis=1, keepdims=True)
    step = jnp.arcsinh((jnp.max(tops, axis=1, keepdims=True) - low) / scale) / (_NUM_LOGITS - 1)
    number = jnp.arange(_NUM_LOGITS, dtype=float)[None, :]
    logits = low + scale * jnp.sinh(step * number)
    # Where nodes are far apart, chances go from none to all between two of them.
    halfway = low + scale * jnp.sinh(step * (jnp.arange(_NUM_LOGITS + 1)[None, :] - 0.5))
    gaps = jnp.diff(halfway, axis=1)
    averages = jnp.diff(jax.nn.softplus(halfway), axis=1) / gaps
    return _LogitNodes(
        logits,
        scale * step * jnp.cosh(step * number),
        scale * step**2 * jnp.sinh(step * number),
        jnp.where(gaps > _FAR, averages, jax.nn.sigmoid(logits)),
    )


def _beta_density(alpha: Array, beta: Array, logits: Array) -> tuple[Array, Array]:
    """Compute the density of the logit of a Beta-distributed chance, and its slope."""
    norm = betaln(alpha, beta)
    density = jnp.exp(
        alpha * jax.nn.log_sigmoid(logits) + beta * jax.nn.log_sigmoid(-logits) - norm
    )
    return density, density * (alpha - (alpha + beta) * jax.nn.sigmoid(logits))


def _logit_mean(shape: Array) -> Array:
    """Compute ψ, to a tenth: nodes need no more."""
    return jnp.log(shape + 0.5) - 1 / shape


def _logit_variance(shape: Array) -> Array:
    """Compute ψ', to a fifth."""
    return 1 / shape**2 + 1 / (shape + 0.5)


def _beta_variance(alpha: Array, beta: Array) -> Array:
    total = alpha + beta
    return alpha * beta / (total**2 * (total + 1))


def _chances() -> Values:
    angles = (np.arange(_NUM_ANGLES) + 0.5) * np.pi / (2 * _NUM_ANGLES)
    return jnp.asarray(np.sin(angles) ** 2)
