"""The log of decisions, in columns: constant work per entry, however many there are."""

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from cocobandits.errors import UnknownNameError
from cocobandits.study.design import FloatVector

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

    `draw` is the uniform number that chose the arm: the first arm whose cumulated probability
    exceeds it.
    """

    id: str
    user: str
    arm: str
    probabilities: dict[str, float]
    draw: float


@dataclass
class DecisionLog:
    """All decisions of a study, numbered from zero in the order in which they were made."""

    users: list[int] = field(default_factory=list)
    arms: list[int] = field(default_factory=list)
    probabilities: list[tuple[float, ...]] = field(default_factory=list)
    draws: list[float] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.users)

    def append(self, user: int, arm: int, probabilities: tuple[float, ...], draw: float) -> int:
        """Add an open decision and return its number."""
        self.users.append(user)
        self.arms.append(arm)
        self.probabilities.append(probabilities)
        self.draws.append(draw)
        self.rewards.append(float("nan"))
        self.statuses.append(Status.OPEN)
        return len(self) - 1

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
