"""How long a caller waits: for a decision, for a reward that moves nothing, for one that moves."""

from typing import Any

import numpy as np

from cocobandits.environments.registry import build_environment
from parts.clock import milliseconds
from parts.runs import ENVIRONMENT
from parts.scale import Scale
from parts.timed import TimedRun, timed_run, warm_run


def latency_of(run: TimedRun) -> dict[str, Any]:
    """Summarise the calls of a run whose functions were compiled before."""
    moved = run.rejuvenations()
    return {
        "interactions": len(run.history),
        "rejuvenations": len(moved),
        "enrolment_ms_p50": milliseconds([taken for taken in run.enrolment_seconds if taken], 50),
        "rejuvenation_seconds": float(np.median(moved)) if moved else float("nan"),
        **{
            f"{name}_ms_p{percent}": milliseconds(seconds, percent)
            for name, seconds in (
                ("decision", run.decision_seconds),
                ("reward", run.quiet_rewards()),
            )
            for percent in (50, 95)
        },
    }


def measure_coids(scale: Scale) -> dict[str, Any]:
    """Run coids with the learned preset twice, and measure the second run."""
    environment = build_environment(ENVIRONMENT)
    cold = timed_run(environment, "coids", 0, scale.learned, scale.latency_steps)
    return latency_of(warm_run(environment, "coids", 0, scale.learned, cold))
