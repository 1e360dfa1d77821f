"""How well a Gaussian population explains all rewards: the evidence of a linear mixed model.

    θ ~ N(m, v I),   μ_i = Φ(x_i) θ + δ_i,   δ_i ~ N(0, s² I),   r = μ_ia + N(0, σ²)

Rewards of one user and arm enter by their count n, average and spread, so nothing here is as large
as the number of rewards: O(users · arms · d² + d³) for d coefficients.
"""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float

from cocobandits.models.base import Statistics
from cocobandits.models.features import FeatureKinds, expected_terms
from cocobandits.models.histories import UserTable
from cocobandits.models.truncated_normal import sample_mean, spread_log_likelihood
from cocobandits.types import ArmVector, Number, PossibleContext, Scalar


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LinearMixedModel:
    """What is known of the population before any reward.

    Attributes:
        tensor: Φ(x) is this, times the terms of the context.
        coefficient_mean: m, the same for all coefficients.
        coefficient_deviation: √v.
        user_deviation: s.
        reward_noise: σ.
        features: for each context feature its number of categories, or None if it is continuous.
    """

    tensor: Float[Array, "arm coefficient term"]
    coefficient_mean: Number
    coefficient_deviation: Number
    user_deviation: Number
    reward_noise: Number
    features: FeatureKinds = field(metadata={"static": True})


@jax.jit
def mixed_model_log_evidence(model: LinearMixedModel, users: UserTable) -> Scalar:
    """Compute log p(all rewards), a density of single rewards.

    Averages of n rewards have precision w = n/(n s² + σ²) around Φ(x) θ, so with Φ of all users
    on top of each other, by the matrix determinant lemma,

        log p = Σ (log spread - ½ log(1 + n s²/σ²)) - ½ log|I + v Φᵀ W Φ|
                - ½ Σ w (r̄ - Φ θ̂)² - ½ |θ̂ - m|²/v

    where θ̂ is the posterior mean. An arm without rewards adds zero, and so does a padding row.
    """
    deviation = jnp.asarray(model.coefficient_deviation)

    def rows(
        context: PossibleContext, statistics: Statistics
    ) -> tuple[Float[Array, "arm coefficient"], ArmVector, ArmVector, Scalar]:
        design = model.tensor @ expected_terms(model.features, context)
        gap = sample_mean(statistics) - design.sum(axis=1) * model.coefficient_mean
        shrinkage = statistics.count * model.user_deviation**2 / model.reward_noise**2
        weight = statistics.count / model.reward_noise**2 / (1 + shrinkage)
        spread = spread_log_likelihood(statistics, model.reward_noise)
        return deviation * design, weight, gap, jnp.sum(spread - 0.5 * jnp.log1p(shrinkage))

    designs, weights, gaps, constants = jax.vmap(rows)(users.contexts, users.statistics)
    precision = jnp.einsum("uac,ua,uad->cd", designs, weights, designs)
    factor = jnp.linalg.cholesky(jnp.eye(len(precision)) + precision)
    # In prior deviations from the prior mean. A sum of squares, since the textbook's difference of
    # two large numbers loses digits when σ is small.
    shift = cho_solve((factor, True), jnp.einsum("uac,ua,ua->c", designs, weights, gaps))
    misfit = jnp.sum(weights * (gaps - designs @ shift) ** 2) + jnp.sum(shift**2)
    return jnp.sum(constants) - jnp.sum(jnp.log(jnp.diagonal(factor))) - 0.5 * misfit
