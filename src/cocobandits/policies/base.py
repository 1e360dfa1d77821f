"""The contract that every policy meets.

A policy is a learner with a pure interface: a state goes in, a state comes out. The study owns the
table of users and passes it in; a policy keeps no copy. `enrol` follows a new user, `update` a
change of one user, and `probabilities` returns the exact arm probabilities. The caller draws.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from cocobandits.errors import ConfigurationError
from cocobandits.inference.smc import SmcInfo
from cocobandits.policies.coco.acquisition import Rationales
from cocobandits.populations.base import Belief
from cocobandits.populations.mixture import RewardKind
from cocobandits.types import ArmVector, LogWeights, PossibleContext, RngKey
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change, UserTable

S = TypeVar("S")
# Numbers of the arms that can be chosen, in rising order; None for all.
Arms = tuple[int, ...] | None
ArmIndices = Int[Array, " chosen"] | None
UserIndex = Int[ArrayLike, ""]
# A context and the rewards, as `UserTable.of` returns them.
UserData = tuple[PossibleContext, Statistics]
ReadFn = Callable[[Belief], Any]

# Scores closer than this are a tie: only rounding separates them.
_TIE = 1e-12


@dataclass(frozen=True)
class Problem:
    """What every policy knows about a study, in standardised units.

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
        """Return the noise, for policies that need it.

        Raises:
            ConfigurationError: it is not known.
        """
        if self.reward_noise is None:
            raise ConfigurationError(
                "Expected a known noise for this policy; got noise=None. Give the rewards a noise, "
                "or choose a policy that learns it: coids, npm-ts or gids."
            )
        return self.reward_noise

    def proxy_deviation(self) -> float:
        """Return the noise, as `known_noise` does; half of the range if rewards are yes or no."""
        low, high = self.reward_range
        return (high - low) / 2 if self.rewards == "bernoulli" else self.known_noise()


class Readings(NamedTuple):
    """Values computed from the belief of every particle, with the particles' weights.

    `values` has a leading particle axis; a policy with one fixed belief has one particle.
    """

    log_weights: LogWeights
    values: Any

    @classmethod
    def of_one(cls, values: Any) -> "Readings":
        """Make the readings of a policy with one belief."""
        return cls(jnp.zeros(1), jax.tree.map(lambda leaf: leaf[None], values))


class Step(NamedTuple):
    """An enrolment, if the arm is -1, or a reward, with the key that it was learned with."""

    rng_key: RngKey
    user: int
    arm: int = -1
    reward: float = 0.0


class History(NamedTuple):
    """All enrolments and rewards of a study as they stand now, in the order they came in."""

    rng_key: RngKey
    steps: tuple[Step, ...] = ()


class Policy(ABC, Generic[S]):
    """One way of choosing arms. `S` is its state, a tree of arrays; None if it needs no memory.

    `settings` are the `PolicySettings` that built it. `users` is always the study's table as it is
    now, with rows in the order of enrolment.
    """

    settings: Any

    def __init_subclass__(cls, settings: Any = None, **arguments: Any) -> None:
        """Let settings of a class build this policy, if one is named in the header."""
        super().__init_subclass__(**arguments)
        if settings is not None:
            settings.policy = cls

    def __init__(self, problem: Problem, settings: Any) -> None:
        self.problem = problem
        self.settings = settings

    @abstractmethod
    def init(self, rng_key: RngKey) -> S:
        """Make the state before anyone has enrolled."""

    @property
    def mean_range(self) -> tuple[float, float]:
        """Where the policy holds arm means possible; by default the declared range."""
        return self.problem.reward_range

    def enrol(self, state: S, users: UserTable) -> S:
        """Follow the enrolment of the last user of the table."""
        return state

    @abstractmethod
    def update(self, rng_key: RngKey, state: S, change: Change) -> tuple[S, SmcInfo | None]:
        """Learn from one further reward of a user, or any other change unless `revise` does.

        Raises:
            NumericalError: the change cannot be explained; the state given stays valid.
        """

    def revise(
        self, rng_key: RngKey, state: S, change: Change, history: History
    ) -> tuple[S, SmcInfo | None]:
        """Learn from a correction, a withdrawal or another context; by default as `update` does."""
        return self.update(rng_key, state, change)

    def reweigh(self, rng_key: RngKey, state: S, change: Change) -> tuple[S, SmcInfo | None, bool]:
        """Learn as `update` does, but move no particles; the last value says if moves are due."""
        return *self.update(rng_key, state, change), False

    @abstractmethod
    def probabilities(self, state: S, users: UserTable, user: int, arms: Arms) -> ArmVector:
        """Compute the exact probability of each arm for a user.

        With `arms`, at least two numbers in rising order, only these can be chosen: one probability
        for each of them, as if there were no others to compare with.
        """

    @abstractmethod
    def add_arm(
        self, rng_key: RngKey, state: S, users: UserTable, history: History
    ) -> tuple["Policy[S]", S]:
        """Make the policy and the state of the same study with one more arm, the last.

        `users` has a column for the new arm. What was learned stays, and the new arm has its prior.

        Raises:
            UnsupportedError: the policy was configured for the present arms.
        """

    def with_arm(self) -> Any:
        """Build the same policy for a problem with one more arm.

        Raises:
            UnsupportedError: the policy was configured for the present arms.
        """
        return self.settings.build(self.problem.with_arm())

    def read(self, state: S, users: UserTable, data: UserData, read_fn: ReadFn) -> Readings | None:
        """Apply a function to every particle's belief; None for a policy without beliefs.

        `read_fn` must be hashable and the same object in every call, or it is compiled again.
        """
        return None

    def rationales(self, state: S, users: UserTable, user: int, arms: Arms) -> Rationales | None:
        """Split the probabilities for a user by purpose; None for a policy that cannot."""
        return None

    def hyperparameters(self, state: S) -> Readings | None:
        """Return the hyperparameters that every particle has learned; None if there are none."""
        return None

    def log_evidence(self, state: S) -> float | None:
        """Return the log of p(all rewards) under the model; None for a policy without particles."""
        return None

    def prior(self, state: S, users: UserTable, context: PossibleContext) -> Belief | None:
        """Return the belief about a new user; None for a policy without beliefs."""
        return None


class PlainPolicy(Policy[None]):
    """A policy that decides from the table of users alone."""

    def init(self, rng_key: RngKey) -> None:
        """Keep nothing."""

    def update(self, rng_key: RngKey, state: None, change: Change) -> tuple[None, None]:
        """Keep nothing: the table has it all."""
        return None, None

    def add_arm(
        self, rng_key: RngKey, state: None, users: UserTable, history: History
    ) -> tuple[Policy[None], None]:
        """Continue with one more arm."""
        return self.with_arm(), None


class SequentialPolicy(Policy[S]):
    """A policy that learns from one reward after another, and whose state depends on their order.

    Its `update` understands one thing: a reward that is added. After anything else it is refitted
    from all rewards in their order, which is exact.
    """

    def enrol(self, state: S, users: UserTable) -> S:
        """Make room for as many users as the table has."""
        return with_rows(state, len(users.contexts))

    def revise(self, rng_key: RngKey, state: S, change: Change, history: History) -> tuple[S, None]:
        """Refit."""
        return self.refit(change.applied(), history), None

    def add_arm(
        self, rng_key: RngKey, state: S, users: UserTable, history: History
    ) -> tuple[Policy[S], S]:
        """Refit with one more arm, as if it had always been there."""
        wider = self.with_arm()
        return wider, wider.refit(users, history)

    def refit(self, users: UserTable, history: History) -> S:
        """Learn from all enrolments and rewards, one after another, at today's contexts."""
        nothing = Statistics(*map(jnp.zeros_like, users.statistics))
        table = users._replace(statistics=nothing, num_users=jnp.zeros_like(users.num_users))
        state = self.init(history.rng_key)
        for step in history.steps:
            if step.arm < 0:
                table = table._replace(num_users=table.num_users + 1)
                state = self.enrol(state, table)
            else:
                change = Change.adding(table, step.user, step.arm, step.reward)
                state, _ = self.update(step.rng_key, state, change)
                table = change.applied()
        return state


def with_rows(state: S, num_rows: int) -> S:
    """Pad every array of a state with zeros to as many rows; numbers stay as they are."""

    def pad(rows: Array) -> Array:
        if rows.ndim == 0 or len(rows) == num_rows:
            return rows
        return jnp.pad(rows, ((0, num_rows - len(rows)),) + ((0, 0),) * (rows.ndim - 1))

    return jax.tree.map(pad, state)


def eligibility(num_arms: int, arms: Arms) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Mark the arms that can be chosen."""
    return np.isin(np.arange(num_arms), np.arange(num_arms) if arms is None else arms)


def pick(values: Any, arms: Arms) -> Any:
    """Keep the entries of arms that can be chosen, in every array of a tree.

    On the host: there, another number of arms compiles nothing.
    """
    if arms is None:
        return values
    return jax.tree.map(lambda each: jax.device_put(np.asarray(each)[[*arms]]), values)


def highest_probability(scores: ArmVector, arms: Arms) -> Float[Array, " chosen"]:
    """Share probability one equally among the highest scores of the arms that can be chosen."""
    return pick(_share(scores, eligibility(len(scores), arms)), arms)


@jax.jit
def _share(scores: ArmVector, is_eligible: Any) -> ArmVector:
    scores = jnp.where(is_eligible, scores, -jnp.inf)
    is_highest = scores >= jnp.max(scores) - _TIE
    return is_highest / jnp.sum(is_highest)


def best_probability(belief: Belief, num_arms: int, arms: Arms) -> ArmVector:
    """Compute P(arm is best) among the arms that can be chosen."""
    return pick(_best_probability(belief, eligibility(num_arms, arms)), arms)


@jax.jit
def _best_probability(belief: Belief, is_eligible: Any) -> ArmVector:
    return belief.among(is_eligible).best_probability()
