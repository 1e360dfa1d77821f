"""Particles a block at a time: how many go together, and one block after another."""

from collections.abc import Callable
from typing import TypeVar

import jax

from cocobandits.types import Particles

T = TypeVar("T")

# Particles handled together: enough to share what does not depend on the particle, few enough that
# their tensors stay in the processor's cache.
BLOCK_SIZE = 20


def block_size(num_particles: int, most: int) -> int:
    """Choose the largest size of blocks that leaves nothing over."""
    return max(count for count in range(1, max(most, 1) + 1) if num_particles % count == 0)


def in_blocks(function: Callable[[Particles], T], particles: Particles, most: int) -> T:
    """Apply a function to blocks of at most so many particles, one after another."""
    size = block_size(len(particles), most)
    blocks = particles.reshape(-1, size, particles.shape[1])
    results = jax.lax.map(function, blocks)
    return jax.tree.map(lambda each: each.reshape(len(particles), *each.shape[2:]), results)
