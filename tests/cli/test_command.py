"""The command line, as a user types it."""

import os
import re
import signal
import subprocess
import time

import pytest
from coco_process import COCO, run


@pytest.mark.parametrize("verb", ["demo", "reproduce", "compare", "report"])
def test_help_shows_an_example_and_no_types_of_python(verb):
    shown = run(verb, "--help")
    assert shown.returncode == 0
    assert f"Example: coco {verb}" in shown.stdout
    assert not re.search("bool|<[a-z]", shown.stdout)


def test_benchmarks_of_the_current_folder_are_not_run(tmp_path):
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "bench.py").write_text("print('ran')")
    shown = subprocess.run(
        [COCO, "bench"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert shown.returncode == 2
    assert "No such command" in shown.stderr
    assert "ran" not in shown.stdout


def test_version():
    assert run("--version").stdout.startswith("coco 0.")


def test_unknown_policy_is_one_sentence_and_a_hint():
    shown = run("demo", "--policy", "best")
    assert shown.returncode == 2
    assert "policy='best'" in shown.stderr
    assert "Choose one of these." in shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize(
    "arguments", [("--debug", "demo", "--policy", "best"), ("demo", "--policy", "best", "--debug")]
)
def test_debug_shows_the_traceback_wherever_it_stands(arguments):
    assert "Traceback" in run(*arguments).stderr


@pytest.mark.parametrize("seed", ["-1", "many"])
def test_bad_seed_is_refused(seed):
    shown = run("demo", "--seed", seed)
    assert shown.returncode == 2
    assert "--seed" in shown.stderr


def test_demo_with_a_quick_policy_prints_every_table(tmp_path):
    picture = tmp_path / "demo.PNG"
    shown = run("demo", "--policy", "ind-ts", "--picture", picture)
    assert shown.returncode == 0, shown.stderr
    for heading in ("First plan given", "Believed of somebody new", "Reward lost"):
        assert heading in shown.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--picture", "demo.gif"), "ends in .pdf, .png, .svg"),
        (("--picture", "file/demo.png"), "a file that can be written"),
        (("--policy", "hlinucb"), "hlinucb"),
    ],
)
def test_demo_refuses_before_it_simulates(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    shown = run("demo", *arguments)
    assert shown.returncode == 2
    assert message in " ".join(shown.stderr.split())
    assert not shown.stdout
    assert not list(tmp_path.rglob("*.png"))


@pytest.mark.parametrize("seconds", [0.15, 0.4, 0.8, 1.2])
@pytest.mark.parametrize("request_to_end", [signal.SIGINT, signal.SIGTERM])
def test_an_early_end_is_quiet(seconds, request_to_end):
    """Imports take longer than that; a second Ctrl-C follows at once."""
    # Without the cache that tests share: JAX warns of an entry that another test is writing.
    environment = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    process = subprocess.Popen(
        [COCO, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    time.sleep(seconds)
    for _ in range(2):
        process.send_signal(request_to_end)
    _, errors = process.communicate(timeout=60)
    # On a busy machine the signal may come before Python itself has started, which is quiet too.
    assert process.returncode in (130, -request_to_end)
    assert errors.replace("Stopped.\n", "") == ""
