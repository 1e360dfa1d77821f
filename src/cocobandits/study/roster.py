"""Arms over time: which can be chosen, which are suspended or withdrawn, and since when.

Owns the status of every arm, the list of its changes, and the floors under the probabilities of
arms that can be chosen. What was decided before a change stays as it is.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from cocobandits.errors import ConflictError, InputError, UnknownNameError
from cocobandits.types import FloatVector, Truths

ArmStatus = Literal["active", "suspended", "withdrawn"]


class ArmChange(NamedTuple):
    """A new status of an arm, from the next decision on.

    Attributes:
        arm: its name.
        status: what it is now.
        reason: what was said about it.
        num_decisions: how many decisions there had been.
    """

    arm: str
    status: ArmStatus
    reason: str
    num_decisions: int


class Roster:
    """The arms of a study in their order, and what has become of each."""

    def __init__(self, arms: Sequence[str], changes: Sequence[ArmChange] = ()) -> None:
        self._statuses: dict[str, ArmStatus] = dict.fromkeys(arms, "active")
        self._changes = list(changes)
        for change in changes:
            self._statuses[change.arm] = change.status

    @property
    def statuses(self) -> dict[str, ArmStatus]:
        """Arm → its status."""
        return dict(self._statuses)

    @property
    def changes(self) -> tuple[ArmChange, ...]:
        """All changes so far, in their order."""
        return tuple(self._changes)

    @property
    def active(self) -> tuple[int, ...]:
        """Numbers of the arms that can be chosen, in rising order."""
        statuses = self._statuses.values()
        return tuple(number for number, status in enumerate(statuses) if status == "active")

    def reason(self, arm: str) -> str:
        """Return what was said at the last change of an arm."""
        return next((past.reason for past in reversed(self._changes) if past.arm == arm), "")

    def add(self, arm: str) -> None:
        """Put a new arm last."""
        self._statuses[arm] = "active"

    def change(self, arm: str, status: ArmStatus, reason: str, num_decisions: int) -> None:
        """Give an arm another status; the one it has again is harmless.

        Raises:
            InputError: the reason is no text.
            ConflictError: the arm was withdrawn for good.
            UnknownNameError: there is no such arm.
        """
        self._check_arm(arm)
        if not isinstance(reason, str):
            raise InputError(f"Expected a text; got reason={reason!r}. Say why, or leave it out.")
        now = self._statuses[arm]
        if now == status:
            return
        if now == "withdrawn":
            raise ConflictError(
                f"Expected an arm that can come back; got arm={arm!r}, which was withdrawn for "
                "good. Add an arm under another name."
            )
        self._statuses[arm] = status
        self._changes.append(ArmChange(arm, status, reason, num_decisions))

    def check_eligible(self, eligible: Sequence[str] | None) -> None:
        """Refuse what is not a list of arms of this study.

        Raises:
            InputError: it is no list.
            UnknownNameError: there is no such arm.
        """
        if eligible is None:
            return
        if isinstance(eligible, str) or not isinstance(eligible, list | tuple | set | frozenset):
            raise InputError(
                f"Expected a list of arms; got eligible={eligible!r}. Write for example "
                f"{list(self._statuses)[:2]}, or leave it out for all."
            )
        for arm in eligible:
            self._check_arm(arm)

    def available(self, eligible: Sequence[str] | None) -> tuple[int, ...]:
        """List the numbers of the arms that are eligible and active, in rising order.

        Raises:
            InputError: there are none.
            ConflictError: no arm is active.
        """
        if not self.active:
            raise ConflictError(
                "Expected an arm that is active; got none: all are suspended or withdrawn. "
                "Activate or add one."
            )
        names = list(self._statuses)
        numbers = tuple(
            number for number in self.active if eligible is None or names[number] in eligible
        )
        if not numbers:
            active = [names[number] for number in self.active]
            raise InputError(
                f"Expected an eligible arm that is active; got eligible={sorted(eligible or ())}, "
                f"while {active} are active. Make one of these eligible, or activate an eligible "
                "one."
            )
        return numbers

    def _check_arm(self, arm: str) -> None:
        if not isinstance(arm, str) or arm not in self._statuses:
            raise UnknownNameError("arm", arm, self._statuses, "Use an arm of this study.")


def raise_to_floors(
    weights: FloatVector, floors: Sequence[float], is_available: Truths
) -> FloatVector:
    """Compute p = f + (1 - Σf) w over the arms that can be chosen; the others have nothing."""
    reserved = np.where(is_available, np.asarray(floors), 0.0)
    return reserved + (1.0 - reserved.sum()) * weights
