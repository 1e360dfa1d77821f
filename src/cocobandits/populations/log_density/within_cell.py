"""What happens inside a cell: where in it the arm mean lies, and who wins when arms share a cell.

A particle gives a probability to each cell; inside the cell its density is flat, and a user's
rewards tilt it to a truncated normal. These tables hold the moments and the tie-breaking
probabilities of those truncated normals. They depend on the user's rewards and the noise, and so
are computed once for all particles unless each has a noise of its own.
"""

import itertools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from cocobandits.numerics.quadrature import Quadrature
from cocobandits.populations.base import FAR_BELOW
from cocobandits.populations.log_density.grid import Axis
from cocobandits.populations.truncated_normal import quadrature, truncated
from cocobandits.types import ArmCells, ArmValues, Number, Values
from cocobandits.users.statistics import Statistics

# One entry of size two per rival: it sits in a lower cell (0) or in the same one (1).
Duels = Float[Array, "arm cell *rival"]


class CellTables(NamedTuple):
    """Moments of the arm means within a cell; for each tuple of cells, who wins and with what."""

    mean: ArmCells
    square: ArmCells
    win: Float[Array, "arm *cells"]
    best: Float[Array, "*cells"]


class UserCells(NamedTuple):
    """What the inside of a user's cells depends on."""

    statistics: Statistics
    axis: Axis
    reward_noise: Number
    is_eligible: Bool[Array, " arm"]

    def inside(self) -> tuple[Quadrature, Int[Array, " point"], ArmValues, ArmValues]:
        """Lay out points; find their cells, and every arm's density and distribution function."""
        statistics, axis, noise, is_eligible = self
        rule = quadrature(statistics, noise, axis.edges)
        cells = cell_of(axis, rule.centres)
        density, below = truncated(statistics, noise, axis.edges, cells, rule.points)
        # Arms that are not eligible have no density anywhere, and are surely below each point.
        density = jnp.where(is_eligible[:, None], density, 0.0)
        return rule, cells, density, jnp.where(is_eligible[:, None], below, 1.0)


def cell_tables(user: UserCells) -> CellTables:
    """Integrate over the inside of every cell."""
    axis, is_eligible = user.axis, user.is_eligible
    (points, weights, _), cells, density, below = user.inside()
    is_member = cells[:, None] == jnp.arange(axis.size)[None, :]
    # Row by row: what a point contributes to the integral of 1, t and t² over each cell.
    ones, first, second = (
        jnp.where(is_member, (weights * points**power)[:, None], 0.0) for power in (0, 1, 2)
    )
    duels = [_duel(density[arm], jnp.delete(below, arm, axis=0)) for arm in range(len(density))]
    win = jnp.stack([jnp.tensordot(ones, duel, axes=(0, -1)) for duel in duels])
    win_value = jnp.stack([jnp.tensordot(first, duel, axes=(0, -1)) for duel in duels])
    mean = jnp.where(is_eligible[:, None], density @ first, FAR_BELOW)
    return CellTables(mean, density @ second, _spread(win), jnp.sum(_spread(win_value), axis=0))


def cumulative_in_cell(
    statistics: Statistics, axis: Axis, reward_noise: Number, values: Values
) -> tuple[ArmValues, Int[Array, " value"]]:
    """Compute P(μ_a ≤ value | μ_a in the cell of value), and that cell."""
    inside = jnp.clip(values, axis.edges[0], axis.edges[-1])
    cells = cell_of(axis, inside)
    return truncated(statistics, reward_noise, axis.edges, cells, inside)[1], cells


def cell_of(axis: Axis, values: Values) -> Int[Array, " value"]:
    """Find the cell that a value lies in; the outermost ones for values beyond the grid."""
    position = jnp.floor((values - axis.edges[0]) / axis.spacing).astype(int)
    return jnp.clip(position, 0, axis.size - 1)


def _duel(density: Values, rivals_below: ArmValues) -> Float[Array, "*rival value"]:
    """Multiply an arm's density by the chance that each rival in the same cell lies below it."""
    joint = density
    for below in rivals_below:
        factor = below.reshape((1,) * (joint.ndim - 1) + below.shape)
        joint = jnp.stack([joint, joint * factor], axis=-2)
    return joint


def _spread(duels: Duels) -> Float[Array, "arm *cells"]:
    """Look up, for every tuple of cells, each arm's entry; zero where a rival sits higher."""
    num_arms, size = duels.shape[:2]
    cells = np.indices((size,) * num_arms)
    is_top = cells == cells.max(axis=0)
    columns = []
    for arm in range(num_arms):
        rivals = [rival for rival in range(num_arms) if rival != arm]
        column = jnp.zeros(cells.shape[1:])
        # Choosing by masks is quicker than looking up.
        for pattern in itertools.product((False, True), repeat=len(rivals)):
            shares_cell = np.stack(
                [is_top[rival] == side for rival, side in zip(rivals, pattern, strict=True)]
            )
            entry = duels[arm][(slice(None), *map(int, pattern))]
            entry = jnp.expand_dims(entry, [axis for axis in range(num_arms) if axis != arm])
            column = jnp.where(is_top[arm] & shares_cell.all(axis=0), entry, column)
        columns.append(column)
    return jnp.stack(columns)
