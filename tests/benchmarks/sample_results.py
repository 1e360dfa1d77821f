"""Results as `bench.py` writes them, with numbers that nobody measured."""

from typing import Any

_COSTS = {"decision_ms": 4.0, "reward_ms": 2.0, "value_and_gradient_ms": 30.0}
_LATENCY = {
    "interactions": 750,
    "rejuvenations": 40,
    "rejuvenation_seconds": 0.5,
    "enrolment_ms_p50": 0.2,
    "decision_ms_p50": 4.0,
    "decision_ms_p95": 5.0,
    "reward_ms_p50": 2.0,
    "reward_ms_p95": 3.0,
}


def _paired(library: list[float], literal: list[float]) -> dict[str, Any]:
    gap = sum(library) / 2 - sum(literal) / 2
    return {"library": library, "literal": literal, "difference": gap, "standard_error": 0.5}


def sample() -> dict[str, Any]:
    """Make a complete set of results."""
    users = [
        {
            "users": number,
            "ms_per_interaction": cost,
            "decision_ms": 4.0,
            "reward_ms": 2.0,
            "rejuvenations_per_1000": 60.0,
            "compile_seconds": 1.0,
        }
        for number, cost in ((100, 10.0), (1_000, 12.0), (10_000, 15.0))
    ]
    return {
        "scale": "full",
        "machine": {"processor": "a processor", "cores": 2, "memory_gb": 8.0, "commit": "abc"},
        "measured": {"run": {"commit": "abc", "date": "2001-02-03", "seconds": 700.0}},
        "run": {
            "observations": 150,
            "users": 40,
            "literal_seconds": 600.0,
            "seconds": 10.0,
            "ratio": 60.0,
            "processor_ratio": 61.0,
            "literal_compile_seconds": 9.0,
            "full_observations": 750,
            "full_seconds": 40.0,
            "cold_seconds": 60.0,
        },
        "value_and_gradient": {
            "particles": 200,
            "users": 150,
            "nodes": 80_000,
            "baseline_seconds": 1.0,
            "baseline32_seconds": 0.5,
            "seconds": 0.05,
            "own_contexts_seconds": 0.2,
            "ratio": 20.0,
            "ratio32": 10.0,
            "context_points": 12,
            "value_error": 1e-6,
            "gradient_error": 1e-4,
        },
        **_LATENCY,
        "coids": _LATENCY,
        "background": {
            "calls": 60,
            "moves_seconds": 0.5,
            **{name: _LATENCY[name] for name in _LATENCY if "_ms_" in name},
        },
        "reproduction_minutes": 12.0,
        "growth_users": users,
        "growth_users_ratio": 1.5,
        "growth_users_bound": 2.0,
        "growth_arms": [{"arms": number, **_COSTS} for number in (2, 3, 4)],
        "growth_particles": [{"particles": number, **_COSTS} for number in (50, 100)],
        "startup_seconds": {
            "import": 1.0,
            "first_decision_cold": 9.0,
            "first_decision_warm": 3.0,
        },
        "peak_memory_mb": 512.0,
        "quality": {
            "seeds": 2,
            "observations": 150,
            "regret": _paired([20.0, 22.0], [21.0, 22.0]),
            "start_correlation": _paired([0.4, 0.5], [0.9, 0.9]),
            "resamplings": _paired([14.0, 13.0], [36.0, 35.0]),
            "distinct_ancestors": _paired([90.0, 92.0], [100.0, 101.0]),
        },
        "profile": {
            "seconds": 40.0,
            "functions": [{"function": "inference.smc:_move_block", "share": 0.7, "calls": 90}],
            "rest_share": 0.3,
            "decisions_share": 0.2,
            "quiet_rewards_share": 0.1,
            "rejuvenations_share": 0.7,
            "limits": {
                "exponentials_per_second64": 4e8,
                "exponentials_per_second32": 1e9,
                "copy_gb_per_second": 9.0,
                "product_gflops64": 30.0,
                "product_gflops32": 60.0,
            },
            "likelihood": {
                "exponentials": 16_000_000,
                "value_and_gradient_seconds": 0.05,
                "densities_seconds": 0.045,
                "bits": 32,
                "exponentials_only_seconds": 0.04,
                "times_the_bound": 1.25,
            },
        },
    }
