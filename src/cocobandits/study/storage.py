"""A study on disk: one zip archive of plain arrays and one JSON text, without pickle.

The archive can be opened with `numpy.load`. `study.json` holds the design, the names and a hash of
every array, so that damage is found before anything is believed; a second text holds the hash of
the first. Only the owner can read the file, since it holds what people told a study.
"""

import hashlib
import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cocobandits.errors import CocoError, StorageError, UnknownNameError
from cocobandits.policies.description import PolicySettings
from cocobandits.policies.plain import from_plain, to_plain
from cocobandits.study.background import Adoption
from cocobandits.study.context import Feature
from cocobandits.study.decisions import DecisionLog
from cocobandits.study.design import StudyDesign
from cocobandits.study.learner import Arrival, Memory
from cocobandits.study.roster import ArmChange
from cocobandits.study.users import Users

FORMAT = "cocobandits-study"
VERSION = 6
_TEXT = "study.json"
_SEAL = "study.json.sha256"
# What the standard library raises for a file that is not as it was written.
_UNREADABLE = (
    OSError,
    EOFError,
    KeyError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
_STATE = "state"
_COLUMNS = ("users", "arms", "draws", "rewards", "statuses")
# With a place for every arm; arms that did not exist yet have zeros.
_ARM_COLUMNS = {"probabilities": float, "weights": float, "eligible": bool}


class Snapshot(NamedTuple):
    """Everything that a study needs to go on."""

    design: StudyDesign
    memory: Memory
    users: Users
    changes: tuple[ArmChange, ...]
    log: DecisionLog


def write(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot to a temporary file and move it to its place in one step.

    Raises:
        StorageError: the file cannot be written.
    """
    arrays = _arrays(snapshot)
    text = {
        "format": FORMAT,
        "version": VERSION,
        "design": _design(snapshot.design),
        "users": snapshot.users.names,
        "withdrawn": sorted(snapshot.users.withdrawn),
        "arm_changes": snapshot.changes,
        "num_updates": snapshot.memory.num_updates,
        "adoptions": snapshot.memory.adoptions,
        "arrivals": snapshot.memory.arrivals,
        "sha256": {name: _digest(array) for name, array in arrays.items()},
    }
    content = json.dumps(text, indent=1, default=_plain).encode()
    members = {_TEXT: content, _SEAL: hashlib.sha256(content).hexdigest().encode()}
    members |= {f"{name}.npy": _to_bytes(array) for name, array in arrays.items()}
    try:
        _replace(path, members)
    except OSError as error:
        raise StorageError(
            f"Expected a place that can be written; got path={str(path)!r} ({error}). "
            "Choose another path, or free the disk."
        ) from error


def _arrays(snapshot: Snapshot) -> dict[str, np.ndarray[Any, Any]]:
    leaves = jax.tree.leaves((snapshot.memory.users, snapshot.memory.state))
    shape = len(snapshot.users.names), len(snapshot.design.features)
    arrays = {f"{_STATE}-{n}": np.asarray(leaf) for n, leaf in enumerate(leaves)}
    arrays["contexts"] = np.array(snapshot.users.contexts, dtype=float).reshape(shape)
    arrays["is_late"] = np.array(snapshot.users.is_late, dtype=bool).reshape(shape)
    arrays |= {name: np.asarray(getattr(snapshot.log, name)) for name in _COLUMNS}
    width = len(snapshot.design.arms)
    for name, kind in _ARM_COLUMNS.items():
        rows = [row + (kind(),) * (width - len(row)) for row in getattr(snapshot.log, name)]
        arrays[name] = np.array(rows, dtype=kind)
    return arrays


def open_archive(path: Path) -> "Archive":
    """Read a whole file at once, so that nothing can change in between.

    Raises:
        StorageError: the file is missing, damaged, or not a saved study.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        text = json.loads(members[_TEXT])
    except FileNotFoundError as error:
        raise StorageError(
            f"Expected a saved study; got path={str(path)!r}, which does not exist. "
            "Check the path, or save a study there first."
        ) from error
    except _UNREADABLE as error:
        raise _damaged(path, f"it is not an archive with a {_TEXT} ({error})") from error
    if not isinstance(text, dict) or text.get("format") != FORMAT:
        raise _damaged(path, "it was written by another program")
    if text.get("version") != VERSION:
        raise StorageError(
            f"Expected version {VERSION} of the format; got version={text.get('version')!r} in "
            f"{str(path)!r}. Load it with the release that wrote it."
        )
    if members.get(_SEAL) != hashlib.sha256(members[_TEXT]).hexdigest().encode():
        raise _damaged(path, f"{_TEXT} was changed")
    return Archive(path, text, members)


class Archive(NamedTuple):
    """A file that was read, and whose text is as it was written."""

    path: Path
    text: dict[str, Any]
    members: dict[str, bytes]

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn whatever goes wrong with the content into a StorageError."""
        try:
            yield
        except (StorageError, UnknownNameError):
            raise
        except (*_UNREADABLE, CocoError, TypeError, AttributeError, IndexError) as error:
            raise _damaged(self.path, f"its content cannot be used ({error})") from error

    def design(self, policies: Sequence[type[PolicySettings]] = ()) -> StudyDesign:
        """Read the design of the study; use it within `refusing`."""
        declared, floor = self.text["design"], self.text["design"]["floor"]
        return StudyDesign(
            tuple(declared["arms"]),
            tuple(_feature(item) for item in declared["features"]),
            from_plain(declared["rewards"]),
            from_plain(declared["policy"], policies),
            declared["seed"],
            tuple(floor) if isinstance(floor, list) else floor,
            tuple(declared["added"]),
        )

    def users(self, design: StudyDesign) -> Users:
        """Read who enrolled with which context; use it within `refusing`."""
        columns = self.text["users"], self._array("contexts"), self._array("is_late")
        return Users.restore(design.features, zip(*columns, strict=True), self.text["withdrawn"])

    def changes(self) -> list[ArmChange]:
        """Read what has become of arms; use it within `refusing`."""
        return [ArmChange(*entry) for entry in self.text["arm_changes"]]

    def memory(self, template: Any) -> Memory:
        """Read what was learned; `template` has users and a state of the same shapes.

        Raises:
            StorageError: it is damaged or does not fit the design.
        """
        leaves, structure = jax.tree.flatten(template)
        arrays = [self._array(f"{_STATE}-{n}") for n in range(len(leaves))]
        for leaf, array in zip(leaves, arrays, strict=True):
            # The table of users grows along its first axis; nothing else changes shape.
            if array.dtype != leaf.dtype or array.shape[1:] != leaf.shape[1:]:
                raise _damaged(self.path, "its state does not fit its design")
        users, state = jax.tree.unflatten(structure, [jnp.asarray(array) for array in arrays])
        return Memory(
            users,
            state,
            self.text["num_updates"],
            [Adoption(*entry) for entry in self.text["adoptions"]],
            [Arrival(*entry) for entry in self.text["arrivals"]],
        )

    def log(self, design: StudyDesign) -> DecisionLog:
        """Read all decisions; use it within `refusing`.

        Raises:
            StorageError: it is damaged.
        """
        columns = {name: self._array(name).tolist() for name in _COLUMNS}
        for name in _ARM_COLUMNS:
            rows = enumerate(self._array(name).tolist())
            columns[name] = [tuple(row[: design.num_arms_at(number)]) for number, row in rows]
        if len({len(column) for column in columns.values()}) > 1:
            raise _damaged(self.path, "the columns of its log differ in length")
        return DecisionLog(**columns)

    def _array(self, name: str) -> np.ndarray[Any, Any]:
        array = np.load(io.BytesIO(self.members[f"{name}.npy"]), allow_pickle=False)
        if _digest(array) != self.text["sha256"][name]:
            raise _damaged(self.path, f"the array {name!r} was changed")
        return array


def _design(design: StudyDesign) -> dict[str, Any]:
    plain = {"rewards": to_plain(design.rewards), "policy": to_plain(design.policy)}
    others = {each.name: getattr(design, each.name) for each in fields(design)}
    return others | plain | {"features": [asdict(feature) for feature in design.features]}


def _feature(item: dict[str, Any]) -> Feature:
    lists = {
        "range": item["range"] and tuple(item["range"]),
        "categories": tuple(item["categories"]),
    }
    return Feature(**item | lists)


def _replace(path: Path, members: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".study-")
    try:
        with os.fdopen(handle, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, content in members.items():
                    archive.writestr(name, content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _plain(value: Any) -> Any:
    """Let JSON write NumPy's numbers as its own."""
    return value.item()


def _damaged(path: Path, reason: str) -> StorageError:
    return StorageError(
        f"Expected a file written by Study.save; got path={str(path)!r}, but {reason}. "
        "Restore it from a backup."
    )


def _digest(array: np.ndarray[Any, Any]) -> str:
    head = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(array).tobytes()).hexdigest()


def _to_bytes(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
