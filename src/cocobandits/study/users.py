"""The users of a study: who enrolled, what is known of them, who has withdrawn.

Owns names, numbers and contexts, and what all contexts together say of values that are missing.
Knows nothing of decisions or policies.
"""

from collections.abc import Iterable

import numpy as np

from cocobandits.checks import MOST_CHARACTERS, is_name
from cocobandits.errors import ConflictError, InputError, UnknownNameError, brief
from cocobandits.study.completion import Completion, Points
from cocobandits.study.context import (
    ContextValue,
    ContextValues,
    Feature,
    read_context,
    show_context,
    standardise_context,
)
from cocobandits.types import FloatVector, Truths


class Users:
    """Everyone who ever enrolled, numbered from zero in the order of enrolment.

    Attributes:
        names: of all users, also of those who have withdrawn.
        contexts: of each user, in the user's units; NaN is missing.
        is_late: of each user, which features were missing at enrolment.
        withdrawn: names of those who have.
    """

    def __init__(self, features: tuple[Feature, ...]) -> None:
        self._features = features
        self._numbers: dict[str, int] = {}
        self._completion = Completion(tuple(feature.num_categories for feature in features))
        self.names: list[str] = []
        self.contexts: list[FloatVector] = []
        self.is_late: list[Truths] = []
        self.withdrawn: set[str] = set()

    @classmethod
    def restore(
        cls,
        features: tuple[Feature, ...],
        rows: Iterable[tuple[str, FloatVector, Truths]],
        withdrawn: Iterable[str],
    ) -> "Users":
        """Put together users that were stored."""
        users = cls(features)
        for name, context, is_late in rows:
            users.add(name, context)
            users.is_late[-1] = is_late
        for name in withdrawn:
            users.withdraw(name)
        return users

    @property
    def enrolled(self) -> tuple[str, ...]:
        """Everyone who has not withdrawn, in the order of enrolment."""
        return tuple(user for user in self.names if user not in self.withdrawn)

    @property
    def num_missing(self) -> tuple[int, ...]:
        """For each feature, how many of the enrolled users have no value."""
        num_enrolled = len(self.names) - len(self.withdrawn)
        return tuple(
            num_enrolled - self._completion.num_seen(feature)
            for feature in range(len(self._features))
        )

    @property
    def were_all_known(self) -> bool:
        """Whether nobody ever enrolled with a value missing."""
        return not any(is_late.any() for is_late in self.is_late)

    def find(self, user: str) -> int:
        """Return the number of a user.

        Raises:
            UnknownNameError: the user is not enrolled.
        """
        if not isinstance(user, str) or user not in self._numbers or user in self.withdrawn:
            raise UnknownNameError("user", user, self.enrolled, "Enrol the user first.")
        return self._numbers[user]

    def is_known(self, user: str, context: FloatVector) -> bool:
        """Tell whether a user has enrolled before with this context.

        Raises:
            InputError: the name is refused.
            ConflictError: the user is enrolled with another context, or has withdrawn.
        """
        if not is_name(user):
            raise InputError(
                f"Expected a user id of 1 to {MOST_CHARACTERS} characters; got user={brief(user)}. "
                "Use a shorter one, or give one."
            )
        if user in self.withdrawn:
            raise ConflictError(
                f"Expected a new user; got user={user!r}, who has withdrawn. Use another id."
            )
        if user not in self._numbers:
            return False
        number = self._numbers[user]
        known = self.contexts[number]
        was_missing = np.isnan(context) & self.is_late[number]
        if not np.all(_are_equal(context, known) | was_missing):
            raise ConflictError(
                f"Expected the context that user={user!r} enrolled with; got "
                f"{show_context(self._features, context)}. Enrol a second person under another id, "
                f"or give late values by update_context({user!r}, ...)."
            )
        return True

    def add(self, user: str, context: FloatVector) -> None:
        """Add a user who is new, with a context that was read."""
        self._numbers[user] = len(self.names)
        self.names.append(user)
        self.contexts.append(context)
        self.is_late.append(np.isnan(context))
        self._completion.add(self._standardised(context))

    def with_late(self, user: str, values: ContextValues) -> FloatVector | None:
        """Fill late values into a user's context; None if they add nothing.

        Raises:
            InputError: a value is refused.
            ConflictError: another value was recorded.
            UnknownNameError: the user is not enrolled, or a feature was never declared.
        """
        known = self.contexts[self.find(user)]
        late = read_context(self._features, values)
        is_other = ~np.isnan(late) & ~np.isnan(known) & (late != known)
        if is_other.any():
            feature = self._features[int(np.argmax(is_other))]
            recorded = feature.show(float(known[np.argmax(is_other)]))
            raise ConflictError(
                f"Expected values that were missing so far; got {feature.name}="
                f"{values[feature.name]!r} for user={user!r}, of whom {recorded!r} is recorded. "
                "Enrol a second person under another id, or withdraw this user."
            )
        filled = np.where(np.isnan(known), late, known)
        return None if np.all(_are_equal(filled, known)) else filled

    def replace(self, number: int, context: FloatVector) -> None:
        """Record what is known of a user now."""
        self._completion.remove(self._standardised(self.contexts[number]))
        self._completion.add(self._standardised(context))
        self.contexts[number] = context

    def withdraw(self, user: str) -> None:
        """Forget a user's values in what is filled in for others, and refuse the user from now."""
        self.withdrawn.add(user)
        self._completion.remove(self._standardised(self.contexts[self._numbers[user]]))

    def show(self, number: int) -> dict[str, ContextValue]:
        """Return a user's context as it was given; None is missing."""
        return show_context(self._features, self.contexts[number])

    def is_complete(self, number: int) -> bool:
        """Tell whether all of a user's context is known."""
        return not np.isnan(self.contexts[number]).any()

    def complete(self, context: FloatVector, number: int | None = None) -> FloatVector | Points:
        """Standardise a user's context, with points where something is missing.

        None as number stands for nobody in particular.
        """
        return self._completion.complete(self._standardised(context), number)

    def _standardised(self, context: FloatVector) -> FloatVector:
        return standardise_context(self._features, context)


def _are_equal(one: FloatVector, other: FloatVector) -> Truths:
    """Compare contexts; missing equals missing."""
    return (one == other) | (np.isnan(one) & np.isnan(other))
