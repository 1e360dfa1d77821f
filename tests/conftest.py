"""Settings that every test runs under: strict shapes, 64 bits, annotations checked at run time."""

from pathlib import Path

from support.compilation import compile_quickly

# Before JAX is imported, which reads the environment.
compile_quickly()

import jax  # noqa: E402
import pytest  # noqa: E402
from jaxtyping import install_import_hook  # noqa: E402

# Before the package is first imported: every axis name in an annotation becomes a check. The study
# is left out, since it has to answer wrong types with its own errors.
CHECKED = [
    "cocobandits.numerics",
    "cocobandits.users",
    "cocobandits.populations",
    "cocobandits.inference",
    "cocobandits.policies",
]
with install_import_hook(CHECKED, "beartype.beartype"):
    import cocobandits  # noqa: F401

jax.config.update("jax_numpy_rank_promotion", "raise")

# Every compiled function holds pieces of mapped memory, of which Linux allows a process 65,530 by
# default; beyond that, loading the next one is a segmentation fault. They hold memory too,
# gigabytes in a whole run. What is forgotten is soon loaded from the cache.
MAPS, MOST_MAPS = Path("/proc/self/maps"), 8_000


def num_maps() -> int:
    """Count the pieces of memory that this process has mapped; zero where nobody says."""
    return MAPS.read_bytes().count(b"\n") if MAPS.exists() else 0


@pytest.fixture(autouse=True, scope="module")
def _few_maps():
    """Forget compiled functions between modules before they are too many."""
    yield
    if num_maps() > MOST_MAPS:
        jax.clear_caches()


@pytest.fixture(scope="module")
def optimised():
    """Compile faster code for modules that run it for long; share no compiled code with others."""
    is_disabled = jax.config.values["jax_disable_most_optimizations"]
    jax.clear_caches()
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", is_disabled)
    jax.clear_caches()
