"""Writes `values.json`: what policies in closed form answer today. Run by `make golden-values`.

Learners are left out: their particles move in single precision, so their digits depend on the
machine.
"""

import json
from pathlib import Path
from typing import Any

from golden.drivers import find_driver
from golden.playing import Row, play
from golden.scenarios import CLOSED_FORM, Scenario, scenarios

VALUES = Path(__file__).with_name("values.json")
_DIGITS = 12


def recorded_scenarios() -> list[Scenario]:
    """List the scenarios of policies in closed form."""
    return [each for each in scenarios() if each.policy in CLOSED_FORM]


def answers(scenario: Scenario) -> list[Any]:
    """Play a scenario, and list all answers but "done"; the draws follow from the seed alone."""
    outcome = play(scenario, find_driver())
    assert outcome.broken is None, outcome.broken
    return [_decimal(row) for row in outcome.rows if row[-1] != "done"]


def _decimal(row: Row) -> Row:
    """Write an answer with decimal numbers, and without the draw of a decision."""
    words, answer, *chances = row
    if chances:
        return [words, answer, [_rounded(chance) for chance in chances[0].values()]]
    if isinstance(answer, dict):
        return [words, [[_rounded(number) for number in each] for each in answer.values()]]
    return [words, answer]


def _rounded(number: str) -> float:
    return float(f"{float.fromhex(number):.{_DIGITS}g}")


def main() -> None:
    """Write one line per scenario."""
    lines = [f'"{each.id}": {json.dumps(answers(each))}' for each in recorded_scenarios()]
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"Wrote {len(lines)} scenarios to {VALUES.name}.")


if __name__ == "__main__":
    main()
