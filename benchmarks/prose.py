"""Tables, numbers and paragraphs of a generated Markdown page."""

import textwrap
from collections.abc import Sequence
from typing import Any

_WIDTH = 118
NOTHING = "–"


def paragraph(*sentences: str) -> str:
    """Join sentences and break them into lines."""
    text = " ".join(sentences)
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out rows of text."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def columns(rows: Sequence[dict[str, Any]], labels: dict[str, str]) -> str:
    """Lay out some fields of every row."""
    return table(tuple(labels.values()), [[number(row[name]) for name in labels] for row in rows])


def number(value: float | None) -> str:
    """Write three significant digits, and whole numbers in full."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def seconds(value: float | None) -> str:
    """Write seconds, or milliseconds below one."""
    if value is None:
        return NOTHING
    return f"{number(1e3 * value)} ms" if value < 1 else f"{number(value)} s"


def percent(share: float) -> str:
    """Write a share as a percentage."""
    return f"{100 * share:.0f} %"


def mean(values: Sequence[float | None]) -> float | None:
    """Average what is known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
