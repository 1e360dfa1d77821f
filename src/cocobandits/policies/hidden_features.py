"""What hLinUCB keeps of rewards, and how it enters further ones: sweeps of coordinate descent.

The owner of weights keeps A = λI + Σ z zᵀ and b = Σ z r, the owner of hidden features keeps
C = λI + Σ θ̂ᵛ θ̂ᵛᵀ and d = Σ θ̂ᵛ (r - xᵀθ̂ˣ); z = (x, v̂), θ̂ = A⁻¹ b and v̂ = C⁻¹ d. All four are made
of terms per user and arm. Since z is linear in u = (1, v̂), the terms of A and b follow from Σ u uᵀ
and Σ u r, whatever the features x are. Those sums and the terms of C and d are all that is kept, so
what a user has put in can be taken out again.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float, Int, UInt32

from cocobandits.models.features import FeatureKinds, expected_terms
from cocobandits.models.histories import Change, UserTable
from cocobandits.types import ArmVector, Number

# Lays z out of u = (1, v): z = lift u.
Lift = Float[Array, "weight part"]


class Entries(NamedTuple):
    """What rewards were entered with, summed per user and arm; u = (1, v̂) as it was then.

    Attributes:
        features: Σ u uᵀ, whose corner is the number of rewards.
        rewards: Σ u r.
        weights: Σ θ̂ᵛ θ̂ᵛᵀ.
        residuals: Σ θ̂ᵛ (r - xᵀθ̂ˣ).
    """

    features: Float[Array, "*user arm part part"]
    rewards: Float[Array, "*user arm part"]
    weights: Float[Array, "*user arm hidden hidden"]
    residuals: Float[Array, "*user arm hidden"]

    @classmethod
    def empty(cls, num_users: int, num_arms: int, num_hidden: int) -> "Entries":
        """Make the sums of users without rewards."""
        hidden, part = (num_hidden,), (num_hidden + 1,)
        shapes = part * 2, part, hidden * 2, hidden
        return cls(*(jnp.zeros((num_users, num_arms, *shape)) for shape in shapes))

    def padded(self, axis: int, size: int) -> "Entries":
        """Add zeros to an axis, up to a size."""
        more = size - self.residuals.shape[axis]
        return jax.tree.map(
            lambda leaf: jnp.pad(
                leaf, [(0, more if number == axis else 0) for number in range(leaf.ndim)]
            ),
            self,
        )


class HiddenState(NamedTuple):
    """What all rewards were entered with, and where random starts come from."""

    entries: Entries
    key_words: UInt32[Array, " word"]


class Sums(NamedTuple):
    """A, b, C and d as they apply to each arm, and the rewards that v̂ was learned from."""

    weight_precision: Float[Array, "arm weight weight"]
    weight_shift: Float[Array, "arm weight"]
    feature_precision: Float[Array, "arm hidden hidden"]
    feature_shift: Float[Array, "arm hidden"]
    count: ArmVector  # type: ignore[assignment]  # tuple.count is of no use here


class Scales(NamedTuple):
    """λ, and the deviation of hidden features that somebody without rewards is given."""

    ridge: Number
    start_deviation: Number


class Surroundings(NamedTuple):
    """What a user meets at each arm: how z is laid out, the sums without own terms, and starts."""

    lifts: Float[Array, "arm weight part"]
    others: Sums
    starts: Float[Array, "arm hidden"]


@dataclass(frozen=True)
class Form(ABC):
    """Who has the features, and who owns the weights."""

    kinds: FeatureKinds

    @abstractmethod
    def surroundings(
        self, state: HiddenState, users: UserTable, user: Int[Array, ""]
    ) -> Surroundings:
        """Add up what all but the user have put into the sums; starts have deviation one."""

    @abstractmethod
    def pooled(self, own: Sums) -> Sums:
        """Sum the user's own terms over arms, where it is the user who owns the sums."""

    @abstractmethod
    def rewards_of_weights(
        self, counts: Float[Array, "user arm"], user: Int[Array, ""]
    ) -> ArmVector:
        """Count the rewards of whoever owns the weights, at each arm."""


class Published(Form):
    """Arms have the features (one-hot, hidden), and users own the weights."""

    def surroundings(
        self, state: HiddenState, users: UserTable, user: Int[Array, ""]
    ) -> Surroundings:
        """Add up C and d over users; nobody else has a say in A and b."""
        del users
        num_arms, num_hidden = state.entries.residuals.shape[1:]
        alone = jax.tree.map(lambda leaf: jnp.sum(leaf.at[user].set(0.0), axis=0), state.entries)
        lifts = jax.vmap(lambda seen: _lift(seen, num_hidden))(jnp.eye(num_arms))
        num_weights = num_arms + num_hidden
        nothing = (
            jnp.zeros((num_arms, num_weights, num_weights)),
            jnp.zeros((num_arms, num_weights)),
        )
        others = Sums(*nothing, alone.weights, alone.residuals, alone.features[:, 0, 0])
        return Surroundings(lifts, others, _starts(state, jnp.arange(num_arms)))

    def pooled(self, own: Sums) -> Sums:
        """Share A and b among arms."""
        return own._replace(
            weight_precision=_pool(own.weight_precision), weight_shift=_pool(own.weight_shift)
        )

    def rewards_of_weights(
        self, counts: Float[Array, "user arm"], user: Int[Array, ""]
    ) -> ArmVector:
        """Count the user's own."""
        return jnp.full(counts.shape[1], jnp.sum(counts[user]))


class Transposed(Form):
    """Users have the features (terms of the context, hidden), and arms own the weights."""

    def surroundings(
        self, state: HiddenState, users: UserTable, user: Int[Array, ""]
    ) -> Surroundings:
        """Add up A and b over users; nobody else has a say in C and d."""
        num_arms, num_hidden = state.entries.residuals.shape[1:]
        terms = jax.vmap(partial(expected_terms, self.kinds))(users.contexts)
        lifts = jax.vmap(lambda seen: _lift(seen, num_hidden))(terms)
        alone = jax.tree.map(lambda leaf: leaf.at[user].set(0.0), state.entries)
        precision = jnp.einsum("upq,uaqr,usr->aps", lifts, alone.features, lifts)
        shift = jnp.einsum("upq,uaq->ap", lifts, alone.rewards)
        nothing = jnp.zeros((num_arms, num_hidden, num_hidden)), jnp.zeros((num_arms, num_hidden))
        own_lift = jnp.broadcast_to(lifts[user][None], (num_arms, *lifts.shape[1:]))
        others = Sums(precision, shift, *nothing, jnp.zeros(num_arms))
        return Surroundings(own_lift, others, _starts(state, jnp.full(num_arms, user)))

    def pooled(self, own: Sums) -> Sums:
        """Share C, d and the count among arms."""
        return own._replace(
            feature_precision=_pool(own.feature_precision),
            feature_shift=_pool(own.feature_shift),
            count=_pool(own.count),
        )

    def rewards_of_weights(
        self, counts: Float[Array, "user arm"], user: Int[Array, ""]
    ) -> ArmVector:
        """Count everybody's."""
        del user
        return jnp.sum(counts, axis=0)


def _starts(state: HiddenState, owners: Int[Array, " arm"]) -> Float[Array, "arm hidden"]:
    """Draw the hidden features of owners without rewards, from their numbers."""
    key, num_hidden = jax.random.wrap_key_data(state.key_words), state.entries.residuals.shape[-1]
    keys = jax.vmap(lambda owner: jax.random.fold_in(key, owner))(owners)
    return jax.vmap(lambda own_key: jax.random.normal(own_key, (num_hidden,)))(keys)


def _lift(seen: Float[Array, " seen"], num_hidden: int) -> Lift:
    """Lay out (x, v) as a matrix times (1, v)."""
    num_seen = len(seen)
    lift = jnp.zeros((num_seen + num_hidden, 1 + num_hidden))
    return lift.at[:num_seen, 0].set(seen).at[num_seen:, 1:].set(jnp.eye(num_hidden))


def _pool(terms: Float[Array, "arm *shape"]) -> Float[Array, "arm *shape"]:
    return jnp.broadcast_to(jnp.sum(terms, axis=0)[None], terms.shape)


def surroundings(
    form: Form, state: HiddenState, users: UserTable, user: Int[Array, ""], scales: Scales
) -> Surroundings:
    """Add up what all but the user have put into the sums, and the ridge."""
    lifts, others, starts = form.surroundings(state, users, user)
    ridged = others._replace(
        weight_precision=others.weight_precision + scales.ridge * _eyes(others.weight_shift),
        feature_precision=others.feature_precision + scales.ridge * _eyes(others.feature_shift),
    )
    return Surroundings(lifts, ridged, starts * scales.start_deviation)


def completed(form: Form, around: Surroundings, own: Entries) -> Sums:
    """Complete the sums by the user's own terms."""
    terms = Sums(
        jnp.einsum("apq,aqr,asr->aps", around.lifts, own.features, around.lifts),
        jnp.einsum("apq,aq->ap", around.lifts, own.rewards),
        own.weights,
        own.residuals,
        own.features[:, 0, 0],
    )
    return jax.tree.map(jnp.add, form.pooled(terms), around.others)


def _eyes(rows: Float[Array, "arm size"]) -> Float[Array, "arm size size"]:
    return jnp.broadcast_to(jnp.eye(rows.shape[1]), (*rows.shape, rows.shape[1]))


def solved(
    precision: Float[Array, "*arm size size"], columns: Float[Array, "*arm size column"]
) -> Float[Array, "*arm size column"]:
    """Solve with positive definite matrices."""
    return cho_solve(cho_factor(precision), columns)


def hidden_features(around: Surroundings, sums: Sums) -> Float[Array, "arm hidden"]:
    """Compute v̂ = C⁻¹ d as it applies to each arm; the start where there are no rewards."""
    learned = solved(sums.feature_precision, sums.feature_shift[:, :, None])[:, :, 0]
    return jnp.where((sums.count > 0)[:, None], learned, around.starts)


@partial(jax.jit, static_argnames="form")
def entered(form: Form, state: HiddenState, change: Change, scales: Scales) -> Entries:
    """Make the entries after a change."""
    around = surroundings(form, state, change.applied(), change.user, scales)
    old_context, old = change.table.of(change.user)
    is_same = (change.statistics.count == old.count) & (change.statistics.total == old.total)
    is_further = jnp.all(is_same | (change.statistics.count > old.count))
    is_further = is_further & jnp.all(old_context == change.context)
    kept = jax.tree.map(lambda leaf: jnp.where(is_further, leaf[change.user], 0.0), state.entries)
    count, total = (
        new - jnp.where(is_further, before, 0.0)
        for new, before in zip(change.statistics[:2], old[:2], strict=True)
    )
    own = jax.lax.fori_loop(
        0, len(count), lambda arm, own: _sweep(form, around, own, (arm, count, total)), kept
    )
    return jax.tree.map(lambda leaf, row: leaf.at[change.user].set(row), state.entries, own)


def _sweep(
    form: Form,
    around: Surroundings,
    own: Entries,
    further: tuple[Int[Array, ""], ArmVector, ArmVector],
) -> Entries:
    """Enter rewards of one arm, first into A and b, then into C and d; none change nothing."""
    arm, counts, totals = further
    count, total = counts[arm], totals[arm]
    known = jnp.concatenate(
        [jnp.ones(1), hidden_features(around, completed(form, around, own))[arm]]
    )
    own = own._replace(
        features=own.features.at[arm].add(count * jnp.outer(known, known)),
        rewards=own.rewards.at[arm].add(total * known),
    )
    sums = completed(form, around, own)
    theta = solved(sums.weight_precision[arm], sums.weight_shift[arm][:, None])[:, 0]
    inner = theta[-len(own.residuals[arm]) :]
    # The first column of a lift is (x, 0).
    residual = total - count * (around.lifts[arm, :, 0] @ theta)
    return own._replace(
        weights=own.weights.at[arm].add(count * jnp.outer(inner, inner)),
        residuals=own.residuals.at[arm].add(residual * inner),
    )
