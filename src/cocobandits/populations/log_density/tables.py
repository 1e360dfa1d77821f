"""The evidence of any number of users, read off densities tabulated at a few contexts.

A user's evidence is a sum over the cells of those arms that have rewards, of the population's mass
there times the likelihood, over the mass of all cells. The logarithm of each such mass is smooth in
the context: it is computed at the points of `ContextPoints` and read in between. So the grid is
gone through once per particle and point, not once per particle and user; a user costs the few cells
around each sample mean. The gradient is that of the sum as it is computed, in closed form, except
where a mass is so small that it is held at a floor.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from cocobandits.numerics.blocks import block_size, once
from cocobandits.populations.log_density.basis import Basis
from cocobandits.populations.log_density.context_points import ContextPoints, Shares
from cocobandits.populations.log_density.expansion import Expansion, expand_columns, sum_columns
from cocobandits.populations.log_density.grid import Axis
from cocobandits.populations.log_density.tensors import Tensor, outer_sum
from cocobandits.populations.log_density.within_cell import cell_of
from cocobandits.populations.truncated_normal import interval_log_likelihood
from cocobandits.types import Number, Particles, PerParticle, Scalar
from cocobandits.users.statistics import Statistics, sample_mean
from cocobandits.users.table import UserRows

Arms = tuple[int, ...]
# Over the cells of some of the arms, and over context points and particles: a column for each.
Table = Float[Array, "_ column"]
# Coefficients of products of one function per arm.
Cores = Float[Array, "core point particle"]

# How many noise deviations around a sample mean are looked at: beyond, exp(-18) of the peak.
_REACH = 6.0


class UserPlan(NamedTuple):
    """What does not depend on the particle, for every row, in the order of which arms have rewards.

    Attributes:
        bounds: where in that order each set of arms begins, and where the last one ends.
        weights: of each row in the sum.
        shares: of the context points.
        starts: first cell of the window of each arm.
        log_likelihoods: in the windows, relative to their peaks.
        constant: the weighted sum of those peaks.
        demand: the weighted sum of shares over all rows with rewards.
    """

    bounds: Int[Array, " bound"]
    weights: Float[Array, " user"]
    shares: Float[Array, "user point"]
    starts: Int[Array, "user arm"]
    log_likelihoods: Float[Array, "user arm cell"]
    constant: Scalar
    demand: Shares

    def window(self, row: Int[Array, ""], arms: Iterable[int]) -> Float[Array, " cell"]:
        """Add up the log-likelihoods of some arms at every combination of their cells."""
        return outer_sum(self.log_likelihoods[row, arm] for arm in arms).ravel()


def window_size(reward_noise: float, axis: Axis) -> int:
    """Count the cells within reach to either side of the cell of a sample mean."""
    reach = math.ceil(_REACH * reward_noise / axis.spacing)
    return min(axis.size, 2 * reach + 2)


@dataclass(frozen=True, eq=False)
class EvidenceTables:
    """How to sum log-evidences over users for a model with known noise."""

    basis: Basis
    expansion: Expansion
    points: ContextPoints
    axis: Axis
    reward_noise: Number
    width: int  # cells per window

    @property
    def num_arms(self) -> int:
        """Number of arms K."""
        return self.expansion.num_arms

    @property
    def num_coefficients(self) -> int:
        """How many coefficients a particle has at all context points."""
        return self.points.count * len(self.expansion.incidence)

    @cached_property
    def arm_sets(self) -> list[Arms]:
        """All sets of arms, small ones first; the first is empty."""
        arms = range(self.num_arms)
        return [chosen for size in range(self.num_arms + 1) for chosen in combinations(arms, size)]

    def plan(self, rows: UserRows) -> UserPlan:
        """Sort the rows by the arms that have rewards, and look at each arm where it matters."""
        is_pulled = rows.statistics.count > 0
        is_counted = (rows.weights > 0) & jnp.any(is_pulled, axis=1)
        codes = [sum(2**arm for arm in arms) for arms in self.arm_sets]
        number_of = jnp.asarray(np.argsort(codes))
        kinds = jnp.where(is_counted, number_of[is_pulled @ 2 ** jnp.arange(self.num_arms)], 0)
        order = jnp.argsort(kinds)
        bounds = jnp.searchsorted(kinds[order], jnp.arange(len(self.arm_sets) + 1))

        def look(statistics: Statistics) -> tuple[jax.Array, ...]:
            whole = interval_log_likelihood(statistics, self.reward_noise, self.axis.edges)
            middle = cell_of(self.axis, sample_mean(statistics))
            start = jnp.clip(middle - self.width // 2, 0, self.axis.size - self.width)
            window = jax.vmap(lambda row, at: jax.lax.dynamic_slice(row, (at,), (self.width,)))(
                whole, start
            )
            peaks = jnp.max(window, axis=1)
            return (
                start,
                window - peaks[:, None],
                jnp.sum(jnp.where(statistics.count > 0, peaks, 0)),
            )

        starts, windows, peaks = jax.vmap(look)(rows.statistics)
        weights = jnp.where(is_counted, rows.weights, 0.0)
        shares = jax.vmap(self.points.shares)(rows.contexts)
        dtype = self.expansion.functions.dtype
        return UserPlan(
            bounds,
            weights[order].astype(dtype),
            shares[order].astype(dtype),
            starts[order],
            windows[order].astype(dtype),
            weights @ jnp.where(is_counted, peaks, 0.0),
            weights @ shares,
        )

    def sum_rows(
        self, particles: Particles, plan: UserPlan, particles_at_once: int
    ) -> tuple[PerParticle, Particles]:
        """Sum over all users, with tables for so many particles at once."""

        def at_points(given: Particles) -> Cores:
            at = jax.vmap(self.basis.coefficients, in_axes=(None, 0), out_axes=1)
            coefficients = jax.vmap(at, in_axes=(0, None), out_axes=2)(given, self.points.contexts)
            return self.expansion.cores(coefficients)

        cores, pull_back = jax.vjp(at_points, particles)
        size = block_size(len(particles), particles_at_once)
        blocks = jnp.moveaxis(cores.reshape(*cores.shape[:2], -1, size), 2, 0)
        values, slopes = jax.lax.map(lambda block: self._sum_block(block, plan), blocks)
        slopes = jnp.moveaxis(slopes, 0, 2).reshape(cores.shape)
        values, slopes = self._add_whole_rows(cores, plan, values.ravel(), slopes)
        return values, pull_back(slopes)[0]

    def _sum_block(self, cores: Cores, plan: UserPlan) -> tuple[PerParticle, Cores]:
        """Sum over the users who lack rewards of an arm, and all normalisers."""
        functions = [self.expansion.functions] * self.num_arms
        num_particles = cores.shape[-1]
        log_density = expand_columns(cores.reshape(len(cores), -1), functions)
        top = jnp.max(log_density, axis=0)
        density = once(jnp.exp(log_density - top[None, :]))
        masses = self._masses(density)
        log_total = (jnp.log(masses[()][0]) + top).reshape(-1, num_particles)
        values = plan.constant - plan.demand @ log_total.astype(float)
        demand = jnp.repeat(plan.demand, num_particles).astype(density.dtype)
        slopes: dict[Arms, Table] = {(): -demand[None, :]}
        for number, arms in enumerate(self.arm_sets[1:-1], start=1):
            table = jnp.log(masses[arms]) + top[None, :]
            between = plan.bounds[number], plan.bounds[number + 1]
            values, slopes[arms] = self._add_rows(arms, table, between, plan, values)
        gradients = sum_columns(self._spread(slopes, masses, density), functions)
        return values, gradients.reshape(cores.shape)

    def _add_whole_rows(
        self, cores: Cores, plan: UserPlan, values: PerParticle, slopes: Cores
    ) -> tuple[PerParticle, Cores]:
        """Add the users with rewards of all arms: no sum over arms, so their cells are enough.

        The log-density itself is read between the points, by the coefficients that make it.
        """
        num_cores, num_points, num_particles = cores.shape
        flat = jnp.moveaxis(cores, 1, 0).reshape(num_points, -1)

        def add_row(
            row: Int[Array, ""], sums: tuple[PerParticle, Float[Array, "point _"]]
        ) -> tuple[PerParticle, Float[Array, "point _"]]:
            values, slopes = sums
            shares, weight = plan.shares[row], plan.weights[row]
            functions = [
                jax.lax.dynamic_slice_in_dim(self.expansion.functions, start, self.width)
                for start in plan.starts[row]
            ]
            log_density = expand_columns((shares @ flat).reshape(num_cores, -1), functions)
            log_evidence, posterior = _weigh(log_density, plan.window(row, range(self.num_arms)))
            gradient = weight * sum_columns(posterior, functions)
            return values + weight * log_evidence, slopes + jnp.outer(shares, gradient)

        begin = jnp.moveaxis(slopes, 1, 0).reshape(num_points, -1)
        values, after = jax.lax.fori_loop(
            plan.bounds[-2], plan.bounds[-1], add_row, (values, begin)
        )
        after = after.reshape(num_points, num_cores, num_particles)
        return values, jnp.moveaxis(after, 0, 1)

    def _shape(self, arms: Arms) -> tuple[int, ...]:
        """Give each arm of a set an axis of its own, before the columns."""
        return (*(self.axis.size,) * len(arms), -1)

    def _masses(self, density: Table) -> dict[Arms, Table]:
        """Sum the density over all arms but those of each set."""
        whole, size = self.arm_sets[-1], self.axis.size
        masses = {whole: density}
        # Slopes are divided by masses: well above the smallest number there is.
        tiny = float(np.finfo(density.dtype).tiny) ** 0.75
        for arms in reversed(self.arm_sets[:-1]):
            larger, axis = self._larger(arms)
            # As few axes as possible: the processor likes long runs.
            split = masses[larger].reshape(size**axis, size, -1)
            masses[arms] = jnp.sum(split, axis=1).reshape(-1, density.shape[-1])
        return {arms: jnp.maximum(mass, tiny) for arms, mass in masses.items() if arms != whole}

    def _larger(self, arms: Arms) -> tuple[Arms, int]:
        """Add the first arm that a set lacks, and tell where it goes."""
        extra = next(arm for arm in range(self.num_arms) if arm not in arms)
        larger = tuple(sorted((*arms, extra)))
        return larger, larger.index(extra)

    def _add_rows(
        self,
        arms: Arms,
        table: Table,
        between: tuple[Int[Array, ""], Int[Array, ""]],
        plan: UserPlan,
        values: PerParticle,
    ) -> tuple[PerParticle, Table]:
        """Add the users with rewards of just these arms; also the slope in every table entry."""
        num_columns, num_points = table.shape[-1], len(plan.demand)
        tensor = table.reshape(self._shape(arms))
        sizes = (*(self.width,) * len(arms), num_columns)

        def add_row(
            row: Int[Array, ""], sums: tuple[PerParticle, Tensor]
        ) -> tuple[PerParticle, Tensor]:
            values, slopes = sums
            corner = [*(plan.starts[row, arm] for arm in arms), jnp.zeros((), dtype=int)]
            shares, weight = jnp.repeat(plan.shares[row], len(values)), plan.weights[row]
            window = jax.lax.dynamic_slice(tensor, corner, sizes).reshape(-1, num_columns)
            read = (window * shares[None, :]).reshape(len(window), num_points, -1)
            log_evidence, posterior = _weigh(jnp.sum(read, axis=1), plan.window(row, arms))
            spread = jnp.tile(weight * posterior, (1, num_points)) * shares[None, :]
            before = jax.lax.dynamic_slice(slopes, corner, sizes)
            after = before + spread.reshape(sizes)
            slopes = jax.lax.dynamic_update_slice(slopes, after, corner)
            return values + weight * log_evidence, slopes

        values, slopes = jax.lax.fori_loop(*between, add_row, (values, jnp.zeros_like(tensor)))
        return values, slopes.reshape(table.shape)

    def _spread(
        self, slopes: dict[Arms, Table], masses: dict[Arms, Table], density: Table
    ) -> Table:
        """Carry the slope in every mass to the log-density of the cells that it sums."""
        ratios = {arms: slopes[arms] / masses[arms] for arms in self.arm_sets[:-1]}
        for arms in self.arm_sets[: -1 - self.num_arms]:
            larger, axis = self._larger(arms)
            ratios[larger] += self._repeat(ratios[arms], axis)
        # What is left are the sets that lack one arm.
        factor = sum(
            self._repeat(ratios[arms], self._larger(arms)[1])
            for arms in self.arm_sets[-1 - self.num_arms : -1]
        )
        return density * factor

    def _repeat(self, table: Table, axis: int) -> Table:
        """Say the same for all cells of one more arm."""
        num_before, num_columns = self.axis.size**axis, table.shape[-1]
        split = table.reshape(num_before, 1, -1)
        shape = (num_before, self.axis.size, split.shape[-1])
        return jnp.broadcast_to(split, shape).reshape(-1, num_columns)


def _weigh(
    log_mass: Float[Array, "cell particle"], log_likelihood: Float[Array, " cell"]
) -> tuple[PerParticle, Float[Array, "cell particle"]]:
    """Compute a user's log-evidence for every particle, and the posterior of the cells."""
    joint = log_mass + log_likelihood[:, None]
    peak = jnp.max(joint, axis=0)
    mass = once(jnp.exp(joint - peak[None, :]))
    total = jnp.sum(mass, axis=0)
    return (jnp.log(total) + peak).astype(float), mass / total[None, :]
