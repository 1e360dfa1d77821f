"""How JAX is set up: double precision and one thread.

Owns the two process-wide settings that the rest of the package relies on. Log-evidences of long
histories need 64 bits, and a decision can only be replayed bit for bit when sums are always taken
in the same order, which JAX on the CPU promises for one thread alone (jax issue 39741).
"""

import os

import jax

# The CPU client sizes its thread pool by this variable, once, when it is first used.
_POOL_SIZE = "NPROC"
_SERIAL_KERNELS = "--xla_cpu_multi_thread_eigen=false"


def configure_jax() -> None:
    """Turn on 64-bit numbers and give JAX's CPU client a single thread."""
    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_SERIAL_KERNELS}".strip()
    previous = os.environ.get(_POOL_SIZE)
    os.environ[_POOL_SIZE] = "1"
    try:
        jax.devices("cpu")
    finally:
        if previous is None:
            del os.environ[_POOL_SIZE]
        else:
            os.environ[_POOL_SIZE] = previous
