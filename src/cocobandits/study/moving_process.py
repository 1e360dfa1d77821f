"""A second process that computes moves, so that calls of the study share no thread with them.

Owns that process, what is sent to and fro, and its end. There is one for all studies of a Python
process, started when moves are first due; it takes one update at a time. It computes with the same
settings of JAX, so the particles are those that this process would have come to, bit for bit. It
ends when its input does, however this process ended.
"""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
import weakref
from functools import lru_cache
from typing import IO, Any

import jax
import jax.numpy as jnp
import numpy as np

from cocobandits.errors import CrashedError
from cocobandits.inference.smc import SmcInfo
from cocobandits.models.base import Statistics
from cocobandits.policies.base import Policy
from cocobandits.study.design import StudyDesign
from cocobandits.types import RngKey

# Not by `-m`, which would import this module twice; without the folder it is started in.
_COMMAND = ("-P", "-c", "from cocobandits.study.moving_process import serve; serve()")
_PLAIN = (bool, int, float, str, type(None))


class MovingProcess:
    """One process, and a queue of those who wait for it."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process; None if none is running."""
        return None if self._child is None else self._child.pid

    def update(
        self, design: StudyDesign, rng_key: RngKey, state: Any, user: int, statistics: Statistics
    ) -> tuple[Any, SmcInfo | None]:
        """Compute `Policy.update` of the study's policy there, and wait for it.

        Raises:
            CrashedError: the process ended; the next update starts another one.
            NumericalError: the change cannot be explained.
        """
        key = str(jax.random.key_impl(rng_key)), jax.random.key_data(rng_key)
        request = pickle.dumps(_packed((pickle.dumps(design), key, state, user, statistics)))
        with self._turn:
            child = self._running()
            assert child.stdout is not None
            try:
                _write(child.stdin, request)
                answer = pickle.load(child.stdout)
            except (OSError, EOFError, pickle.UnpicklingError) as error:
                self._child = None
                child.kill()
                raise CrashedError(
                    "Expected the process that moves particles to answer; it ended with exit code "
                    f"{child.wait()}, as when memory runs out. The next moves start another one."
                ) from error
        if isinstance(answer, BaseException):
            raise answer
        state, info = _unpacked(answer)
        return state, info

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self._child = subprocess.Popen(
                [sys.executable, *_COMMAND],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            weakref.finalize(self, _end, self._child)
            settings = {
                name: value
                for name, value in jax.config.values.items()
                if isinstance(value, _PLAIN)
            }
            _write(self._child.stdin, pickle.dumps(settings))
        return self._child


MOVING_PROCESS = MovingProcess()


def serve() -> None:
    """Answer updates from standard input on standard output, until the input ends."""
    # Ctrl-C reaches every process of a terminal; the first one decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inbox, outbox = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed must not mix with the answers
    try:
        _adjust(pickle.load(inbox))
        while True:
            _write(outbox, _answer(pickle.load(inbox)))
    except (EOFError, BrokenPipeError):
        # Nobody is left to answer. Nothing is flushed: that would fail again.
        os._exit(0)


def _answer(request: Any) -> bytes:
    design, (kind, key_data), state, user, statistics = _unpacked(request)
    key = jax.random.wrap_key_data(key_data, impl=kind)
    try:
        answer = _packed(_policy_of(design).update(key, state, user, statistics))
    except BaseException as error:  # raised again in the process that asked
        return _parcel(error)
    return pickle.dumps(answer)


@lru_cache(maxsize=8)
def _policy_of(design: bytes) -> Policy[Any]:
    told: StudyDesign = pickle.loads(design)
    return told.build_policy()


def _parcel(error: BaseException) -> bytes:
    """Pickle an error; one that does not survive it becomes text."""
    try:
        parcel = pickle.dumps(error)
        pickle.loads(parcel)
    except Exception:
        return pickle.dumps(RuntimeError("".join(traceback.format_exception(error))))
    return parcel


def _adjust(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        if jax.config.values.get(name, value) != value:
            jax.config.update(name, value)  # type: ignore[no-untyped-call]


def _packed(tree: Any) -> Any:
    """Turn JAX's arrays into NumPy's, which can be sent."""
    return jax.tree.map(
        lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, tree
    )


def _unpacked(tree: Any) -> Any:
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, tree
    )


def _write(stream: IO[bytes] | None, parcel: bytes) -> None:
    assert stream is not None
    stream.write(parcel)
    stream.flush()


def _end(child: subprocess.Popen[bytes]) -> None:
    for stream in (child.stdin, child.stdout):
        assert stream is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            stream.close()
    child.wait()
