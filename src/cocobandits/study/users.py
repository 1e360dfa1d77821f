"""The users of a study: who enrolled, what is known of them, who has withdrawn.

Owns names, numbers and contexts, and what all contexts together say of values that are missing.
Knows nothing of decisions or policies.
"""

import numpy as np

from cocobandits.study.completion import Completion, Points
from cocobandits.study.context import ContextValue, Feature, show_context, standardise_context
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

    def __contains__(self, user: object) -> bool:
        return isinstance(user, str) and user in self._numbers

    def __len__(self) -> int:
        return len(self.names)

    @property
    def enrolled(self) -> tuple[str, ...]:
        """Those who have not withdrawn."""
        return tuple(name for name in self.names if name not in self.withdrawn)

    @property
    def num_missing(self) -> tuple[int, ...]:
        """For each feature, of how many enrolled users it is not known."""
        num_enrolled = len(self.names) - len(self.withdrawn)
        numbers = range(len(self._features))
        return tuple(num_enrolled - self._completion.num_seen(number) for number in numbers)

    @property
    def were_all_known(self) -> bool:
        """Whether every user had a complete context at enrolment."""
        return not any(is_late.any() for is_late in self.is_late)

    def number(self, user: str) -> int:
        """Return the number of a user who enrolled.

        Raises:
            KeyError: nobody of that name did.
        """
        return self._numbers[user]

    def add(self, user: str, context: FloatVector) -> None:
        """Add a user.

        Raises:
            ValueError: there is one of that name.
        """
        if user in self._numbers:
            raise ValueError(f"user={user!r} enrolled before")
        self._numbers[user] = len(self.names)
        self.names.append(user)
        self.contexts.append(context)
        self.is_late.append(np.isnan(context))
        self._completion.add(self._standardised(context))

    def replace(self, number: int, context: FloatVector) -> None:
        """Record what is known of a user now."""
        self._completion.remove(self._standardised(self.contexts[number]))
        self._completion.add(self._standardised(context))
        self.contexts[number] = context

    def withdraw(self, user: str) -> None:
        """Forget a user's values in what is filled in for others."""
        self.withdrawn.add(user)
        self._completion.remove(self._standardised(self.contexts[self._numbers[user]]))

    def filled(self, number: int, late: FloatVector) -> FloatVector:
        """Fill values in where a user's context is missing."""
        known = self.contexts[number]
        return np.where(np.isnan(known), late, known)

    def show(self, number: int) -> dict[str, ContextValue]:
        """Return a user's context as it was given; None is missing."""
        return show_context(self._features, self.contexts[number])

    def is_complete(self, number: int) -> bool:
        """Check that all of a user's context is known."""
        return not np.isnan(self.contexts[number]).any()

    def complete(self, context: FloatVector, number: int | None = None) -> FloatVector | Points:
        """Standardise a user's context, with points where something is missing.

        None as number stands for nobody in particular.
        """
        return self._completion.complete(self._standardised(context), number)

    def _standardised(self, context: FloatVector) -> FloatVector:
        return standardise_context(self._features, context)


def are_equal(one: FloatVector, other: FloatVector) -> Truths:
    """Compare contexts; missing equals missing."""
    return (one == other) | (np.isnan(one) & np.isnan(other))
