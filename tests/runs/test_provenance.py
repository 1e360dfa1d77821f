"""Cells are stale after a change of code that decides, and of no other code."""

import shutil
import subprocess
from pathlib import Path

import pytest

import cocobandits
from cocobandits.runs import info
from cocobandits.runs.info import Source, source_digest

PACKAGE = Path(cocobandits.__file__).parent
FOLDERS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file())
SHOWING = ["cli", "experiments"]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(
        PACKAGE, tmp_path_factory.mktemp("package") / "cocobandits", ignore=ignored
    )


@pytest.mark.parametrize("folder", FOLDERS)
def test_digest_follows_the_folders_that_decide(package, folder):
    before = source_digest(package)
    (package / folder / "added.py").write_text("1\n", encoding="utf-8")
    assert (source_digest(package) == before) == (folder in SHOWING)


def test_storage_does_not_decide_but_cells_and_tables_do(package):
    for name in (
        "runs/store.py",
        "experiments/tables.py",
        "runs/cell.py",
        "experiments/density.py",
    ):
        before, file = source_digest(package), package / name
        file.write_text(file.read_text(encoding="utf-8") + "# a remark\n", encoding="utf-8")
        assert (source_digest(package) == before) == (name.endswith(("store.py", "tables.py")))


@pytest.mark.parametrize("is_tracked", [True, False])
def test_commit_is_that_of_a_repository_that_tracks_the_package(tmp_path, monkeypatch, is_tracked):
    """Not that of a repository which contains an environment with the package."""
    module = tmp_path / "venv" / "provenance.py"
    module.parent.mkdir()
    for file in (module, tmp_path / "thesis.tex"):
        file.write_text("")
    author = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    added = (str(module),) if is_tracked else ("thesis.tex",)
    for command in (("init", "-q"), ("add", *added), (*author, "commit", "-q", "-m", "x")):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(info, "__file__", str(module))
    assert (Source.here(1).provenance["commit"] is not None) == is_tracked
