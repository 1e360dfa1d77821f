"""How fast is the library, and against what? All figures of docs/performance.md in one run.

    .venv/bin/python benchmarks/bench.py                        everything (one to two hours)
    .venv/bin/python benchmarks/bench.py --quick                one seed, fewer users (minutes)
    .venv/bin/python benchmarks/bench.py --only latency         some parts; the others are kept
    .venv/bin/python benchmarks/bench.py --literal-steps 750    the literal reference on a whole run
    .venv/bin/python benchmarks/bench.py --json                 print the results as JSON

Writes benchmarks/results.json, then the page and its figure. A quick run writes neither, unless it
is told where with --out. Library and literal reference share one process and its one thread.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import page
from parts import (
    background,
    gradient,
    growth,
    latency,
    machine,
    quality,
    reproduction,
    runs,
    split,
    startup,
)
from parts.scale import FULL, QUICK, TINY, Scale
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).with_name("results.json")

Results = dict[str, Any]


class Bench:
    """Measures part by part; the library's own run is made once and shared."""

    def __init__(self, scale: Scale, kept: Path | None = None) -> None:
        self.scale = scale
        self.kept = kept
        self._runs: runs.LibraryRuns | None = None

    @property
    def runs(self) -> runs.LibraryRuns:
        """The library's run, cold and warm."""
        if self._runs is None:
            self._runs = runs.library_runs(self.scale)
        return self._runs

    def parts(self) -> dict[str, Callable[[], Results]]:
        """List what can be measured; the first part has to be the first, since it is cold."""
        scale = self.scale
        return {
            "run": lambda: {"run": runs.measure_run(scale, self.runs)},
            "gradient": lambda: {
                "value_and_gradient": gradient.measure_gradient(scale, self.runs.warm)
            },
            "latency": lambda: {
                **latency.latency_of(self.runs.warm),
                "coids": latency.measure_coids(scale),
            },
            "background": lambda: {"background": background.measure_background(scale)},
            "profile": lambda: {"profile": split.measure_profile(scale, self.runs.warm)},
            "arms": lambda: {"growth_arms": growth.measure_arms(scale)},
            "particles": lambda: {"growth_particles": growth.measure_particles(scale)},
            "startup": lambda: {"startup_seconds": startup.measure_startup(scale)},
            "memory": lambda: {"peak_memory_mb": startup.measure_memory(scale)},
            "users": lambda: growth.measure_users(scale),
            "reproduction": lambda: {
                "reproduction_minutes": reproduction.measure_reproduction(scale, self.kept)
            },
            "quality": lambda: {"quality": quality.measure_quality(scale)},
        }


def measure(
    bench: Bench, chosen: list[str] | None, known: Results, console: Console
) -> Iterator[Results]:
    """Measure some parts, or all, put each beside what is known of the others, and yield that."""
    described = machine.describe()
    results = {**known, "scale": bench.scale.name, "machine": described}
    measured = dict(known.get("measured", {}))
    for name, part in bench.parts().items():
        if chosen and name not in chosen:
            continue
        began = time.perf_counter()
        with console.status(f"measuring {name} ..."):
            results.update(part())
        taken = time.perf_counter() - began
        measured[name] = {key: described[key] for key in ("commit", "date")} | {"seconds": taken}
        console.print(f"measured {name} in {taken:.0f} s")
        yield without_nan({**results, "measured": measured})


def table_of(results: Results) -> Table:
    """Show what was measured against the targets."""
    table = Table("measure", "target", "measured", "met")
    for row in page.target_rows(results):
        table.add_row(*row)
    return table


def without_nan(value: Any) -> Any:
    """Replace what is not a number by null, which JSON has."""
    if isinstance(value, dict):
        return {key: without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one seed, fewer users and steps")
    parser.add_argument("--tiny", action="store_true", help="a toy, to try the machinery")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--seeds", type=int, help="of the paired comparison")
    parser.add_argument("--literal-steps", type=int, help="observations of the literal reference")
    parser.add_argument("--only", action="append", choices=list(Bench(TINY).parts()))
    parser.add_argument("--out", type=Path, help="where to write the results")
    parser.add_argument("--keep", type=Path, help="where to keep the run of the part reproduction")
    return parser.parse_args()


def main() -> None:
    """Measure, write, show."""
    options = read_options()
    scale = TINY if options.tiny else QUICK if options.quick else FULL
    if options.seeds is not None:
        scale = replace(scale, num_seeds=options.seeds)
    if options.literal_steps is not None:
        scale = replace(scale, literal_steps=options.literal_steps)
    path = options.out or (RESULTS if scale.name == FULL.name else None)
    known = json.loads(path.read_text("utf-8")) if options.only and path and path.exists() else {}
    console = Console(stderr=True)
    if scale.name != TINY.name:  # the first run is one that compiles, whatever is on disk
        jax.config.update("jax_enable_compilation_cache", False)
    bench = Bench(scale, options.keep)
    results = known
    for results in measure(bench, options.only, known, console):
        if path:
            path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if path == RESULTS and not page.missing(results):
        page.write(results)
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        Console().print(table_of(results))


if __name__ == "__main__":
    main()
