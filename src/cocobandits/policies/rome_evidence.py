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
from cocobandits.policies.rome_algebra import Contribution, contribution, read_forms
from cocobandits.policies.rome_baseline import Bags, Terms
from cocobandits.types import ArmVector, Number, Scalar

Candidates = Float[Array, " candidate"]
BySource = Float[Array, "source candidate"]


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
    """Compute mean and variance of a user's φ_aᵀθ under N(V⁻¹b, V⁻¹), and log det V - log det V₀.

    User i has rewards along t_i alone. With w = Σσ̃² and g = γᵤ/(γᵤ + w|t|²), eliminating the user's
    effects leaves g of weight and pull to the shared ones; given those, t_iᵀθ_i has variance
    |t|²/(γᵤ + w|t|²).
    """
    shared_precision, user_precision = precisions
    weight, pull = (jnp.sum(field, axis=1) for field in evidence[:2])
    square = jnp.sum(terms**2, axis=1)
    left = user_precision / (user_precision + weight * square[:, None])
    num_terms = terms.shape[1]
    prior = jnp.broadcast_to(
        shared_precision * jnp.eye(num_terms), (weight.shape[1], num_terms, num_terms)
    )
    precision = prior + jnp.einsum("ua,ui,uj->aij", weight * left, terms, terms)
    shift = jnp.einsum("ua,ui->ai", pull * left, terms)
    prior_size = num_terms * jnp.log(shared_precision)
    read = jax.vmap(read_forms, (0, 0, None, None))
    forms = read(precision, shift, terms[user][None], prior_size)
    own_variance = left[user] * square[user] / user_precision
    mean = left[user] * forms.mean[:, 0] + own_variance * pull[user]
    variance = left[user] ** 2 * forms.variance[:, 0] + own_variance
    return mean, variance, jnp.sum(forms.gain) - jnp.sum(jnp.log(left))


def _by_source(per_arm: ArmVector) -> BySource:
    """Lay out numbers of arms by source: control's for all candidates, then their own."""
    return jnp.stack([jnp.broadcast_to(per_arm[0], per_arm[1:].shape), per_arm[1:]])
