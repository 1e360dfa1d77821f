"""Compiled functions on disk, so that a later process loads them instead of compiling again.

Owns where they are stored, how much room they take, and when nothing is stored. JAX reads and
writes the entries. A directory that cannot be used means a slower start and nothing else: no
function of this module raises, and none warns.
"""

import hashlib
import os
import platform
import warnings
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from stat import S_IWGRP, S_IWOTH

import jax
import platformdirs
from jaxlib.version import __version__ as jaxlib_version

SWITCH, LIMIT = "COCOBANDITS_CACHE", "COCOBANDITS_CACHE_MB"
DEFAULT_LIMIT_MB = 1000
_OFF = ("off", "0", "no", "false")
_PRIVATE = 0o700
_MARKER = ".trimmed"
_CPU_INFO = Path("/proc/cpuinfo")
_CPU_LINES = ("model name", "flags", "Features", "CPU implementer", "CPU part")
_ENABLED, _DIRECTORY = "jax_enable_compilation_cache", "jax_compilation_cache_dir"
# JAX's default, and ours. JAX stores functions that compile for a second or longer; a study needs
# a hundred that compile faster.
_STORE_ALL = {
    "jax_persistent_cache_min_compile_time_secs": (1.0, 0.0),
    "jax_persistent_cache_min_entry_size_bytes": (0, -1),
}
_JAX_WARNING = "Error (reading|writing) persistent compilation cache entry"


def configure_cache() -> None:
    """Store compiled functions in the user's cache directory, or in the one JAX was given."""
    if os.environ.get(SWITCH, "").lower() in _OFF or not jax.config.values[_ENABLED]:
        return
    if jax.config.values[_DIRECTORY] is None:
        folder = _own_folder()
        if folder is None:
            return
        jax.config.update(_DIRECTORY, str(folder))  # type: ignore[no-untyped-call]
        # An entry that another process deletes or has not finished, and a full disk, cost a
        # compilation. JAX would warn once per function.
        warnings.filterwarnings("ignore", _JAX_WARNING, UserWarning)
        trim(folder, limit_bytes())
    for name, (default, value) in _STORE_ALL.items():
        if name.upper() not in os.environ and jax.config.values[name] == default:
            jax.config.update(name, value)  # type: ignore[no-untyped-call]


def limit_bytes() -> int:
    """Read the size limit; anything but a positive whole number means the default."""
    given = os.environ.get(LIMIT, "")
    megabytes = int(given) if given.isascii() and given.isdigit() else 0
    return (megabytes or DEFAULT_LIMIT_MB) * 10**6


def trim(folder: Path, limit: int) -> None:
    """Delete empty entries, and the least recently used ones until the rest fits the limit.

    Directories change when an entry is added. Without a change since the last time nothing is
    counted, so a warm start reads two timestamps.
    """
    # Not `jax_compilation_cache_max_size`: it reads a timestamp file per entry for every entry that
    # is written, 100 ms at 5,000 entries, and cannot recover from a write that was interrupted.
    marker = folder / _MARKER
    with suppress(OSError):
        if marker.exists() and folder.stat().st_mtime_ns <= marker.stat().st_mtime_ns:
            return
        entries = sorted(_entries(folder.parent), reverse=True)
        total = 0
        for _, size, path in entries:
            total += size
            # A full disk leaves empty entries, which JAX neither loads nor writes again.
            if total > limit or not size:
                path.unlink(missing_ok=True)
        marker.touch()


def _entries(root: Path) -> Iterator[tuple[float, int, Path]]:
    """List when each entry was last used, its size and its path."""
    for folder in root.iterdir():
        for path in folder.iterdir() if folder.is_dir() else ():
            with suppress(FileNotFoundError):  # another process trims too
                status = path.stat()
                if path.name != _MARKER:
                    yield max(status.st_atime, status.st_mtime), status.st_size, path


def _own_folder() -> Path | None:
    """Create the directory for this machine; None if it cannot be used, or not safely.

    JAX executes the entries: a directory that others can write to is refused.
    """
    root = platformdirs.user_cache_path("cocobandits", appauthor=False) / "compiled"
    folder = root / f"jaxlib-{jaxlib_version}-{_machine()}"
    try:
        if not root.is_absolute():  # there is no home directory
            return None
        folder.mkdir(_PRIVATE, parents=True, exist_ok=True)
        status = folder.stat()
        is_ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        is_private = os.name == "nt" or not status.st_mode & (S_IWGRP | S_IWOTH)
        is_writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        return None
    return folder if is_ours and is_private and is_writable else None


def _machine() -> str:
    """Name the processor, whose instructions entries are made of.

    XLA loads an entry that was compiled for another processor, and logs that it may crash. Home
    directories are shared between machines.
    """
    try:
        with _CPU_INFO.open(encoding="utf-8") as lines:
            first = takewhile(str.strip, lines)  # of all cores, which are alike
            known = "".join(line for line in first if line.startswith(_CPU_LINES))
    except OSError:
        known = f"{platform.processor()} {platform.node()}"
    return hashlib.sha256(f"{platform.machine()} {known}".encode()).hexdigest()[:12]
