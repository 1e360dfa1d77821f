"""Populations as dependent stick-breaking mixtures with conjugate components.

    P(μ | x) = Σ_c w_c(x) ∏_a N(m_ca(x), s_ca²)

(or Beta laws of the same means for yes/no rewards; with common factors of the arms). A user's
rewards reweight the components, and within a component each arm is conditioned in closed form, so
evidence and posterior are exact and cost O(C · K) per particle and user.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from cocobandits.numerics.blocks import block_size, in_blocks
from cocobandits.numerics.reward_grid import RewardGrid
from cocobandits.populations.base import Hyperparameters, PopulationModel
from cocobandits.populations.mixture.arms import Arms, GaussianArms
from cocobandits.populations.mixture.belief import MixtureBelief
from cocobandits.populations.mixture.beta_arms import BetaArms, beta_log_evidence, count_outcomes
from cocobandits.populations.mixture.config import MixtureConfig
from cocobandits.populations.mixture.factors import FactorArms, gaussian_rows
from cocobandits.populations.mixture.likelihood import (
    CHUNK_USERS,
    Coefficients,
    log_likelihood_and_slopes,
)
from cocobandits.populations.mixture.population import LOGITS, PULLS, SPREAD, Layout, Population
from cocobandits.types import (
    Context,
    Matrix,
    Parameters,
    Particles,
    PerParticle,
    RngKey,
    Scalar,
)
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import UserRows

# Users that are worked on at a time, and numbers of particles × users × components × arms.
_CHUNK_USERS = 32
_BLOCK_NUMBERS = 200_000
# Particles under which each user is looked at for the information, and how many users at least.
_PARTICLES_PER_USER, _USERS_AT_LEAST = 5, 64
# Beyond so many parameters a matrix of them is neither held nor factored.
_MOST_DENSE = 1200
# Numbers of all particles, components, arms and rewards that are read at a time.
_READ_NUMBERS = 4_000_000
# Rewards of each arm that are looked ahead to, and of all arms together.
_FEWEST_REWARDS, _MOST_REWARDS, _NUM_VALUES = 32, 128, 512
# What success probabilities next to 0 or 1 are worth at the least: nothing is impossible.
_FEWEST_PULLS = 1e-4


class _Table(NamedTuple):
    """Users in chunks; those beyond the last one weigh nothing."""

    weights: Float[Array, "chunk user"]
    terms: Float[Array, "chunk user *point term"]
    statistics: Statistics  # each field: chunk × user × arm
    num_chunks: Int[Array, ""]

    @classmethod
    def of(cls, rows: UserRows, terms: Float[Array, "user *point term"]) -> "_Table":
        """Cut rows into chunks."""
        counted = jnp.where(jnp.arange(len(rows.weights)) < rows.num_rows, rows.weights, 0.0)

        def cut(part: Array) -> Array:
            spare = -len(part) % _CHUNK_USERS
            padded = jnp.pad(part, ((0, spare),) + ((0, 0),) * (part.ndim - 1))
            return padded.reshape(-1, _CHUNK_USERS, *part.shape[1:])

        statistics = Statistics(*map(cut, rows.statistics))
        return cls(cut(counted), cut(terms), statistics, -(-rows.num_rows // _CHUNK_USERS))

    @property
    def chunk_size(self) -> int:
        """How many users are in a chunk, each point of a context counted."""
        return math.prod(self.terms.shape[1:-1])

    def chunk(self, number: Int[Array, ""]) -> tuple[Array, Array, Statistics]:
        """Read one chunk: weights, terms, statistics."""
        statistics = Statistics(*(part[number] for part in self.statistics))
        return self.weights[number], self.terms[number], statistics


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MixtureModel(PopulationModel):
    """The population model for many arms."""

    config: MixtureConfig

    @cached_property
    def layout(self) -> Layout:
        """Where each part stands among the parameters."""
        return Layout(self.config)

    @property
    def num_parameters(self) -> int:
        """Length of a particle."""
        return self.layout.num_parameters

    @property
    def num_arms(self) -> int:
        """Number of arms K."""
        return self.config.num_arms

    @property
    def mean_range(self) -> tuple[float, float]:
        """The declared range; Gaussian tails reach beyond it."""
        return self.config.mean_range

    @property
    def reward_noise(self) -> float:
        """Standard deviation σ of a reward; its prior median if it is learned."""
        return self.config.reward_noise

    @property
    def noise_range(self) -> tuple[float, float]:
        """Two prior deviations to either side of the median."""
        stretch = math.exp(2 * self.config.noise_deviation)
        return self.config.reward_noise / stretch, self.config.reward_noise * stretch

    @property
    def reward_grid(self) -> RewardGrid:
        """Two if yes or no. Else a number: beliefs say where; many arms have to share the time."""
        if self.config.rewards == "bernoulli":
            return RewardGrid.even(*self.mean_range, 2)
        num_values = max(_FEWEST_REWARDS, min(_MOST_REWARDS, _NUM_VALUES // self.num_arms))
        return RewardGrid.even(*self.mean_range, num_values, is_dense=True)

    @property
    def particles_at_once(self) -> int:
        """All that fit a block."""
        per_particle = self.reward_grid.capacity * self.num_arms**2
        return max(1, _READ_NUMBERS // per_particle)

    def with_arm(self) -> "MixtureModel":
        """Add an arm with a block of parameters at the end."""
        return MixtureModel(replace(self.config, num_arms=self.num_arms + 1))

    def log_evidence_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> Scalar:
        """Compute log Σ_c w_c(x) p(rewards | component c)."""
        return self._conditioned(parameters, context, statistics)[1]

    def log_likelihood_and_gradient(
        self, particles: Particles, rows: UserRows
    ) -> tuple[PerParticle, Particles]:
        """Sum over users, a handful at a time, in the coefficients; then in the parameters."""
        if self.config.rewards == "gaussian":
            return self._closed_form(particles, rows)
        table = _Table.of(rows, self._terms(rows.contexts))

        def sum_block(block: Particles) -> tuple[PerParticle, Particles]:
            populations, pull_back = jax.vjp(jax.vmap(self.layout.population), block)

            def add(chunk: Int[Array, ""], sums: Any) -> Any:
                weights, terms, statistics = table.chunk(chunk)

                def total(population: Population) -> Scalar:
                    return weights @ self._rows(population, terms, statistics)

                return jax.tree.map(jnp.add, sums, jax.vmap(jax.value_and_grad(total))(populations))

            nothing = jnp.zeros(len(block)), jax.tree.map(jnp.zeros_like, populations)
            values, slopes = jax.lax.fori_loop(0, table.num_chunks, add, nothing)
            return values, pull_back(slopes)[0]

        size = table.chunk_size * self.config.num_components * self.num_arms
        return in_blocks(sum_block, particles, max(1, _BLOCK_NUMBERS // size))

    def _closed_form(self, particles: Particles, rows: UserRows) -> tuple[PerParticle, Particles]:
        terms = self._terms(rows.contexts)

        def coefficients(columns: Float[Array, "parameter particle"]) -> Coefficients:
            return Coefficients.of(self.layout.population(columns))

        def sum_block(block: Particles) -> tuple[PerParticle, Particles]:
            exact, pull_back = jax.vjp(coefficients, block.T)
            values, slopes = log_likelihood_and_slopes(exact, rows, terms, self.config.dtype)
            return values, pull_back(slopes)[0].T

        size = CHUNK_USERS * self.config.num_components * self.config.num_arms
        return in_blocks(sum_block, particles, max(1, _BLOCK_NUMBERS // size))

    def information(self, particles: Particles, rows: UserRows) -> Matrix | Parameters:
        """Sum over users, a handful at a time, each under a few particles that take turns.

        While users are few, they are gone through several times, with other particles.
        """
        table = _Table.of(rows, self._terms(rows.contexts))
        is_dense = self.num_parameters <= _MOST_DENSE
        size = block_size(len(particles), _PARTICLES_PER_USER if is_dense else 1)
        # Particles of a group come from all over: resampling leaves copies side by side.
        groups = jnp.swapaxes(particles.reshape(size, -1, self.num_parameters), 0, 1)
        num_rounds = jnp.clip(_USERS_AT_LEAST // jnp.maximum(rows.num_rows, 1), 1, len(groups))

        def evidence(
            parameters: Parameters, terms: Float[Array, "*point term"], statistics: Statistics
        ) -> Scalar:
            alone = Statistics(*(part[None] for part in statistics))
            return self._rows(self.layout.population(parameters), terms[None], alone)[0]

        def scores(group: Particles, *user: Any) -> Particles:
            return jax.vmap(lambda parameters: jax.grad(evidence)(parameters, *user))(group)

        def add(step: Int[Array, ""], sums: Array) -> Array:
            weights, terms, statistics = table.chunk(step // num_rounds)
            turns = (step + jnp.arange(len(weights)) * num_rounds) % len(groups)
            slopes = jax.vmap(scores)(groups[turns], terms, statistics)
            weighed = (jnp.sqrt(weights)[:, None, None] * slopes).reshape(-1, slopes.shape[2])
            return sums + (weighed.T @ weighed if is_dense else jnp.sum(weighed**2, axis=0))

        nothing = jnp.zeros((self.num_parameters,) * (2 if is_dense else 1))
        total = jax.lax.fori_loop(0, table.num_chunks * num_rounds, add, nothing)
        return total / (size * num_rounds)

    def _terms(
        self, contexts: Float[Array, "user *point feature"]
    ) -> Float[Array, "user *point term"]:
        lay_out = jax.vmap(self.layout.terms)
        return (jax.vmap(lay_out) if contexts.ndim == 3 else lay_out)(contexts)

    def _rows(
        self,
        population: Population,
        terms: Float[Array, "user *point term"],
        statistics: Statistics,
    ) -> Float[Array, " user"]:
        """Compute the log-evidence of every user under one particle."""
        # Counts of pulls may be large, and their logarithms close to each other.
        dtype = self.config.dtype if self.config.rewards == "gaussian" else float
        population, terms = population.astype(dtype), terms.astype(dtype)
        if terms.ndim == 3:
            # Each point as a user of its own, and then their average.
            num_points = terms.shape[1]
            spread = Statistics(*(jnp.repeat(part, num_points, axis=0) for part in statistics))
            evidences = self._rows(population, terms.reshape(-1, terms.shape[2]), spread)
            return logsumexp(evidences.reshape(-1, num_points), axis=1) - math.log(num_points)
        log_weights = jax.vmap(stick_breaking)(population.logits(terms))
        means = population.means(terms)
        if self.config.rewards == "bernoulli":
            alpha, beta = _beta_counts(means, population.spreads[None])
            outcomes = count_outcomes(statistics, self.config.mean_range)
            fit = jax.vmap(beta_log_evidence)(alpha, beta, *outcomes)
            return logsumexp(log_weights + fit, axis=1).astype(float)
        factors = population.factors(terms) if self.config.rank else None
        given = population.spreads**2, population.noise, statistics
        fit, constant = gaussian_rows(means, factors, *given)
        return logsumexp(log_weights + fit, axis=1).astype(float) + constant

    def hyperparameters(self, parameters: Parameters) -> Hyperparameters:
        """Read the noise, if it is learned."""
        if not self.config.is_noise_learned:
            return Hyperparameters()
        return Hyperparameters(noise=self.layout.population(parameters).noise)

    def interweave(self, rng_key: RngKey, parameters: Parameters) -> Parameters:
        """Move the scales while the population stays."""
        return self.layout.interweave(rng_key, parameters)

    def posterior_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> MixtureBelief:
        """Reweight the components, and condition each."""
        belief = self._conditioned(parameters, context, statistics)[0]
        return jax.tree.map(lambda part: part.astype(self.config.dtype), belief)

    def _conditioned(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> tuple[MixtureBelief, Scalar]:
        population, terms = self.layout.population(parameters), self.layout.terms(context)
        log_weights = stick_breaking(population.logits(terms))
        means = population.means(terms)
        if self.config.rewards == "bernoulli":
            counts = _beta_counts(means, population.spreads)
            prior: Arms = BetaArms(*counts, self.config.mean_range)
        else:
            noise = jnp.broadcast_to(population.noise, (len(means),))
            prior = GaussianArms(means, population.spreads**2, noise)
            if self.config.rank:
                prior = FactorArms(prior, population.factors(terms))
        arms, fit = prior.condition(statistics)
        joint = log_weights + fit
        total = logsumexp(joint)
        return MixtureBelief(joint - total, arms), total


def stick_breaking(logits: Float[Array, " stick"]) -> Float[Array, " component"]:
    """Break a share σ(logit) off what is left, stick by stick; in logarithms."""
    taken, left = jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)
    before = jnp.concatenate([jnp.zeros(1), jnp.cumsum(left)])
    return before + jnp.append(taken, 0.0)


def _beta_counts(means: Array, spreads: Array) -> tuple[Array, Array]:
    """Turn means and spreads into the two counts of Beta laws."""
    logits, pulls = LOGITS * means, PULLS * (SPREAD / spreads) ** 2
    successes, failures = pulls * jax.nn.sigmoid(logits), pulls * jax.nn.sigmoid(-logits)
    return jnp.maximum(successes, _FEWEST_PULLS), jnp.maximum(failures, _FEWEST_PULLS)
