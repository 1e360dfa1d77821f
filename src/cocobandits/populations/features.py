"""A context as a vector to be linear in: one, the continuous values, and a column per category."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from cocobandits.types import Context, PossibleContext

FeatureKinds = tuple[int | None, ...]
FeatureVector = Float[Array, " term"]


def num_terms(kinds: FeatureKinds) -> int:
    """Count the terms; `kinds` has the number of categories per feature, None if continuous."""
    return 1 + sum(1 if kind is None else kind for kind in kinds)


def feature_vector(kinds: FeatureKinds, context: Context) -> FeatureVector:
    """Lay out (1, x₁, …), a category as zeros and a one."""
    parts = [jnp.ones(1)]
    for number, kind in enumerate(kinds):
        if kind is None:
            parts.append(context[number][None])
        else:
            parts.append((jnp.arange(kind) == context[number]).astype(float))
    return jnp.concatenate(parts)


def expected_terms(kinds: FeatureKinds, context: PossibleContext) -> FeatureVector:
    """Average the terms over what the context may be, for models that are linear in them."""
    if context.ndim == 1:
        return feature_vector(kinds, context)
    return jnp.mean(jax.vmap(lambda point: feature_vector(kinds, point))(context), axis=0)
