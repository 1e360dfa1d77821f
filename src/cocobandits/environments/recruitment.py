"""Who comes when, and for how long: an explicit queue of rounds (paper, Alg. 1).

A round serves every active user once; a user who arrives with a round is active from it on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cocobandits.errors import ConfigurationError


@dataclass(frozen=True)
class Recruitment:
    """The round in which each user arrives, in order, and how often each user is served."""

    arrivals: tuple[int, ...]
    steps_per_user: int

    def __post_init__(self) -> None:
        is_whole = all(map(_is_whole, self.arrivals))
        if not self.arrivals or not is_whole or list(self.arrivals) != sorted(self.arrivals):
            raise ConfigurationError(
                "Expected at least one arrival, whole numbers from zero in rising order; got "
                f"arrivals={_shown(self.arrivals)}. Give the round in which each user arrives."
            )
        if not _is_whole(self.steps_per_user) or self.steps_per_user < 1:
            raise ConfigurationError(
                "Expected a whole number of at least one step; got "
                f"steps_per_user={self.steps_per_user!r}. Use for example 5."
            )

    @classmethod
    def batches(cls, num_batches: int, batch_size: int, steps_per_user: int) -> "Recruitment":
        """Recruit a batch at the start of each of the first rounds."""
        return cls(tuple(n for n in range(num_batches) for _ in range(batch_size)), steps_per_user)

    @classmethod
    def all_at_once(cls, num_users: int, steps_per_user: int) -> "Recruitment":
        """Recruit everybody before the first round."""
        return cls.batches(1, num_users, steps_per_user)

    @classmethod
    def schedule(cls, arrivals: Sequence[int], steps_per_user: int) -> "Recruitment":
        """Recruit by a list of arrival rounds, such as one read from a file; order is no matter.

        Raises:
            ConfigurationError: an arrival is not a whole number from zero.
        """
        try:
            ordered = tuple(sorted(int(arrival) for arrival in arrivals if arrival == int(arrival)))
        except (TypeError, ValueError):
            ordered = ()
        if len(ordered) < len(arrivals) or not ordered:
            raise ConfigurationError(
                "Expected whole numbers, the round in which each user arrives; got "
                f"arrivals={_shown(tuple(arrivals))}. Give one per user."
            )
        return cls(ordered, steps_per_user)

    @property
    def num_users(self) -> int:
        """Users recruited in all."""
        return len(self.arrivals)

    @property
    def num_steps(self) -> int:
        """Interactions in all."""
        return self.num_users * self.steps_per_user

    @property
    def num_rounds(self) -> int:
        """Rounds until the last user has been served for the last time."""
        return self.arrivals[-1] + self.steps_per_user

    def rounds(self) -> Iterator[list[tuple[int, int]]]:
        """List, round by round, who is served and how often that user was served before.

        A round in which nobody is active is an empty list.
        """
        active: list[int] = []
        arrived = 0
        for number in range(self.num_rounds):
            active = [u for u in active if number - self.arrivals[u] < self.steps_per_user]
            while arrived < self.num_users and self.arrivals[arrived] == number:
                active.append(arrived)
                arrived += 1
            yield [(user, number - self.arrivals[user]) for user in active]


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _shown(arrivals: tuple[int, ...]) -> str:
    return repr(arrivals) if len(arrivals) <= 8 else f"{arrivals[:8]!r} and more"
