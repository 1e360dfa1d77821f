"""Compares what two trees were recorded to do, bit for bit, and writes the summary.

An intended difference is an entry of `intended.json`: a pattern of scenario ids, and the reason.
An entry that matches no difference is an error, so that the list stays as short as it can be.
"""

import json
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from golden.playing import Outcome, Row

INTENDED = Path(__file__).with_name("intended.json")
_MOST_SHOWN = 20


class Difference(NamedTuple):
    """The first call of a scenario whose answers differ; None where a tree has no such call."""

    id: str
    call: int
    before: Row | None
    after: Row | None

    def __str__(self) -> str:
        lines = (f"{self.id}, call {self.call}", f"  base: {self.before}", f"  now:  {self.after}")
        return "\n".join(lines)


class Summary(NamedTuple):
    """The text to print, and whether nothing unexpected was found."""

    text: str
    is_good: bool


def load_intended(path: Path = INTENDED) -> dict[str, str]:
    """Read the reason of each pattern."""
    return {entry["scenarios"]: entry["reason"] for entry in json.loads(path.read_text("utf-8"))}


def find_differences(before: list[Outcome], after: list[Outcome]) -> list[Difference]:
    """List the first difference of every scenario that has one."""
    old = {outcome.id: outcome.rows for outcome in before}
    new = {outcome.id: outcome.rows for outcome in after}
    found = (_first(name, old.get(name, []), new.get(name, [])) for name in old | new)
    return [difference for difference in found if difference is not None]


def summarise(before: list[Outcome], after: list[Outcome], intended: dict[str, str]) -> Summary:
    """Sort the differences into intended and others, and add what a tree promises by itself."""
    differences = find_differences(before, after)
    expected = {
        pattern: [each for each in differences if fnmatchcase(each.id, pattern)]
        for pattern in intended
    }
    listed = {each.id for some in expected.values() for each in some}
    others = [each for each in differences if each.id not in listed]
    stale = [pattern for pattern, some in expected.items() if not some]
    broken = [f"{each.id}: {each.broken}" for each in after if each.broken]
    num_decisions = sum(each.num_decisions for each in after)
    lines = [
        *_shown("Different", others),
        *_shown("Broken", broken),
        *(f"Intended: {p} ({len(some)}): {intended[p]}" for p, some in expected.items() if some),
        *(f"Stale: no difference matches {p!r}; remove it from {INTENDED.name}" for p in stale),
        f"{len(after)} scenarios, {num_decisions} decisions: {len(others)} differences, "
        f"{len(listed)} intended, {len(broken)} broken promises, {len(stale)} stale entries.",
    ]
    return Summary("\n".join(lines), not (others or broken or stale))


def _shown(title: str, found: Sequence[object]) -> list[str]:
    """List the first findings, and how many of each kind there are if those are not all."""
    lines = [f"{title}: {each}" for each in found[:_MOST_SHOWN]]
    if len(found) > _MOST_SHOWN:
        counts = Counter(str(each).split("/")[0] for each in found)
        kinds = ", ".join(f"{number} {kind}" for kind, number in counts.items())
        lines.append(f"{title}: {len(found)} in all ({kinds})")
    return lines


def _first(name: str, before: list[Row], after: list[Row]) -> Difference | None:
    for call in range(max(len(before), len(after))):
        old, new = (rows[call] if call < len(rows) else None for rows in (before, after))
        if old != new:
            return Difference(name, call, old, new)
    return None
