"""Arms that move together within a component: one common factor, or none.

    μ = m + F z + s ε,    z ~ N(0, 1),  ε ~ N(0, I)

Given z the arms are independent, and z itself is conditioned in closed form: with the precision
w = n/(σ² + n s²) of each arm's average around its mean, and e that average's distance,

    z | rewards ~ N(b/P, 1/P),    P = 1 + Σ_a w F²,   b = Σ_a w e F

so evidence and posterior are exact. What is read off a belief is summed over places of z.
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.populations.mixture.arms import GaussianArms
from cocobandits.types import Number
from cocobandits.users.statistics import Statistics

# Places of z, and how many deviations they reach.
_PLACES = 17
_REACH = 3.5


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FactorArms:
    """Components whose arms share a factor, or none: `source` has length one or zero."""

    arms: GaussianArms
    loadings: Float[Array, "component arm source"]

    def condition(self, statistics: Statistics) -> tuple["FactorArms", Float[Array, " component"]]:
        """Condition on rewards; also return the log of their density under each component."""
        given, fit = self.arms.condition(statistics)
        if not self.loadings.shape[2]:
            return FactorArms(given, self.loadings), fit
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
        if not self.loadings.shape[2]:
            return log_weights, self.arms
        places, shares = _places()
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


def num_places(rank: int) -> int:
    """Count the places that a component's factor is read at."""
    return _PLACES if rank else 1


def _places() -> tuple[Float[Array, "place source"], Float[Array, " place"]]:
    places = np.linspace(-_REACH, _REACH, _PLACES)
    logs = -(places**2) / 2
    return jnp.asarray(places[:, None]), jnp.asarray(logs - np.log(np.sum(np.exp(logs))))
