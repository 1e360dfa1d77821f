"""Arms that move together within a component: common factors, of rank 0, 1 or 2.

    μ = m + F z + s ε,    z ~ N(0, I),  ε ~ N(0, I)

Given z the arms are independent, and z itself is conditioned in closed form: with the precision
w = n/(σ² + n s²) of each arm's average around its mean, and e that average's distance,

    z | rewards ~ N(P⁻¹ b, P⁻¹),    P = I + Σ_a w F Fᵀ,   b = Σ_a w e F

so evidence and posterior are exact. What is read off a belief is summed over places of z.
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.models.base import Statistics
from cocobandits.models.mixture.arms import GaussianArms
from cocobandits.types import Number

# Places of z per factor, and how many deviations they reach.
_PLACES = {1: 17, 2: 9}
_REACH = 3.5


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FactorArms:
    """Components whose arms share factors."""

    arms: GaussianArms
    loadings: Float[Array, "type arm source"]

    def condition(self, statistics: Statistics) -> tuple["FactorArms", Float[Array, " type"]]:
        """Learn from rewards; the second answer is the log of their density under each type."""
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
        self, log_weights: Float[Array, " type"]
    ) -> tuple[Float[Array, " place"], GaussianArms]:
        """List every component at every place of its factors, with arms that are independent."""
        rank = self.loadings.shape[2]
        if not rank:
            return log_weights, self.arms
        places, shares = _places(rank)
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
    """Compute what factors add to the log-density, and mean and root of the variance of z."""
    pull = (weights * gaps) @ loadings
    precision = loadings.T @ (weights[:, None] * loadings)
    # Written out, since a call of a linear solver costs more than all of this.
    if loadings.shape[1] == 1:
        inner = 1 + precision[0, 0]
        centre = pull / inner
        root = jax.lax.rsqrt(inner)[None, None]
        return (pull @ centre - jnp.log(inner)) / 2, centre, root
    first, second, both = 1 + precision[0, 0], 1 + precision[1, 1], precision[0, 1]
    determinant = first * second - both**2
    centre = (
        jnp.stack([second * pull[0] - both * pull[1], first * pull[1] - both * pull[0]])
        / determinant
    )
    # The lower Cholesky factor of the inverse.
    top = jnp.sqrt(second / determinant)
    root = jnp.stack(
        [
            jnp.stack([top, jnp.zeros_like(top)]),
            jnp.stack([-both / (determinant * top), jax.lax.rsqrt(second)]),
        ]
    )
    return (pull @ centre - jnp.log(determinant)) / 2, centre, root


def num_places(rank: int) -> int:
    """Count the places that a component's factors are read at."""
    return _PLACES[rank] ** rank if rank else 1


def _places(rank: int) -> tuple[Float[Array, "place source"], Float[Array, " place"]]:
    steps = np.linspace(-_REACH, _REACH, _PLACES[rank])
    grid = np.stack([part.ravel() for part in np.meshgrid(*[steps] * rank)], axis=1)
    logs = -np.sum(grid**2, axis=1) / 2
    return jnp.asarray(grid), jnp.asarray(logs - np.log(np.sum(np.exp(logs))))
