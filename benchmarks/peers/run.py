"""Run MABWiser and bayesianbandits on our environments, as cells of a comparison.

    make peers                                                     # installs both, runs all
    .venv/bin/python benchmarks/peers/run.py --env mixture --seeds 2 --out runs/compare

On a seed, every peer meets the users and the noise that our own policies meet. Cells that are in
the folder are not run again; the next `coco compare` or `coco report` shows them. `libraries.py`
configures each library. Every user has a bandit of it, or all share one, or all share one with the
user as a one-hot feature (fixed effects of users, shrunk by the prior).
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from threadpoolctl import threadpool_limits

# Run as a script, its own folder is on the path, and the package that it belongs to is not.
sys.path.insert(0, str(Path(__file__).parents[1]))

from cocobandits.cli.experiments import run_suite
from cocobandits.environments.base import Environment, FloatVector
from cocobandits.errors import CocoError
from cocobandits.experiments.suites import COMPARED_ENVIRONMENTS, GROUPS, Suite, expanded
from cocobandits.runs.cell import Agent
from cocobandits.runs.info import source_digest
from cocobandits.simulation.world import World
from peers.libraries import LIBRARIES, Bandit, Sharing, Task, encode

PEERS = tuple(f"{library} {sharing}" for library in LIBRARIES for sharing in get_args(Sharing))
_PACKAGES = ("mabwiser", "bayesianbandits", "numpy", "scipy", "scikit-learn")
# Differs from the streams of `cocobandits.simulation.world`, which draw what all policies meet.
_STREAM = 4


class Decision(NamedTuple):
    """A decision, as `Study` makes it; these libraries do not say how likely it was."""

    id: tuple[str, int]
    arm: str
    probabilities: dict[str, float]


class PeerStudy:
    """The verbs of a study that a simulation needs."""

    health = None

    def __init__(self, name: str, environment: Environment, seed: int) -> None:
        library, _, sharing = name.partition(" ")
        self.environment, self.seed, self.build = environment, seed, LIBRARIES[library]
        self.task = Task.of(environment, sharing)  # type: ignore[arg-type]
        self.shared = None if sharing == "per user" else self._bandit(0)
        self.users: dict[str, tuple[Bandit, FloatVector]] = {}

    def enrol(self, user: str, context: Mapping[str, Any]) -> None:
        """Add a user, by the name that the simulation gives."""
        number, features = int(user.removeprefix("user-")), encode(self.environment, context)
        columns = np.arange(self.task.num_columns - len(features)) == number
        self.users[user] = self.shared or self._bandit(number), np.append(features, columns)

    def decide(self, user: str) -> Decision:
        """Choose an arm."""
        bandit, features = self.users[user]
        arm = bandit.choose(features)
        name = self.environment.arms[arm]
        return Decision((user, arm), name, {name: float("nan")})

    def reward(self, decision: tuple[str, int], value: float) -> None:
        """Learn from the reward of a decision."""
        user, arm = decision
        bandit, features = self.users[user]
        bandit.learn(features, arm, value)

    def _bandit(self, number: int) -> Bandit:
        state = np.random.SeedSequence([self.seed, _STREAM, number]).generate_state(1)
        # Both libraries take a plain integer.
        return self.build(self.task, int(state[0]))


@dataclass(frozen=True, kw_only=True)
class PeerAgent(Agent):
    """A peer, by its label, as an agent of a suite."""

    def start(
        self, environment: Environment, world: World, seed: int, reward_range: tuple[float, float]
    ) -> Any:
        """Start to serve users, with one thread, as our own policies have."""
        del world, reward_range
        threadpool_limits(1)
        return PeerStudy(self.label, environment, seed)


def peer_suite(environments: list[str], peers: list[str], num_seeds: int) -> Suite:
    """Build the suite of peers; cells of a comparison depend on these packages and this folder."""
    packages = {name: version(name) for name in _PACKAGES}
    digest = source_digest(Path(__file__).parent)
    provenance = {"packages": packages, "source_sha256": digest}
    agents = {
        name: PeerAgent(label=name, library=name.partition(" ")[0], provenance=provenance)
        for name in peers
    }
    return Suite("compare", expanded(environments), agents, num_seeds)


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    names = [*COMPARED_ENVIRONMENTS, *GROUPS]
    add("--env", action="append", choices=names, help="an environment; repeat for more")
    add("--peer", action="append", choices=PEERS, help="a peer; repeat for more")
    add("--seeds", type=int, default=10, help="seeds 0 to N-1")
    add("--jobs", type=int, default=1, help="parallel processes")
    add("--out", type=Path, default=Path("runs/compare"), help="the folder of the comparison")
    add("--refresh", action="store_true", help="run cells again that other code made")
    asked = parser.parse_args()
    try:
        suite = peer_suite(asked.env or names, asked.peer or list(PEERS), asked.seeds)
        run_suite(suite, asked.out, asked.jobs, asked.refresh)
    except CocoError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
