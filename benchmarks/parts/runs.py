"""A whole run of gids with the paper's settings: the library, and the literal reference beside it.

Both take in the same arms and rewards, those that the library's own decisions led to, and both
decide before every reward. What is compiled is compiled before.
"""

import itertools
import time
from collections import deque
from dataclasses import replace
from typing import Any, NamedTuple

from literal import RESAMPLE_EVERY, LiteralPosterior
from literal_runs import replay

from cocobandits.environments.registry import build_environment
from cocobandits.policies.choice import log_density_model
from parts.scale import Scale
from parts.timed import TimedRun, interactions, opened, timed_run, warm_run

ENVIRONMENT, POLICY, SEED = "mixture", "gids", 0
# Observations before the other side has its turn: what disturbs the machine disturbs both.
_TURN = 10


class LibraryRuns(NamedTuple):
    """The same run twice in one process: the first one compiles."""

    cold: TimedRun
    warm: TimedRun


def library_runs(scale: Scale) -> LibraryRuns:
    """Run the library alone."""
    environment = build_environment(ENVIRONMENT)
    cold = timed_run(environment, POLICY, SEED, scale.paper, scale.full_steps)
    return LibraryRuns(cold, warm_run(environment, POLICY, SEED, scale.paper, cold))


def measure_run(scale: Scale, runs: LibraryRuns) -> dict[str, Any]:
    """Let library and literal reference take turns, a few observations each, on one history."""
    history = runs.cold.history[: scale.literal_steps]
    capacity = 1 + max(each.user for each in history)
    began = time.perf_counter()
    replay(_literal(scale, runs, capacity), history[:RESAMPLE_EVERY])
    compiled = time.perf_counter() - began
    posterior, environment = _literal(scale, runs, capacity), build_environment(ENVIRONMENT)
    run = TimedRun(opened(environment, POLICY, SEED, scale.paper))
    library = interactions(run, environment, SEED)
    literal_seconds, processor = 0.0, {"literal": 0.0, "library": 0.0}
    for first in range(0, len(history), _TURN):
        turn = history[first : first + _TURN]
        start = time.process_time()
        deque(itertools.islice(library, len(turn)), maxlen=0)
        middle = time.process_time()
        literal_seconds += sum(replay(posterior, turn).seconds)
        processor["library"] += middle - start
        processor["literal"] += time.process_time() - middle
    if run.history != history:
        raise AssertionError(
            "Expected the same decisions from the same seed; got others. Report this as a bug."
        )
    return {
        "observations": len(history),
        "users": capacity,
        "literal_seconds": literal_seconds,
        "seconds": run.seconds(),
        "ratio": literal_seconds / run.seconds(),
        "processor_ratio": processor["literal"] / processor["library"],
        "literal_compile_seconds": compiled,
        "full_observations": len(runs.warm.history),
        "full_seconds": runs.warm.seconds(),
        "cold_seconds": runs.cold.seconds(),
    }


def _literal(scale: Scale, runs: LibraryRuns, capacity: int) -> LiteralPosterior:
    settings = replace(scale.paper, precision="double")
    model = log_density_model(runs.cold.study.design.problem(), settings)
    return LiteralPosterior(model, capacity, SEED, scale.paper.inference.num_particles)
