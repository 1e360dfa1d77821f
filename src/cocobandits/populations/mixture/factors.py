"""Arms that move together within a component, by one common factor.

    μ = m + F z + s ε,    z ~ N(0, 1),  ε ~ N(0, I)

Given z the arms are independent, and z itself is conditioned in closed form: with the precision
w = n/(σ² + n s²) of each arm's average around its mean, and e that average's distance,

    z | rewards ~ N(b/P, 1/P),    P = 1 + Σ_a w F²,   b = Σ_a w e F

so evidence and posterior are exact. Predictions and means are closed too; who is best is summed
over places of z.
"""

import math
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from cocobandits.numerics.reward_grid import RewardGrid
from cocobandits.populations.mixture.arms import (
    ComponentArms,
    ComponentValues,
    GaussianArms,
    Shares,
    regress,
)
from cocobandits.types import ArmValues, Number, Rewards, Values
from cocobandits.users.statistics import Statistics

# Places of z that who is best is averaged over, by Gauss and Hermite's rule.
_PLACES = 9


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FactorArms:
    """Components whose arms share a factor; `source` has length one."""

    arms: GaussianArms
    loadings: Float[Array, "*each component arm source"]

    @property
    def support(self) -> tuple[float, float]:
        """Anywhere."""
        return self.arms.support

    @property
    def num_places(self) -> int:
        """Count the places of the factor."""
        return _PLACES

    @property
    def marginal(self) -> GaussianArms:
        """Each arm by itself."""
        return replace(self.arms, spread=self.variance())

    def mean(self) -> ComponentArms:
        """Compute E[μ_a]."""
        return self.arms.location

    def variance(self) -> ComponentArms:
        """Add s² and F²."""
        return self.arms.spread + jnp.sum(self.loadings**2, axis=2)

    def noise_variance(self) -> Float[Array, " component"]:
        """Square the deviation."""
        return self.arms.noise_variance()

    def cumulative(self, values: Values) -> ComponentValues:
        """Compute P(μ_a ≤ value)."""
        return self.marginal.cumulative(values)

    def predictive(self, shares: Shares, rewards: Rewards) -> ArmValues:
        """Add up the densities."""
        return self.marginal.predictive(shares, rewards)

    def mean_and_reward(self, shares: Shares, rewards: Rewards) -> Float[Array, "other arm value"]:
        """A reward moves all arms that share the factor, and reweights all components."""
        shared = jnp.einsum("car,cbr->cab", self.loadings, self.loadings)
        own = self.arms.spread[:, :, None] * jnp.eye(shared.shape[1], dtype=shared.dtype)[None]
        return regress(self.arms, own + shared, shares, rewards)

    def next_rewards(self, shares: Shares, grid: RewardGrid) -> Rewards:
        """Lay out rewards over all that is expected of each arm."""
        return self.marginal.next_rewards(shares, grid)

    def among(self, is_eligible: Bool[Array, " arm"]) -> "FactorArms":
        """Move the other arms far below, where they share nothing."""
        loadings = jnp.where(is_eligible[None, :, None], self.loadings, 0.0)
        return FactorArms(self.arms.among(is_eligible), loadings)

    def condition(self, statistics: Statistics) -> tuple["FactorArms", Float[Array, " component"]]:
        """Condition on rewards; also return the log of their density under each component."""
        given, fit = self.arms.condition(statistics)
        noise = self.arms.noise[:, None] ** 2
        count = statistics.count[None, :]
        weights = count / (noise + count * self.arms.spread)
        average = statistics.total / jnp.maximum(statistics.count, 1.0)
        gaps = average[None, :] - self.arms.location
        gain, centre, root = jax.vmap(_factor)(weights, gaps, self.loadings)
        # What is left of the prior in each arm, once its own rewards have been counted.
        share = (given.spread / self.arms.spread)[:, :, None] * self.loadings
        location = given.location + jnp.einsum("tar,tr->ta", share, centre)
        moved = GaussianArms(location, given.spread, given.noise)
        return FactorArms(moved, jnp.einsum("tar,trs->tas", share, root)), fit + gain

    def expanded(
        self, log_weights: Float[Array, " component"]
    ) -> tuple[Float[Array, " place"], GaussianArms]:
        """List every component at every place of its factor, with arms that are independent."""
        places, shares = (part.astype(self.loadings.dtype) for part in _places())
        moved = jnp.einsum("tar,pr->tpa", self.loadings, places)
        location = (self.arms.location[:, None, :] + moved).reshape(-1, moved.shape[2])
        spread, noise = (
            jnp.repeat(part, len(places), axis=0) for part in (self.arms.spread, self.arms.noise)
        )
        weights = log_weights[:, None] + shares[None, :]
        return weights.ravel(), GaussianArms(location, spread, noise)


def gaussian_rows(
    means: Float[Array, "user component arm"],
    factors: Float[Array, "user component arm source"] | None,
    spread: Float[Array, "component arm"],
    noise: Number,
    statistics: Statistics,
) -> tuple[Float[Array, "user component"], Float[Array, " user"]]:
    """Split the log-density of all users' rewards: what components explain, and what is left.

    The first is in the precision of the means, the second in double.
    """
    variance = jnp.asarray(noise) ** 2
    count, average = statistics.count, statistics.total / jnp.maximum(statistics.count, 1.0)
    scatter = jnp.sum(statistics.total_square - statistics.total * average, axis=1)
    constant = jnp.sum(count, axis=1) * jnp.log(2 * math.pi * variance) + scatter / variance
    variance = variance.astype(means.dtype)
    count, average = (part.astype(means.dtype)[:, None, :] for part in (count, average))
    stretch = 1 + count * (spread / variance)[None]
    weights, gaps = count / (variance * stretch), average - means
    fit = -jnp.sum(jnp.log(stretch) + weights * gaps**2, axis=2) / 2
    if factors is not None:
        gain, _, _ = jax.vmap(jax.vmap(_factor))(weights, gaps, factors)
        fit = fit + gain
    return fit, -constant / 2


def _factor(
    weights: Float[Array, " arm"], gaps: Float[Array, " arm"], loadings: Float[Array, "arm source"]
) -> tuple[Float[Array, ""], Float[Array, " source"], Float[Array, "source source"]]:
    """Compute what a factor adds to the log-density, and mean and root of the variance of z."""
    pull = (weights * gaps) @ loadings
    precision = loadings.T @ (weights[:, None] * loadings)
    inner = 1 + precision[0, 0]
    centre = pull / inner
    return (pull @ centre - jnp.log(inner)) / 2, centre, jax.lax.rsqrt(inner)[None, None]


def _places() -> tuple[Float[Array, "place source"], Float[Array, " place"]]:
    places, weights = np.polynomial.hermite_e.hermegauss(_PLACES)
    return jnp.asarray(places[:, None]), jnp.asarray(np.log(weights / np.sum(weights)))
