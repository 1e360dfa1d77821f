"""Which arm is best together with what the next pull of an arm would show, cell by cell.

Given the cell of the pulled arm a, the chance that arm j is best depends on where in the cell μ_a
lies only through the rivals that share the cell. So a particle enters with a few masses per cell
(`rival_masses`, `higher_masses`), and everything else is one table per user, the same for all
particles (`reward_tables`).
"""

import itertools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from cocobandits.numerics.quadrature import integrate_above
from cocobandits.populations.log_density.grid import Axis
from cocobandits.populations.log_density.tensors import pair_marginal
from cocobandits.populations.log_density.within_cell import UserCells
from cocobandits.types import Number, Scalar, Values

# One entry of size two per rival: it sits in a lower cell (0) or in the same one (1).
Masses = Float[Array, "cell *rival"]
CellDensity = Float[Array, "cell value"]
# Rewards are blurred to this share of a cell where the noise is narrower: points within a cell lie
# no closer. What a blurred reward tells is less than what the reward would, never more.
_LEAST_BLUR = 0.1
Pattern = tuple[int, ...]


class RewardTables(NamedTuple):
    """For one pulled arm: the density of its next reward from each cell, times a chance.

    Attributes:
        any_winner: whoever is best.
        winner: arm → pattern of rivals in the cell → times the chance that this arm is best. The
            pulled arm has all patterns, a rival those in which it shares the cell.
    """

    any_winner: CellDensity
    winner: dict[int, dict[Pattern, CellDensity]]


def rival_masses(probabilities: Float[Array, "*cells"], arm: int) -> Masses:
    """Sum the cells in which no rival sits higher than an arm, by which rivals share its cell."""
    size = probabilities.shape[0]
    order = np.arange(size)
    sides = jnp.asarray(
        np.stack([order[None, :] < order[:, None], order[None, :] == order[:, None]], axis=2),
        dtype=probabilities.dtype,
    )
    masses = jnp.moveaxis(probabilities, arm, 0)
    for _ in range(probabilities.ndim - 1):
        # The next rival's cells become its side, which goes to the end.
        masses = jnp.einsum("ci...,cis->c...s", masses, sides)
    return masses


def higher_masses(
    probabilities: Float[Array, "*cells"], win: Float[Array, "*cells"], arm: int, best: int
) -> Float[Array, " cell"]:
    """Sum, for each cell of an arm, the chance that another one in a higher cell is best."""
    joint = pair_marginal(probabilities * win, arm, best)
    return jnp.sum(jnp.triu(joint, 1), axis=1)


def reward_tables(user: UserCells, rewards: Values, dtype: DTypeLike = float) -> list[RewardTables]:
    """Integrate over the place of the pulled arm's mean within each cell, for every pulled arm."""
    arms, axis = range(len(user.statistics.count)), user.axis
    rule, cells, density, below = user.inside()
    rows: list[Values] = []
    places: list[tuple[int, int, Pattern]] = []  # pulled arm, best arm, who shares the cell
    for arm in arms:
        weight = rule.weights * density[arm]
        rows.append(weight)
        places.append((arm, arm, ()))
        rivals = [rival for rival in arms if rival != arm]
        for pattern in itertools.product((0, 1), repeat=len(rivals)):
            sharing = [rival for rival, side in zip(rivals, pattern, strict=True) if side]
            rows.append(weight * _product(below, sharing))
            places.append((arm, arm, pattern))
            for best in sharing:
                others = _product(below, [other for other in sharing if other != best])
                rows.append(weight * integrate_above(rule, cells, density[best] * others))
                places.append((arm, best, pattern))
    noise = _noise_density(rule.points, rewards, _blur(user))
    weighted = jnp.stack(rows).astype(dtype)
    tables = _sum_by_cell(weighted, cells, axis, noise.astype(dtype))
    sums = dict(zip(places, tables, strict=True))
    return [
        RewardTables(
            sums[arm, arm, ()],
            {
                best: {p: table for (a, b, p), table in sums.items() if (a, b) == (arm, best) and p}
                for best in arms
            },
        )
        for arm in arms
    ]


def moment_tables(
    user: UserCells, rewards: Values
) -> tuple[Float[Array, "arm cell value"], Float[Array, "arm cell value"]]:
    """Integrate the density of each arm's next reward over each cell, bare and times its mean."""
    rule, cells, density, _ = user.inside()
    weight = rule.weights[None, :] * density
    noise = _noise_density(rule.points, rewards, _blur(user))
    bare, moment = (
        _sum_by_cell(rows, cells, user.axis, noise)
        for rows in (weight, weight * rule.points[None, :])
    )
    return bare, moment


def _product(below: Float[Array, "arm value"], arms: list[int]) -> Values:
    return jnp.prod(below[np.array(arms, dtype=int)], axis=0)


def _blur(user: UserCells) -> Scalar:
    return jnp.maximum(jnp.asarray(user.reward_noise), _LEAST_BLUR * user.axis.spacing)


def _noise_density(
    means: Float[Array, " point"], rewards: Values, noise: Number
) -> Float[Array, "point value"]:
    distance = (rewards[None, :] - means[:, None]) / noise
    return jnp.exp(-(distance**2) / 2) / (noise * jnp.sqrt(2 * jnp.pi))


def _sum_by_cell(
    weighted: Float[Array, "table point"],
    cells: Int[Array, " point"],
    axis: Axis,
    densities: Float[Array, "point value"],
) -> Float[Array, "table cell value"]:
    is_member = (cells[:, None] == jnp.arange(axis.size)[None, :]).astype(weighted.dtype)
    spread = weighted[:, :, None] * is_member[None, :, :]
    return jnp.einsum("tpc,pv->tcv", spread, densities)
