"""Progress lines, on a terminal that is not there."""

import io
import re
from types import SimpleNamespace

import pyarrow as pa
import pytest
from rich.console import Console

from cocobandits.cli.progress import follow
from cocobandits.runs.info import CellKey
from cocobandits.runs.pool import Plan

CELL = SimpleNamespace(key=CellKey("lmm", "mtts", 0), cost=3.0)
TABLE = SimpleNamespace(key="diet", cost=1.0)


def shown(finished, plan: Plan, is_terminal: bool) -> str:
    console = Console(file=io.StringIO(), force_terminal=is_terminal, width=80, color_system=None)
    follow(console, iter(finished), plan)
    return console.file.getvalue()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_every_finished_cell_is_a_line(is_terminal):
    regret, nothing = pa.table({"regret": [None, 12.0, 0.5]}), pa.table({"density": [1.0]})
    plan = Plan([CELL, TABLE], num_done=3, num_stale=0)
    text = shown([(CELL, regret), (TABLE, nothing)], plan, is_terminal)
    assert "3 of 5 cells finished already." in text
    # A busy machine may take a second.
    assert re.search(r"\[4/5\] lmm / mtts / seed 0: regret 12\.5; about \d s left", text)
    assert "[5/5] diet: done; about 0 s left" in text
    assert re.search(r"5 cells in \d s\.", text)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_nothing_left_to_do(is_terminal):
    """A finished run is continued: there is nothing to divide by."""
    assert "2 of 2 cells finished already." in shown([], Plan([], 2, 0), is_terminal)
