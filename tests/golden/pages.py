"""Regenerates the pages and figures of a tree in a copy, by `make docs`, and hashes each one."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from golden.playing import Outcome

_COPIED = ("docs", "results", "benchmarks")
_FILES = ("README.md", "Makefile")
# Marks of the part of the README that is generated.
_BEGIN, _END = "<!-- results: begin", "<!-- results: end"
_LONG_AGO = 0
# What the `make` that started this process leaves to the one started here.
_OF_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL")


def regenerate(tree: Path, folder: Path) -> list[Outcome]:
    """Run `make docs` in a copy; one outcome per file that it wrote, or one that says it failed."""
    for name in _COPIED:
        shutil.copytree(tree / name, folder / name)
    for name in _FILES:
        shutil.copy(tree / name, folder)
    everything = [path for path in folder.rglob("*") if path.is_file()]
    for path in everything:
        os.utime(path, (_LONG_AGO, _LONG_AGO))
    done = _make_docs(folder)
    if done.returncode:
        return [Outcome("page/make docs", [], f"failed: {done.stderr.strip()}")]
    written = [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".md", ".html", ".svg") and path.stat().st_mtime > _LONG_AGO
    ]
    return [_outcome(path, folder) for path in written]


def _make_docs(folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
    # The environment of this process is ready, whatever the copy has.
    command = ["make", "--old-file=.venv/.ready", f"BIN={sys.prefix}/bin", "docs"]
    return subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True
    )


def _outcome(path: Path, folder: Path) -> Outcome:
    text = path.read_text(encoding="utf-8")
    if path.name == "README.md":
        text = text.split(_BEGIN)[1].split(_END)[0]
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Outcome(f"page/{path.relative_to(folder)}", [["sha256", digest]])
