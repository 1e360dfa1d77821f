"""The results file, and the page and figure that are made from it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import page
import pytest
import results
import timed

from cocobandits.experiments.figures.drawing import save

ROOT = Path(__file__).parents[2]


@pytest.fixture
def entries():
    """The committed entries, to be changed by a test."""
    return results.read()


def row_of(entries, words):
    [row] = [row for row in page.target_rows(entries) if words in row[0]]
    return row[1:]


def test_not_a_number_is_not_recorded(tmp_path):
    """JSON has none, and the entries from before stay."""
    path = tmp_path / "results.json"
    results.write(path, {"a": {"seconds": 1.0}})
    with pytest.raises(ValueError, match="Out of range float values"):
        results.write(path, {"b": {"seconds": float("nan")}})
    assert results.read(path) == {"a": {"seconds": 1.0}}


def test_provenance_has_no_host_and_no_paths():
    found = results.provenance("a processor")
    assert list(found) == ["version", "commit", "date", "machine"]
    assert found["machine"].startswith("a processor, ")
    assert "/" not in json.dumps(found)


def test_a_summary_keeps_moves_apart():
    """Two rewards of 1 and 3 ms, and one that moved particles for 2 s."""
    blank = timed.Call(0, (0.0,), 0, 0.0, 0.0, 0.002, 0.001, 0.0, False, False)
    calls = [blank, blank._replace(update=0.003), blank._replace(update=2.0, has_moved=True)]
    summary = timed.summarise(calls)
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


def test_page_needs_some_entries(entries, tmp_path):
    del entries["users[gids]"]
    with pytest.raises(SystemExit, match=r"got none of \['users\[gids\]'\]. Run: make bench"):
        page.write(entries, tmp_path / "page.md", tmp_path / "figure.svg")
    assert not list(tmp_path.iterdir())


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


def run_quick(path, *words):
    """Start pytest as `make bench` does; below xdist nothing would be measured."""
    command = [sys.executable, "-m", "pytest", "-o", "addopts=", "--benchmark-only", "benchmarks"]
    command += ["--quick", "--results", str(path), *words]
    environment = {name: os.environ[name] for name in os.environ if "PYTEST" not in name}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_a_benchmark_records_its_entry_alone(tmp_path):
    """The import of the package, in a process of its own."""
    path = tmp_path / "results.json"
    results.write(path, {"old": {"seconds": 1.0}})
    done = run_quick(path, "-k", "import")
    assert done.returncode == 0, done.stdout
    found = results.read(path)
    assert list(found) == ["old", "start[import]"]
    assert 0 < found["start[import]"]["seconds"] < 60
    assert str(ROOT) not in path.read_text()


@pytest.mark.slow
def test_all_benchmarks_in_small_make_a_page(tmp_path):
    """And an entry of a benchmark that no longer exists is dropped."""
    path = tmp_path / "results.json"
    results.write(path, {"old": {"seconds": 1.0}})
    done = run_quick(path)
    assert done.returncode == 0, done.stdout
    assert "old" not in results.read(path)
    assert page.render(results.read(path)).startswith("# Performance")
