"""The results file: one entry per benchmark, with the version, commit, date and machine of each."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.json"

Entries = dict[str, dict[str, Any]]


def read(path: Path = RESULTS) -> Entries:
    """Read all entries; none if there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(path: Path, entries: Entries) -> None:
    """Write the file next to its place, then move it there in one step."""
    text = json.dumps(entries, indent=2, allow_nan=False) + "\n"
    partly = path.with_suffix(".partial")
    partly.write_text(text, encoding="utf-8")
    partly.replace(path)


def provenance(processor: str) -> dict[str, str]:
    """Name version, commit, date and machine; no host and no paths."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(f"{name} {version(name)}" for name in ("jax", "jaxlib", "numpy"))
    git = partial(subprocess.run, cwd=FOLDER, capture_output=True, text=True, check=False)
    commit = git(["git", "rev-parse", "--short=12", "HEAD"]).stdout.strip()
    is_changed = git(["git", "diff", "--quiet", "HEAD", "--", "../src", "*.py"]).returncode != 0
    return {
        "version": version("cocobandits"),
        "commit": commit + (" with changes" if is_changed else ""),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{processor}, {os.cpu_count()} cores, {memory:.1f} GB, {platform.system()}, "
        f"Python {platform.python_version()}, {packages}",
    }
