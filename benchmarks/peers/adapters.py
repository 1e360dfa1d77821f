"""Peers behind one contract: choose an arm for a user, learn from the reward; and as agents.

A bandit of a library knows features and no users. Who learns from whom is decided here: every user
has a bandit, or all share one, or all share one that sees the user as a one-hot feature (fixed
effects of users, shrunk by the prior).
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from cocobandits.environments.base import Environment, FloatVector
from cocobandits.runs.cell import Agent
from cocobandits.runs.provenance import source_digest
from cocobandits.simulation.world import World
from peers import with_bayesianbandits, with_mabwiser
from peers.task import SHARINGS, Encoder, Task

_PACKAGES = ("mabwiser", "bayesianbandits", "numpy", "scipy", "scikit-learn")

# Beside the streams of `cocobandits.simulation.world`, which draw what all policies meet.
_STREAM = 4
_LIBRARIES = {"mabwiser": with_mabwiser.build, "bayesianbandits": with_bayesianbandits.build}
PEERS = tuple(f"{library} {sharing}" for library in _LIBRARIES for sharing in SHARINGS)


class Bandit(Protocol):
    """A contextual bandit of a library."""

    def choose(self, features: FloatVector) -> int:
        """Draw an arm."""

    def learn(self, features: FloatVector, arm: int, reward: float) -> None:
        """Take a reward in."""


class Peer(Protocol):
    """What serves users; the context is the vector that `Encoder` writes."""

    def choose(self, user: int, context: FloatVector) -> int:
        """Draw an arm for a user."""

    def learn(self, user: int, context: FloatVector, arm: int, reward: float) -> None:
        """Take a user's reward in."""


class PerUser:
    """A bandit for every user, made when the user is first met."""

    def __init__(self, build: Callable[[int], Bandit]) -> None:
        self.build = build
        self.bandits: dict[int, Bandit] = {}

    def choose(self, user: int, context: FloatVector) -> int:
        """Ask the user's own bandit."""
        if user not in self.bandits:
            self.bandits[user] = self.build(user)
        return self.bandits[user].choose(context)

    def learn(self, user: int, context: FloatVector, arm: int, reward: float) -> None:
        """Tell the user's own bandit."""
        self.bandits[user].learn(context, arm, reward)


class Pooled:
    """One bandit for all users, who appear in `num_users` one-hot columns, if in any."""

    def __init__(self, bandit: Bandit, num_users: int = 0) -> None:
        self.bandit = bandit
        self.num_users = num_users

    def choose(self, user: int, context: FloatVector) -> int:
        """Ask the one bandit."""
        return self.bandit.choose(self._features(user, context))

    def learn(self, user: int, context: FloatVector, arm: int, reward: float) -> None:
        """Tell the one bandit."""
        self.bandit.learn(self._features(user, context), arm, reward)

    def _features(self, user: int, context: FloatVector) -> FloatVector:
        if not self.num_users:
            return context
        columns = np.zeros(self.num_users)
        columns[user] = 1.0
        return np.concatenate([context, columns])


def build_peer(name: str, environment: Environment, seed: int) -> Peer:
    """Make a peer for one run of an environment.

    Raises:
        KeyError: there is no such peer.
    """
    if name not in PEERS:
        raise KeyError(f"Expected one of {PEERS}; got peer={name!r}. Choose one of these.")
    library, _, sharing = name.partition(" ")
    task = Task.of(environment, sharing)

    def build(number: int) -> Bandit:
        # SeedSequence wants plain integers, and both libraries take a plain integer.
        state = np.random.SeedSequence([seed, _STREAM, number]).generate_state(1)
        return _LIBRARIES[library](task, int(state[0]))

    if sharing == "per user":
        return PerUser(build)
    return Pooled(build(0), task.num_users if sharing == "user effects" else 0)


class Decision(NamedTuple):
    """A decision, as `Study` makes it; these libraries do not say how likely it was."""

    id: str
    arm: str
    probabilities: dict[str, float]


class PeerStudy:
    """The verbs of a study that a simulation needs; one decision of a user is open at a time."""

    health = None

    def __init__(self, environment: Environment, peer: Peer) -> None:
        self.arms, self.encoder, self.peer = environment.arms, Encoder(environment), peer
        self.contexts: dict[str, FloatVector] = {}
        self.open: dict[str, int] = {}

    def enrol(self, user: str, context: dict[str, Any]) -> None:
        """Add a user."""
        self.contexts[user] = self.encoder.encode(context)

    def decide(self, user: str) -> Decision:
        """Choose an arm."""
        self.open[user] = self.peer.choose(_number(user), self.contexts[user])
        arm = self.arms[self.open[user]]
        return Decision(user, arm, {arm: float("nan")})

    def reward(self, decision: str, value: float) -> None:
        """Learn from the reward of a decision."""
        arm = self.open.pop(decision)
        self.peer.learn(_number(decision), self.contexts[decision], arm, value)


@dataclass(frozen=True, kw_only=True)
class PeerAgent(Agent):
    """A peer as an agent of a suite."""

    name: str

    @classmethod
    def of(cls, name: str) -> "PeerAgent":
        """Find a peer by name, with the packages and code that its cells depend on."""
        package = Path(__file__).parents[1]
        return cls(
            label=name,
            name=name,
            provenance={
                "packages": {each: version(each) for each in _PACKAGES},
                "source_sha256": source_digest(package, ("peers",)),
            },
        )

    def start(
        self, environment: Environment, world: World, seed: int, reward_range: tuple[float, float]
    ) -> Any:
        """Start to serve users, with one thread, as our own policies have."""
        del world, reward_range
        threadpool_limits(1)
        return PeerStudy(environment, build_peer(self.name, environment, seed))


def _number(user: str) -> int:
    return int(user.removeprefix("user-"))
