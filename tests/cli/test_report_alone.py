"""`coco report` with a package that has no environments and no simulation."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cocobandits

SOURCE = Path(cocobandits.__file__).parents[1]
RESULTS = Path(__file__).parents[2] / "results"
DELETED = ("environments", "simulation")
START = "from cocobandits_command import main; main()"


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> dict[str, Path]:
    """Copy the package as it is, and without the folders."""
    folder = tmp_path_factory.mktemp("packages")
    for name in ("whole", "part"):
        shutil.copytree(
            SOURCE / "cocobandits",
            folder / name / "cocobandits",
            ignore=shutil.ignore_patterns("__pycache__", *(DELETED if name == "part" else ())),
        )
        shutil.copy(SOURCE / "cocobandits_command.py", folder / name)
    return {name: folder / name for name in ("whole", "part")}


def coco(package: Path, *arguments: str | Path) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": str(package)}
    command = [sys.executable, "-c", START, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize(
    "run", ["compare", "studies", pytest.param("reproduction", marks=pytest.mark.slow)]
)
def test_pages_and_figures_are_the_same_bytes(packages, tmp_path, run):
    found = {}
    for name, package in packages.items():
        out = tmp_path / name / run
        shutil.copytree(RESULTS / run, out, ignore=shutil.ignore_patterns("report"))
        shown = coco(package, "report", out)
        assert shown.returncode == 0, shown.stderr
        pages = [path for path in (out / "report").rglob("*") if path.is_file()]
        found[name] = {path.relative_to(out): path.read_bytes() for path in pages}
    assert found["whole"].keys() == found["part"].keys()
    assert {path.suffix for path in found["part"]} >= {".md", ".svg"}
    assert found["whole"] == found["part"]


def test_without_environments_nothing_is_simulated(packages):
    """The copy is the one that runs."""
    shown = coco(packages["part"], "demo", "--policy", "ind-ts")
    assert shown.returncode != 0
    assert "No module named 'cocobandits.environments'" in shown.stderr
