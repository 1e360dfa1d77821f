"""The command line, as a user types it."""

import pytest
from coco_process import run


def test_help_shows_an_example():
    shown = run("demo", "--help")
    assert shown.returncode == 0
    assert "Example: coco demo" in shown.stdout


def test_version():
    assert run("--version").stdout.startswith("coco 0.")


def test_unknown_policy_is_one_sentence_and_a_hint():
    shown = run("demo", "--policy", "best")
    assert shown.returncode == 2
    assert "policy='best'" in shown.stderr
    assert "Choose one of these." in shown.stderr
    assert "Traceback" not in shown.stderr


def test_debug_shows_the_traceback():
    assert "Traceback" in run("--debug", "demo", "--policy", "best").stderr


@pytest.mark.parametrize("seed", ["-1", "many"])
def test_bad_seed_is_refused(seed):
    shown = run("demo", "--seed", seed)
    assert shown.returncode == 2
    assert "--seed" in shown.stderr


def test_demo_with_a_quick_policy_prints_every_table():
    shown = run("demo", "--policy", "ind-ts")
    assert shown.returncode == 0, shown.stderr
    for heading in ("First plan given", "Believed of somebody new", "Reward lost"):
        assert heading in shown.stdout
