"""What a caller waits for while particles move in the background."""

import itertools
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from cocobandits.environments.base import Environment
from cocobandits.environments.registry import build_environment
from cocobandits.simulation.loop import open_study
from cocobandits.simulation.world import draw_world
from cocobandits.study import Study
from parts.clock import milliseconds
from parts.runs import ENVIRONMENT
from parts.scale import Scale
from parts.timed import timed_run

# Between two interactions: users do not come all at once.
_PAUSE = 0.05


def measure_background(scale: Scale) -> dict[str, Any]:
    """Serve users of coids, and keep the calls that were made while moves went on."""
    environment = build_environment(ENVIRONMENT)
    # Compiles what calls need, and tells how long moves take when they are waited for.
    waiting = timed_run(environment, "coids", 0, scale.learned, scale.latency_steps)
    moves = [
        taken - compiling
        for taken, compiling, is_moved in zip(
            waiting.reward_seconds, waiting.compile_seconds, waiting.is_rejuvenated, strict=True
        )
        if is_moved
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.study"
        open_study(environment, "coids", 0, scale.learned).save(path)
        # Twice: during the first, the process that moves particles compiles.
        for _ in range(2):
            study = Study.load(path, rejuvenate="background")
            decisions, rewards = _serve(study, environment, scale.latency_steps)
            study.catch_up()
    return {
        "calls": len(decisions),
        "moves_seconds": float(np.median(moves)) if moves else float("nan"),
        **{
            f"{name}_ms_p{percent}": milliseconds(taken, percent)
            for name, taken in (("decision", decisions), ("reward", rewards))
            for percent in (50, 95)
        },
    }


def _serve(
    study: Study, environment: Environment, num_steps: int
) -> tuple[list[float], list[float]]:
    world, decisions, rewards = draw_world(environment, 0), [], []
    served = itertools.chain.from_iterable(environment.recruitment.rounds())
    for user, step in itertools.islice(served, num_steps):
        name = f"user-{user}"
        if step == 0:
            study.enrol(name, world.cohort.contexts[user])
        is_moving, began = study.is_moving, time.perf_counter()
        decision = study.decide(name)
        decided = time.perf_counter()
        arm = environment.arms.index(decision.arm)
        value = float(world.rewards[user, step, arm])
        is_moving, resumed = is_moving and study.is_moving, time.perf_counter()
        study.reward(decision.id, value)
        if is_moving:
            decisions.append(decided - began)
            rewards.append(time.perf_counter() - resumed)
        time.sleep(_PAUSE)
    return decisions, rewards
