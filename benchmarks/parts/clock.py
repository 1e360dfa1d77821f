"""Seconds of wall time: of repeated calls in turns, and what of a stretch was compiling."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

# Both are parts of the first call of a compiled function, and of no later one.
_COMPILING = (
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)


class CompileClock:
    """Adds up the seconds that JAX has spent compiling in this process."""

    def __init__(self) -> None:
        self.seconds = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._note)

    def _note(self, event: str, duration: float, **_: Any) -> None:
        if event in _COMPILING:
            self.seconds += duration


def in_turns(calls: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Call each in turns after a warm-up; return the median seconds of each.

    What disturbs the machine for a while disturbs all of them.
    """
    for call in calls.values():
        jax.block_until_ready(call())
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            began = time.perf_counter()
            jax.block_until_ready(call())
            seconds[name].append(time.perf_counter() - began)
    return {name: float(np.median(taken)) for name, taken in seconds.items()}


def milliseconds(seconds: Sequence[float], percent: float = 50) -> float:
    """Give a percentile in milliseconds; NaN of nothing."""
    return 1e3 * float(np.percentile(seconds, percent)) if len(seconds) else float("nan")
