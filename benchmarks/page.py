"""docs/performance.md and its figure, from benchmarks/results.json and nothing else.

`make bench` and `make docs` run this file. It measures nothing.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from cocobandits.experiments.figures.drawing import new_figure, save, styled

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.json"
PAGE = FOLDER.parent / "docs" / "performance.md"
PICTURE = PAGE.parent / "images" / "performance.svg"
Entries = dict[str, dict[str, Any]]  # by benchmark
# Words, entry, value, "at least" or "at most", and a number or the name of another value.
TARGETS: tuple[tuple[str, str, str, str, float | str], ...] = (
    ("a run: literal reference ÷ library", "literal[gids]", "ratio", "at least", 30.0),
    *(
        (f"decision of {{label}}{words}, ms at 95 %", entry, "decision_ms_p95", "at most", 5.0)
        for kind, words in (("run", ""), ("background", ", while particles move"))
        for entry in (f"{kind}[gids]", f"{kind}[coids-log-density]", f"{kind}[coids]")
    ),
    *(
        ("reward of {label}, without moves, ms at 95 %", entry, "reward_ms_p95", "at most", 10.0)
        for entry in ("run[gids]", "run[coids-log-density]", "run[coids]")
    ),
    ("cost of an interaction: most users ÷ fewest", "users[gids]", "ratio", "at most", "bound"),
    ("memory of a run of `gids`, MB", "memory[gids]", "peak_mb", "at most", 1500.0),
)


def number(value: float | None) -> str:
    """Write three significant digits, and whole numbers in full."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def seconds(value: float | None) -> str:
    """Write seconds, or milliseconds below one."""
    if value is None:
        return number(value)
    return f"{number(1e3 * value)} ms" if value < 1 else f"{number(value)} s"


def target_rows(entries: Entries) -> list[tuple[str, ...]]:
    """Compare the measurements with the targets."""
    rows: list[tuple[str, ...]] = []
    for measure, name, key, words, bound in TARGETS:
        value = entries.get(name, {}).get(key)
        if value is not None:
            limit = entries[name][bound] if isinstance(bound, str) else bound
            is_met = value >= limit if words == "at least" else value <= limit
            target, met = f"{words} {number(limit)}", "yes" if is_met else "no"
            rows.append((measure.format(**entries[name]), target, number(value), met))
    return rows


def origins(entries: Entries) -> list[tuple[str, ...]]:
    """List which benchmarks were measured with which version, when and where."""
    measured = defaultdict[tuple[str, ...], list[str]](list)
    for name, entry in entries.items():
        origin = tuple(entry[key] for key in ("version", "commit", "date", "machine"))
        measured[origin].append(f"`{name}`")
    return [(", ".join(names), *origin) for origin, names in sorted(measured.items())]


def render(entries: Entries) -> str:
    """Write the page as text."""
    templates = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {"number": number, "seconds": seconds}
    rows = {"targets": target_rows(entries), "origins": origins(entries)}
    return templates.get_template("performance.md.j2").render(entries=entries, **rows)


@styled
def draw(entries: Entries) -> Figure:
    """Draw the cost of an interaction against the number of users."""
    rows = entries["users[gids]"]["rows"]
    users, costs = ([row[name] for row in rows] for name in ("users", "ms_per_interaction"))
    places = np.geomspace(users[0], users[-1], 50)
    bound = costs[0] * np.log(places) / np.log(users[0])
    figure = new_figure(6.0, 3.6)
    axes = figure.subplots()
    axes.loglog(places, bound, color="#999999", linestyle="--", label="as the logarithm")
    axes.loglog(users, costs, color="#AA1144", marker="o", linewidth=2.4, label="an interaction")
    axes.set_ylim(min(costs) / 3, 3 * max(*costs, *bound))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("users, served once each")
    axes.set_ylabel("ms per interaction")
    axes.legend()
    return figure


if __name__ == "__main__":
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(render(results), encoding="utf-8")
    save(draw(results), PICTURE)
