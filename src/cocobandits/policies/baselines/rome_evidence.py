"""What a user's rewards say in RoME: sums per user and candidate, and how they add up.

A user's contexts stay, so all pseudo-rewards of a user and candidate lie along one φ, and the two
numbers Σσ̃² and Σσ̃²R̃ are all of them. Every candidate has a share of the rewards of control.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from cocobandits.models.histories import Added
from cocobandits.policies.baselines.rome_algebra import (
    Advantage,
    Coefficients,
    Contribution,
    Square,
    contribution,
)
from cocobandits.policies.baselines.rome_baseline import Terms
from cocobandits.types import ArmVector, Number, Scalar

Candidates = Float[Array, " candidate"]
PerUser = Float[Array, " user"]


class Law(NamedTuple):
    """How an arm is drawn: the candidate, then control or not given the candidate."""

    candidate: Candidates
    control: Candidates

    def given_control(self) -> Candidates:
        """Compute P(ā | control is played)."""
        joint = self.candidate * self.control
        return joint / jnp.sum(joint)


def gained(evidence: Contribution, law: Law, predicted: ArmVector, added: Added) -> Contribution:
    """Add the pseudo-reward of one reward; of control's, each candidate has its share."""
    is_control = added.arm == 0
    is_own = jnp.arange(len(law.control)) == added.arm - 1
    number = jnp.where(is_control, law.given_control(), is_own)
    advantage = predicted[1:] - predicted[0]
    residual = added.reward - predicted[added.arm]
    new = contribution(
        ~is_control, law.control, advantage, jnp.broadcast_to(residual, advantage.shape)
    )
    return jax.tree.map(lambda old, each: old + number * each, evidence, new)


def advantages(
    terms: Terms,
    evidence: Contribution,
    user: Int[Array, ""],
    precisions: tuple[Number, Number],
) -> tuple[Candidates, Candidates, Scalar]:
    """Compute mean and variance of a user's φ_aᵀθ under N(V⁻¹b, V⁻¹), and log det V̄ - log det Λ.

    Candidates have coefficients of their own, so V̄ and Λ have a block for each.
    """
    weight, pull = evidence

    def read(weight: PerUser, pull: PerUser) -> Advantage:
        coefficients = coefficients_without(terms, (weight, pull), user, precisions)
        return coefficients.advantage(terms[user], weight[user], pull[user])

    mean, variance, gain = jax.vmap(read, in_axes=1)(weight, pull)
    return mean, variance, jnp.sum(gain)


def coefficients_without(
    terms: Terms,
    sums: tuple[PerUser, PerUser],
    user: Int[Array, ""],
    precisions: tuple[Number, Number],
) -> Coefficients:
    """Read θ_shared + θ_i of one candidate off V and b, as they are without i's own rewards.

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
