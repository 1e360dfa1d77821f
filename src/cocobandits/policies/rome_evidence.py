"""What a user's rewards say in RoME: sums per user and candidate, how they change, how they add up.

A user's contexts stay, so all pseudo-rewards of a user and candidate lie along one φ, and the two
numbers Σσ̃² and Σσ̃²R̃ are all of them. They are kept apart by source: the rewards of control, of
which every candidate has a share, and the candidate's own rewards.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from cocobandits.models.base import Statistics
from cocobandits.policies.rome_algebra import (
    Advantage,
    Coefficients,
    Contribution,
    Square,
    contribution,
)
from cocobandits.policies.rome_baseline import Bags, Terms
from cocobandits.types import ArmVector, Number, Scalar

Candidates = Float[Array, " candidate"]
BySource = Float[Array, "source candidate"]
PerUser = Float[Array, " user"]


class Law(NamedTuple):
    """How an arm is drawn: the candidate, then control or not given the candidate."""

    candidate: Candidates
    control: Candidates

    def given_control(self) -> Candidates:
        """Compute P(ā | control is played)."""
        joint = self.candidate * self.control
        return joint / jnp.sum(joint)


class RewardChange(NamedTuple):
    """What became of a user's rewards, arm by arm.

    Where there are more than before, the new ones are what the sum grew by, all of the same size;
    elsewhere old ones were taken back or corrected.
    """

    added: ArmVector
    added_total: ArmVector
    ratio: ArmVector  # of the old rewards that are left
    correction_per_reward: ArmVector  # of those there were, in the sum of those left

    @classmethod
    def between(cls, before: Statistics, after: Statistics) -> "RewardChange":
        """Compare two histories of the same user."""
        added = jnp.maximum(after.count - before.count, 0.0)
        is_more = added > 0
        safe_count = jnp.maximum(before.count, 1.0)
        ratio = jnp.where(is_more, 1.0, after.count / safe_count)
        correction = jnp.where(is_more, 0.0, after.total - ratio * before.total)
        added_total = jnp.where(is_more, after.total - before.total, 0.0)
        return cls(added, added_total, ratio, correction / safe_count)

    def retained(self, evidence: Contribution) -> Contribution:
        """Scale what old rewards said, and move Σσ̃²R̃ by their average slope where they changed."""
        ratio, correction = _by_source(self.ratio), _by_source(self.correction_per_reward)
        pull = ratio * evidence.pull + correction * evidence.slope
        return Contribution(ratio * evidence.weight, pull, ratio * evidence.slope)

    def gained(self, evidence: Contribution, law: Law, predicted: ArmVector) -> Contribution:
        """Add the pseudo-rewards of new rewards; of control's, each candidate has its share."""
        own, shared = jnp.ones_like(law.control), law.given_control()
        number = _by_source(self.added) * jnp.stack([shared, own])
        average = self.added_total / jnp.maximum(self.added, 1.0)
        new = contribution(
            jnp.stack([own < 1, own > 0]),
            jnp.stack([law.control] * 2),
            jnp.stack([predicted[1:] - predicted[0]] * 2),
            _by_source(average - predicted),
        )
        pairs = zip(evidence, new, strict=True)
        return Contribution(*(old + number * each for old, each in pairs))

    def bagged(self, bags: Bags, is_in: Bool[Array, "bag arm"]) -> Bags:
        """Scale what bags hold of the user, and add the new rewards to the bags they are in."""
        totals = self.ratio[None] * bags.totals + self.correction_per_reward[None] * bags.counts
        counts = self.ratio[None] * bags.counts
        return Bags(counts + is_in * self.added[None], totals + is_in * self.added_total[None])


def advantages(
    terms: Terms,
    evidence: Contribution,
    user: Int[Array, ""],
    precisions: tuple[Number, Number],
) -> tuple[Candidates, Candidates, Scalar]:
    """Compute mean and variance of a user's φ_aᵀθ under N(V⁻¹b, V⁻¹), and log det V̄ - log det Λ.

    Candidates have coefficients of their own, so V̄ and Λ have a block for each.
    """
    weight, pull = (jnp.sum(field, axis=1) for field in evidence[:2])

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


def _by_source(per_arm: ArmVector) -> BySource:
    """Lay out numbers of arms by source: control's for all candidates, then their own."""
    return jnp.stack([jnp.broadcast_to(per_arm[0], per_arm[1:].shape), per_arm[1:]])
