"""What the figures were measured on, and what that machine can do at most."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from parts.clock import in_turns

ROOT = Path(__file__).parents[2]
# Numbers that stay in the first cache, and those that do not fit in any.
_CACHED, _LARGE = 2_048, 32 * 2**20
_LOOPS, _SIDE = 2_000, 1_024


def describe() -> dict[str, Any]:
    """Name processor, versions, date and commit; no host and no paths."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("jax", "jaxlib", "numpy", "cocobandits")},
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
    }


def measure_limits(repeats: int) -> dict[str, float]:
    """Measure exponentials, copies and matrix products on the one thread that the library uses."""
    taken = in_turns(
        {
            "exponentials64": lambda: _exponentials(jnp.full(_CACHED, 0.5)),
            "exponentials32": lambda: _exponentials(jnp.full(_CACHED, 0.5, jnp.float32)),
            "copy": _copier(),
            "product64": _multiplier(jnp.float64),
            "product32": _multiplier(jnp.float32),
        },
        repeats,
    )
    return {
        "exponentials_per_second64": _CACHED * _LOOPS / taken["exponentials64"],
        "exponentials_per_second32": _CACHED * _LOOPS / taken["exponentials32"],
        "copy_gb_per_second": 2 * 8 * _LARGE / taken["copy"] / 1e9,
        "product_gflops64": 2 * _SIDE**3 / taken["product64"] / 1e9,
        "product_gflops32": 2 * _SIDE**3 / taken["product32"] / 1e9,
    }


@jax.jit
def _exponentials(values: jax.Array) -> jax.Array:
    # Every pass depends on the one before, so none can be left out.
    return jax.lax.fori_loop(0, _LOOPS, lambda _, x: jnp.exp(-x), values)


def _shift_into(place: jax.Array, values: jax.Array, shift: float) -> jax.Array:
    del place
    return values + shift


def _copier() -> Any:
    # Into another place that is already there: fresh memory would be measured with its page faults.
    copy = jax.jit(_shift_into, donate_argnums=0, keep_unused=True)
    values, places = jnp.ones(_LARGE), [jnp.zeros(_LARGE)]

    def call() -> jax.Array:
        places[0] = copy(places[0], values, 1.0)
        return places[0]

    return call


def _multiplier(dtype: Any) -> Any:
    matrix = jnp.ones((_SIDE, _SIDE), dtype)
    multiply = jax.jit(jnp.matmul)
    return lambda: multiply(matrix, matrix)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _commit() -> str:
    def ask(*words: str) -> str:
        command = ["git", "-C", str(ROOT), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = ask(
            "status", "--porcelain", "--untracked-files=no", "--", "src", "benchmarks/*.py"
        )
        return ask("rev-parse", "--short=12", "HEAD") + (" with changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "not known"
