"""A particle's belief about one user, as probabilities of the cells of the arm grid.

Exact under a density that is flat within each cell: arms that share a cell are ordered by the
truncated normals in it, not by the order of their names (paper, App. "Thompson Sampling").
"""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from cocobandits.populations.base import Belief
from cocobandits.populations.log_density.best_and_reward import (
    RewardTables,
    higher_masses,
    moment_tables,
    reward_tables,
    rival_masses,
)
from cocobandits.populations.log_density.grid import Axis
from cocobandits.populations.log_density.tensors import marginals, pair_marginal, sink, times
from cocobandits.populations.log_density.within_cell import (
    CellTables,
    UserCells,
    cell_tables,
    cumulative_in_cell,
)
from cocobandits.populations.truncated_normal import (
    interval_log_likelihood,
    quadrature,
)
from cocobandits.types import ArmCells, ArmValues, ArmVector, Number, Scalar, Values
from cocobandits.users.statistics import Statistics


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GridBelief(Belief):
    """Masses of the cells over all arms, with the tables that describe the inside of cells."""

    masses: Float[Array, "*cells"]  # unnormalised: what is read off is divided, not every cell
    total: Float[Array, "*each"]
    statistics: Statistics
    tables: CellTables
    axis: Axis = field(metadata={"static": True})
    reward_noise: Float[Array, "*each"]
    is_eligible: Bool[Array, "*each arm"]

    @classmethod
    def of(
        cls,
        masses: Float[Array, "*cells"],
        statistics: Statistics,
        axis: Axis,
        reward_noise: Number,
        is_eligible: Bool[Array, " arm"] | None = None,
    ) -> "GridBelief":
        """Describe the inside of cells whose masses the rewards have already made."""
        if is_eligible is None:
            is_eligible = jnp.ones(masses.ndim, dtype=bool)
        tables = cell_tables(UserCells(statistics, axis, reward_noise, is_eligible))
        total, noise = jnp.sum(masses).astype(float), jnp.asarray(reward_noise)
        return cls(masses, total, statistics, tables, axis, noise, is_eligible)

    @property
    def probabilities(self) -> Float[Array, "*cells"]:
        """Normalise the masses."""
        return self.masses / self.total.astype(self.masses.dtype)

    @property
    def shares(self) -> ArmCells:
        """Compute the probability of every cell of each arm."""
        return marginals(self.masses) / self.total

    def mean(self) -> ArmVector:
        """Compute E[μ_a]."""
        return jnp.sum(self.shares * self.tables.mean, axis=1)

    def variance(self) -> ArmVector:
        """Compute Var(μ_a), cell by cell around the mean."""
        shares, mean = self.shares, self.mean()[:, None]
        centred = self.tables.square - 2 * mean * self.tables.mean + mean**2
        return jnp.maximum(jnp.sum(shares * centred, axis=1), 0.0)

    def best_probability(self) -> ArmVector:
        """Compute P(arm a has the largest mean)."""
        win = self.tables.win.astype(self.masses.dtype)
        wins = (win.reshape(len(win), -1) @ self.masses.ravel()).astype(float)
        return wins / jnp.sum(wins)

    def expected_best(self) -> Scalar:
        """Compute E[max_a μ_a]."""
        best = self.tables.best.astype(self.masses.dtype)
        return jnp.vdot(best, self.masses).astype(float) / self.total

    def values(self) -> Values:
        """Take the points of the quadrature."""
        return quadrature(self.statistics, self.reward_noise, self.axis.edges).points

    def cumulative(self, values: Values) -> ArmValues:
        """Compute P(μ_a ≤ value)."""
        inside, cells = cumulative_in_cell(self.statistics, self.axis, self.reward_noise, values)
        shares = self.shares
        lower = jnp.cumsum(shares, axis=1) - shares
        return jnp.clip(lower[:, cells] + shares[:, cells] * inside, 0.0, 1.0)

    def predictive(self, rewards: Values) -> ArmValues:
        """Compute Σ_cells P(cell) · p(rewards and the next one | cell) / p(rewards | cell)."""

        def next_log_likelihood(reward: Scalar) -> ArmCells:
            return self._log_likelihood(self.statistics.extend(reward))

        following = jax.vmap(next_log_likelihood)(rewards)
        ratio = jnp.exp(following - self._log_likelihood(self.statistics)[None, :, :])
        density = jnp.einsum("ac,rac->ar", self.shares, ratio)
        return jnp.where(self.is_eligible[:, None], density, 0.0)

    def best_and_reward(self, rewards: Values) -> Float[Array, "best arm value"]:
        """Compute the density of the next reward of every arm together with who is best."""
        tables = reward_tables(self._cells, rewards, self.masses.dtype)
        pulled = [self._best_and_reward_of(arm, table) for arm, table in enumerate(tables)]
        return jnp.stack(pulled, axis=1).astype(float) / self.total

    def _best_and_reward_of(self, arm: int, tables: RewardTables) -> Float[Array, "best value"]:
        masses, dtype = rival_masses(self.masses, arm), self.masses.dtype
        rows = []
        for best in range(self.masses.ndim):
            patterns = tables.winner[best]
            mass = jnp.concatenate([masses[(slice(None), *pattern)] for pattern in patterns])
            row = mass @ jnp.concatenate(list(patterns.values())).astype(dtype)
            if best != arm:
                win = self.tables.win[best].astype(dtype)
                higher = higher_masses(self.masses, win, arm, best)
                row += higher @ tables.any_winner.astype(dtype)
            rows.append(row)
        return jnp.stack(rows)

    def mean_and_reward(self, rewards: Values) -> Float[Array, "other arm value"]:
        """Sum over the cells of the pulled arm, each with what it says about all means."""
        arms = range(self.masses.ndim)
        density, moment = moment_tables(self._cells, rewards)
        shares = self.shares

        def row(other: int, arm: int) -> Values:
            if other == arm:
                return shares[arm] @ moment[arm]
            joint = pair_marginal(self.masses, arm, other).astype(float) / self.total
            return (joint @ self.tables.mean[other]) @ density[arm]

        return jnp.stack([jnp.stack([row(other, arm) for arm in arms]) for other in arms])

    def pair_probability(self, first: int, second: int, edges: Values) -> Float[Array, "bin bin"]:
        """Spread the joint cell probabilities of two arms over square bins."""
        joint = pair_marginal(self.masses, first, second) / self.total
        inside, cells = cumulative_in_cell(self.statistics, self.axis, self.reward_noise, edges)
        # Row e: how much of each cell lies below edge e.
        is_lower = (jnp.arange(self.axis.size)[None, :] < cells[:, None]).astype(float)
        is_same = (jnp.arange(self.axis.size)[None, :] == cells[:, None]).astype(float)
        share = jnp.diff(is_lower[None] + is_same[None] * inside[:, :, None], axis=1)
        return share[first] @ joint @ share[second].T

    def condition(self, statistics: Statistics) -> "GridBelief":
        """Multiply each cell by what the further rewards add to its likelihood."""
        return self.learn(statistics)[0]

    def learn(self, statistics: Statistics) -> tuple["GridBelief", Scalar]:
        """Condition on further rewards, and compute the log of their density."""
        total = self.statistics.plus(statistics)
        gains = self._log_likelihood(total) - self._log_likelihood(self.statistics)
        peaks = jnp.max(gains, axis=1)
        masses = times(self.masses, jnp.exp(gains - peaks[:, None]).astype(self.masses.dtype))
        after = GridBelief.of(masses, total, self.axis, self.reward_noise, self.is_eligible)
        return after, jnp.log(after.total / self.total) + jnp.sum(peaks)

    def among(self, is_eligible: Bool[Array, " arm"]) -> "GridBelief":
        """Sum over the cells of all other arms, and put these below all cells."""
        masses = sink(self.masses, is_eligible)
        return GridBelief.of(masses, self.statistics, self.axis, self.reward_noise, is_eligible)

    def blended(self, log_shares: Float[Array, " each"]) -> "GridBelief":
        """Average the probabilities of cells; all beliefs are of one particle, so of one noise."""
        weights = (jnp.exp(log_shares) / self.total).astype(self.masses.dtype)
        statistics = Statistics(*(part[0] for part in self.statistics))
        masses = jnp.tensordot(weights, self.masses, axes=1)
        return GridBelief.of(
            masses, statistics, self.axis, self.reward_noise[0], self.is_eligible[0]
        )

    @property
    def _cells(self) -> UserCells:
        return UserCells(self.statistics, self.axis, self.reward_noise, self.is_eligible)

    def _log_likelihood(self, statistics: Statistics) -> ArmCells:
        return interval_log_likelihood(statistics, self.reward_noise, self.axis.edges)
