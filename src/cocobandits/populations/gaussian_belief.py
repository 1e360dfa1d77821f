"""A belief about one user's arm means that is a mixture of correlated Gaussians."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp, ndtr
from jaxtyping import Array, ArrayLike, Bool, Float

from cocobandits.numerics.orthant import (
    best_probability,
    bivariate_cumulative,
    expected_largest,
)
from cocobandits.populations.base import FAR_BELOW, Belief
from cocobandits.types import ArmValues, ArmVector, Scalar, Values
from cocobandits.users.statistics import Statistics

# Enough to interpolate a quantile to a hundredth of a deviation.
_NUM_VALUES, _REACH = 97, 6.0
_LEAST_DEVIATION = 1e-15
# The best mean has kinks in the reward, where even steps do better than Gauss-Hermite: measured
# against 200,001 steps, these are good to 5e-5 on the paper's populations.
_NUM_REWARDS, _REWARD_REACH = 257, 8.0


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GaussianBelief(Belief):
    """Components with normalised log-weights, means and covariances (which may be singular)."""

    log_weights: Float[Array, "*each component"]
    means: Float[Array, "*each component arm"]
    covariances: Float[Array, "*each component arm arm"]
    reward_noise: Float[ArrayLike, "*each"]

    def mean(self) -> ArmVector:
        """Compute E[μ_a]."""
        return self._average(self.means)

    def variance(self) -> ArmVector:
        """Compute Var(μ_a): within components, and between them."""
        between = (self.means - self.mean()[None, :]) ** 2
        return self._average(self._deviations() ** 2 + between)

    def best_probability(self) -> ArmVector:
        """Compute P(arm a has the largest mean)."""
        return self._average(jax.vmap(best_probability)(self.means, self.covariances))

    def expected_best(self) -> Scalar:
        """Compute E[max_a μ_a]."""
        return self._average(jax.vmap(expected_largest)(self.means, self.covariances))

    def expected_best_mean_after_one(self) -> ArmVector:
        """Compute E[max_b E[μ_b | r_a]] over the next reward r_a, for every arm a.

        Under component j the reward is N(m_ja, C_jaa + σ²), summed over even steps;
        it reweights all components, and moves each mean along a line: m_b + C_ab (r - m_a)/s_a².
        """
        nodes = jnp.linspace(-_REWARD_REACH, _REWARD_REACH, _NUM_REWARDS)
        weights = jnp.exp(-(nodes**2) / 2)
        variances = jnp.diagonal(self.covariances, axis1=1, axis2=2) + self.reward_noise**2

        def of_arm(
            means: Float[Array, " component"],
            deviations: Float[Array, " component"],
            slopes: Float[Array, "component arm"],
        ) -> Scalar:
            rewards = (means[:, None] + deviations[:, None] * nodes[None, :]).ravel()
            distance = (rewards[None, :] - means[:, None]) / deviations[:, None]
            log_joint = (self.log_weights - jnp.log(deviations))[:, None] - distance**2 / 2
            shares = jax.nn.softmax(log_joint, axis=0)
            best = jnp.max(shares.T @ self.means + (shares * distance).T @ slopes, axis=1)
            per_component = best.reshape(len(means), _NUM_REWARDS) @ weights / jnp.sum(weights)
            return self._average(per_component)

        deviations = jnp.sqrt(variances)
        slopes = self.covariances / deviations[:, :, None]
        return jax.vmap(of_arm, in_axes=1)(self.means, deviations, slopes)

    def values(self) -> Values:
        """Lay out values around every component's mean of every arm."""
        steps = jnp.linspace(-_REACH, _REACH, _NUM_VALUES)
        spread = self.means[..., None] + self._deviations()[..., None] * steps[None, None, :]
        return jnp.sort(spread.ravel())

    def cumulative(self, values: Values) -> ArmValues:
        """Compute P(μ_a ≤ value)."""
        distance = values[None, None, :] - self.means[..., None]
        return self._average(ndtr(distance / self._deviations()[..., None]))

    def predictive(self, rewards: Values) -> ArmValues:
        """Compute the density of the next reward: as wide as the belief and the noise together."""
        deviation = jnp.sqrt(self._deviations() ** 2 + self.reward_noise**2)[..., None]
        distance = (rewards[None, None, :] - self.means[..., None]) / deviation
        return self._average(jnp.exp(-(distance**2) / 2) / (deviation * math.sqrt(2 * math.pi)))

    def best_and_reward(self, rewards: Values) -> Float[Array, "best arm value"]:
        """Multiply the density of each reward by who is best once it is seen."""
        num_arms = self.means.shape[1]

        def best_after(arm: ArmVector, reward: Scalar) -> ArmVector:
            return self.condition(Statistics(arm, arm * reward, arm * reward**2)).best_probability()

        after = jax.vmap(jax.vmap(best_after, (None, 0), 1), (0, None), 1)
        return after(jnp.eye(num_arms), rewards) * self.predictive(rewards)[None, :, :]

    def pair_probability(self, first: int, second: int, edges: Values) -> Float[Array, "bin bin"]:
        """Compute the probability of square bins by differences of distribution functions."""

        def below(
            mean: ArmVector, covariance: Float[Array, "arm arm"], deviations: ArmVector
        ) -> Float[Array, "edge edge"]:
            rows = (edges - mean[first]) / deviations[first]
            columns = (edges - mean[second]) / deviations[second]
            scale = deviations[first] * deviations[second]
            correlation = jnp.clip(covariance[first, second] / scale, -1.0, 1.0)
            grid = jnp.broadcast_arrays(rows[:, None], columns[None, :])
            return bivariate_cumulative(grid[0], grid[1], correlation)

        corners = self._average(jax.vmap(below)(self.means, self.covariances, self._deviations()))
        return jnp.maximum(jnp.diff(jnp.diff(corners, axis=0), axis=1), 0.0)

    def condition(self, statistics: Statistics) -> "GaussianBelief":
        """Learn from further rewards."""
        return condition(self, statistics)[0]

    def among(self, is_eligible: Bool[Array, " arm"]) -> "GaussianBelief":
        """Hold the other arms for known, and far below."""
        means = jnp.where(is_eligible, self.means, FAR_BELOW)
        is_pair = is_eligible[:, None] & is_eligible[None, :]
        covariances = jnp.where(is_pair, self.covariances, 0.0)
        return GaussianBelief(self.log_weights, means, covariances, self.reward_noise)

    def blended(self, log_shares: Float[Array, " each"]) -> "GaussianBelief":
        """Put all components side by side."""
        weights = log_shares[:, None] + self.log_weights
        means, covariances = (
            part.reshape(-1, *part.shape[2:]) for part in (self.means, self.covariances)
        )
        return GaussianBelief(weights.ravel(), means, covariances, jnp.ravel(self.reward_noise)[0])

    def _average(self, values: Float[Array, "component *shape"]) -> Float[Array, "*shape"]:
        return jnp.tensordot(jnp.exp(self.log_weights), values, axes=1)

    def _deviations(self) -> Float[Array, "component arm"]:
        variances = jnp.diagonal(self.covariances, axis1=1, axis2=2)
        return jnp.sqrt(jnp.maximum(variances, _LEAST_DEVIATION**2))


def condition(belief: GaussianBelief, statistics: Statistics) -> tuple[GaussianBelief, Scalar]:
    """Condition on rewards, and compute the log of their density.

    With D = diag(√n)/σ and e = the sum of residuals per arm over √n σ, component j has the evidence
    N(e; 0, I + D C_j D), and its Gaussian is conditioned on it; arms without rewards drop out.
    """
    noise = belief.reward_noise
    root = jnp.sqrt(statistics.count) / noise
    safe_count = jnp.maximum(statistics.count, 1.0)
    average = statistics.total / safe_count

    def of_component(
        mean: ArmVector, covariance: Float[Array, "arm arm"]
    ) -> tuple[Scalar, ArmVector, Float[Array, "arm arm"]]:
        scaled = root[:, None] * covariance
        inner = jnp.eye(len(mean)) + scaled * root[None, :]
        residual = root * (average - mean)
        solved = jnp.linalg.solve(inner, jnp.concatenate([residual[:, None], scaled], axis=1))
        log_density = -(residual @ solved[:, 0] + jnp.linalg.slogdet(inner)[1]) / 2
        shrunk = covariance - scaled.T @ solved[:, 1:]
        return log_density, mean + scaled.T @ solved[:, 0], (shrunk + shrunk.T) / 2

    log_densities, means, covariances = jax.vmap(of_component)(belief.means, belief.covariances)
    joint = belief.log_weights + log_densities
    total = logsumexp(joint)
    # The scatter of rewards around their own average, which no component can explain.
    scatter = jnp.sum(statistics.total_square - statistics.total * average)
    constant = -jnp.sum(statistics.count) * jnp.log(2 * math.pi * noise**2) / 2
    posterior = GaussianBelief(joint - total, means, covariances, noise)
    return posterior, total + constant - scatter / (2 * noise**2)
