"""Particles, or types, a block at a time: how many go together, and one after another."""

from collections.abc import Callable
from typing import TypeVar

import jax

R = TypeVar("R")
T = TypeVar("T")

# Particles handled together: enough to share what does not depend on the particle, few enough that
# their tensors stay in the processor's cache.
BLOCK_SIZE = 20


def block_size(num_particles: int, most: int) -> int:
    """Choose the largest size of blocks that leaves nothing over."""
    return max(count for count in range(1, max(most, 1) + 1) if num_particles % count == 0)


def in_blocks(function: Callable[[R], T], rows: R, most: int) -> T:
    """Apply a function to blocks of at most so many rows, one after another."""
    number = len(jax.tree.leaves(rows)[0])
    size = block_size(number, most)
    if size == number:
        return function(rows)
    results = jax.lax.map(function, split(rows, size))
    return jax.tree.map(lambda each: each.reshape(number, *each.shape[2:]), results)


def once(values: T) -> T:
    """Keep the compiler from computing arrays again for each of their readers."""
    return jax.lax.optimization_barrier(values)  # type: ignore[no-untyped-call]


def split(rows: R, size: int) -> R:
    """Make blocks of so many rows."""
    return jax.tree.map(lambda part: part.reshape(-1, size, *part.shape[1:]), rows)
