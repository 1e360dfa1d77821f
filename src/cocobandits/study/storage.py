"""A study on disk: one zip archive of plain arrays and one JSON text, without pickle.

The archive can be opened with `numpy.load`. `study.json` holds the design, the names and a hash of
every array, so that damage is found before anything is believed.
"""

import hashlib
import io
import json
import os
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cocobandits.errors import CocoError, StorageError
from cocobandits.inference.smc import SmcConfig
from cocobandits.policies.registry import CocoSettings
from cocobandits.study.decisions import DecisionLog
from cocobandits.study.design import Feature, StudyDesign

FORMAT = "cocobandits-study"
VERSION = 1
_TEXT = "study.json"
_STATE = "state"
_COLUMNS = ("users", "arms", "probabilities", "draws", "rewards", "statuses")
Arrays = dict[str, np.ndarray[Any, Any]]


class Snapshot(NamedTuple):
    """Everything that a study needs to go on."""

    design: StudyDesign
    state: Any
    users: list[str]
    withdrawn: list[str]
    log: DecisionLog
    num_updates: int


def write(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot beside its place and move it there in one step."""
    arrays = {
        f"{_STATE}-{n}": np.asarray(leaf) for n, leaf in enumerate(jax.tree.leaves(snapshot.state))
    }
    arrays |= {name: np.asarray(getattr(snapshot.log, name)) for name in _COLUMNS}
    text = {
        "format": FORMAT,
        "version": VERSION,
        "design": asdict(snapshot.design),
        "users": snapshot.users,
        "withdrawn": snapshot.withdrawn,
        "num_updates": snapshot.num_updates,
        "sha256": {name: _digest(array) for name, array in arrays.items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(_TEXT, json.dumps(text, indent=1))
                for name, array in arrays.items():
                    archive.writestr(f"{name}.npy", _to_bytes(array))
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_design(path: Path) -> StudyDesign:
    """Read what a study was designed as.

    Raises:
        StorageError: the file is missing, damaged, or not a saved study.
    """
    declared = _read_text(path)["design"]
    try:
        settings = declared["settings"]
        inference = SmcConfig(**settings.pop("inference"))
        features = tuple(
            Feature(
                item["name"],
                None if item["range"] is None else (item["range"][0], item["range"][1]),
                tuple(item["categories"]),
            )
            for item in declared["features"]
        )
        return StudyDesign(
            tuple(declared["arms"]),
            features,
            (declared["reward_range"][0], declared["reward_range"][1]),
            declared["reward_noise"],
            declared["policy"],
            declared["seed"],
            CocoSettings(**settings, inference=inference),
        )
    except (CocoError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise _damaged(path, f"its design cannot be read ({error})") from error


def read(path: Path, design: StudyDesign, template: Any) -> Snapshot:
    """Read a snapshot; `template` is a fresh state of the same policy.

    Raises:
        StorageError: the file is damaged.
    """
    text = _read_text(path)
    arrays = _read_arrays(path, text)
    leaves, structure = jax.tree.flatten(template)
    names = [f"{_STATE}-{n}" for n in range(len(leaves))]
    missing = [name for name in (*names, *_COLUMNS) if name not in arrays]
    if missing:
        raise _damaged(path, f"it lacks {missing}")
    restored = [jnp.asarray(arrays[name]) for name in names]
    columns = {name: arrays[name].tolist() for name in _COLUMNS}
    columns["probabilities"] = [tuple(row) for row in columns["probabilities"]]
    return Snapshot(
        design,
        jax.tree.unflatten(structure, restored),
        text["users"],
        text["withdrawn"],
        DecisionLog(**columns),
        text["num_updates"],
    )


def _read_text(path: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            text = json.loads(archive.read(_TEXT))
    except FileNotFoundError as error:
        raise StorageError(
            f"Expected a saved study; got path={str(path)!r}, which does not exist. "
            "Check the path, or save a study there first."
        ) from error
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        raise _damaged(path, f"it is not an archive with a {_TEXT} ({error})") from error
    if not isinstance(text, dict) or text.get("format") != FORMAT:
        raise _damaged(path, "it was written by another program")
    if text.get("version") != VERSION:
        raise StorageError(
            f"Expected version {VERSION} of the format; got version={text.get('version')!r} in "
            f"{str(path)!r}. Load it with the release that wrote it."
        )
    return text


def _read_arrays(path: Path, text: dict[str, Any]) -> Arrays:
    arrays: Arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name, digest in text["sha256"].items():
                array = np.load(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False)
                if _digest(array) != digest:
                    raise _damaged(path, f"the array {name!r} was changed")
                arrays[name] = array
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        if isinstance(error, StorageError):
            raise
        raise _damaged(path, f"an array cannot be read ({error})") from error
    return arrays


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
