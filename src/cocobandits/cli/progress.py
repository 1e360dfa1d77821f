"""Progress of a run: a live display on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from cocobandits.errors import StoppedError
from cocobandits.experiments.cells import Cell
from cocobandits.experiments.runner import DENSITIES, Event, expected_cost


class _Clock:
    """Guesses the time left from the share of the expected work that is done."""

    def __init__(self, todo: list[Cell]) -> None:
        self._costs = {task: expected_cost(task) for task in todo}
        self._shares = dict.fromkeys(todo, 0.0)
        self._started = time.monotonic()

    def note(self, event: Event) -> None:
        self._shares[event.cell] = 1.0 if event.is_finished else event.steps / event.num_steps

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._started

    def left(self) -> str:
        done = sum(self._costs[task] * share for task, share in self._shares.items())
        total = sum(self._costs.values())
        if done <= 0.02 * total:
            return "time left not known yet"
        return f"about {_duration(self.elapsed * (total - done) / done)} left"


def show(
    console: Console, events: Iterator[Event], todo: list[Cell], num_before: int, path: Path
) -> None:
    """Follow a run to its end.

    Raises:
        StoppedError: Ctrl-C; finished cells are kept.
    """
    total = len(todo) + num_before
    if num_before:
        console.print(f"{num_before} of {total} cells are finished already.")
    if todo:
        console.print(
            f"{len(todo)} cells to run. The first ones compile, so progress starts slowly."
        )
    clock = _Clock(todo)
    try:
        if console.is_terminal:
            _show_live(console, events, clock, num_before, total)
        else:
            _show_lines(console, events, clock, num_before, total)
    except KeyboardInterrupt:
        events.close()  # type: ignore[attr-defined]
        raise StoppedError(
            f"Stopped; finished cells are kept in {path}. Add --resume to continue."
        ) from None
    console.print(f"{total} cells in {_duration(clock.elapsed)}.")


def _show_lines(
    console: Console, events: Iterator[Event], clock: _Clock, num_done: int, total: int
) -> None:
    for event in events:
        clock.note(event)
        if event.is_finished:
            num_done += 1
            console.print(
                f"[{num_done}/{total}] {_outcome(event)}; {clock.left()}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )


def _show_live(
    console: Console, events: Iterator[Event], clock: _Clock, num_done: int, total: int
) -> None:
    overall = Progress(
        TextColumn("cells"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}  {task.fields[left]}"),
    )
    bar = overall.add_task("", total=total, completed=num_done, left=clock.left())
    running: dict[int, Event] = {}
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        for event in events:
            clock.note(event)
            running[event.worker] = event
            if event.is_finished:
                num_done += 1
                running.pop(event.worker)
                console.print(f"  {_outcome(event)}", highlight=False, markup=False)
            _refresh(overall, bar, num_done, clock)
            live.update(Group(overall, _table(running)))


def _outcome(event: Event) -> str:
    """Name a finished cell and its regret; densities have none."""
    if event.cell == DENSITIES:
        return "densities for the figure of the learned population: done"
    return f"{event.cell}: regret {event.regret:.1f}"


def _refresh(overall: Progress, bar: TaskID, num_done: int, clock: _Clock) -> None:
    overall.update(bar, completed=num_done, left=clock.left())


def _table(running: dict[int, Event]) -> Table:
    table = Table(box=None, padding=(0, 2))
    for name in ("running now", "step", "regret so far"):
        table.add_column(name, justify="left" if name == "running now" else "right")
    for _, event in sorted(running.items()):
        table.add_row(str(event.cell), f"{event.steps}/{event.num_steps}", f"{event.regret:.1f}")
    return table


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 90:
        return f"{whole} s"
    if whole < 90 * 60:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
