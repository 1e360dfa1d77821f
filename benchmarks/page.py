"""docs/performance.md and its figure, from benchmarks/results.json and nothing else.

    .venv/bin/python benchmarks/page.py

Measures nothing. `bench.py` calls it at its end, and `make docs` whenever there are results.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sections
from figure import draw
from prose import NOTHING, number, paragraph, table

from cocobandits.experiments.drawing import save_as
from cocobandits.experiments.estimates import difference

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "images" / "performance.svg"

Results = dict[str, Any]


class Target(NamedTuple):
    """One line of the first table.

    Attributes:
        name: what is measured.
        key: where it stands in the results.
        least, most: a number, or the key of one; None where nothing was set beforehand.
        pairs: where the values of both sides stand, seed by seed, if it is their difference; it is
            decided by their 95 % interval.
    """

    name: str
    key: str
    least: float | None = None
    most: float | str | None = None
    pairs: str | None = None


TARGETS = (
    Target("a run: literal reference ÷ library", "run.ratio", least=30.0),
    Target(
        "value and gradient: literal reference ÷ library", "value_and_gradient.ratio", least=2.0
    ),
    Target(
        "regret: library minus literal reference",
        "quality.regret.difference",
        most=0.0,
        pairs="quality.regret",
    ),
    Target(
        "correlation with ancestors: library minus literal reference",
        "quality.start_correlation.difference",
        most=0.0,
        pairs="quality.start_correlation",
    ),
    Target("decision of `gids`, ms at 95 %", "decision_ms_p95", most=5.0),
    Target("decision of `coids`, ms at 95 %", "coids.decision_ms_p95", most=5.0),
    Target("decision of `coids` beside moves, ms at 95 %", "background.decision_ms_p95", most=5.0),
    Target("reward of `gids` without moves, ms at 95 %", "reward_ms_p95", most=10.0),
    Target("reward of `coids` without moves, ms at 95 %", "coids.reward_ms_p95", most=10.0),
    Target(
        "cost of an interaction: most users ÷ fewest",
        "growth_users_ratio",
        most="growth_users_bound",
    ),
    Target("the paper's experiments, minutes", "reproduction_minutes", most=15.0),
    Target("memory of a run, MB", "peak_memory_mb", most=1500.0),
)
_NEEDED = (
    "run",
    "quality",
    "value_and_gradient",
    "coids",
    "background",
    "reproduction_minutes",
    "growth_users",
    "growth_arms",
    "growth_particles",
    "peak_memory_mb",
    "startup_seconds",
    "profile",
    "machine",
    "measured",
)
_CAPTION = (
    "Left: how many times faster than the literal reference. Right: cost of an interaction against "
    "the number of users, on logarithmic axes"
)


def missing(results: Results) -> list[str]:
    """List the parts that the page needs and the results do not have."""
    return [name for name in _NEEDED if name not in results]


def write(results: Results) -> None:
    """Write page and figure."""
    PAGE.write_text(render(results), encoding="utf-8")
    save_as(draw(results), PICTURE)


def render(results: Results) -> str:
    """Write the page as text."""
    parts = (
        _head,
        sections.comparison,
        sections.quality,
        sections.waiting,
        sections.growth,
        sections.start,
        sections.profile,
        sections.machine,
    )
    return "\n".join(block for part in parts for block in part(results))


def target_rows(results: Results) -> list[tuple[str, str, str, str]]:
    """Hold against the targets what was measured of them."""
    rows = []
    for target in TARGETS:
        value = _find(results, target.key)
        most = _find(results, target.most) if isinstance(target.most, str) else target.most
        if value is None:
            continue
        asked, met = NOTHING, NOTHING
        shown = number(value)
        if target.least is not None:
            asked, met = f"at least {number(target.least)}", _answer(value >= target.least)
        elif most is not None:
            asked, met = f"at most {number(most)}", _answer(value <= most)
        if target.pairs is not None:
            sides = _find(results, target.pairs)
            gap = difference(np.array(sides["library"]), np.array(sides["literal"]))
            shown, met = gap.show(digits=2), _answer(gap.is_below())
        rows.append((target.name, asked, shown, met))
    return rows


def _head(results: Results) -> list[str]:
    return [
        "# Performance\n",
        paragraph(
            "Made by `benchmarks/page.py` from `benchmarks/results.json`; `make bench` measures",
            "anew and writes both.",
        ),
        f"![{_CAPTION}](images/{PICTURE.name})\n",
        table(("measure", "target", "measured", "met"), target_rows(results)),
        paragraph(
            "The literal reference, `benchmarks/literal.py`, is the paper's procedure as it is",
            "written: a dense basis on all nodes, automatic differentiation, and five Langevin",
            "rounds of all particles for every observation. It shares process and thread with the",
            "library, and its posterior is tested against the library's in",
            "`tests/benchmarks/test_literal.py`. Seconds are wall time.",
        ),
    ]


def _find(results: Results, key: str) -> Any:
    found: Any = results
    for part in key.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _answer(is_met: bool | None) -> str:
    return {True: "yes", False: "no", None: "not decided"}[is_met]


if __name__ == "__main__":
    if not RESULTS.exists():
        sys.exit(f"Expected {RESULTS.name} in benchmarks; got none. Run: make bench")
    write(json.loads(RESULTS.read_text("utf-8")))
