"""Moves in a process of their own, so that calls of a study share no thread with them.

Owns that process, what is sent to and from it, and its end. One mover may serve several studies; it
takes one update at a time. The process has the settings of JAX that hold when it starts, so the
particles are those that this process would have come to, bit for bit. It ends when its input does,
however this process ended.
"""

import contextlib
import os
import pickle
import subprocess
import sys
import traceback
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from cocobandits.errors import CrashedError
from cocobandits.policies.base import Policy
from cocobandits.policies.recipe import Moved, Recipe
from cocobandits.types import RngKey
from cocobandits.users.table import Change

# Not by `-m`, which would import this module twice; without the folder it is started in.
_COMMAND = ("-P", "-c", "from cocobandits.workers.moves import serve; serve()")
_PLAIN = (bool, int, float, str, type(None))
# How often an update is tried: it comes to the same particles however often.
_NUM_TRIES = 2
_LAST_WORDS_SECONDS = 1.0


class Mover(Protocol):
    """Computes updates with all their moves, while a study goes on."""

    def submit(self, recipe: Recipe, rng_key: RngKey, state: Any, change: Change) -> Future[Moved]:
        """Start `Policy.update` of the policy of a recipe; the future has its result or error."""


class ProcessMover:
    """A mover with one process and a queue; the process starts with the first update."""

    def __init__(self) -> None:
        self._queue = ThreadPoolExecutor(1, "cocobandits-moves")
        self._child: _Child | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process; None if none was started."""
        return None if self._child is None else self._child.process.pid

    def submit(self, recipe: Recipe, rng_key: RngKey, state: Any, change: Change) -> Future[Moved]:
        """Compute an update there.

        The future raises `CrashedError` if the process ended, and so did another one that was given
        the same to do.
        """
        key = str(jax.random.key_impl(rng_key)), jax.random.key_data(rng_key)
        request = pickle.dumps(_packed((pickle.dumps(tuple(recipe)), key, state, change)))
        return self._queue.submit(self._compute, request)

    def _compute(self, request: bytes) -> Moved:
        answer = _unpacked(self._ask(request))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _ask(self, request: bytes) -> Any:
        for _ in range(_NUM_TRIES):
            if self._child is None or self._child.process.poll() is not None:
                self._child = _Child()
            child = self._child
            try:
                return child.ask(request)
            except BaseException as error:
                # Whatever it was, half an answer must not be taken for the next one.
                self._child, code = None, child.end()
                if not isinstance(error, OSError | EOFError | pickle.UnpicklingError):
                    raise
        raise CrashedError(
            f"Expected the process that moves particles to answer; got {_NUM_TRIES} that ended, "
            f"the last with exit code {code}. Look for lack of memory, and at what it printed."
        )


class _Child:
    """A running process; it is ended with this one, or when nobody holds it any more."""

    def __init__(self) -> None:
        folders = [entry or str(Path.cwd()) for entry in sys.path if isinstance(entry, str)]
        self.process = subprocess.Popen(
            [sys.executable, *_COMMAND],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C reaches every process of a terminal; the first one decides what to do.
            process_group=0,
        )
        self._finish = weakref.finalize(self, _end, self.process)
        values = jax.config.values.items()
        self._settings = {name: value for name, value in values if isinstance(value, _PLAIN)}
        self._is_configured = False

    def ask(self, request: bytes) -> Any:
        assert self.process.stdout is not None
        if not self._is_configured:
            _write(self.process.stdin, pickle.dumps(self._settings))
            self._is_configured = True
        _write(self.process.stdin, request)
        return pickle.load(self.process.stdout)

    def end(self) -> int:
        """Make sure that it has ended, and return its exit code."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_LAST_WORDS_SECONDS)
        self._finish()
        return self.process.wait()


def serve() -> None:
    """Answer updates from standard input on standard output, until the input ends."""
    inbox, outbox = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed must not mix with the answers
    try:
        _adjust(pickle.load(inbox))
        while True:
            _write(outbox, _answer(pickle.load(inbox)))
    except (EOFError, pickle.UnpicklingError, BrokenPipeError):
        # Nobody is left to answer. Nothing is flushed: that would fail again.
        os._exit(0)


def _answer(request: Any) -> bytes:
    recipe, (kind, key_data), state, change = _unpacked(request)
    key = jax.random.wrap_key_data(key_data, impl=kind)
    try:
        answer = _packed(_policy_of(recipe).update(key, state, change))
    except BaseException as error:  # raised again in the process that asked
        return _parcel(error)
    return pickle.dumps(answer)


@lru_cache(maxsize=8)
def _policy_of(recipe: bytes) -> Policy[Any]:
    return Recipe(*pickle.loads(recipe)).policy()


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
            # What cannot be changed any more says which devices there are, not what they compute.
            with contextlib.suppress(RuntimeError):
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


def _end(process: "subprocess.Popen[bytes]") -> None:
    # Nothing is lost: whoever waited for it is gone. Another process may hold its input open.
    process.kill()
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        with contextlib.suppress(BrokenPipeError):
            stream.close()
    process.wait()
