"""Slow, obviously right counterparts of the models' formulas, for the tests of this folder."""

import itertools
import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.stats import norm

from cocobandits.models.base import Statistics


def statistics_of(rewards: Sequence[Sequence[float]]) -> Statistics:
    """Sum each arm's list of rewards."""
    return Statistics(
        jnp.array([float(len(arm)) for arm in rewards]),
        jnp.array([float(sum(arm)) for arm in rewards]),
        jnp.array([float(sum(reward**2 for reward in arm)) for arm in rewards]),
    )


def repeated(counts: ArrayLike, means: ArrayLike) -> Statistics:
    """Make statistics of many equal rewards per arm."""
    count, mean = jnp.asarray(counts, dtype=float), jnp.asarray(means, dtype=float)
    return Statistics(count, count * mean, count * mean**2)


def cell_edges(low: float, high: float, size: int) -> list[float]:
    """Place edges half-way between nodes, and half a spacing beyond the outermost ones."""
    spacing = (high - low) / (size - 1)
    return [low + spacing * (cell - 0.5) for cell in range(size + 1)]


def normal_density(value: float, mean: float, deviation: float) -> float:
    """Evaluate the density of N(mean, deviation²); a hundred times faster than scipy.stats."""
    scaled = (value - mean) / deviation
    return math.exp(-0.5 * scaled**2) / (deviation * math.sqrt(2 * math.pi))


def product_of_densities(mean: float, rewards: Sequence[float], noise: float) -> float:
    """Multiply the normal densities of all rewards, one by one."""
    return math.prod(normal_density(reward, mean, noise) for reward in rewards)


def cell_likelihood(low: float, high: float, rewards: Sequence[float], noise: float) -> float:
    """Average the product of densities over a cell by adaptive quadrature."""
    points = [min(max(float(np.mean(rewards)), low), high)] if rewards else None
    integral, _ = quad(
        product_of_densities, low, high, (rewards, noise), points=points, epsabs=0, epsrel=1e-12
    )
    return integral / (high - low)


def likelihood_table(axis, rewards, noise: float, kind: str) -> np.ndarray:
    """List p(rewards of the arm | cell) for every arm and cell."""
    if kind == "node":
        nodes = np.linspace(axis.low, axis.high, axis.size)
        return np.array([[product_of_densities(m, arm, noise) for m in nodes] for arm in rewards])
    edges = cell_edges(axis.low, axis.high, axis.size)
    return np.array(
        [
            [cell_likelihood(low, high, arm, noise) for low, high in itertools.pairwise(edges)]
            for arm in rewards
        ]
    )


def fine_joint(
    log_weights: np.ndarray, edges: Sequence[float], rewards, noise: float, per_cell: int
) -> tuple[np.ndarray, np.ndarray]:
    """Tabulate the posterior of all arm means on a fine tensor grid: points, and their masses.

    The prior is flat inside each cell, with the cells' log-weights given. One point per cell is
    the node-wise reading; many are a Riemann sum.
    """
    points = np.concatenate(
        [
            low + (np.arange(per_cell) + 0.5) / per_cell * (high - low)
            for low, high in itertools.pairwise(edges)
        ]
    )
    joint = np.asarray(log_weights, dtype=float)
    for arm, observed in enumerate(rewards):
        fit = sum((-0.5 * ((reward - points) / noise) ** 2 for reward in observed), 0 * points)
        shape = [1] * len(rewards)
        shape[arm] = len(points)
        joint = np.repeat(joint, per_cell, axis=arm) + fit.reshape(shape)
    mass = np.exp(joint - joint.max())
    return points, mass / mass.sum()


def summarise(points: np.ndarray, mass: np.ndarray, values, next_rewards, noise: float) -> dict:
    """Add up, point by point, everything that a belief has to answer."""
    arms = range(mass.ndim)
    marginals = [mass.sum(axis=tuple(b for b in arms if b != a)) for a in arms]
    position = np.indices(mass.shape)
    highest = position.max(axis=0)
    is_best = position == highest
    share = is_best / is_best.sum(axis=0)
    mean = np.array([marginal @ points for marginal in marginals])
    is_below = points[:, None] <= np.asarray(values)[None, :]
    density = norm.pdf(np.asarray(next_rewards)[None, :], points[:, None], noise)
    edge_bins = np.diff(is_below.astype(float), axis=1)
    last = mass.ndim - 1
    outer = mass.sum(axis=tuple(range(1, last)))
    return {
        "mean": mean,
        "variance": np.array(
            [m @ (points - mu) ** 2 for m, mu in zip(marginals, mean, strict=True)]
        ),
        "best_probability": (share * mass).reshape(mass.ndim, -1).sum(axis=1),
        "expected_best": (points[highest] * mass).sum(),
        "cumulative": np.array([marginal @ is_below for marginal in marginals]),
        "predictive": np.array([marginal @ density for marginal in marginals]),
        "pair": edge_bins.T @ outer @ edge_bins,
        "pair_swapped": (edge_bins.T @ outer @ edge_bins).T,
    }
