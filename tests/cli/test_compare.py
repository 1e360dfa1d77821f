"""`coco compare` as a real process: a run, one more policy, and what it refuses."""

import re
import subprocess
from pathlib import Path

import pytest
from coco_process import run

from cocobandits.experiments.suites import VARIANTS

FLAGS = ("compare", "--quick", "--env", "diet")
SMALL = (*FLAGS, "--policy", "robustagg", "--policy", "mtts-fitted", "--seeds", "1")


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


def test_the_page_is_rebuilt_without_running(finished):
    out, _ = finished
    page = out / "report" / "comparison.md"
    before = page.read_bytes()
    page.unlink()
    shown = run("report", out)
    assert shown.returncode == 0, shown.stderr
    assert page.read_bytes() == before


def test_one_more_policy_is_ranked_with_all_others(finished):
    page = finished[0] / "report" / "comparison.md"
    shown = run(*FLAGS, "--policy", "uniform", "--jobs", "1", "--out", finished[0])
    assert shown.returncode == 0, shown.stderr
    assert "1 cell to run" in shown.stdout
    assert shown.stdout.splitlines()[-1] == f"Comparison: {page}"
    text = page.read_text(encoding="utf-8")
    for name in ("CoIDS", "RobustAgg", "Uniform"):
        assert f"| {name} |" in text


def test_other_settings_in_its_folder_are_refused(finished):
    shown = run("compare", "--env", "diet", "--policy", "uniform", "--out", finished[0])
    assert shown.returncode == 2
    assert "diet / coids / seed 0 has other settings" in " ".join(shown.stderr.split())


def test_variants_are_named_where_policies_are_asked_for():
    shown = run("compare", "--help")
    # Lines may end after a hyphen.
    unwrapped = " ".join(re.sub(r"-\n\s+", "-", shown.stdout).split())
    assert all(f" {name}" in unwrapped for name in VARIANTS)


def test_unknown_policies_are_named_with_what_there_is(tmp_path):
    shown = run("compare", "--policy", "nobody", "--out", tmp_path / "run")
    assert shown.returncode == 2
    assert "nobody" in shown.stderr
    assert "in all). Choose one of these." in shown.stderr
