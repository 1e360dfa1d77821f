"""The results file, and the page and figure that are made from it."""

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import page
import pytest
import timed

from cocobandits.experiments.figures.drawing import save

ROOT = Path(__file__).parents[2]


@pytest.fixture
def entries():
    """The committed entries, to be changed by a test."""
    return json.loads(page.RESULTS.read_text())


def row_of(entries, words):
    [row] = [row for row in page.target_rows(entries) if words in row[0]]
    return row[1:]


def test_a_summary_keeps_moves_apart():
    """Two rewards of 1 and 3 ms, and one that moved particles for 2 s."""
    blank = timed.Interaction(None, {}, 0.0, has_moved=False, while_moving=False)
    summary = timed.summarise(
        [
            blank._replace(seconds={"decide": 0.002, "reward": reward}, has_moved=reward == 2.0)
            for reward in (0.001, 0.003, 2.0)
        ]
    )
    assert summary["reward_ms_p50"] == pytest.approx(2.0)
    assert summary["decision_ms_p50"] == pytest.approx(2.0)
    assert (summary["rejuvenations"], summary["rejuvenation_seconds"]) == (1, 2.0)
    assert summary["enrolment_ms"] is None


def test_targets_are_compared_with_the_measurements(entries):
    """A bound is a number, or another value of the entry."""
    entries["literal[gids]"]["ratio"] = 29.0
    assert row_of(entries, "a run:") == ("at least 30", "29", "no")
    entries["users[gids]"] |= {"ratio": 1.5, "bound": 2.0}
    assert row_of(entries, "most users") == ("at most 2", "1.5", "yes")


def test_page_shows_new_entries_with_their_origin(entries):
    """Another version on another machine gets its own row."""
    new = {"version": "9.9", "commit": "abc", "date": "2001-02-03", "machine": "an abacus"}
    entries["run[coids]"] = entries["run[gids]"] | new | {"label": "new", "decision_ms_p95": 0.5}
    text = page.render(entries)
    assert "| `run[coids]` | 9.9 | abc | 2001-02-03 | an abacus |" in text
    assert "| decision of new, ms at 95 % | at most 5 | 0.5 | yes |" in text


def test_numbers_keep_three_digits():
    """Whole numbers in full, seconds below one as milliseconds."""
    shown = [page.number(each) for each in (0.01234, 12.3456, 80_000.0, 3.0, None)]
    assert shown == ["0.0123", "12.3", "80,000", "3", "–"]
    assert [page.seconds(each) for each in (0.0456, 4.56, None)] == ["45.6 ms", "4.56 s", "–"]


def test_figure_has_named_logarithmic_axes(entries, tmp_path):
    [axes] = page.draw(entries).axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    save(axes.figure, tmp_path / "performance.svg")
    assert (tmp_path / "performance.svg").stat().st_size > 10_000


def run_bench(*words):
    """Start pytest as `make bench QUICK=1` does; below xdist nothing would be measured."""
    command = [sys.executable, "-m", "pytest", "-o", "addopts=", "--benchmark-only", "benchmarks"]
    command += ["--quick", *words]
    environment = {name: os.environ[name] for name in os.environ if "PYTEST" not in name}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_benchmark_records_its_entry_alone(tmp_path):
    """The import of the package, in a process of its own, with its origin."""
    path = tmp_path / "results.json"
    path.write_text('{"old": {"seconds": 1.0}}')
    run_bench("--benchmark-json", str(path), "-k", "import")
    found = json.loads(path.read_text())
    assert list(found) == ["old", "start[import]"]
    new = found["start[import]"]
    assert list(new) == ["version", "commit", "date", "machine", "seconds"]
    assert 0 < new["seconds"] < 60
    assert "/" not in json.dumps(new)
    assert platform.node() not in json.dumps(new)


def test_committed_entries_are_of_benchmarks(entries):
    """If this fails, delete the entries of benchmarks that no longer exist."""
    listed = run_bench("--collect-only", "-q")
    assert set(entries) <= set(re.findall(r"::test_(.+)", listed))


@pytest.mark.slow
def test_all_benchmarks_in_small_make_a_page(tmp_path):
    path = tmp_path / "results.json"
    run_bench("--benchmark-json", str(path))
    assert page.render(json.loads(path.read_text())).startswith("# Performance")
