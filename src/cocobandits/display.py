"""How a policy is drawn in figures, and how numbers of things are written."""

from collections.abc import Mapping
from itertools import count
from typing import Any, NamedTuple


class Line(NamedTuple):
    """Colour, dashes, width and layer of a line."""

    color: str
    dashes: Any = "-"
    width: float = 1.6
    layer: float = 2.0


# The colours in use are those of Okabe and Ito, which colour-blind readers can tell apart.
DEFAULT_LINE = Line("#56B4E9", "-", 1.0)


def counted(number: int, word: str) -> str:
    """Write a number with the thing it counts."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def distinct(lines: Mapping[str, Line]) -> dict[str, Line]:
    """Give lines that look like an earlier one other dashes: 1, 2, 3... dots between strokes."""
    taken, found = {line[:2] for line in lines.values()}, dict[str, Line]()
    for name, line in lines.items():
        seen = {each[:2] for each in found.values()}
        patterns = ((0, (6.0, 1.5) + (1.0, 1.5) * dots) for dots in count(1))
        others = (line._replace(dashes=each) for each in patterns)
        is_new = line[:2] not in seen
        found[name] = line if is_new else next(e for e in others if e[:2] not in taken | seen)
    return found
