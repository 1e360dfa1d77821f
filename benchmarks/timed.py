"""Serve a study through the loop of a simulation, with every call timed."""

import time
from collections.abc import Sequence
from functools import partialmethod
from itertools import islice
from typing import Any, NamedTuple

import jax
import numpy as np
from studies import Case

from cocobandits.simulation import loop
from cocobandits.simulation.world import draw_world
from cocobandits.study import Study

# Both are parts of the first call of a compiled function, and of no later one.
_COMPILING = (
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)
_compiled = [0.0]


def _note(event: str, duration_secs: float, **_: Any) -> None:
    _compiled[0] += duration_secs if event in _COMPILING else 0.0


jax.monitoring.register_event_duration_secs_listener(_note)


class Interaction(NamedTuple):
    """A record of the simulation, with the seconds of each verb: enrol (once), decide, reward."""

    record: loop.InteractionRecord
    seconds: dict[str, float]
    compiling: float  # part of these seconds
    has_moved: bool  # the reward resampled and moved the particles
    while_moving: bool  # particles moved in the background

    @property
    def total(self) -> float:
        """Add up all verbs."""
        return sum(self.seconds.values())


class _TimedStudy:
    """The verbs of a study that the loop calls."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.seconds: dict[str, float] = {}
        self.while_moving = True

    def _call(self, verb: str, *given: Any) -> Any:
        self.while_moving &= self.study.is_moving
        began = time.perf_counter()
        answer = getattr(self.study, verb)(*given)
        self.seconds[verb] = time.perf_counter() - began
        return answer

    enrol = partialmethod(_call, "enrol")
    decide = partialmethod(_call, "decide")
    reward = partialmethod(_call, "reward")


def serve(study: Study, case: Case, pause: float = 0.0) -> list[Interaction]:
    """Serve the first interactions of a case, with a pause after each."""
    timed, compiled, served = _TimedStudy(study), _compiled[0], []
    records = loop.serve(timed, case.environment, draw_world(case.environment, 0))  # type: ignore[arg-type]
    for record in islice(records, case.num_steps):
        has_moved = study.health is not None and study.health.is_rejuvenated
        compiling = _compiled[0] - compiled
        served.append(Interaction(record, timed.seconds, compiling, has_moved, timed.while_moving))
        timed.seconds, timed.while_moving, compiled = {}, True, _compiled[0]
        time.sleep(pause)
    return served


def summarise(served: Sequence[Interaction]) -> dict[str, Any]:
    """Summarise decisions, rewards that move nothing, and moves; None of nothing."""
    moves = [each.seconds["reward"] for each in served if each.has_moved]
    decisions = [1e3 * each.seconds["decide"] for each in served]
    rewards = [1e3 * each.seconds["reward"] for each in served if not each.has_moved]
    enrolments = [1e3 * each.seconds["enrol"] for each in served if "enrol" in each.seconds]
    return {
        "interactions": len(served),
        "rejuvenations": len(moves),
        "rejuvenation_seconds": _percentile(moves, 50),
        "enrolment_ms": _percentile(enrolments, 50),
        **{f"decision_ms_p{percent}": _percentile(decisions, percent) for percent in (50, 95)},
        **{f"reward_ms_p{percent}": _percentile(rewards, percent) for percent in (50, 95)},
    }


def _percentile(values: Sequence[float], percent: float) -> float | None:
    return float(np.percentile(values, percent)) if values else None
