"""What each component of a mixture believes about each arm: the Gaussian family.

A component here belongs to one particle, at one place of its common factor. Within it the arms are
independent, so a reward of one arm reweights the components and moves that arm alone. Owns the
contract of a family of arms; knows nothing of users or particles.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr
from jaxtyping import Array, Bool, Float

from cocobandits.populations.base import FAR_BELOW
from cocobandits.types import Values
from cocobandits.users.statistics import Statistics

ComponentArms = Float[Array, "component arm"]
ComponentValues = Float[Array, "component arm value"]

LEAST_VARIANCE = 1e-14
# Nodes on which the best of all arms is found, and how many deviations they reach. Against 10^6
# draws these are good to four digits.
_NUM_NODES, REACH = 32, 4.5


class Contest(NamedTuple):
    """Who is best within each component, and how good the best is."""

    best_probability: ComponentArms
    mean: Float[Array, " component"]
    variance: Float[Array, " component"]


@runtime_checkable
class Arms(Protocol):
    """Independent arms within each component."""

    @property
    def support(self) -> tuple[float, float]:
        """Where means can lie."""

    def mean(self) -> ComponentArms:
        """Compute E[μ_a]."""

    def variance(self) -> ComponentArms:
        """Compute Var(μ_a)."""

    def contest(self) -> Contest:
        """Integrate over the largest of all means."""

    def joint(self, shares: Float[Array, " component"], rewards: Values) -> ComponentValues:
        """Compute how likely, or how dense, a component and the next reward of every arm are."""

    def after(
        self, rewards: Values
    ) -> tuple[ComponentValues, Float[Array, "component arm #value"]]:
        """Compute mean and variance of every arm once its next reward is seen."""

    def cumulative(self, values: Values) -> ComponentValues:
        """Compute P(μ_a ≤ value)."""

    def condition(self, statistics: Statistics) -> tuple["Arms", Float[Array, " component"]]:
        """Condition on rewards; also return the log of their density under each component."""

    def among(self, is_eligible: Bool[Array, " arm"]) -> "Arms":
        """Put all other arms out of the contest."""

    def expanded(
        self, log_weights: Float[Array, " component"]
    ) -> tuple[Float[Array, " place"], "Arms"]:
        """List components within which arms are independent."""

    def noise_variance(self) -> Float[Array, " component"]:
        """Compute the variance of a reward around its arm mean, averaged over arms."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GaussianArms:
    """Normal arm means, and normal rewards around them."""

    location: Float[Array, "*each component arm"]
    spread: Float[Array, "*each component arm"]  # variances
    noise: Float[Array, "*each component"]  # standard deviation of a reward

    @property
    def support(self) -> tuple[float, float]:
        """Anywhere."""
        return -math.inf, math.inf

    def mean(self) -> ComponentArms:
        """Compute E[μ_a]."""
        return self.location

    def variance(self) -> ComponentArms:
        """Compute Var(μ_a)."""
        return self.spread

    def noise_variance(self) -> Float[Array, " component"]:
        """Square the deviation."""
        return self.noise**2

    def contest(self) -> Contest:
        """Integrate ∏ Φ_b(t) · φ_a(t)/Φ_a(t) over t.

        Below `low` some arm is almost surely better. What an arm of deviation v may still win
        lies within 2 · reach · v above it, so nodes whose distance grows in proportion to that
        from `low` suit narrow and wide arms alike: t = low + scale · sinh(u), u in even steps.
        """
        deviation = jnp.sqrt(jnp.maximum(self.spread, LEAST_VARIANCE))
        low = jnp.max(self.location - REACH * deviation, axis=1, keepdims=True)
        tops = self.location + REACH * deviation
        scale = jnp.min(jnp.where(tops >= low, deviation, jnp.inf), axis=1, keepdims=True)
        end = jnp.arcsinh((jnp.max(tops, axis=1, keepdims=True) - low) / scale)
        even = jnp.linspace(0.0, 1.0, _NUM_NODES, dtype=low.dtype)[None, :]
        points = low + scale * jnp.sinh(end * even)
        weights = scale * end * jnp.cosh(end * even)
        inverse = (1 / deviation)[:, :, None]
        distance = (points[:, None, :] - self.location[:, :, None]) * inverse
        below = _normal_cumulative(distance)
        hazard = inverse * jnp.exp(-(distance**2) / 2) / below
        return settle(points, hazard, jnp.prod(below, axis=1) * weights)

    def joint(self, shares: Float[Array, " component"], rewards: Values) -> ComponentValues:
        """Compute a density as wide as the belief and the noise together."""
        variance = self.spread + self.noise[:, None] ** 2
        # All that does not depend on the reward comes first: five times as fast.
        height = (shares[:, None] / jnp.sqrt(2 * math.pi * variance))[:, :, None]
        sharpness = (-0.5 / variance)[:, :, None]
        distance = rewards[None, None, :] - self.location[:, :, None]
        return height * jnp.exp(sharpness * distance**2)

    def after(
        self, rewards: Values
    ) -> tuple[ComponentValues, Float[Array, "component arm #value"]]:
        """Move the mean towards the reward, by the share of the variance that is not noise."""
        noise = self.noise[:, None] ** 2
        share = self.spread / (self.spread + noise)
        start = (1 - share) * self.location
        mean = start[:, :, None] + share[:, :, None] * rewards[None, None, :]
        return mean, (share * noise)[:, :, None]

    def cumulative(self, values: Values) -> ComponentValues:
        """Compute Φ((value - mean) / deviation)."""
        deviation = jnp.sqrt(jnp.maximum(self.spread, LEAST_VARIANCE))[:, :, None]
        return ndtr((values[None, None, :] - self.location[:, :, None]) / deviation)

    def condition(
        self, statistics: Statistics
    ) -> tuple["GaussianArms", Float[Array, " component"]]:
        """Weigh each arm's rewards against its own spread."""
        noise = self.noise[:, None] ** 2
        count, total = statistics.count[None, :], statistics.total[None, :]
        share = noise / (noise + count * self.spread)
        location = share * self.location + self.spread * share * total / noise
        log_evidence = gaussian_log_evidence(self.location, self.spread, self.noise, statistics)
        return GaussianArms(location, self.spread * share, self.noise), log_evidence

    def among(self, is_eligible: Bool[Array, " arm"]) -> "GaussianArms":
        """Move the other arms far below."""
        location = jnp.where(is_eligible, self.location, FAR_BELOW)
        return GaussianArms(location, self.spread, self.noise)

    def expanded(
        self, log_weights: Float[Array, " component"]
    ) -> tuple[Float[Array, " place"], "GaussianArms"]:
        """Return them as they are."""
        return log_weights, self


def gaussian_log_evidence(
    location: ComponentArms,
    spread: ComponentArms,
    noise: Float[Array, " component"],
    statistics: Statistics,
) -> Float[Array, " component"]:
    """Sum log p(rewards of an arm | component) over arms; an arm without rewards adds nothing."""
    variance = noise[:, None] ** 2
    count = statistics.count[None, :]
    average = (statistics.total / jnp.maximum(statistics.count, 1.0))[None, :]
    stretch = 1 + count * spread / variance
    misfit = count * (average - location) ** 2 / (variance * stretch)
    scatter = statistics.total_square[None, :] - statistics.total[None, :] * average
    constant = count * jnp.log(2 * math.pi * variance) + scatter / variance
    return -jnp.sum(jnp.log(stretch) + misfit + constant, axis=1) / 2


def settle(
    points: Float[Array, "component node"],
    hazard: ComponentValues,
    best: Float[Array, "component node"],
) -> Contest:
    """Sum over nodes at which the largest mean may be."""
    wins = jnp.einsum("tan,tn->ta", hazard, best)
    density = jnp.sum(hazard, axis=1) * best
    density = density / jnp.sum(density, axis=1, keepdims=True)
    mean = jnp.sum(points * density, axis=1)
    variance = jnp.sum((points - mean[:, None]) ** 2 * density, axis=1)
    return Contest(wins / jnp.sum(wins, axis=1, keepdims=True), mean, variance)


def _normal_cumulative(distance: Array) -> Array:
    # Not `ndtr`, whose tails cost three times as much and do not matter within the reach.
    return 0.5 + 0.5 * jax.lax.erf(distance / math.sqrt(2))
