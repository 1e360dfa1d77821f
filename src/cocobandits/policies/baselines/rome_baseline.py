"""The working model f̂ of RoME: ridge regressions of the reward, each on its own subsample.

f̂(x, a) is linear in the terms of the context, the arm and their products, and is the average of
the bags' fits. Nothing rests on it being right: a poor f̂ makes pseudo-rewards noisier, not biased.
What the bags hold is kept per user and arm.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from cocobandits.models.histories import Added
from cocobandits.types import ArmVector, Number

Terms = Float[Array, "user term"]


class Bags(NamedTuple):
    """How many rewards of a user and arm are in each bag, and their sum."""

    counts: Float[Array, "*user bag arm"]
    totals: Float[Array, "*user bag arm"]

    @classmethod
    def empty(cls, num_users: int, num_bags: int, num_arms: int) -> "Bags":
        """Make bags without rewards."""
        blank = jnp.zeros((num_users, num_bags, num_arms))
        return cls(blank, blank)

    def with_reward(self, added: Added, is_in: Bool[Array, "bag arm"]) -> "Bags":
        """Add a reward to the bags that it is in."""
        chosen = is_in & (jnp.arange(is_in.shape[1]) == added.arm)[None]
        return Bags(self.counts + chosen, self.totals + chosen * added.reward)


def predict(terms: Terms, bags: Bags, ridge: Number, point: Float[Array, " term"]) -> ArmVector:
    """Fit every bag, and average what the fits say of each arm at the terms of a context.

    The coefficients are a line for all arms and, for all but the first, the difference from it.
    """
    num_arms = bags.counts.shape[2]
    # Row a: which lines arm a is the sum of.
    lines = np.eye(num_arms)
    lines[:, 0] = 1.0
    squares = jnp.einsum("uba,ui,uj->baij", bags.counts, terms, terms)
    sums = jnp.einsum("uba,ui->bai", bags.totals, terms)
    size = num_arms * len(point)
    gram = jnp.einsum("ak,al,baij->bkilj", lines, lines, squares).reshape(-1, size, size)
    shift = jnp.einsum("ak,bai->bki", lines, sums).reshape(-1, size)

    def fit(
        gram: Float[Array, "coefficient coefficient"], shift: Float[Array, " coefficient"]
    ) -> Float[Array, " coefficient"]:
        return jnp.linalg.solve(gram + ridge * jnp.eye(size), shift)

    coefficients = jnp.mean(jax.vmap(fit)(gram, shift), axis=0)
    return jnp.asarray(lines) @ (coefficients.reshape(num_arms, -1) @ point)
