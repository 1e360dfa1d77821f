"""`coco compare` as a real process: a run, its page again, and what it refuses."""

import subprocess
from pathlib import Path

import pytest
from coco_process import run

FLAGS = ("--quick", "--env", "diet", "--policy", "robustagg", "--policy", "mtts-fitted")
SMALL = ("compare", *FLAGS, "--seeds", "1")


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess]:
    out = tmp_path_factory.mktemp("compare") / "run"
    return out, run(*SMALL, "--jobs", "1", "--out", out)


def test_a_run_ends_with_its_page(finished):
    """Ours, the oracle and the yardstick take part without being asked."""
    out, shown = finished
    assert shown.returncode == 0, shown.stderr
    assert "[5/5]" in shown.stdout
    assert shown.stdout.splitlines()[-1] == f"Comparison: {out / 'report' / 'comparison.md'}"
    page = (out / "report" / "comparison.md").read_text(encoding="utf-8")
    for name in ("CoIDS", "OraclePrior-TS", "Ind-TS", "RobustAgg", "MTTS, Σ fitted"):
        assert f"| {name} |" in page
    assert "--seeds 1 --out DIR`" in page


def test_the_page_is_written_again_without_running(finished):
    out, _ = finished
    page = out / "report" / "comparison.md"
    before = page.read_bytes()
    page.unlink()
    shown = run("compare", "--show", "--out", out)
    assert shown.returncode == 0, shown.stderr
    assert "cells" not in shown.stdout
    assert page.read_bytes() == before


def test_another_run_in_its_folder_is_refused(finished):
    shown = run(*SMALL, "--env", "lmm", "--resume", "--out", finished[0])
    assert shown.returncode == 2
    assert "a run with other environments" in shown.stderr


def test_it_is_no_run_to_report(finished):
    shown = run("report", finished[0])
    assert shown.returncode == 2
    assert f"coco compare --show --out {finished[0]}" in " ".join(shown.stderr.split())


def test_unknown_policies_are_named_with_what_there_is(tmp_path):
    shown = run("compare", "--policy", "nobody", "--out", tmp_path / "run")
    assert shown.returncode == 2
    assert "nobody" in shown.stderr
    assert "in all). Choose one of these." in shown.stderr
