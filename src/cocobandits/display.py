"""How a policy is drawn in figures."""

from typing import Any, NamedTuple


class Line(NamedTuple):
    """Colour, dashes, width and layer of a line."""

    color: str
    dashes: Any = "-"
    width: float = 1.6
    layer: float = 2.0


# The colours in use are those of Okabe and Ito, which colour-blind readers can tell apart.
DEFAULT_LINE = Line("#56B4E9", "-", 1.0)
