"""The contract that every policy meets, and what a policy may be asked to explain.

A policy is a learner with a pure interface: a state goes in, a state comes out. It is told who
enrolled (`enrol`) and whose statistics changed (`update`), and gives the exact probability of each
arm for a user (`probabilities`). Drawing the arm is the caller's.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from cocobandits.errors import ConfigurationError
from cocobandits.inference.smc import SmcInfo
from cocobandits.models.base import Belief, Statistics
from cocobandits.models.histories import Change, UserTable
from cocobandits.models.mixture import RewardKind
from cocobandits.policies.acquisitions.base import Motives
from cocobandits.types import ArmVector, LogWeights, PossibleContext, RngKey

S = TypeVar("S")
# Numbers of the arms that can be chosen, in rising order; None for all.
Arms = tuple[int, ...] | None


@dataclass(frozen=True)
class Problem:
    """What every policy is told about a study, in standardised units.

    Attributes:
        num_arms: K.
        features: for each context feature its number of categories, or None if it is continuous.
            Continuous values arrive scaled to [-1, 1], categories as numbers from zero.
        reward_range: where arm means lie.
        reward_noise: standard deviation of a reward around its arm mean; None if it is not known.
        rewards: "gaussian", or "bernoulli" if a reward is always an end of the range.
    """

    num_arms: int
    features: tuple[int | None, ...]
    reward_range: tuple[float, float]
    reward_noise: float | None
    rewards: RewardKind = "gaussian"

    def with_arm(self) -> "Problem":
        """Add an arm."""
        return replace(self, num_arms=self.num_arms + 1)

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
    def enrol(self, state: S, context: PossibleContext) -> S:
        """Add a user without rewards; users are numbered from zero."""

    @abstractmethod
    def update(
        self,
        rng_key: RngKey,
        state: S,
        user: int,
        statistics: Statistics,
        context: PossibleContext | None = None,
    ) -> tuple[S, SmcInfo | None]:
        """Replace a user's statistics, and context if one is given, and learn from it.

        Raises:
            NumericalError: the change cannot be explained; the state given stays valid.
        """

    def reweigh(
        self,
        rng_key: RngKey,
        state: S,
        user: int,
        statistics: Statistics,
        context: PossibleContext | None = None,
    ) -> tuple[S, SmcInfo | None, bool]:
        """Replace a user's statistics as `update` does, but never move particles.

        The last answer tells whether `update` would have. A policy without particles does not, and
        has learned all there is.

        Raises:
            NumericalError: the change cannot be explained; the state given stays valid.
        """
        return *self.update(rng_key, state, user, statistics, context), False

    @abstractmethod
    def probabilities(self, state: S, user: int, arms: Arms = None) -> ArmVector:
        """Compute the exact probability of each arm for a user.

        With `arms`, at least two numbers in rising order, only these can be chosen: one probability
        for each of them, as if there were no others to compare with.
        """

    @abstractmethod
    def add_arm(self, rng_key: RngKey, state: S) -> tuple["Policy[S]", S]:
        """Make the policy and the state of the same study with one more arm, the last.

        What was learned stays, and the new arm has its prior.
        """

    def read(
        self,
        state: S,
        context: PossibleContext,
        statistics: Statistics,
        read_fn: Callable[[Belief], Any],
    ) -> Readings | None:
        """Read something off every particle's belief; None for a policy without beliefs.

        `read_fn` must be hashable and the same object from call to call, or it is compiled anew.
        """
        del state, context, statistics, read_fn
        return None

    def motives(self, state: S, user: int, arms: Arms = None) -> Motives | None:
        """Say what the probabilities for a user are for; None for a policy that cannot tell."""
        del state, user, arms
        return None

    def hyperparameters(self, state: S) -> Readings | None:
        """Read what every particle has learned besides the population; None if nothing is."""
        del state
        return None

    def prior(self, state: S, context: PossibleContext) -> Belief | None:
        """Return the belief about somebody new; None for a policy without beliefs."""
        del state, context
        return None


class PlainState(NamedTuple):
    """The state of a policy whose only memory is the table of users."""

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

    def enrol(self, state: PlainState, context: PossibleContext) -> PlainState:
        """Add a row."""
        return PlainState(state.users.append(context))

    def update(
        self,
        rng_key: RngKey,
        state: PlainState,
        user: int,
        statistics: Statistics,
        context: PossibleContext | None = None,
    ) -> tuple[PlainState, None]:
        """Replace a row."""
        del rng_key
        return PlainState(Change.of(state.users, user, statistics, context).applied()), None

    def add_arm(
        self, rng_key: RngKey, state: PlainState
    ) -> tuple["Policy[PlainState]", PlainState]:
        """Add a column."""
        del rng_key
        return self.widened(self.problem.with_arm()), PlainState(state.users.with_arm())

    @abstractmethod
    def widened(self, problem: Problem) -> "Policy[PlainState]":
        """Make the same policy for a problem with another arm."""
