"""Arm means drawn from beliefs with NumPy and SciPy: what Monte-Carlo checks count.

Reads the fields of a belief and uses none of its methods.
"""

from typing import Any

import jax
import numpy as np
from scipy.stats import truncnorm

from cocobandits.populations.base import Belief
from cocobandits.populations.gaussian_belief import GaussianBelief
from cocobandits.populations.known.flat import FlatBelief
from cocobandits.populations.log_density.belief import GridBelief
from cocobandits.populations.mixture.arms import GaussianArms
from cocobandits.populations.mixture.belief import MixtureBelief
from cocobandits.populations.mixture.factors import FactorArms


def draw_means(belief: Belief, seed: int, num_draws: int) -> np.ndarray:
    """Draw vectors of arm means, draw × arm."""
    generator = np.random.default_rng(seed)
    match belief:
        case GridBelief():
            return _from_cells(generator, belief, num_draws)
        case FlatBelief():
            shape = (num_draws, len(belief.statistics.count))
            return _inside(generator, belief, np.full(shape, float(belief.low)), float(belief.high))
        case GaussianBelief():
            chosen = _components(generator, belief.log_weights, num_draws)
            draws = [
                generator.multivariate_normal(*part, num_draws, method="eigh")
                for part in zip(*map(np.asarray, (belief.means, belief.covariances)), strict=True)
            ]
            return np.stack(draws)[chosen, np.arange(num_draws)]
        case MixtureBelief():
            return _from_components(generator, belief, num_draws)
    raise NotImplementedError(type(belief).__name__)


def one_of(beliefs: Any, number: int) -> Any:
    """Take one of several beliefs whose arrays have a leading axis."""
    return jax.tree.map(lambda part: part[number], beliefs)


def _components(generator: np.random.Generator, log_weights: Any, num_draws: int) -> np.ndarray:
    shares = np.exp(np.asarray(log_weights, dtype=float))
    return generator.choice(len(shares), size=num_draws, p=shares / shares.sum())


def _from_components(generator: np.random.Generator, belief: Any, num_draws: int) -> np.ndarray:
    """Draw components, then arms; and a common factor, if they have one."""
    drawn, arms = _components(generator, belief.log_weights, num_draws), belief.arms
    if isinstance(arms, FactorArms):
        loadings = np.asarray(arms.loadings)[drawn]
        factors = generator.normal(size=(num_draws, 1, loadings.shape[2]))
        return _independent(generator, arms.arms, drawn) + np.sum(loadings * factors, axis=2)
    return _independent(generator, arms, drawn)


def _independent(generator: np.random.Generator, arms: Any, drawn: np.ndarray) -> np.ndarray:
    if isinstance(arms, GaussianArms):
        location, spread = np.asarray(arms.location), np.asarray(arms.spread)
        return generator.normal(location[drawn], np.sqrt(spread[drawn]))
    low, high = arms.range
    counts = (np.asarray(part, dtype=float) for part in (arms.successes, arms.failures))
    return low + (high - low) * generator.beta(*(part[drawn] for part in counts))


def _from_cells(generator: np.random.Generator, belief: Any, num_draws: int) -> np.ndarray:
    """Draw a cell of all arms, then a truncated normal in the cell of each arm."""
    masses, axis = np.asarray(belief.masses, dtype=float), belief.axis
    flat = generator.choice(masses.size, size=num_draws, p=masses.ravel() / masses.sum())
    cells = np.stack(np.unravel_index(flat, masses.shape), axis=1)
    width = (axis.high - axis.low) / (axis.size - 1)
    lower = axis.low + width * (cells - 0.5)
    return _inside(generator, belief, lower, lower + width)


def _inside(generator: np.random.Generator, belief: Any, lower: Any, upper: Any) -> np.ndarray:
    """Draw every arm from N(average, σ²/n) between bounds; evenly if it has no rewards."""
    counts, totals = map(np.asarray, (belief.statistics.count, belief.statistics.total))
    draws = generator.uniform(lower, upper)
    for arm in np.flatnonzero(counts > 0):
        mean = totals[arm] / counts[arm]
        deviation = float(belief.reward_noise) / np.sqrt(counts[arm])
        low, high = lower[:, arm], np.broadcast_to(upper, lower.shape)[:, arm]
        law = truncnorm((low - mean) / deviation, (high - mean) / deviation, mean, deviation)
        draws[:, arm] = law.rvs(random_state=generator)
    return draws
