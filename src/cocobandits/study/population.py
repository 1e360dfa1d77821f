"""The learned population of a study: densities of a new user's arm means."""

import itertools
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.populations.base import Belief
from cocobandits.study.design import StudyDesign
from cocobandits.types import FloatVector

_NUM_BINS = 40


@dataclass(frozen=True)
class Population:
    """Densities of arm means under the posterior mean population at one context, for plots.

    Attributes:
        edges: boundaries of the bins, in reward units.
        marginal: arm → density per bin.
        pairwise: (arm, arm) → density per square bin, first arm along the rows.
    """

    edges: FloatVector
    marginal: dict[str, FloatVector]
    pairwise: dict[tuple[str, str], np.ndarray[tuple[int, int], np.dtype[np.float64]]]


def describe_population(
    design: StudyDesign, belief: Belief, mean_range: tuple[float, float]
) -> Population:
    """Turn the belief about a new user into densities on bins over the range of arm means."""
    standard = jnp.linspace(*mean_range, _NUM_BINS + 1)
    pairs = tuple(itertools.combinations(range(len(design.arms)), 2))
    marginals, joints = _read_bins(belief, standard, pairs)
    # Where lower rewards are better, bins come in falling order.
    rising = slice(None, None, int(design.rewards.sign))
    edges = np.asarray(design.rewards.restore(np.asarray(standard)))[rising]
    width = edges[1] - edges[0]
    names = design.arms
    return Population(
        edges,
        dict(zip(names, np.asarray(marginals)[:, rising] / width, strict=True)),
        {
            (names[first], names[second]): np.asarray(joint)[rising, rising] / width**2
            for (first, second), joint in zip(pairs, joints, strict=True)
        },
    )


@partial(jax.jit, static_argnames="pairs")
def _read_bins(
    belief: Belief, edges: Float[Array, " edge"], pairs: tuple[tuple[int, int], ...]
) -> tuple[Float[Array, "arm bin"], Float[Array, "pair bin bin"]]:
    joint = [belief.pair_probability(*pair, edges) for pair in pairs]
    return jnp.diff(belief.cumulative(edges), axis=1), jnp.stack(joint)
