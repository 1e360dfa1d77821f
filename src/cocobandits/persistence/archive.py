"""A study on disk: one zip archive with its events as text and a snapshot as plain arrays.

    study.json     format, version, and a hash of every other member
    events.jsonl   one event per line; these are the study
    snapshot.json  what the arrays are; they only save the time to learn again
    N.npy          the arrays

No pickle; `numpy.load` can open it. A reader believes nothing of which the hash differs, reads no
other members, and reads none to more than its limit. Only the owner can read the file, since it
holds data of people. It is written under another name, which is locked while that goes
on, and moved into place in one step; what a killed process left is removed by the next one.
"""

import contextlib
import fcntl
import hashlib
import io
import json
import lzma
import os
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from cocobandits.errors import CocoError, StorageError, UnknownNameError

FORMAT, VERSION = "cocobandits-study", 7
_TEXT, _EVENTS, _SNAPSHOT = "study.json", "events.jsonl", "snapshot.json"
_PARTIAL, _SUFFIX = ".cocobandits-study-", ".partial"
# Beyond these, a file is no study: 100,000 users with a million decisions need a tenth.
MOST_BYTES = {_TEXT: 2**20, _EVENTS: 2**32, _SNAPSHOT: 2**20}
# All arrays together: particles and models, and a row of every table for each user, who has at
# least one event.
_MOST_ARRAY_BYTES, _BYTES_PER_EVENT, _MOST_ARRAYS = 2**26, 2**16, 1000
# How much smaller than its content text may be, once it is larger than a study with the longest
# reasons, repeated, is likely to be.
_MOST_RATIO, _SMALL = 300, 2**26
# What reading raises for a file that is not as it was written.
UNREADABLE = (
    *(OSError, EOFError, KeyError, ValueError, TypeError, AttributeError, ArithmeticError),
    *(NotImplementedError, RuntimeError, RecursionError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)

AnyArray = np.ndarray[Any, Any]


class Snapshot(NamedTuple):
    """What was learned: a description in plain values, and arrays."""

    info: dict[str, Any]
    arrays: list[AnyArray]


class Archive(NamedTuple):
    """The content of a file; without a snapshot if that cannot be used."""

    events: list[dict[str, Any]]
    snapshot: Snapshot | None


def write(path: Path, archive: Archive) -> None:
    """Write an archive, replacing a file whole or not at all; a link keeps its target.

    Raises:
        StorageError: the file cannot be written.
    """
    lines = (json.dumps(event, ensure_ascii=False, allow_nan=False) for event in archive.events)
    members = {_EVENTS: "".join(f"{line}\n" for line in lines).encode()}
    if archive.snapshot is not None:
        members[_SNAPSHOT] = json.dumps(archive.snapshot.info).encode()
        members |= {f"{n}.npy": _to_bytes(each) for n, each in enumerate(archive.snapshot.arrays)}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    text = json.dumps({"format": FORMAT, "version": VERSION, "sha256": hashes}, indent=1).encode()
    try:
        _replace(path.resolve(), {_TEXT: text} | members)
    except (OSError, RuntimeError) as error:
        raise StorageError(
            f"Expected a place that can be written; got path={str(path)!r} ({error}). "
            "Choose another path, or free the disk."
        ) from error


def read(path: Path) -> Archive:
    """Read an archive.

    Raises:
        StorageError: the file is missing, or its events are not as they were written.
    """
    with refusing(path, f"it is not an archive with a {_TEXT}"):
        if not path.exists():
            raise StorageError(
                f"Expected a saved study; got path={str(path)!r}, which does not exist. Check the "
                "path, or save a study there first."
            )
        _remove_partial(path.resolve().parent)
        with zipfile.ZipFile(path) as file:
            head = json.loads(_read(file, _TEXT, MOST_BYTES[_TEXT]))
            _check_format(path, head)
            hashes: dict[str, str] = head["sha256"]
            with refusing(path, f"{_EVENTS} was changed"):
                packed = file.getinfo(_EVENTS).compress_size
                most = min(MOST_BYTES[_EVENTS], max(_SMALL, _MOST_RATIO * packed))
                text = _read(file, _EVENTS, most, hashes).decode()
                # Other characters that end a line may be part of a name.
                events = [json.loads(line) for line in text.split("\n") if line]
            most = _MOST_ARRAY_BYTES + _BYTES_PER_EVENT * len(events)
            return Archive(events, _read_snapshot(file, hashes, most))


@contextmanager
def refusing(path: Path, reason: str) -> Iterator[None]:
    """Turn whatever goes wrong with a file into one error.

    Raises:
        StorageError: something did.
    """
    try:
        yield
    except (StorageError, UnknownNameError):
        raise
    except (*UNREADABLE, CocoError) as error:
        raise StorageError(
            f"Expected a file written by Study.save; got path={str(path)!r}, but {reason} "
            f"({error}). Restore it from a backup."
        ) from error


def _check_format(path: Path, text: Any) -> None:
    if text["format"] != FORMAT:
        raise ValueError("it was written by another program")
    if text["version"] != VERSION:
        raise StorageError(
            f"Expected version {VERSION} of the format; got version={text['version']!r} in "
            f"{str(path)!r}. Load it with the release that wrote it."
        )


def _read_snapshot(file: zipfile.ZipFile, hashes: dict[str, str], most: int) -> Snapshot | None:
    """Read the snapshot; a damaged one is as good as none, since events can be learned again."""
    arrays: list[AnyArray] = []
    try:
        info = json.loads(_read(file, _SNAPSHOT, MOST_BYTES[_SNAPSHOT], hashes))
        for number in range(min(len(hashes) - 2, _MOST_ARRAYS)):
            content = _read(file, f"{number}.npy", most, hashes)
            most -= len(content)
            arrays.append(np.load(io.BytesIO(content), allow_pickle=False))
    except UNREADABLE:
        return None
    return Snapshot(info, arrays)


def _read(
    file: zipfile.ZipFile, name: str, limit: int, hashes: dict[str, str] | None = None
) -> bytes:
    """Read a member to its limit, since the header may say anything, and check its hash."""
    with file.open(name) as member:
        content = member.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{name} is larger than {limit:,} bytes")
    if hashes is not None and hashlib.sha256(content).hexdigest() != hashes[name]:
        raise ValueError(f"the hash of {name} differs")
    return content


def _replace(path: Path, members: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_partial(path.parent)
    file, temporary = _create_locked(path.parent)
    try:
        with file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, content in members.items():
                    archive.writestr(name, content)
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _create_locked(folder: Path) -> tuple[IO[bytes], Path]:
    """Create a file that no other process removes while it is open."""
    while True:
        handle, name = tempfile.mkstemp(_SUFFIX, _PARTIAL, folder)
        file, path = os.fdopen(handle, "wb"), Path(name)
        fcntl.flock(file, fcntl.LOCK_EX)
        # Another process may have removed it before it was locked.
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                return file, path
        file.close()


def _remove_partial(folder: Path) -> None:
    """Remove what killed processes left: files of ours that nobody holds locked."""
    for left in folder.glob(f"{_PARTIAL}*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            # Anything else of that name, such as a pipe, must not be waited for.
            handle = os.open(left, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            with os.fdopen(handle, "rb") as file:
                if stat.S_ISREG(os.fstat(handle).st_mode):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    left.unlink()


def _to_bytes(array: AnyArray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
