"""How tests compile: quickly, into one cache, or as users do where speed, bits or digits count.

Compilation takes most of a run. Tests run compiled code a few times on small arrays, so fast code
is a waste. Everything here is set through variables of the environment, which reach the workers and
the processes that tests start. JAX reads them when it is imported.
"""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Shared by all processes and by later runs. Never the user's own.
CACHE = {
    "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".pytest_cache" / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
# A third of the time of the defaults. The first lowers XLA's level of optimisation to 0; the
# fixture `optimised` turns it off again, which leaves level 1.
QUICK = {
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "XLA_FLAGS": "--xla_backend_optimization_level=1 --xla_cpu_use_fusion_emitters=false"
    " --xla_cpu_parallel_codegen_split_count=1",
}


def compile_quickly() -> None:
    """Set the variables of this process. Values of `QUICK` that are set already are kept."""
    os.environ.update(CACHE)
    for name, value in QUICK.items():
        os.environ.setdefault(name, value)


def users_environment() -> dict[str, str]:
    """Return the environment of a process that compiles as users do, into the shared cache."""
    return {name: value for name, value in os.environ.items() if name not in QUICK}
