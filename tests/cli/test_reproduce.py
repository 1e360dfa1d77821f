"""`coco reproduce` and `coco report`, as real processes that are really killed."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from coco_process import COCO, run

# Three cheap policies on the smallest environment: six cells in seconds.
SMALL = ("reproduce", "--quick", "--env", "diet", "--policy", "ind-ts", "--policy", "uniform")
SMALL += ("--seeds", "2")
TABLES = tuple(
    f"{name}.parquet" for name in ("records", "evaluations", "health", "hyperparameters")
)


def start(*arguments: str | Path) -> subprocess.Popen:
    """Start in a process group of its own, so that Ctrl-C can be sent to all of it."""
    return subprocess.Popen(
        [COCO, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def wait_for_first_cell(out: Path) -> None:
    deadline = time.monotonic() + 120
    while not list(out.glob("cells/*/*/seed-*")):
        assert time.monotonic() < deadline, "no cell was finished"
        time.sleep(0.05)


def without_seconds(out: Path) -> list[dict]:
    rows = json.loads((out / "summary.json").read_text())
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess]:
    out = tmp_path_factory.mktemp("whole") / "run"
    return out, run(*SMALL, "--jobs", "1", "--out", out)


def test_plain_lines_count_cells_and_end_with_the_answer(finished):
    out, shown = finished
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    counted = [line for line in lines if line.startswith("[")]
    assert [line.split("]")[0] for line in counted] == [f"[{n}/6" for n in range(1, 7)]
    assert all("regret" in line and "left" in line for line in counted)
    assert lines[-1] == f"Page: {out / 'report' / 'index.html'}"
    assert (out / "report" / "index.html").is_file()


def test_summary_has_one_flat_row_per_cell(finished):
    out, _ = finished
    rows = json.loads((out / "summary.json").read_text())
    assert len(rows) == 6
    keys = "environment policy seed steps total_regret second_half_regret multitask_regret seconds"
    assert all(list(row) == keys.split() for row in rows)
    assert {row["multitask_regret"] for row in rows if row["policy"] == "oracle-ts"} == {0.0}


@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_and_resumed_run_leaves_the_same_files(finished, tmp_path, blow):
    """Ctrl-C to all processes, or the first one killed outright; then --resume with more jobs."""
    whole, _ = finished
    out = tmp_path / "run"
    process = start(*SMALL, "--jobs", "1", "--out", out)
    wait_for_first_cell(out)
    if blow == signal.SIGINT:
        os.killpg(process.pid, blow)
    else:
        process.kill()
    _, errors = process.communicate(timeout=60)
    if blow == signal.SIGINT:
        assert process.returncode == 130
        assert "--resume" in errors
        assert "Traceback" not in errors
    kept = {path: path.stat().st_mtime_ns for path in out.glob("cells/*/*/seed-*/*")}
    assert kept
    assert not (out / "summary.json").exists()
    resumed = run(*SMALL, "--jobs", "2", "--out", out, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "finished already" in resumed.stdout
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    for name in TABLES:
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    assert without_seconds(out) == without_seconds(whole)


def test_report_is_rebuilt_from_records_alone(finished):
    out, _ = finished
    before = (out / "report" / "index.html").read_bytes()
    (out / "report" / "index.html").unlink()
    shown = run("report", out)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[-1] == f"Page: {out / 'report' / 'index.html'}"
    assert (out / "report" / "index.html").read_bytes() == before


def test_report_beside_another_run(finished, tmp_path):
    """The same command again: every cell is in both, and agrees."""
    out, _ = finished
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    copy = tmp_path / "run"
    shutil.copytree(out, copy, ignore=shutil.ignore_patterns("report"))
    shown = run("report", copy, "--beside", out)
    assert shown.returncode == 0, shown.stderr
    assert "--beside OTHER" in (copy / "report" / "index.html").read_text(encoding="utf-8")
    assert {path: path.read_bytes() for path in before} == before


def test_second_run_into_the_same_folder_is_refused(finished):
    out, _ = finished
    shown = run(*SMALL, "--out", out)
    assert shown.returncode == 2
    assert "Add --resume" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--env", "moon"), "environment='moon'. Known: mixture, partial, lmm"),
        (("--policy", "best"), "policy='best'. Known: coids, npm-ts, gids"),
        (("--seeds", "0"), "got seeds=0"),
        (("--jobs", "0"), "got jobs=0"),
    ],
)
def test_bad_input_is_one_sentence_and_a_hint(tmp_path, arguments, message):
    shown = run("reproduce", "--quick", *arguments, "--out", tmp_path / "run")
    assert shown.returncode == 2
    assert message in shown.stderr
    assert "Traceback" not in shown.stderr
    assert not (tmp_path / "run").exists()


def test_report_of_something_else_is_refused(tmp_path):
    shown = run("report", tmp_path)
    assert shown.returncode == 2
    assert "Expected the folder of a run" in shown.stderr


@pytest.mark.parametrize("verb", ["reproduce", "report"])
def test_help_shows_an_example(verb):
    assert f"Example: coco {verb}" in run(verb, "--help").stdout
