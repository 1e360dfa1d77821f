"""`coco bench`, without measuring anything."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cocobandits.cli import bench
from cocobandits.cli.main import app
from cocobandits.errors import ConfigurationError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def calls(monkeypatch):
    """Note commands instead of running them."""
    noted = []

    def note(command, check):
        noted.append(command)
        return subprocess.CompletedProcess(command, 3 if check is False else 0)

    monkeypatch.setattr(bench.subprocess, "run", note)
    return noted


def test_runs_the_script_of_the_clone_with_this_python(calls, monkeypatch):
    """From a folder inside the clone; the exit code is the script's."""
    monkeypatch.chdir(ROOT / "tests" / "cli")
    done = CliRunner().invoke(app, ["bench", "--json", "--quick"])
    script = str(ROOT / "benchmarks" / "bench.py")
    assert calls == [[sys.executable, script, "--quick", "--json"]]
    assert done.exit_code == 3


def test_outside_of_a_clone_says_what_to_do(calls, monkeypatch, tmp_path):
    """One sentence with what was expected, and nothing is started."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["bench"])
    assert isinstance(done.exception, ConfigurationError)
    assert calls == []
    with pytest.raises(ConfigurationError, match=r"Expected a clone .*; got folder=.* Do this in"):
        bench.find_script(tmp_path)


def test_help_shows_an_example():
    """As every verb does."""
    assert (
        "Example: coco bench --quick --json" in CliRunner().invoke(app, ["bench", "--help"]).output
    )
