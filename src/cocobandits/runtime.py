"""How JAX is set up: double precision, one thread, and every computation in the thread that asks.

Owns the process-wide settings that the rest of the package relies on. Log-evidences of long
histories need 64 bits, and a decision can only be replayed bit for bit when sums are always taken
in the same order, which JAX on the CPU promises for one thread alone (jax issue 39741). Computed
where they are asked for, short computations do not queue behind long ones of another thread.
"""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

import jax

# The CPU client sizes its thread pool by this variable, once, when it is first used.
_POOL_SIZE = "NPROC"
_SERIAL_KERNELS = "--xla_cpu_multi_thread_eigen=false"
# The library that factors matrices for JAX is SciPy's, and reads this one when it is loaded. Its
# threads wait for each other by spinning: next to another busy process that costs a hundredfold.
_FACTOR_THREADS = "OPENBLAS_NUM_THREADS"


def configure_jax() -> None:
    """Turn on 64-bit numbers, and give JAX's CPU client a single thread and no queue."""
    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    # Like the thread pool, this is read once, when the client is created.
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_SERIAL_KERNELS}".strip()
    with _one(_POOL_SIZE):
        jax.devices("cpu")
    with _one(_FACTOR_THREADS):
        importlib.import_module("scipy.linalg")


@contextmanager
def _one(variable: str) -> Iterator[None]:
    """Set a variable of the environment to one, for as long as it is read."""
    previous = os.environ.get(variable)
    os.environ[variable] = "1"
    try:
        yield
    finally:
        if previous is None:
            del os.environ[variable]
        else:
            os.environ[variable] = previous
