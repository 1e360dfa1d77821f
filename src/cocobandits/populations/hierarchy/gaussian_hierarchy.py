"""What a linear mixed model learns from one user at a time: the exact posterior, kept as two sums.

    θ ~ N(m, v I),   μ_i = Φ(x_i) θ + δ_i,   δ_i ~ N(0, Σ),   r = μ_ia + N(0, σ²)

Everything is Gaussian. A user's averages r̄ lie around Φ θ with covariance Σ + diag(σ²/n), of which
W is the inverse on the arms that were given, and zero elsewhere (`LinearMixedModel.whitening`). So

    Λ = I/v + Σ_i Φᵀ W_i Φ,   h = (m/v) 1 + Σ_i Φᵀ W_i r̄_i,   θ | all rewards ~ N(Λ⁻¹ h, Λ⁻¹)

and a changed statistic replaces its own terms: O(d³ + K³) per user, whoever came before. Where Σ is
not known, a step of EM fits it to all users: O(users · K³). Owns these sums, that step, and the
belief about one user; how well the model explains everybody is in `linear_mixed`.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from cocobandits.populations.gaussian_belief import GaussianBelief
from cocobandits.populations.hierarchy.linear_mixed import LinearMixedModel
from cocobandits.types import Number, PossibleContext, Scalar
from cocobandits.users.statistics import Statistics, mean_deviation, sample_mean
from cocobandits.users.table import UserTable

# A context, and the rewards.
UserData = tuple[PossibleContext, Statistics]


class Sums(NamedTuple):
    """The coefficients are N(precision⁻¹ shift, precision⁻¹)."""

    precision: Float[Array, "coefficient coefficient"]
    shift: Float[Array, " coefficient"]

    def extended(self, fresh: "Sums") -> "Sums":
        """Put what is known of these coefficients first, and `fresh` for those that are new."""
        size = len(self.shift)
        return Sums(
            fresh.precision.at[:size, :size].set(self.precision),
            fresh.shift.at[:size].set(self.shift),
        )


def prior_sums(model: LinearMixedModel) -> Sums:
    """Start from the prior of the coefficients."""
    num_coefficients = model.tensor.shape[1]
    precision = jnp.eye(num_coefficients) / model.coefficient_deviation**2
    return Sums(precision, precision @ jnp.full(num_coefficients, model.coefficient_mean))


@jax.jit
def replaced(model: LinearMixedModel, sums: Sums, before: UserData, after: UserData) -> Sums:
    """Take the user's old terms out of Λ and h, and put the new ones in."""
    old, new = _terms(model, *before), _terms(model, *after)
    return Sums(
        sums.precision + (new.precision - old.precision), sums.shift + (new.shift - old.shift)
    )


@jax.jit
def sums_of(model: LinearMixedModel, users: UserTable) -> Sums:
    """Add everybody's terms to the prior of the coefficients."""
    terms = jax.vmap(partial(_terms, model))(users.contexts, users.statistics)
    return jax.tree.map(lambda prior, rows: prior + rows.sum(axis=0), prior_sums(model), terms)


@jax.jit
def fitted_covariance(
    model: LinearMixedModel,
    sums: Sums,
    users: UserTable,
    given: tuple[Float[Array, "arm arm"], Scalar],
) -> Float[Array, "arm arm"]:
    """Take one step of EM towards the Σ that is likeliest given all rewards.

    With the given Σ₀, and counts for ν users, and all n users with rewards,

        Σ ← (ν Σ₀ + Σ_i E[δ_i δ_iᵀ]) / (ν + n)

    climbs log p(all rewards) - ½ ν (log|Σ| + tr(Σ₀ Σ⁻¹)), with θ as uncertain as rewards leave it.
    """

    def moment(context: PossibleContext, statistics: Statistics) -> Float[Array, "arm arm"]:
        design, covariance = model.design(context), model.covariance()
        whitening, _ = model.whitening(statistics)
        gain = covariance @ whitening.T @ whitening
        mean = gain @ (sample_mean(statistics) - design @ jnp.linalg.solve(*sums))
        line = gain @ design
        spread = covariance - gain @ covariance + line @ jnp.linalg.solve(sums.precision, line.T)
        return jnp.where(jnp.any(statistics.count > 0), jnp.outer(mean, mean) + spread, 0.0)

    moments = jax.vmap(moment)(users.contexts, users.statistics)
    num_users = jnp.sum(jnp.any(users.statistics.count > 0, axis=1))
    covariance, strength = given
    fitted = (strength * covariance + moments.sum(axis=0)) / (strength + num_users)
    return (fitted + fitted.T) / 2


@jax.jit
def user_belief(
    model: LinearMixedModel,
    sums: Sums,
    context: PossibleContext,
    statistics: Statistics,
    reward_noise: Number,
) -> GaussianBelief:
    """Combine what is known of the coefficients with the user's own rewards.

    With the gain N = Σ W, the user's arms are given θ

        N(Φ θ + N (r̄ - Φ θ),  (I - N) Σ (I - N)ᵀ + N diag(σ²/n) Nᵀ)

    where the covariance is (Σ⁻¹ + diag(n/σ²))⁻¹, as a sum of squares that rounding leaves positive.
    The user's rewards are in Λ and h already; what is not known of θ reaches the arms by I - N.
    """
    design, covariance = model.design(context), model.covariance()
    whitening, _ = model.whitening(statistics)
    gain = covariance @ whitening.T @ whitening
    rest = jnp.eye(len(gain)) - gain
    line = design @ jnp.linalg.solve(*sums)
    mean = rest @ line + gain @ sample_mean(statistics)
    prior = covariance + design @ jnp.linalg.solve(sums.precision, design.T)
    noise = gain * mean_deviation(statistics, model.reward_noise)[None, :]
    spread = rest @ prior @ rest.T + noise @ noise.T
    return GaussianBelief(
        jnp.zeros(1), mean[None], ((spread + spread.T) / 2)[None], jnp.asarray(reward_noise)
    )


def _terms(model: LinearMixedModel, context: PossibleContext, statistics: Statistics) -> Sums:
    """Compute Φᵀ W Φ and Φᵀ W r̄."""
    whitening, _ = model.whitening(statistics)
    rows = whitening @ model.design(context)
    return Sums(rows.T @ rows, rows.T @ (whitening @ sample_mean(statistics)))
