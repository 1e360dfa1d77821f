"""What hLinUCB keeps of rewards: the sums of the owners of weights and of hidden features.

The owner of weights keeps A = λI + Σ z zᵀ and b = Σ z r, the owner of hidden features keeps
C = λI + Σ θ̂ᵛ θ̂ᵛᵀ and d = Σ θ̂ᵛ (r - xᵀθ̂ˣ); z = (x, v̂), θ̂ = A⁻¹ b and v̂ = C⁻¹ d. The ridge λI is
added when a system is solved.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float, Int, UInt32

from cocobandits.types import Number


class Sums(NamedTuple):
    """Σ φφᵀ and Σ φ y of every owner, and the number of terms."""

    precision: Float[Array, "*owner size size"]
    shift: Float[Array, "*owner size"]
    num_terms: Float[Array, "*owner"]

    @classmethod
    def empty(cls, num_owners: int, size: int) -> "Sums":
        """Make the sums of owners without rewards."""
        shapes = (num_owners, size, size), (num_owners, size), (num_owners,)
        return cls(*map(jnp.zeros, shapes))

    def of(self, owner: Int[Array, ""]) -> "Sums":
        """Select the sums of one owner."""
        return jax.tree.map(lambda leaf: leaf[owner], self)

    def adding(
        self, owner: Int[Array, ""], features: Float[Array, " size"], target: Number
    ) -> "Sums":
        """Add the term of one reward to an owner's sums."""
        return Sums(
            self.precision.at[owner].add(jnp.outer(features, features)),
            self.shift.at[owner].add(target * features),
            self.num_terms.at[owner].add(1.0),
        )

    def solved(self, ridge: Number, columns: Float[Array, "size column"]) -> Array:
        """Solve with the ridged precision of one owner."""
        return cho_solve(cho_factor(self.precision + ridge * jnp.eye(len(columns))), columns)

    def solution(self, ridge: Number) -> Float[Array, " size"]:
        """Compute the ridge regression of one owner."""
        return self.solved(ridge, self.shift[:, None])[:, 0]


class HiddenState(NamedTuple):
    """The sums of all owners, and the key of random starts."""

    weights: Sums
    features: Sums
    key_words: UInt32[Array, " word"]


class Scales(NamedTuple):
    """λ, and the deviation of the hidden features of an owner without rewards."""

    ridge: Number
    start_deviation: Number


class Turn(NamedTuple):
    """A user and an arm: who owns the weights, who the hidden features, and the seen features x."""

    weight_owner: Int[Array, ""]
    feature_owner: Int[Array, ""]
    seen: Float[Array, " seen"]


def hidden_features(state: HiddenState, turn: Turn, scales: Scales) -> Float[Array, " hidden"]:
    """Compute v̂ = C⁻¹ d; a random start, drawn from the owner's number, without rewards."""
    own = state.features.of(turn.feature_owner)
    key = jax.random.fold_in(jax.random.wrap_key_data(state.key_words), turn.feature_owner)
    start = scales.start_deviation * jax.random.normal(key, own.shift.shape)
    return jnp.where(own.num_terms > 0, own.solution(scales.ridge), start)


def swept(state: HiddenState, turn: Turn, reward: Number, scales: Scales) -> HiddenState:
    """Enter one reward: first into A and b with v̂ held, then into C and d with the new θ̂."""
    hidden = hidden_features(state, turn, scales)
    weights = state.weights.adding(turn.weight_owner, jnp.concatenate([turn.seen, hidden]), reward)
    theta = weights.of(turn.weight_owner).solution(scales.ridge)
    num_seen = len(turn.seen)
    residual = reward - turn.seen @ theta[:num_seen]
    features = state.features.adding(turn.feature_owner, theta[num_seen:], residual)
    return state._replace(weights=weights, features=features)


def upper_bound(
    state: HiddenState, turn: Turn, scales: Scales, alphas: tuple[Number, Number]
) -> Float[Array, ""]:
    """Compute zᵀθ̂ + α √(zᵀA⁻¹z) + α₂ √(θ̂ᵛᵀC⁻¹θ̂ᵛ)."""
    z = jnp.concatenate([turn.seen, hidden_features(state, turn, scales)])
    own = state.weights.of(turn.weight_owner)
    theta, spread = own.solved(scales.ridge, jnp.stack([own.shift, z], axis=1)).T
    inner = theta[len(turn.seen) :]
    hidden_spread = state.features.of(turn.feature_owner).solved(scales.ridge, inner[:, None])[:, 0]
    return (
        z @ theta + alphas[0] * jnp.sqrt(z @ spread) + alphas[1] * jnp.sqrt(inner @ hidden_spread)
    )
