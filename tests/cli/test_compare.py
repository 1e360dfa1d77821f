"""`coco compare` as a real process: a run, its page again, and what it refuses."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from coco_process import run

from cocobandits.experiments.presets import VARIANTS

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


def test_a_policy_is_ranked_beside_a_finished_run(finished, tmp_path):
    """Only it and the oracle run, with the seeds and environments of the first run."""
    page = tmp_path / "pages" / "uniform.md"
    told = ("--quick", "--policy", "uniform", "--beside", finished[0], "--page", page)
    shown = run("compare", *told, "--jobs", "1", "--out", tmp_path / "run")
    assert shown.returncode == 0, shown.stderr
    assert "[2/2]" in shown.stdout
    assert shown.stdout.splitlines()[-1] == f"Comparison: {page}"
    text = page.read_text(encoding="utf-8")
    for name in ("CoIDS", "RobustAgg", "Uniform"):
        assert f"| {name} |" in text


def test_a_run_beside_one_without_ours_is_refused_before_it_starts(finished, tmp_path):
    first = tmp_path / "first"
    shutil.copytree(finished[0], first)
    config = json.loads((first / "config.json").read_text())
    config["policies"].remove("coids")
    (first / "config.json").write_text(json.dumps(config))
    told = ("--quick", "--policy", "uniform", "--beside", first)
    shown = run("compare", *told, "--out", tmp_path / "run")
    assert shown.returncode == 2
    assert "has no coids" in " ".join(shown.stderr.split())
    assert not (tmp_path / "run").exists()


def test_variants_are_named_where_policies_are_asked_for():
    shown = run("compare", "--help", width=400)
    assert all(f" {name}" in shown.stdout for name in VARIANTS)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--quick", "--seeds", "2"), "which has seeds [0]"),
        (("--quick", "--env", "lmm"), "which has no lmm"),
        ((), "which has another scale"),
    ],
)
def test_what_does_not_fit_is_told_before_the_run(finished, tmp_path, flags, message):
    told = ("--policy", "uniform", "--beside", finished[0], "--out", tmp_path / "run")
    shown = run("compare", *flags, *told)
    assert shown.returncode == 2
    assert message in " ".join(shown.stderr.split())
    assert not (tmp_path / "run").exists()


def test_resumed_without_a_number_it_has_the_seeds_that_it_had(finished):
    shown = run("compare", *FLAGS, "--resume", "--out", finished[0])
    assert shown.returncode == 0, shown.stderr
    page = (finished[0] / "report" / "comparison.md").read_text(encoding="utf-8")
    assert "--seeds 1 --out DIR`" in page


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
