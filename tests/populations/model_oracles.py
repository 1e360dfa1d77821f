"""Slow, obviously right counterparts of the models' formulas, for the tests of this folder."""

import itertools
import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import norm

from cocobandits.users.statistics import Statistics


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


def equal_rewards_log_likelihoods(
    count: int, mean: float, edges: Sequence[float], noise: float
) -> np.ndarray:
    """Average the density of many equal rewards over each cell, in logarithms."""
    deviation = noise / math.sqrt(count)
    low, high = np.sort(np.abs(np.array([edges[:-1], edges[1:]]) - mean), axis=0) / deviation
    # The mean lies outside all cells: the mass of a cell is a difference of tails.
    tail, beyond = log_ndtr(-low), log_ndtr(-high)
    log_share = tail + np.log1p(-np.exp(beyond - tail))
    peak = -count * math.log(noise * math.sqrt(2 * math.pi))
    return peak + log_share + np.log(deviation * math.sqrt(2 * math.pi) / np.diff(edges))


def likelihood_table(axis, rewards, noise: float) -> np.ndarray:
    """List p(rewards of the arm | cell) for every arm and cell."""
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

    The prior is flat inside each cell, with the cells' log-weights given.
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


def joint_law(
    log_weights: np.ndarray, edges: Sequence[float], rewards, next_rewards, noise: float
) -> np.ndarray:
    """Integrate the density of the next reward of arm a together with arm j being best.

    Tuple of cells by tuple of cells, with 40 Gauss-Legendre points per integral. If a is pulled
    and j ≠ a is best, the inner integral over μ_j starts at μ_a where both share a cell.
    """
    num_arms = len(rewards)
    nodes, node_weights = np.polynomial.legendre.leggauss(40)

    def rule(low, high):
        half = (np.asarray(high) - low)[..., None] / 2
        return np.asarray(low)[..., None] + half * (nodes + 1), half * node_weights

    def tilt(arm, points):
        return np.prod([norm.pdf(r, points, noise) for r in rewards[arm]], axis=0) + 0 * points

    def below(arm, cell, points):
        """Integrate the arm's tilt over the part of its cell below each point."""
        ends = np.clip(points, edges[cell], edges[cell + 1])
        inside, weights = rule(np.full_like(ends, edges[cell]), ends)
        return np.sum(weights * tilt(arm, inside), axis=-1)

    def rivals(arms, cells, points):
        return math.prod((below(b, cells[b], points) for b in arms), start=np.ones_like(points))

    joint, prior = np.zeros((num_arms, num_arms, len(next_rewards))), np.exp(log_weights)
    for cells in itertools.product(range(len(edges) - 1), repeat=num_arms):
        for arm, best in itertools.product(range(num_arms), repeat=2):
            others = [b for b in range(num_arms) if b not in {arm, best}]
            low, high = edges[cells[arm]], edges[cells[arm] + 1]
            points, weights = rule(low, high)
            if best == arm:
                inner = rivals(others, cells, points)
            else:
                start = np.clip(points, edges[cells[best]], edges[cells[best] + 1])
                above, steps = rule(start, np.full_like(start, edges[cells[best] + 1]))
                inner = np.sum(steps * tilt(best, above) * rivals(others, cells, above), axis=1)
            density = norm.pdf(np.asarray(next_rewards)[None, :], points[:, None], noise)
            mass = prior[cells] * weights * tilt(arm, points) * inner
            joint[best, arm] += mass @ density
    step = next_rewards[1] - next_rewards[0]
    return joint / (joint.sum(axis=(0, 2)) * step)[None, :, None]


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
