"""A study on an environment, with every call on the clock.

The loop is that of `cocobandits.simulation.loop`, taken apart to time decisions and rewards alone.
"""

import itertools
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from literal_runs import Interaction

from cocobandits.environments.base import Environment
from cocobandits.experiments.presets import PAPER_RANGE, has_paper_range
from cocobandits.inference.smc import SmcInfo
from cocobandits.policies.settings import CocoSettings
from cocobandits.simulation.loop import open_study
from cocobandits.simulation.world import draw_world
from cocobandits.study import Study
from parts.clock import CompileClock

_COMPILE_CLOCK = CompileClock()


@dataclass
class TimedRun:
    """What was done and how long it took; one entry per interaction."""

    study: Study
    history: list[Interaction] = field(default_factory=list)
    regrets: list[float] = field(default_factory=list)
    enrolment_seconds: list[float] = field(default_factory=list)
    decision_seconds: list[float] = field(default_factory=list)
    reward_seconds: list[float] = field(default_factory=list)
    compile_seconds: list[float] = field(default_factory=list)
    health: list[SmcInfo] = field(default_factory=list)

    @property
    def is_rejuvenated(self) -> "np.ndarray[Any, np.dtype[np.bool_]]":
        """At which interactions particles were resampled and moved."""
        return np.array([info.is_rejuvenated for info in self.health], dtype=bool)

    def seconds(self, first: int = 0, last: int | None = None) -> float:
        """Add up all calls of a stretch."""
        calls = (self.enrolment_seconds, self.decision_seconds, self.reward_seconds)
        return sum(sum(taken[first:last]) for taken in calls)

    def quiet_rewards(self, first: int = 0, last: int | None = None) -> list[float]:
        """List the seconds of updates that moved nothing."""
        taken = np.array(self.reward_seconds[first:last])
        return taken[~self.is_rejuvenated[first:last]].tolist()

    def rejuvenations(self) -> list[float]:
        """List the seconds of updates that resampled and moved."""
        return np.array(self.reward_seconds)[self.is_rejuvenated].tolist()


def timed_run(
    environment: Environment, policy: str, seed: int, settings: CocoSettings, num_steps: int
) -> TimedRun:
    """Serve the first interactions of an environment."""
    run = TimedRun(opened(environment, policy, seed, settings))
    deque(itertools.islice(interactions(run, environment, seed), num_steps), maxlen=0)
    return run


def warm_run(
    environment: Environment, policy: str, seed: int, settings: CocoSettings, cold: TimedRun
) -> TimedRun:
    """Make the same run again, with everything compiled."""
    return timed_run(environment, policy, seed, settings, len(cold.history))


def interactions(run: TimedRun, environment: Environment, seed: int) -> Iterator[None]:
    """Serve one user after the other, noting everything in the run."""
    study, world = run.study, draw_world(environment, seed)
    served = itertools.chain.from_iterable(environment.recruitment.rounds())
    for user, user_step in served:
        name = f"user-{user}"
        compiled = _COMPILE_CLOCK.seconds
        began = time.perf_counter()
        if user_step == 0:
            study.enrol(name, world.cohort.contexts[user])
        enrolled = time.perf_counter()
        decision = study.decide(name)
        decided = time.perf_counter()
        arm = environment.arms.index(decision.arm)
        means = world.cohort.arm_means[user]
        reward = float(world.rewards[user, user_step, arm])
        resumed = time.perf_counter()
        study.reward(decision.id, reward)
        learned = time.perf_counter()
        context = study.design.encode_context(world.cohort.contexts[user])
        run.history.append(
            Interaction(user, tuple(map(float, context)), arm, study.design.standardise(reward))
        )
        run.regrets.append(float(means.max() - means[arm]))
        run.enrolment_seconds.append(enrolled - began if user_step == 0 else 0.0)
        run.decision_seconds.append(decided - enrolled)
        run.reward_seconds.append(learned - resumed)
        run.compile_seconds.append(_COMPILE_CLOCK.seconds - compiled)
        assert study.health is not None
        run.health.append(study.health)
        yield


def opened(environment: Environment, policy: str, seed: int, settings: CocoSettings) -> Study:
    """Open a study with the range that the paper gives the policy, if it does."""
    is_paper = has_paper_range(environment.name, policy)
    reward_range = PAPER_RANGE if is_paper else environment.reward_range
    return open_study(environment, policy, seed, settings, reward_range)
