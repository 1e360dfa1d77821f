"""The seam: what a population model and a belief must answer.

A population model turns a particle (whitened parameters, prior N(0, I) always) and a user into a
belief about that user's arm means. Inference and policies use nothing but what stands here.
Everything is written for one particle; callers batch with `jax.vmap`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, Int

from cocobandits.numerics.blocks import BLOCK_SIZE, block_size, in_blocks
from cocobandits.numerics.reward_grid import RewardGrid
from cocobandits.rewards import LEAST_NOISE
from cocobandits.types import (
    ArmValues,
    ArmVector,
    Context,
    LogWeights,
    Matrix,
    Number,
    Parameters,
    Particles,
    PerParticle,
    PossibleContext,
    Rewards,
    RngKey,
    Scalar,
    Values,
)
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import UserRows

T = TypeVar("T")

# The mean of an arm that is not eligible; policies work with rewards around zero, four wide.
FAR_BELOW = -1e4


def floored_noise(noise: Array, mean_range: tuple[float, float]) -> Array:
    """Keep a learned noise above what can be computed with."""
    low, high = mean_range
    return jnp.maximum(noise, LEAST_NOISE * (high - low))


class Belief(ABC):
    """What one particle believes about one user's arm means, given that user's rewards.

    `reward_noise` is the standard deviation of a reward around its arm mean.
    """

    reward_noise: Number

    @abstractmethod
    def mean(self) -> ArmVector:
        """Compute E[μ_a]."""

    @abstractmethod
    def variance(self) -> ArmVector:
        """Compute Var(μ_a)."""

    @abstractmethod
    def best_probability(self) -> ArmVector:
        """Compute P(arm a has the largest mean); sums to one."""

    @abstractmethod
    def expected_best(self) -> Scalar:
        """Compute E[max_a μ_a]."""

    @abstractmethod
    def values(self) -> Values:
        """Lay out values in order, dense where the belief is narrow, the same for all particles."""

    @abstractmethod
    def cumulative(self, values: Values) -> ArmValues:
        """Compute P(μ_a ≤ value) for every arm."""

    def next_rewards(self, grid: RewardGrid) -> Rewards:
        """Lay out rewards over which expectations of the next one are summed; even steps each."""
        return grid.values()

    @abstractmethod
    def predictive(self, rewards: Rewards) -> ArmValues:
        """Compute the density of the next reward of every arm."""

    @abstractmethod
    def best_and_reward(self, rewards: Rewards) -> Float[Array, "best arm value"]:
        """Compute the density of the next reward of every arm together with who is best.

        Entry (j, a, r) is the density that arm j has the largest mean and arm a gives reward r. A
        model of limited resolution may blur rewards to it.
        """

    def best_outlook(self, rewards: Rewards) -> tuple[Scalar, Float[Array, "best arm value"]]:
        """Compute `expected_best` and `best_and_reward`; override where they share work."""
        return self.expected_best(), self.best_and_reward(rewards)

    def mean_and_reward(self, rewards: Rewards) -> Float[Array, "other arm value"]:
        """Compute the density of the next reward of every arm, times what all means are then.

        Entry (b, a, r) is p(r_a = r) · E[μ_b | r_a = r]. Override where a faster way exists.
        """

        def mean_after(arm: ArmVector, reward: Scalar) -> ArmVector:
            return self.condition(Statistics(arm, arm * reward, arm * reward**2)).mean()

        after = jax.vmap(jax.vmap(mean_after, (None, 0), 1), (0, None), 1)
        means = after(jnp.eye(len(self.mean())), rewards)
        return means * self.predictive(rewards)[None, :, :]

    @abstractmethod
    def pair_probability(self, first: int, second: int, edges: Values) -> Float[Array, "bin bin"]:
        """Compute the probability of each square bin of (μ_first, μ_second)."""

    @abstractmethod
    def condition(self, statistics: Statistics) -> "Belief":
        """Learn from further rewards of the same user."""

    @abstractmethod
    def among(self, is_eligible: Bool[Array, " arm"]) -> "Belief":
        """Put all other arms out of the contest: at `FAR_BELOW`, with no density of any reward.

        Which arms these are is traced, so that nothing is compiled again for others.
        """

    @abstractmethod
    def blended(self, log_shares: Float[Array, " each"]) -> "Belief":
        """Mix beliefs about the same user that stand on top of each other, by their shares.

        Every array of this belief has a leading axis of such beliefs.
        """


class Hyperparameters(NamedTuple):
    """What a particle may have learned besides a population, in standardised units; None if fixed.

    Attributes:
        arm_lengthscale: over which distance of arm means the log-density changes.
        context_lengthscales: the same for each feature.
        amplitude: prior standard deviation of the log-density.
        noise: standard deviation of a reward.
    """

    arm_lengthscale: Scalar | None = None
    context_lengthscales: Float[Array, " feature"] | None = None
    amplitude: Scalar | None = None
    noise: Scalar | None = None


class PopulationModel(ABC):
    """A family of populations, indexed by whitened parameters: an immutable tree.

    Its numbers are leaves, so that models of the same shape share all compiled functions.
    """

    @property
    @abstractmethod
    def num_parameters(self) -> int:
        """Length of a particle."""

    @property
    @abstractmethod
    def num_arms(self) -> int:
        """Number of arms K."""

    @property
    @abstractmethod
    def mean_range(self) -> tuple[float, float]:
        """Where arm means can lie."""

    @property
    @abstractmethod
    def reward_noise(self) -> float:
        """Standard deviation σ of a reward around its arm mean; its median if it is learned."""

    @property
    def particles_at_once(self) -> int:
        """How many particles' beliefs to hold in memory at a time."""
        return BLOCK_SIZE

    @property
    def noise_range(self) -> tuple[float, float]:
        """From where to where σ may reasonably lie."""
        return self.reward_noise, self.reward_noise

    @property
    def reward_grid(self) -> RewardGrid:
        """How many rewards expectations of the next one are summed over, and by default which."""
        return RewardGrid.spanning(self.mean_range, self.noise_range)

    @abstractmethod
    def log_evidence_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> Scalar:
        """Compute log p(history | particle, context), the context being known."""

    @abstractmethod
    def posterior_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> Belief:
        """Condition the particle's population on a user's rewards, the context being known."""

    def log_evidence(
        self, parameters: Parameters, context: PossibleContext, statistics: Statistics
    ) -> Scalar:
        """Compute log p(history | particle, what is known of the context).

        Where not all of the context is known, it comes as equally likely points, and the evidence
        is averaged over them.
        """
        if context.ndim == 1:
            return self.log_evidence_at(parameters, context, statistics)
        evidences = jax.vmap(self.log_evidence_at, (None, 0, None))(parameters, context, statistics)
        return logsumexp(evidences) - math.log(len(context))

    def log_evidence_and_gradient_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> tuple[Scalar, Parameters]:
        """Compute the log-evidence and its gradient; override where a closed form exists."""
        return jax.value_and_grad(self.log_evidence_at)(parameters, context, statistics)

    def log_evidence_and_gradient(
        self, parameters: Parameters, context: PossibleContext, statistics: Statistics
    ) -> tuple[Scalar, Parameters]:
        """Compute the log-evidence and its gradient, whatever is known of the context."""
        evidence = self.log_evidence_and_gradient_at
        if context.ndim == 1:
            return evidence(parameters, context, statistics)
        values, gradients = jax.vmap(evidence, (None, 0, None))(parameters, context, statistics)
        return logsumexp(values) - math.log(len(context)), jax.nn.softmax(values) @ gradients

    def log_likelihood_and_gradient(
        self, particles: Particles, rows: UserRows
    ) -> tuple[PerParticle, Particles]:
        """Sum the weighted log-evidences of many users under each particle, with the gradient.

        Override where users can share work.
        """
        return in_blocks(
            lambda block: sum_over_rows(
                self,
                block,
                rows,
                lambda sums, weight, value, gradient: (
                    sums[0] + weight * value,
                    sums[1] + weight * gradient,
                ),
                (jnp.zeros(len(block)), jnp.zeros_like(block)),
            ),
            particles,
            BLOCK_SIZE,
        )

    def information(self, particles: Particles, rows: UserRows) -> Matrix | Parameters:
        """Sum the outer products of all users' gradients, averaged over particles.

        This estimates the Fisher information without second derivatives. A model of very many
        parameters may answer with the diagonal alone. Override where users can share work.
        """

        def add(sums: Matrix, weight: Scalar, value: PerParticle, gradient: Particles) -> Matrix:
            del value
            return sums + weight * gradient.T @ gradient

        num_parameters = particles.shape[1]
        nothing = jnp.zeros((num_parameters, num_parameters))
        blocks = particles.reshape(-1, block_size(len(particles), BLOCK_SIZE), num_parameters)
        sums = jax.lax.map(lambda block: sum_over_rows(self, block, rows, add, nothing), blocks)
        return jnp.sum(sums, axis=0) / len(particles)

    def hyperparameters(self, parameters: Parameters) -> Hyperparameters:
        """Read what a particle has learned besides the population; by default nothing."""
        del parameters
        return Hyperparameters()

    def interweave(self, rng_key: RngKey, parameters: Parameters) -> Parameters:
        """Move a particle such that its population stays and the prior N(0, I) is kept.

        For models in which several parameters describe the same population; by default none do.
        """
        del rng_key
        return parameters

    def posterior(
        self, parameters: Parameters, context: PossibleContext, statistics: Statistics
    ) -> Belief:
        """Condition the particle's population on what is known of a user, and on the rewards.

        Rewards say which of several possible contexts are likelier.
        """
        if context.ndim == 1:
            return self.posterior_at(parameters, context, statistics)
        given = parameters, context, statistics
        beliefs = jax.vmap(self.posterior_at, (None, 0, None))(*given)
        evidences = jax.vmap(self.log_evidence_at, (None, 0, None))(*given)
        return beliefs.blended(evidences - logsumexp(evidences))

    def average(
        self,
        particles: Particles,
        log_weights: LogWeights,
        context: PossibleContext,
        statistics: Statistics,
    ) -> Belief:
        """Mix the beliefs of all particles about one user; override where they share work."""
        beliefs = jax.vmap(self.posterior, (0, None, None))(particles, context, statistics)
        return beliefs.blended(log_weights - logsumexp(log_weights))

    def with_arm(self) -> "PopulationModel | None":
        """Make the same model with one more arm; None if what was learned does not carry over."""
        return None

    def extend(self, rng_key: RngKey, particles: Particles) -> Float[Array, "particle wider"]:
        """Make particles of `with_arm` from those of this model.

        Nobody has been given the new arm, so its parameters, which come last, have their prior.
        """
        wider = self.with_arm()
        assert wider is not None
        num_new = wider.num_parameters - self.num_parameters
        fresh = jax.random.normal(rng_key, (len(particles), num_new))
        return jnp.concatenate([particles, fresh], axis=1)


def sum_over_rows(
    model: PopulationModel,
    particles: Particles,
    rows: UserRows,
    add: Callable[[T, Scalar, PerParticle, Particles], T],
    sums: T,
) -> T:
    """Add up something of every row's weight, log-evidence and gradient, one row after another."""
    evidence = jax.vmap(model.log_evidence_and_gradient, in_axes=(0, None, None))

    def add_row(row: Int[Array, ""], sums: T) -> T:
        weight, context, statistics = rows.of(row)
        # A user without rewards has evidence one under every particle.
        return jax.lax.cond(
            (weight > 0) & (jnp.sum(statistics.count) > 0),
            lambda: add(sums, weight, *evidence(particles, context, statistics)),
            lambda: sums,
        )

    return jax.lax.fori_loop(0, rows.num_rows, add_row, sums)
