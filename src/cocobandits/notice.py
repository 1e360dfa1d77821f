"""One line on standard error when a process compiles for long, so that silence has a reason.

Owns when the line is due and its words. It is written once per process, by the first study that
makes JAX compile for more than a second in total; functions loaded from disk do not count.
"""

import multiprocessing
import os
import sys
import threading
import time
from contextlib import suppress

import jax

QUIET = "COCOBANDITS_QUIET"
_PATIENCE_SECONDS = 1.0
# JAX reports a scalar when a compilation begins, and a duration under the same name when it ends.
_COMPILING = "/jax/core/compile/backend_compile_duration"
_LOADED = "/jax/compilation_cache/cache_hits"


class Notice:
    """Listens to JAX until one line is written."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._expected: str | None = None
        self._spent = 0.0
        self._begun: dict[int, float] = {}
        self._timer: threading.Timer | None = None
        self._is_written = False

    def watch(self, expected: str) -> None:
        """Listen from now on; `expected` says how long a study of this kind compiles.

        Processes that work for another one are silent: their progress is shown there.
        """
        is_unwanted = os.environ.get(QUIET, "") not in ("", "0")
        if is_unwanted or self._is_written or multiprocessing.parent_process() is not None:
            return
        if self._expected is None:
            jax.monitoring.register_scalar_listener(self._begin)
            jax.monitoring.register_event_listener(self._load)
            jax.monitoring.register_event_duration_secs_listener(self._end)
        self._expected = expected

    def _begin(self, event: str, value: float, **_: object) -> None:
        del value
        if event == _COMPILING and not self._is_written:
            with self._lock:
                self._begun[threading.get_ident()] = time.monotonic()
                self._wait()

    def _load(self, event: str, **_: object) -> None:
        if event == _LOADED:
            with self._lock:
                self._begun.pop(threading.get_ident(), None)

    def _end(self, event: str, duration_secs: float, **_: object) -> None:
        del duration_secs
        if event == _COMPILING:
            with self._lock:
                begun = self._begun.pop(threading.get_ident(), None)
                self._spent += 0.0 if begun is None else time.monotonic() - begun

    def _wait(self) -> None:
        """Look again when the line will be due, if this compilation goes on until then."""
        if self._timer is None:
            self._timer = threading.Timer(max(_PATIENCE_SECONDS - self._total(), 0.0), self._look)
            self._timer.daemon = True
            self._timer.start()

    def _look(self) -> None:
        with self._lock:
            self._timer = None
            if not self._begun or self._is_written:
                return
            if self._total() < _PATIENCE_SECONDS:
                self._wait()
                return
            self._is_written = True
        self._write()

    def _total(self) -> float:
        now = time.monotonic()
        return self._spent + sum(now - begun for begun in self._begun.values())

    def _write(self) -> None:
        if sys.stderr is None:  # print would write to standard output
            return
        folder = jax.config.values["jax_compilation_cache_dir"]
        is_stored = folder and jax.config.values["jax_enable_compilation_cache"]
        later = f"Later starts load them from {folder}." if is_stored else "The cache is off."
        with suppress(OSError, ValueError):  # a stream that is closed
            print(
                f"cocobandits: compiling the functions of this study takes {self._expected}. "
                f"{later} Set {QUIET}=1 to hide this line.",
                file=sys.stderr,
                flush=True,
            )


NOTICE = Notice()
