"""One cell of a run: one policy in one environment with one seed (paper, Alg. 1)."""

import hashlib
import json
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from cocobandits.display import DEFAULT_LINE, Line
from cocobandits.environments.base import Environment
from cocobandits.errors import UnsupportedError
from cocobandits.policies.description import PolicySettings
from cocobandits.policies.plain import to_plain
from cocobandits.rewards import RewardKind
from cocobandits.runs.info import (
    CellInfo,
    CellKey,
    Made,
    Source,
    outside_digest,
    plain,
    second_half,
    total,
)
from cocobandits.runs.store import cell_table
from cocobandits.simulation.evaluation import Evaluation
from cocobandits.simulation.loop import open_study, serve
from cocobandits.simulation.world import World, draw_evaluation, draw_world
from cocobandits.study import Study


@dataclass(frozen=True, kw_only=True)
class Agent(ABC):
    """A policy with its settings, from this package or from outside of it.

    Attributes:
        label, line: for display.
        settings: in plain values; part of a cell's identity.
        provenance: of code outside the package; replaces entries of the run's.
        classes: whose code decides, if `provenance` does not name it.
        rewards: kinds that it can learn from.
        is_learner: whether it moves particles, which takes longer the more users there are.
        table_one, published, library: see `CellInfo`.
    """

    label: str
    line: Line = DEFAULT_LINE
    settings: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    classes: tuple[type, ...] = ()
    rewards: tuple[RewardKind, ...] = ("gaussian", "bernoulli")
    is_learner: bool = False
    table_one: str = ""
    published: str = ""
    library: str = ""

    @abstractmethod
    def start(
        self, environment: Environment, world: World, seed: int, reward_range: tuple[float, float]
    ) -> Study:
        """Start a study, or an object with the same verbs."""

    def used(self, study: Study) -> dict[str, Any]:
        """Return the settings that a started study has, in plain values, if they are known."""
        del study
        return {}


@dataclass(frozen=True, kw_only=True)
class PolicyAgent(Agent):
    """The settings of a policy as an agent."""

    policy: PolicySettings

    @classmethod
    def of(cls, policy: PolicySettings, label: str = "") -> "PolicyAgent":
        """Take all from the policy's record, or name a variant.

        Table 1 is about the systems, not about their settings, so a variant has no row in it.
        """
        names = ("line", "rewards", "is_learner", *(() if label else ("table_one", "published")))
        record = {name: getattr(policy, name) for name in names}
        record |= {"label": label or policy.label, "classes": (type(policy),)}
        return cls(settings=to_plain(policy), policy=policy, **record)

    def having(self, policy: PolicySettings) -> "PolicyAgent":
        """Replace the settings."""
        return replace(self, settings=to_plain(policy), policy=policy)

    def start(
        self, environment: Environment, world: World, seed: int, reward_range: tuple[float, float]
    ) -> Study:
        """Start a study, on another range of arm means if it is not the environment's."""
        rewards = environment.rewards
        if reward_range != rewards.range:
            rewards = replace(rewards, low=reward_range[0], high=reward_range[1])  # type: ignore[type-var]
        return open_study(self.policy, environment, world, seed, rewards)

    def used(self, study: Study) -> dict[str, Any]:
        """Return the settings with what the simulation filled in."""
        return plain(to_plain(study.design.policy))


@dataclass(frozen=True)
class Cell:
    """What to compute; see `CellInfo` for the fields."""

    environment: Environment
    name: str
    seed: int
    agent: Agent
    reward_range: tuple[float, float]
    newcomers: tuple[int, int]
    order: tuple[int, int]
    suite: str
    is_quick: bool

    @property
    def key(self) -> CellKey:
        """The key of the cell in a run."""
        return CellKey(self.environment.name, self.name, self.seed)

    @property
    def cost(self) -> float:
        """The expected relative time."""
        plan = self.environment.recruitment
        # Moves of particles go over all users so far; other policies look at one user at a time.
        return plan.num_steps * (1.0 + 0.1 * plan.num_users * self.agent.is_learner)

    def made(self, source: Source) -> Made:
        """Describe how the result is made."""
        return self.info(source).made

    def info(self, source: Source) -> CellInfo:
        """Describe the cell, without results; users and rewards are drawn for that."""
        agent, plan = self.agent, self.environment.recruitment
        world = draw_world(self.environment, self.seed)
        outside = outside_digest(type(self.environment), *agent.classes)
        return CellInfo(
            *self.key,
            environment_label=self.environment.label or self.environment.name,
            label=agent.label,
            line=agent.line,
            order=self.order,
            settings=plain(agent.settings),
            reward_range=self.reward_range,
            newcomers=self.newcomers,
            world_sha256=world_digest(world),
            num_users=plan.num_users,
            num_outside=num_outside(world, self.reward_range),
            num_steps=plan.num_steps,
            suite=self.suite,
            is_quick=self.is_quick,
            provenance=source.provenance
            | agent.provenance
            | ({"outside_sha256": outside} if outside else {}),
            argv=source.argv,
            table_one=agent.table_one,
            published=agent.published,
            library=agent.library,
        )

    def run(self, source: Source) -> pa.Table:
        """Simulate, and evaluate the learned prior before the first and after every round."""
        world, newcomers = draw_world(self.environment, self.seed), None
        if any(self.newcomers):
            newcomers = Evaluation(draw_evaluation(self.environment, self.seed, *self.newcomers))
        study = self.agent.start(self.environment, world, self.seed, self.reward_range)
        first, rows, seconds = _evaluate(study, newcomers), [], 0.0
        ends = np.cumsum([len(served) for served in self.environment.recruitment.rounds()]) - 1
        started = time.perf_counter()
        for record in serve(study, self.environment, world):
            seconds += time.perf_counter() - started
            evaluation = _evaluate(study, newcomers) if record.step in ends else None
            rows.append(record._asdict() | _learned(study) | {"evaluation": evaluation})
            started = time.perf_counter()
        evaluations = [first, *(row["evaluation"] for row in rows)]
        regrets = np.array([row["regret"] for row in rows])
        info = self.info(source)._replace(
            num_evaluations=sum(value is not None for value in evaluations),
            total_regret=float(total(regrets)),
            second_half_regret=float(second_half(regrets)),
            seconds=seconds,
            used=self.agent.used(study),
        )
        return cell_table(info, rows, first)


def world_digest(world: World) -> str:
    """Hash users and rewards, to six decimals: the last bits depend on the machine."""
    numbers = np.concatenate([world.cohort.arm_means.ravel(), world.rewards.ravel()])
    digest = hashlib.sha256((np.round(numbers, 6) + 0.0).tobytes())
    contexts = [
        {
            name: round(value, 6) if isinstance(value, float) else value
            for name, value in each.items()
        }
        for each in world.cohort.contexts
    ]
    digest.update(json.dumps(contexts, sort_keys=True).encode())
    return digest.hexdigest()


def num_outside(world: World, reward_range: tuple[float, float]) -> int:
    """Count users with an arm mean outside a range."""
    low, high = reward_range
    means = world.cohort.arm_means
    return int(np.sum(np.any((means < low) | (means > high), axis=1)))


def _evaluate(study: Study, newcomers: Evaluation | None) -> float | None:
    try:
        return None if newcomers is None else newcomers.regret(study)
    except UnsupportedError:
        return None  # a policy without beliefs has no prior to evaluate


def _learned(study: Study) -> dict[str, Any]:
    """Return diagnostics and hyperparameters after an update that moved particles."""
    if study.health is None or not study.health.is_rejuvenated:
        return {}
    points = ("low", "median", "high")
    return {
        "health": study.health._asdict(),
        "hyperparameters": [
            {"name": name} | dict(zip(points, values, strict=True))
            for name, values in study.hyperparameters().items()
        ],
    }
