"""`coco reproduce` and `coco report`, as real processes that are really killed."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from coco_process import COCO, run

from cocobandits.runs.results import read_results

# Three cheap policies on the smallest environment: six cells in seconds.
SMALL = ("reproduce", "--quick", "--env", "diet", "--policy", "ind-ts", "--policy", "uniform")
SEEDS = ("--seeds", "2")


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


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess]:
    out = tmp_path_factory.mktemp("whole") / "run"
    return out, run(*SMALL, *SEEDS, "--jobs", "1", "--out", out)


def test_plain_lines_count_cells_and_end_with_the_answer(finished):
    out, shown = finished
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    counted = [line for line in lines if line.startswith("[")]
    assert [line.split("]")[0] for line in counted] == [f"[{n}/6" for n in range(1, 7)]
    assert all("regret" in line and "left" in line for line in counted)
    assert lines[-1] == f"Page: {out / 'report' / 'index.html'}"
    assert (out / "report" / "index.html").is_file()
    assert sorted(each.name for each in out.iterdir()) == [".lock", "cells.parquet", "report"]


@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_and_continued_run_has_the_same_cells(finished, tmp_path, blow):
    """Ctrl-C, twice, to all processes, or the first one killed; then again with more jobs."""
    whole, _ = finished
    out = tmp_path / "run"
    # Enough seeds that it is still going on when the signal arrives, however slow the machine.
    process = start(*SMALL, "--seeds", "500", "--jobs", "1", "--out", out)
    wait_for_first_cell(out)
    for _ in range(2 if blow == signal.SIGINT else 1):
        os.killpg(process.pid, blow) if blow == signal.SIGINT else process.send_signal(blow)
    _, errors = process.communicate(timeout=60)
    if blow != signal.SIGKILL:
        assert process.returncode == 130
        assert "Stopped" in errors
        assert "Traceback" not in errors
    kept = len(list(out.glob("cells/*/*/seed-[01].*")))
    resumed = run(*SMALL, *SEEDS, "--jobs", "2", "--out", out)
    assert resumed.returncode == 0, resumed.stderr
    assert f"{kept} of 6 cells finished already." in resumed.stdout
    first, second = read_results(whole), read_results(out)
    assert first.cells.keys() <= second.cells.keys()
    for name in ("regrets", "arms", "evaluations"):
        for key, values in getattr(first, name).items():
            np.testing.assert_array_equal(values, getattr(second, name)[key][: len(first.seeds)])


def test_an_interrupted_run_keeps_its_number_of_seeds(tmp_path):
    """The same command again, without --seeds: the quick suite has four."""
    process = start(*SMALL, "--jobs", "1", "--out", tmp_path)
    wait_for_first_cell(tmp_path)
    process.kill()
    process.communicate(timeout=60)
    # Should all cells have been finished by then, there is still one that is not packed.
    (tmp_path / "cells" / "diet" / "ind-ts").mkdir(parents=True, exist_ok=True)
    for path in tmp_path.glob("cells/*/*/seed-[123].*"):
        path.unlink()
    shown = run(*SMALL, "--jobs", "1", "--out", tmp_path)
    assert "of 12 cells" in shown.stdout, shown.stdout
    assert read_results(tmp_path).seeds == (0, 1, 2, 3)


def test_a_second_process_in_the_same_folder_is_refused(tmp_path):
    process = start(*SMALL, "--seeds", "500", "--jobs", "1", "--out", tmp_path)
    wait_for_first_cell(tmp_path)
    shown = run(*SMALL, *SEEDS, "--out", tmp_path)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert shown.returncode == 2
    assert "in use by another run" in " ".join(shown.stderr.split())


def test_a_policy_is_added_to_a_finished_run(finished, tmp_path):
    """The folder's number of seeds is the default, also where an addition was interrupted."""
    out = tmp_path / "run"
    shutil.copytree(finished[0], out)
    (out / "cells" / "diet" / "mtts").mkdir(parents=True)
    policies = ("--policy", "mtts", "--policy", "uniform")
    shown = run("reproduce", "--quick", "--env", "diet", *policies, "--out", out)
    assert shown.returncode == 0, shown.stderr
    assert "2 cells to run" in shown.stdout
    assert "MTTS" in (out / "report" / "index.html").read_text(encoding="utf-8")
    shown = run(*SMALL, "--out", out)
    assert "6 of 6 cells finished already." in shown.stdout


def test_report_is_rebuilt_from_cells_alone(finished):
    out, _ = finished
    before = (out / "report" / "index.html").read_bytes()
    (out / "report" / "index.html").unlink()
    shown = run("report", out)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[-1] == f"Page: {out / 'report' / 'index.html'}"
    assert (out / "report" / "index.html").read_bytes() == before


def test_report_joins_folders(finished, tmp_path):
    """Cells that are in both agree, and nothing is written to the second."""
    out, _ = finished
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    copy = tmp_path / "run"
    shutil.copytree(out, copy, ignore=shutil.ignore_patterns("report"))
    shown = run("report", copy, out)
    assert shown.returncode == 0, shown.stderr
    assert (copy / "report" / "reproduction.md").is_file()
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("damage", ["rows", "columns", "bytes"])
def test_report_of_a_damaged_run_is_one_sentence(finished, tmp_path, damage):
    path = tmp_path / "cells.parquet"
    shutil.copy(finished[0] / "cells.parquet", path)
    if damage == "bytes":
        path.write_bytes(path.read_bytes()[:5000])
    else:
        table = pq.read_table(path)
        pq.write_table(table.slice(0, 900) if damage == "rows" else table.drop_columns("arm"), path)
    shown = run("report", tmp_path)
    assert shown.returncode == 2
    assert "Traceback" not in shown.stderr
    assert "Expected a file that `coco` wrote" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--env", "moon"), "environment='moon'. Known: mixture, partial, lmm"),
        (("--policy", "best"), "policy='best'. Known: coids, npm-ts, gids"),
        (("--seeds", "0"), "got num_seeds=0"),
        (("--seeds", "100000000000"), "got num_seeds=100000000000"),
        (("--nodes", "100000"), "got nodes=100000"),
        (("--jobs", "0"), "Invalid value for '--jobs'"),
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
