"""The machinery of the benchmark, on toys."""

import json
import math
import subprocess
import sys
from pathlib import Path

import bench
import jax
import jax.numpy as jnp
import page
import pytest
from parts import clock, machine, quality, split

from cocobandits.models.base import Statistics

ROOT = Path(__file__).parents[2]


def test_calls_are_timed_in_turns():
    """After one warm-up each."""
    called = []
    taken = clock.in_turns(
        {"a": lambda: called.append("a"), "b": lambda: called.append("b")}, repeats=2
    )
    assert called == ["a", "b", "a", "b", "a", "b"]
    assert set(taken) == {"a", "b"}
    assert all(seconds >= 0 for seconds in taken.values())


def test_compiling_is_counted_once():
    """A second call compiles nothing."""
    watch = clock.CompileClock()
    triple = jax.jit(lambda x: 3 * x + 0.12345)
    triple(jnp.ones(7))
    first = watch.seconds
    triple(jnp.ones(7))
    assert watch.seconds == first > 0


def test_watched_functions_are_counted_and_put_back():
    """Statistics are added up by a compiled function of a class."""
    before = vars(Statistics)["_shift"]
    with split.watched() as seconds:
        Statistics.empty(2).add(0, 1.0).add(1, 2.0)
    assert vars(Statistics)["_shift"] is before
    [label] = [name for name in seconds if name.endswith("Statistics._shift")]
    assert label.startswith("models.base:")
    assert len(seconds[label]) == 2


def test_paired_differences_have_a_standard_error():
    """By hand: differences 1 and 3."""
    told = quality._paired([5.0, 8.0], [4.0, 5.0])
    assert told["difference"] == 2.0
    assert told["standard_error"] == pytest.approx(1.0)


def test_machine_is_described_without_host_and_paths():
    """Numbers, versions, and where the code stood."""
    told = machine.describe()
    assert {"processor", "cores", "memory_gb", "python", "jax", "date", "commit"} <= set(told)
    assert "/" not in json.dumps(told)


def test_results_are_plain_json():
    """NaN becomes null, at any depth."""
    assert bench.without_nan({"a": [math.nan, 1.0], "b": (2, "x")}) == {
        "a": [None, 1.0],
        "b": [2, "x"],
    }


@pytest.mark.slow
def test_a_toy_benchmark_fills_every_part(tmp_path):
    """All parts, end to end, in a process of its own; its page can be written."""
    out = tmp_path / "results.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "bench.py"), "--tiny", "--json"]
    done = subprocess.run(
        [*command, "--out", str(out)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results == json.loads(out.read_text("utf-8"))
    assert page.missing(results) == []
    assert page.render(results).startswith("# Performance")
