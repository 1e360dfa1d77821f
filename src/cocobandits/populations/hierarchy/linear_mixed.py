"""A Gaussian population around a line, and how well it explains all rewards: a linear mixed model.

    θ ~ N(m, v I),   μ_i = Φ(x_i) θ + δ_i,   δ_i ~ N(0, Σ),   r = μ_ia + N(0, σ²)

Rewards of one user and arm enter by their count n, average and spread, so nothing here is as large
as the number of rewards: O(users · (K³ + K d²) + d³) for K arms and d coefficients.
"""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float

from cocobandits.populations.features import FeatureKinds, expected_terms
from cocobandits.populations.truncated_normal import spread_log_likelihood
from cocobandits.types import ArmVector, Number, PossibleContext, Scalar
from cocobandits.users.statistics import Statistics, sample_mean
from cocobandits.users.table import UserTable


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LinearMixedModel:
    """What is known of the population before any reward.

    Attributes:
        tensor: Φ(x) is this, times the terms of the context.
        coefficient_mean: m, the same for all coefficients.
        coefficient_deviation: √v.
        user_deviation: s, of a user from the line: Σ = s² I, unless Σ is given.
        reward_noise: σ.
        features: for each context feature its number of categories, or None if it is continuous.
        user_covariance: Σ.
    """

    tensor: Float[Array, "arm coefficient term"]
    coefficient_mean: Number
    coefficient_deviation: Number
    user_deviation: Number
    reward_noise: Number
    features: FeatureKinds = field(metadata={"static": True})
    user_covariance: Float[Array, "arm arm"] | None = None

    def design(self, context: PossibleContext) -> Float[Array, "arm coefficient"]:
        """Compute Φ(x), averaged over what the context may be."""
        return self.tensor @ expected_terms(self.features, context)

    def covariance(self) -> Float[Array, "arm arm"]:
        """Return Σ."""
        if self.user_covariance is None:
            return jnp.eye(len(self.tensor)) * self.user_deviation**2
        return self.user_covariance

    def whitening(self, statistics: Statistics) -> tuple[Float[Array, "arm arm"], Scalar]:
        """Compute V, which scales a user's averages to unit covariance around Φ θ, and log|C|.

        With R = diag(√n)/σ and C Cᵀ = I + R Σ R it is V = C⁻¹ R. On the arms with rewards, VᵀV is
        the inverse of Σ + diag(σ²/n); arms without have columns of zeros, and Σ may be singular.
        """
        root = jnp.sqrt(statistics.count) / self.reward_noise
        scaled = root[:, None] * self.covariance() * root[None, :]
        factor = jnp.linalg.cholesky(jnp.eye(len(root)) + scaled)
        whitening = solve_triangular(factor, jnp.diag(root), lower=True)
        return whitening, jnp.sum(jnp.log(jnp.diagonal(factor)))


@jax.jit
def mixed_model_log_evidence(model: LinearMixedModel, users: UserTable) -> Scalar:
    """Compute log p(all rewards), a density of single rewards.

    With every user's averages and rows of Φ scaled to unit covariance (`whitening`: V r̄, V Φ, and
    the volume |C|), all on top of each other, by the matrix determinant lemma,

        log p = Σ (log spread - log|C|) - ½ log|I + v ΦᵀVᵀVΦ| - ½ |V(r̄ - Φ θ̂)|² - ½ |θ̂ - m|²/v

    where θ̂ is the posterior mean. An arm without rewards adds zero, and so does a padding row.
    """
    deviation = jnp.asarray(model.coefficient_deviation)

    def rows(
        context: PossibleContext, statistics: Statistics
    ) -> tuple[Float[Array, "arm coefficient"], ArmVector, Scalar]:
        design = model.design(context)
        gap = sample_mean(statistics) - design.sum(axis=1) * model.coefficient_mean
        columns = jnp.concatenate([deviation * design, gap[:, None]], axis=1)
        scaled, log_volume = _whitened(model, statistics, columns)
        spread = spread_log_likelihood(statistics, model.reward_noise)
        return scaled[:, :-1], scaled[:, -1], jnp.sum(spread) - log_volume

    designs, gaps, constants = jax.vmap(rows)(users.contexts, users.statistics)
    precision = jnp.einsum("uac,uad->cd", designs, designs)
    factor = jnp.linalg.cholesky(jnp.eye(len(precision)) + precision)
    # In prior deviations from the prior mean. A sum of squares, since the textbook's difference of
    # two large numbers loses digits when σ is small.
    shift = cho_solve((factor, True), jnp.einsum("uac,ua->c", designs, gaps))
    misfit = jnp.sum((gaps - designs @ shift) ** 2) + jnp.sum(shift**2)
    return jnp.sum(constants) - jnp.sum(jnp.log(jnp.diagonal(factor))) - 0.5 * misfit


def _whitened(
    model: LinearMixedModel, statistics: Statistics, columns: Float[Array, "arm column"]
) -> tuple[Float[Array, "arm column"], Scalar]:
    """Multiply columns by V."""
    if model.user_covariance is not None:
        whitening, log_volume = model.whitening(statistics)
        return whitening @ columns, log_volume
    # Arm by arm: a diagnosis asks for thousands of deviations and noises, of all users.
    root = jnp.sqrt(statistics.count) / model.reward_noise
    excess = (root * model.user_deviation) ** 2
    return (root / jnp.sqrt(1 + excess))[:, None] * columns, 0.5 * jnp.sum(jnp.log1p(excess))
