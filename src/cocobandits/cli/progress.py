"""Progress of a run: a line per finished cell, and a bar on a terminal."""

import time
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from cocobandits.display import counted
from cocobandits.runs.info import total
from cocobandits.runs.pool import Plan, Task


def follow(console: Console, finished: Iterable[tuple[Task, Any]], plan: Plan) -> None:
    """Show a run until its end."""
    num_cells, started = len(plan.todo) + plan.num_done, time.monotonic()
    if plan.num_done:
        console.print(f"{plan.num_done} of {counted(num_cells, 'cell')} finished already.")
    if plan.todo:
        console.print(
            f"{counted(len(plan.todo), 'cell')} to run. The first ones compile, so progress starts "
            "slowly."
        )
    columns = TextColumn("cells"), BarColumn(), TextColumn("{task.completed}/{task.total}")
    whole, done = sum(task.cost for task in plan.todo), 0.0
    options = {"console": console, "transient": True, "disable": not console.is_terminal}
    with Progress(*columns, **options) as progress:  # type: ignore[arg-type]
        bar = progress.add_task("", total=num_cells, completed=plan.num_done)
        for number, (task, table) in enumerate(finished, start=plan.num_done + 1):
            done += task.cost
            seconds = (time.monotonic() - started) * (whole - done) / max(done, 1e-9)
            left = f"about {_duration(seconds)} left"
            line = f"[{number}/{num_cells}] {task.key}: {_outcome(table)}; {left}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
            progress.update(bar, completed=number)
    console.print(f"{counted(num_cells, 'cell')} in {_duration(time.monotonic() - started)}.")


def _outcome(table: Any) -> str:
    """Return the regret of a cell; other tables have none."""
    if "regret" not in table.column_names:
        return "done"
    return f"regret {total(table['regret'].drop_null().to_numpy()):.1f}"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 90:
        return f"{whole} s"
    if whole < 90 * 60:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
