"""The log of decisions, in columns: constant work per entry, however many there are."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import compress
from typing import NamedTuple

import numpy as np

from cocobandits.errors import UnknownNameError
from cocobandits.types import FloatVector, Truths

_MOST_DIGITS = 18


class Status(IntEnum):
    """What has become of a decision."""

    OPEN = 0  # the user's current one; asking again returns it
    CLOSED = 1  # given up without a reward; a late one is still welcome
    REWARDED = 2
    RETRACTED = 3  # its reward was taken back


@dataclass(frozen=True)
class Decision:
    """An arm chosen for a user, with the exact probabilities it was drawn from.

    Attributes:
        id: to refer to it by.
        user: whom it was made for.
        arm: what was chosen.
        probabilities: of every arm there was, after floors; zero if it could not be chosen.
        draw: the uniform number that chose the arm: the first one whose cumulated probability
            exceeds it.
        weights: the probabilities that the policy itself gave, before floors.
        eligible: the arms that could be chosen.
    """

    id: str
    user: str
    arm: str
    probabilities: dict[str, float]
    draw: float
    weights: dict[str, float]
    eligible: tuple[str, ...]


class Chances(NamedTuple):
    """What a decision is drawn from; each with an entry for every arm."""

    weights: FloatVector
    probabilities: FloatVector
    eligible: Truths


@dataclass
class DecisionLog:
    """All decisions of a study, numbered from zero in the order in which they were made.

    Probabilities, weights and eligible have an entry for each arm that there was.
    """

    users: list[int] = field(default_factory=list)
    arms: list[int] = field(default_factory=list)
    probabilities: list[tuple[float, ...]] = field(default_factory=list)
    weights: list[tuple[float, ...]] = field(default_factory=list)
    eligible: list[tuple[bool, ...]] = field(default_factory=list)
    draws: list[float] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.users)

    def append(self, user: int, arm: int, chances: Chances, draw: float) -> int:
        """Add an open decision and return its number."""
        self.users.append(user)
        self.arms.append(arm)
        self.probabilities.append(tuple(map(float, chances.probabilities)))
        self.weights.append(tuple(map(float, chances.weights)))
        self.eligible.append(tuple(map(bool, chances.eligible)))
        self.draws.append(draw)
        self.rewards.append(float("nan"))
        self.statuses.append(Status.OPEN)
        return len(self) - 1

    def read(self, number: int, user: str, arms: Sequence[str]) -> Decision:
        """Put one decision together, with the names of its user and of all arms."""
        present = arms[: len(self.probabilities[number])]
        return Decision(
            make_id(number),
            user,
            arms[self.arms[number]],
            dict(zip(present, self.probabilities[number], strict=True)),
            self.draws[number],
            dict(zip(present, self.weights[number], strict=True)),
            tuple(compress(present, self.eligible[number])),
        )

    def describe(self, number: int) -> str:
        """Say what has become of a decision, within a sentence."""
        status = Status(self.statuses[number])
        if status == Status.REWARDED:
            return f"which has reward {self.rewards[number]!r}"
        return f"which is {status.name.lower()}"

    def find(self, decision_id: str) -> int:
        """Return the number of a decision.

        Raises:
            UnknownNameError: there is no such decision.
        """
        digits = decision_id[1:] if isinstance(decision_id, str) else ""
        is_short = 0 < len(digits) <= _MOST_DIGITS
        if (
            is_short
            and digits.isascii()
            and digits.isdigit()
            and make_id(int(digits)) == decision_id
        ):
            number = int(digits)
            if number < len(self):
                return number
        last = [make_id(len(self) - 1)] if len(self) else []
        raise UnknownNameError(
            "decision", decision_id, last, "Use the id that decide() returned (the last is shown)."
        )


def make_id(number: int) -> str:
    """Write the id of a decision."""
    return f"d{number}"


def choose_arm(probabilities: FloatVector, draw: float) -> int:
    """Invert the cumulated probabilities; an arm of probability zero is never drawn."""
    chosen = int(np.searchsorted(np.cumsum(probabilities), draw, side="right"))
    return min(chosen, int(np.flatnonzero(probabilities)[-1]))
