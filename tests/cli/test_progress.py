"""The live display, on a terminal that is not there."""

import io
import time
from pathlib import Path

import pytest
from rich.console import Console

from cocobandits.cli.progress import show
from cocobandits.errors import StoppedError
from cocobandits.experiments.cells import Cell
from cocobandits.experiments.runner import Event

CELL = Cell("lmm", "mtts", 0)
HALF = Event(CELL, 0, 125, 250, 7.0, is_finished=False)
WHOLE = Event(CELL, 0, 250, 250, 12.5, is_finished=True)


def shown(events, todo, num_before=0, is_terminal=True):
    console = Console(file=io.StringIO(), force_terminal=is_terminal, width=80, color_system=None)
    show(console, iter(events), todo, num_before, Path("run"))
    return console.file.getvalue()


def test_terminal_shows_cells_steps_and_regret():
    def events():
        yield HALF
        time.sleep(0.6)  # the display is drawn four times a second
        yield WHOLE

    text = shown(events(), [CELL], num_before=3)
    assert "3 of 4 cells are finished already." in text
    assert "regret so far" in text
    assert "125/250" in text
    assert "lmm / mtts / seed 0: regret 12.5" in text
    assert "4 cells in" in text


@pytest.mark.parametrize("is_terminal", [True, False])
def test_nothing_left_to_do(is_terminal):
    """A finished run is resumed: there is nothing to divide by."""
    assert "2 of 2 cells are finished already." in shown([], [], 2, is_terminal)


def test_stop_says_how_to_go_on():
    def events():
        yield HALF
        raise KeyboardInterrupt

    console = Console(file=io.StringIO())
    with pytest.raises(StoppedError, match=r"kept in run. Add --resume"):
        show(console, events(), [CELL], 0, Path("run"))
