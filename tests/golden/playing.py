"""Plays a scenario, and records what the study answers to every call.

A row is a call in words, followed by the answer: "done", the class of the error that refused it,
or arm, probabilities and draw of a decision. Numbers are hexadecimal, so every bit is there.
"""

import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from cocobandits import CocoError
from golden.calls import STORE, Call
from golden.scenarios import Scenario

Row = list[Any]


class Outcome(NamedTuple):
    """The rows of a scenario or run, and which promise it broke, if any."""

    id: str
    rows: list[Row]
    broken: str | None = None

    @property
    def num_decisions(self) -> int:
        """Count the decisions among the rows."""
        return sum(row[0].startswith(("decide", "step")) and len(row) > 2 for row in self.rows)


def play(scenario: Scenario, driver: ModuleType) -> Outcome:
    """Play a scenario; where it is stored, a loaded copy must answer all later calls alike."""
    try:
        player = Player(driver, driver.open_study(scenario))
    except CocoError as error:
        return Outcome(scenario.id, [["open", f"refused: {type(error).__name__}"]])
    at = scenario.calls.index(STORE)
    rows = [player.answer(call) for call in scenario.calls[:at]]
    copy = player.stored()
    later = scenario.calls[at + 1 :]
    expected, found = ([each.answer(call) for call in later] for each in (player, copy))
    broken = None
    if expected != found:
        row = next(row for row, other in zip(found, expected, strict=True) if row != other)
        broken = f"a loaded study answers otherwise: {row}"
    return Outcome(scenario.id, rows + expected, broken)


class Player:
    """A study, and the ids of its decisions in the order of `decide` calls."""

    def __init__(self, driver: ModuleType, study: Any, ids: tuple[str | None, ...] = ()) -> None:
        self._driver, self._study, self._ids = driver, study, list(ids)

    def answer(self, call: Call) -> Row:
        """Make a call and record its answer."""
        words = " ".join(map(str, call))
        try:
            return [words, *self._make(*call)]
        except CocoError as error:
            if call[0] == "decide":
                self._ids.append(None)
            return [words, f"refused: {type(error).__name__}"]

    def stored(self) -> "Player":
        """Save the study, and load a copy."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "one.study"
            self._study.save(path)
            return Player(self._driver, self._driver.load_study(path), tuple(self._ids))

    def _make(self, verb: str, *arguments: Any) -> Row:
        if verb == "decide":
            return self._decide(*arguments)
        if verb == "explain":
            found = self._driver.explain(self._study, *arguments)
            return [{arm: [float(n).hex() for n in numbers] for arm, numbers in found.items()}]
        if verb in ("reward", "correct", "close"):
            number, *rest = arguments
            if self._ids[number] is None:
                return ["skipped: there is no decision"]
            arguments = (self._ids[number], *rest)
        getattr(self._study, verb)(*arguments)
        return ["done"]

    def _decide(self, user: str, eligible: list[str] | None = None) -> Row:
        decision = self._study.decide(user, eligible=eligible)
        self._ids.append(decision.id)
        chances = {arm: float(chance).hex() for arm, chance in decision.probabilities.items()}
        return [decision.arm, chances, float(decision.draw).hex()]
