"""A whole run of gids with the paper's settings: the library, and the literal reference beside it.

Both take in the same arms and rewards, those that the library's own decisions led to, and both
decide before every reward. What is compiled is compiled before.
"""

import time
from typing import Any, NamedTuple

from literal import LiteralPosterior
from literal_runs import replay

from cocobandits.environments.registry import build_environment
from cocobandits.policies.registry import log_density_model
from parts.scale import Scale
from parts.timed import TimedRun, timed_run, warm_run

ENVIRONMENT, POLICY, SEED = "mixture", "gids", 0


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
    """Time the literal reference on the library's first observations."""
    history = runs.warm.history[: scale.literal_steps]
    model = log_density_model(runs.warm.study.design.problem(), scale.paper)
    capacity = 1 + max(each.user for each in history)
    num_particles = scale.paper.inference.num_particles
    began = time.perf_counter()
    replay(LiteralPosterior(model, capacity, SEED, num_particles), history[:1])
    compiled = time.perf_counter() - began
    posterior = LiteralPosterior(model, capacity, SEED, num_particles)
    literal_seconds = sum(replay(posterior, history).seconds)
    seconds = runs.warm.seconds(0, len(history))
    return {
        "observations": len(history),
        "users": capacity,
        "literal_seconds": literal_seconds,
        "seconds": seconds,
        "ratio": literal_seconds / seconds,
        "literal_compile_seconds": compiled,
        "full_observations": len(runs.warm.history),
        "full_seconds": runs.warm.seconds(),
        "cold_seconds": runs.cold.seconds(),
    }
