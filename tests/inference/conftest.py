"""Faster compilation: the arrays of these tests are tiny, so fast code for them is a waste."""

import jax
import pytest


@pytest.fixture(autouse=True)
def compile_quickly():
    """Let XLA skip its expensive passes for the duration of a test."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
