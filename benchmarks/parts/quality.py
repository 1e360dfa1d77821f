"""Is the faster one as good? Regret and diversity of both, seed by seed, with their own decisions.

Users, noise and the uniform numbers that choose arms are the same for both.

Diversity is averaged over resamplings: how many particles have descendants, and how much particles
still resemble their ancestors when moving ends, which for the literal reference is the next
resampling.
"""

from collections.abc import Sequence
from typing import Any

import literal_runs
import numpy as np

from cocobandits.environments.registry import build_environment
from cocobandits.study.decisions import make_id
from parts.runs import ENVIRONMENT, POLICY
from parts.scale import Scale
from parts.timed import TimedRun, timed_run

MEASURES = ("regret", "start_correlation", "resamplings", "distinct_ancestors")


def measure_quality(scale: Scale) -> dict[str, Any]:
    """Run both, seed by seed."""
    environment = build_environment(ENVIRONMENT)
    ours, theirs = [], []
    for seed in range(scale.num_seeds):
        run = timed_run(environment, POLICY, seed, scale.paper, scale.literal_steps)
        ours.append({"regret": sum(run.regrets), **_diversity(run)})
        draws = [
            run.study.decision(make_id(number)).draw for number in range(run.study.num_decisions)
        ]
        reference = literal_runs.run(environment, seed, draws, scale.paper)
        theirs.append({"regret": reference.regret, **reference.diversity})
    return {
        "seeds": scale.num_seeds,
        "observations": scale.literal_steps,
        **{
            name: _paired([row[name] for row in ours], [row[name] for row in theirs])
            for name in MEASURES
        },
    }


def _diversity(run: TimedRun) -> dict[str, float]:
    moved = [info for info in run.health if info.is_rejuvenated]
    return {
        "resamplings": float(len(moved)),
        **{
            name: float(np.mean([getattr(info, name) for info in moved] or [float("nan")]))
            for name in ("start_correlation", "distinct_ancestors")
        },
    }


def _paired(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    gap = np.array(ours) - np.array(theirs)
    error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else float("nan")
    return {
        "library": list(ours),
        "literal": list(theirs),
        "difference": float(gap.mean()),
        "standard_error": float(error),
    }
