"""The arithmetic of RoME: pseudo-rewards, what a user's coefficients tell, and how wide to explore.

Owns the formulas that hold whatever the blocks of θ are: for the policy, which keeps a user's
rewards as two numbers per arm, and for the authors' simulation, which has blocks of users and times
in one dense matrix. Knows neither users nor states.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import ndtr
from jaxtyping import Array, ArrayLike, Bool, Float, Real

from cocobandits.models.orthant import best_probability
from cocobandits.types import Number, Scalar

Square = Float[Array, "coefficient coefficient"]

# Below any deviation that rewards could tell from zero; keeps ratios finite.
_LEAST_DEVIATION = 1e-150
# Values at which each form's distribution function is tabulated, and how far out, in deviations.
_NUM_VALUES, _REACH = 257, 8.0
# Up to so many forms, who is the largest has a closed form.
_MOST_EXACT = 3


class Contribution(NamedTuple):
    """What rewards add to V and b along their φ: Σσ̃² and Σσ̃²R̃."""

    weight: Float[Array, "*each"]
    pull: Float[Array, "*each"]


class Advantage(NamedTuple):
    """A user's advantage at some features: mean, variance, and log det V̄ - log det Λ."""

    mean: Scalar
    variance: Scalar
    gain: Scalar


class Coefficients(NamedTuple):
    """What a user's advantages follow: Cθ under N(V⁻¹b, V⁻¹); C adds up the user's blocks of θ.

    `covariance` is V̄ = C V⁻¹ Cᵀ, and `prior_share` Λ = C V⁻¹ V₀ V⁻¹ Cᵀ, the part of it that is due
    to the prior.
    """

    mean: Float[Array, " coefficient"]
    covariance: Square
    prior_share: Square

    def advantage(
        self, features: Float[Array, " coefficient"], weight: Number = 0.0, pull: Number = 0.0
    ) -> Advantage:
        """Read the advantage, with further rewards of the user along the same features.

        These add w = Σσ̃² to V along x, and Σσ̃²R̃ to b. With a = xᵀV̄x that divides det V̄ by 1 + wa,
        and det Λ by its square. Without any rewards the gain is zero, and it never is less.
        """
        variance = features @ self.covariance @ features
        more = 1 + weight * variance
        sizes = (jnp.linalg.slogdet(each)[1] for each in (self.covariance, self.prior_share))
        return Advantage(
            (features @ self.mean + variance * pull) / more,
            variance / more,
            jnp.subtract(*sizes) + jnp.log1p(weight * variance),
        )


def contribution(
    is_candidate: Bool[Array, ""] | Bool[Array, "*each"],
    control: Float[Array, "*each"],
    advantage: Float[Array, "*each"],
    residual: Float[Array, "*each"],
) -> Contribution:
    """Weigh a pseudo-reward: σ̃² = π(1 - π), R̃ = f̂(ā) - f̂(0) + (R - f̂(A)) / (1[A = ā] - π).

    `control` is π, the probability of arm 0 given the candidate ā; `advantage` is f̂(ā) - f̂(0) and
    `residual` R - f̂(A). Multiplied out, nothing is divided: π may be zero or one.
    """
    weight = control * (1 - control)
    slope = jnp.where(is_candidate, control, control - 1)
    return Contribution(weight, weight * advantage + slope * residual)


def exploration(
    num_groups: Real[ArrayLike, ""], gain: Number, scale: Number, error: Number, floor: Number
) -> Scalar:
    """Compute β = v √(2 log(2K(K + 1)/δ) + gain) + ζ max(1, (log K)^¾).

    K is the number of users or of times, whichever is larger, and the gain that of the user who is
    served (`Coefficients.advantage`); v, δ and ζ are `scale`, `error` and `floor`.
    """
    groups = jnp.maximum(jnp.asarray(num_groups, dtype=float), 1.0)
    confidence = jnp.sqrt(2 * jnp.log(2 * groups * (groups + 1) / error) + gain)
    return jnp.asarray(scale * confidence + floor * jnp.maximum(1.0, jnp.log(groups) ** 0.75))


def control_probability(
    mean: Float[Array, "*each"], deviation: Float[Array, "*each"], limits: tuple[Number, Number]
) -> Float[Array, "*each"]:
    """Compute P(φᵀθ̃ ≤ 0), kept within the limits."""
    return jnp.clip(ndtr(-mean / jnp.maximum(deviation, _LEAST_DEVIATION)), *limits)


def largest_probability(
    mean: Float[Array, " form"], deviation: Float[Array, " form"]
) -> Float[Array, " form"]:
    """Compute P(form a is the largest) for independent Gaussian forms.

    Beyond three it is ∫ Π_{b≠a} F_b dF_a by the trapezoid rule, on values that are dense around
    every form: good to 2e-5, and quick to compile for any number of forms.
    """
    if len(mean) == 1:
        return jnp.ones(1)
    if len(mean) <= _MOST_EXACT:
        return best_probability(mean, jnp.diag(deviation**2))
    steps = jnp.linspace(-_REACH, _REACH, _NUM_VALUES)
    safe = jnp.maximum(deviation, _LEAST_DEVIATION)
    values = jnp.sort((mean[:, None] + safe[:, None] * steps[None, :]).ravel())
    below = ndtr((values[None, :] - mean[:, None]) / safe[:, None])
    others = jnp.where(jnp.eye(len(mean), dtype=bool)[..., None], 1.0, below[None])
    product = jnp.prod(others, axis=1)
    wins = jnp.sum(jnp.diff(below) * (product[:, 1:] + product[:, :-1]) / 2, axis=1)
    return wins / jnp.sum(wins)
