"""Serve a study with every call timed: the loop of `cocobandits.simulation.loop` with a clock."""

import itertools
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from studies import Case

from cocobandits.simulation.world import draw_world
from cocobandits.study import Study

# Both are parts of the first call of a compiled function, and of no later one.
_COMPILING = (
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)
_compiled = [0.0]


def _note(event: str, duration: float, **_: Any) -> None:
    _compiled[0] += duration if event in _COMPILING else 0.0


jax.monitoring.register_event_duration_secs_listener(_note)


class Call(NamedTuple):
    """One interaction in standardised units, with the seconds of each call."""

    user: int
    context: tuple[float, ...]
    arm: int
    reward: float
    enrolment: float
    decision: float
    update: float
    compiling: float  # part of the three above
    has_moved: bool  # the reward resampled and moved the particles
    while_moving: bool  # particles moved in the background

    @property
    def seconds(self) -> float:
        """Add up all calls."""
        return self.enrolment + self.decision + self.update


def serve(study: Study, case: Case, pause: float = 0.0) -> list[Call]:
    """Serve the first interactions of a case, with a pause after each."""
    place, world, calls = case.environment, draw_world(case.environment, 0), []
    served = itertools.chain.from_iterable(place.recruitment.rounds())
    for user, user_step in itertools.islice(served, case.num_steps):
        name, context = f"user-{user}", world.cohort.contexts[user]
        is_moving, compiled, began = study.is_moving, _compiled[0], time.perf_counter()
        if user_step == 0:
            study.enrol(name, context)
        enrolled = time.perf_counter()
        decision = study.decide(name)
        decided = time.perf_counter()
        arm = place.arms.index(decision.arm)
        reward = float(world.rewards[user, user_step, arm])
        is_moving &= study.is_moving
        resumed = time.perf_counter()
        study.reward(decision.id, reward)
        updated = time.perf_counter()
        encoded = tuple(map(float, study.design.encode_context(context)))
        enrolment = enrolled - began if user_step == 0 else 0.0
        calls.append(
            Call(
                *(user, encoded, arm, study.design.standardise(reward)),
                *(enrolment, decided - enrolled, updated - resumed, _compiled[0] - compiled),
                *(study.health is not None and study.health.is_rejuvenated, is_moving),
            )
        )
        time.sleep(pause)
    return calls


def summarise(calls: Sequence[Call]) -> dict[str, Any]:
    """Summarise decisions, rewards that move nothing, and moves; None of nothing."""
    moves = [call.update for call in calls if call.has_moved]
    decisions = [call.decision for call in calls]
    rewards = [call.update for call in calls if not call.has_moved]
    return {
        "interactions": len(calls),
        "rejuvenations": len(moves),
        "rejuvenation_seconds": percentile(moves, 50),
        "enrolment_ms": percentile([1e3 * call.enrolment for call in calls if call.enrolment], 50),
        **{
            f"{name}_ms_p{percent}": percentile(1e3 * np.array(seconds), percent)
            for name, seconds in (("decision", decisions), ("reward", rewards))
            for percent in (50, 95)
        },
    }


def percentile(values: Any, percent: float) -> float | None:
    """Compute a percentile; None of nothing."""
    return float(np.percentile(values, percent)) if len(values) else None
