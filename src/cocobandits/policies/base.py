"""The contract that every policy meets, and what a policy may be asked to explain.

A policy is a learner with a pure interface: a state goes in, a state comes out. It is told who
enrolled (`enrol`) and whose statistics changed (`update`), and gives the exact probability of each
arm for a user (`probabilities`). Drawing the arm is the caller's.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from cocobandits.errors import ConfigurationError
from cocobandits.inference.smc import SmcInfo
from cocobandits.models.base import Belief, Statistics
from cocobandits.models.histories import UserTable
from cocobandits.policies.acquisitions.base import Motives
from cocobandits.types import ArmVector, Context, LogWeights, RngKey

S = TypeVar("S")


@dataclass(frozen=True)
class Problem:
    """What every policy is told about a study, in standardised units.

    Attributes:
        num_arms: K.
        features: for each context feature its number of categories, or None if it is continuous.
            Continuous values arrive scaled to [-1, 1], categories as numbers from zero.
        reward_range: where arm means lie.
        reward_noise: standard deviation of a reward around its arm mean; None if it is not known.
    """

    num_arms: int
    features: tuple[int | None, ...]
    reward_range: tuple[float, float]
    reward_noise: float | None

    def known_noise(self) -> float:
        """Return the noise, for policies that must be told it.

        Raises:
            ConfigurationError: it is not known.
        """
        if self.reward_noise is None:
            raise ConfigurationError(
                "Expected a known noise for this policy; got reward_noise=None. Give reward_noise, "
                "or choose a policy that learns it: coids, npm-ts or gids."
            )
        return self.reward_noise


class Readings(NamedTuple):
    """Something read off the belief of every particle, with the particles' weights.

    `values` has a leading particle axis; a policy with one fixed belief has one particle.
    """

    log_weights: LogWeights
    values: Any


class Policy(ABC, Generic[S]):
    """One way of choosing arms. `S` is its state, a tree of arrays."""

    @abstractmethod
    def init(self, rng_key: RngKey) -> S:
        """Make the state before anyone has enrolled."""

    @property
    @abstractmethod
    def mean_range(self) -> tuple[float, float]:
        """Where the policy holds arm means possible."""

    @abstractmethod
    def users(self, state: S) -> UserTable:
        """Read the users, in the order of their enrolment."""

    @abstractmethod
    def enrol(self, state: S, context: Context) -> S:
        """Add a user without rewards; users are numbered from zero."""

    @abstractmethod
    def update(
        self, rng_key: RngKey, state: S, user: int, statistics: Statistics
    ) -> tuple[S, SmcInfo | None]:
        """Replace a user's statistics and learn from it.

        Raises:
            NumericalError: the change cannot be explained; the state given stays valid.
        """

    def reweigh(
        self, rng_key: RngKey, state: S, user: int, statistics: Statistics
    ) -> tuple[S, SmcInfo | None, bool]:
        """Replace a user's statistics as `update` does, but never move particles.

        The last answer tells whether `update` would have. A policy without particles does not, and
        has learned all there is.

        Raises:
            NumericalError: the change cannot be explained; the state given stays valid.
        """
        return *self.update(rng_key, state, user, statistics), False

    @abstractmethod
    def probabilities(self, state: S, user: int) -> ArmVector:
        """Compute the exact probability of each arm for a user."""

    def read(
        self,
        state: S,
        context: Context,
        statistics: Statistics,
        read_fn: Callable[[Belief], Any],
    ) -> Readings | None:
        """Read something off every particle's belief; None for a policy without beliefs.

        `read_fn` must be hashable and the same object from call to call, or it is compiled anew.
        """
        del state, context, statistics, read_fn
        return None

    def motives(self, state: S, user: int) -> Motives | None:
        """Say what the probabilities for a user are for; None for a policy that cannot tell."""
        del state, user
        return None

    def hyperparameters(self, state: S) -> Readings | None:
        """Read what every particle has learned besides the population; None if nothing is."""
        del state
        return None

    def prior(self, state: S, context: Context) -> Belief | None:
        """Return the belief about somebody new; None for a policy without beliefs."""
        del state, context
        return None


class PlainState(NamedTuple):
    """The state of a policy that learns nothing across users."""

    users: UserTable


class PlainPolicy(Policy[PlainState]):
    """A policy whose only memory is the table of users."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @property
    def mean_range(self) -> tuple[float, float]:
        """The declared range."""
        return self.problem.reward_range

    def init(self, rng_key: RngKey) -> PlainState:
        """Make an empty table."""
        del rng_key
        return PlainState(UserTable.empty(len(self.problem.features), self.problem.num_arms))

    def users(self, state: PlainState) -> UserTable:
        """Read the users."""
        return state.users

    def enrol(self, state: PlainState, context: Context) -> PlainState:
        """Add a row."""
        return PlainState(state.users.append(context))

    def update(
        self, rng_key: RngKey, state: PlainState, user: int, statistics: Statistics
    ) -> tuple[PlainState, None]:
        """Replace a row."""
        del rng_key
        return PlainState(state.users.replace(user, statistics)), None
