"""The arithmetic of RoME (`rome.py`): the working model, pseudo-rewards, a user's coefficients, β.

Knows no settings and no state. Contexts stay, so all pseudo-rewards of a user and candidate lie
along one φ, and two numbers per user and candidate, Σσ̃² and Σσ̃²R̃, describe them all.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, ArrayLike, Bool, Float, Real

from cocobandits.numerics.orthant import best_probability
from cocobandits.policies.base import UserIndex
from cocobandits.types import ArmVector, Number, Scalar
from cocobandits.users.table import Added

Terms = Float[Array, "user term"]
Candidates = Float[Array, " candidate"]
Each = Float[Array, "*each"]
PerUser = Float[Array, " user"]
Square = Float[Array, "coefficient coefficient"]

# Below any deviation that matters; keeps ratios finite.
_LEAST_DEVIATION = 1e-150
# Values at which each form's distribution function is tabulated, and how far out, in deviations.
_NUM_VALUES, _REACH = 257, 8.0
# Up to this many forms, the probability of being the largest has a closed form.
_MOST_EXACT = 3


class Bags(NamedTuple):
    """How many rewards of a user and arm are in each bag, and their sum."""

    counts: Float[Array, "*user bag arm"]
    totals: Float[Array, "*user bag arm"]

    def with_reward(self, added: Added, is_in: Bool[Array, "bag arm"]) -> "Bags":
        """Add a reward to the bags that it is in."""
        chosen = is_in & (jnp.arange(is_in.shape[1]) == added.arm)[None]
        return Bags(self.counts + chosen, self.totals + chosen * added.reward)


def predict(terms: Terms, bags: Bags, ridge: Number, point: Float[Array, " term"]) -> ArmVector:
    """Compute f̂ of every arm at the terms of a context: the average of the bags' ridge regressions.

    The coefficients are a line for all arms and, for all but the first, the difference from it.
    """
    num_arms = bags.counts.shape[2]
    # Row a: which lines arm a is the sum of.
    lines = np.eye(num_arms)
    lines[:, 0] = 1.0
    squares = jnp.einsum("uba,ui,uj->baij", bags.counts, terms, terms)
    sums = jnp.einsum("uba,ui->bai", bags.totals, terms)
    size = num_arms * len(point)
    gram = jnp.einsum("ak,al,baij->bkilj", lines, lines, squares).reshape(-1, size, size)
    shift = jnp.einsum("ak,bai->bki", lines, sums).reshape(-1, size)

    def fit(gram: Square, shift: Float[Array, " coefficient"]) -> Float[Array, " coefficient"]:
        return jnp.linalg.solve(gram + ridge * jnp.eye(size), shift)

    coefficients = jnp.mean(jax.vmap(fit)(gram, shift), axis=0)
    return jnp.asarray(lines) @ (coefficients.reshape(num_arms, -1) @ point)


class Law(NamedTuple):
    """How an arm is drawn: the candidate, then control or not given the candidate."""

    candidate: Candidates
    control: Candidates


class Contribution(NamedTuple):
    """What rewards add to V and b along their φ: Σσ̃² and Σσ̃²R̃."""

    weight: Each
    pull: Each

    def with_reward(self, law: Law, predicted: ArmVector, added: Added) -> "Contribution":
        """Add the pseudo-reward of a user's reward; of control's, each candidate has P(ā | 0)."""
        is_control = added.arm == 0
        is_own = jnp.arange(len(law.control)) == added.arm - 1
        joint = law.candidate * law.control
        number = jnp.where(is_control, joint / jnp.sum(joint), is_own)
        advantage = predicted[1:] - predicted[0]
        residual = jnp.broadcast_to(added.reward - predicted[added.arm], advantage.shape)
        new = contribution(~is_control, law.control, advantage, residual)
        return jax.tree.map(lambda old, each: old + number * each, self, new)


def contribution(
    is_candidate: Bool[Array, "..."], control: Each, advantage: Each, residual: Each
) -> Contribution:
    """Weigh a pseudo-reward: σ̃² = π(1 - π), R̃ = f̂(ā) - f̂(0) + (R - f̂(A)) / (1[A = ā] - π).

    `control` is π, the probability of arm 0 given the candidate ā; `advantage` is f̂(ā) - f̂(0) and
    `residual` R - f̂(A). Multiplied out, nothing is divided: π may be zero or one.
    """
    weight = control * (1 - control)
    slope = jnp.where(is_candidate, control, control - 1)
    return Contribution(weight, weight * advantage + slope * residual)


class Coefficients(NamedTuple):
    """The law of a user's coefficients: Cθ under N(V⁻¹b, V⁻¹); C adds up the user's blocks of θ.

    `covariance` is V̄ = C V⁻¹ Cᵀ, and `prior_share` Λ = C V⁻¹ V₀ V⁻¹ Cᵀ, the part of it that is due
    to the prior.
    """

    mean: Float[Array, " coefficient"]
    covariance: Square
    prior_share: Square

    def advantage(
        self, features: Float[Array, " coefficient"], weight: Number = 0.0, pull: Number = 0.0
    ) -> tuple[Scalar, Scalar, Scalar]:
        """Compute mean and variance of the advantage, and the gain log det V̄ - log det Λ.

        Further rewards of the user along the same features may be given.
        These add w = Σσ̃² to V along x, and Σσ̃²R̃ to b. With a = xᵀV̄x that divides det V̄ by 1 + wa,
        and det Λ by its square. Without any rewards the gain is zero, and it never is less.
        """
        variance = features @ self.covariance @ features
        more = 1 + weight * variance
        sizes = (jnp.linalg.slogdet(each)[1] for each in (self.covariance, self.prior_share))
        return (
            (features @ self.mean + variance * pull) / more,
            variance / more,
            jnp.subtract(*sizes) + jnp.log1p(weight * variance),
        )


def advantages(
    terms: Terms, evidence: Contribution, user: UserIndex, precisions: tuple[Number, Number]
) -> tuple[Candidates, Candidates, Scalar]:
    """Compute mean and variance of a user's φ_aᵀθ under N(V⁻¹b, V⁻¹), and log det V̄ - log det Λ.

    Candidates have coefficients of their own, so V̄ and Λ have a block for each.
    """

    def advantage(weight: PerUser, pull: PerUser) -> tuple[Scalar, Scalar, Scalar]:
        coefficients = coefficients_without(terms, (weight, pull), user, precisions)
        return coefficients.advantage(terms[user], weight[user], pull[user])

    mean, variance, gain = jax.vmap(advantage, in_axes=1)(*evidence)
    return mean, variance, jnp.sum(gain)


def coefficients_without(
    terms: Terms, sums: tuple[PerUser, PerUser], user: UserIndex, precisions: tuple[Number, Number]
) -> Coefficients:
    """Compute the law of θ_shared + θ_i of one candidate, without user i's own rewards.

    User j has rewards along t_j alone, w_j = Σσ̃² and Σσ̃²R̃ in sum. With κ_j = w_j/(γᵤ +
    w_j|t_j|²), eliminating j's effects leaves γᵤ/(γᵤ + w_j|t_j|²) of both to the shared ones; their
    precision is then Q. The blocks of V⁻¹Cᵀ are Q⁻¹ for the shared effects, I/γᵤ for user i, who
    has no rewards, and -κ_j t_j t_jᵀ Q⁻¹ for every other user j. Nothing is subtracted, so no
    digits are lost where there are many rewards, or γᵤ is small.
    """
    (weight, pull), (shared_precision, user_precision) = sums, precisions
    is_other = jnp.arange(len(terms)) != user
    square = jnp.sum(terms**2, axis=1)
    precision_of_own = user_precision + weight * square
    left = is_other * user_precision / precision_of_own
    taken = is_other * weight / precision_of_own
    identity = jnp.eye(terms.shape[1])
    precision = shared_precision * identity + _weighted(weight * left, terms)
    shared = jnp.linalg.inv(precision)
    prior = shared_precision * identity + user_precision * _weighted(taken**2 * square, terms)
    return Coefficients(
        shared @ ((pull * left) @ terms),
        shared + identity / user_precision,
        shared @ prior @ shared + identity / user_precision,
    )


def _weighted(weight: PerUser, terms: Terms) -> Square:
    """Compute Σ_j weight_j t_j t_jᵀ."""
    return (terms * weight[:, None]).T @ terms


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


def control_probability(mean: Each, deviation: Each, limits: tuple[Number, Number]) -> Each:
    """Compute P(φᵀθ̃ ≤ 0), kept within the limits."""
    return jnp.clip(ndtr(-mean / jnp.maximum(deviation, _LEAST_DEVIATION)), *limits)


def largest_probability(mean: Candidates, deviation: Candidates) -> Candidates:
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
