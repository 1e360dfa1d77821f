"""The package as a user gets it: installed by pip into an empty environment.

Each environment takes minutes, so all tests are slow. Packages come from wherever pip is
configured to find them.
"""

import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import cocobandits

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCRIPTS = "Scripts" if os.name == "nt" else "bin"


def run(*command, folder):
    """Run a command as somebody would who has neither the repository nor our settings."""
    hidden = ("JAX_", "COCOBANDITS_", "PYTHON", "XLA_")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(hidden)
    } | {"XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "200"}
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def install(package, folder):
    """Create an empty environment and install a package, with the packages that it needs."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / SCRIPTS / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check", "--quiet")
    done = run(*pip, "install", package, folder=folder)
    assert done.returncode == 0, done.stderr
    return python


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    done = run(*pip, "wheel", ROOT, "--no-deps", "--wheel-dir", folder, folder=folder)
    assert done.returncode == 0, done.stderr
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def from_wheel(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("from-wheel")
    return folder, install(wheel, folder)


def test_example_of_the_readme_runs_after_installation(tmp_path):
    """Run it twice: once compiling, once from the cache; both print what the README shows."""
    [(code, expected), *_] = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", README, re.S)
    python = install(ROOT, tmp_path)
    first = run(python, "-W", "error", "-c", code, folder=tmp_path)
    assert first.stdout == expected, first.stderr
    [line] = first.stderr.splitlines()
    assert line.startswith("cocobandits: compiling")
    second = run(python, "-W", "error", "-c", code, folder=tmp_path)
    assert (second.stdout, second.stderr) == (expected, "")


def test_wheel_holds_licence_types_and_templates(wheel):
    """And neither tests nor results."""
    names = zipfile.ZipFile(wheel).namelist()
    version = cocobandits.__version__
    assert wheel.name.startswith(f"cocobandits-{version}-py3-none-any")
    information = f"cocobandits-{version}.dist-info"
    wanted = {
        "cocobandits/py.typed",
        "cocobandits/experiments/templates/report.html",
        f"{information}/licenses/LICENSE",
        f"{information}/entry_points.txt",
    }
    assert wanted <= set(names)
    assert {name.split("/")[0] for name in names} == {"cocobandits", information}


def test_metadata_of_the_wheel(wheel):
    [name] = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("/METADATA")]
    metadata = zipfile.ZipFile(wheel).read(name).decode()
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    assert "\nLicense-File: LICENSE\n" in metadata
    assert "\nRequires-Dist: platformdirs" in metadata


def test_command_starts_from_the_wheel(from_wheel):
    folder, python = from_wheel
    shown = run(python.with_name("coco"), "--version", folder=folder)
    assert (shown.stdout, shown.returncode) == (f"coco {cocobandits.__version__}\n", 0)


def test_commands_name_the_extra_that_is_missing(from_wheel):
    """The demo goes on without its picture; a reproduction needs files and figures."""
    folder, python = from_wheel
    coco = python.with_name("coco")
    demo = run(coco, "demo", folder=folder)
    assert demo.returncode == 0, demo.stderr
    assert "pip install 'cocobandits[experiments]'" in demo.stdout
    refused = run(coco, "reproduce", "--quick", folder=folder)
    assert refused.returncode == 2
    assert "pip install 'cocobandits[experiments]'" in refused.stderr
