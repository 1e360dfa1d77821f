"""Value and gradient of the log-likelihood: all particles, all users of a finished run, one grid.

The literal reference differentiates automatically through the dense basis. Users count at the
nearest context node for both, so both compute the same numbers, which is checked. Nodes at the ends
of the range are where reading in between is least exact, so the library is given more context
points here than the reference has nodes; with every user's own context it has those of the preset.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import literal
import numpy as np

from cocobandits.models.base import Statistics
from cocobandits.models.histories import Change, HistoryPath, UserTable
from cocobandits.models.log_density import LogDensityModel
from cocobandits.policies.choice import log_density_model
from parts.clock import in_turns
from parts.scale import Scale
from parts.timed import TimedRun

# Relative: the library reads masses between context points (decision 31).
_MOST_VALUE_ERROR, _MOST_GRADIENT_ERROR = 1e-4, 1e-2
_CONTEXT_POINTS = 12


def particles_of(run: TimedRun) -> Any:
    """Read the particles where a run ended."""
    state: Any = run.study._state
    return state.posterior.particles


def users_of(run: TimedRun) -> tuple[list[tuple[float, ...]], list[Statistics]]:
    """Sum up what every user of a run said."""
    contexts: list[tuple[float, ...]] = []
    statistics: list[Statistics] = []
    for user, context, arm, reward in run.history:
        if user == len(contexts):
            contexts.append(context)
            statistics.append(Statistics.empty(len(run.study.design.arms)))
        statistics[user] = statistics[user].add(arm, reward)
    return contexts, statistics


def change_of(contexts: list[tuple[float, ...]], statistics: list[Statistics]) -> Change:
    """Lay out users as the library does, with a change that changes nothing."""
    table = UserTable.empty(len(contexts[0]), len(statistics[0].count))
    for user, context in enumerate(contexts):
        table = table.append(jnp.asarray(context)).replace(user, statistics[user])
    return Change.of(table, jnp.asarray(0), statistics[0])


def measure_gradient(scale: Scale, run: TimedRun) -> dict[str, Any]:
    """Time both in turns on the particles where the run ended."""
    problem = run.study.design.problem()
    model = log_density_model(problem, scale.paper)
    exact = log_density_model(problem, replace(scale.paper, precision="double"))
    finer = log_density_model(problem, replace(scale.paper, context_points=_CONTEXT_POINTS))
    contexts, statistics = users_of(run)
    nodes = literal.context_nodes(model)
    snapped = [
        tuple(nodes[np.argmin(np.sum((nodes - np.array(context)[None, :]) ** 2, axis=1))].tolist())
        for context in contexts
    ]
    particles = particles_of(run)
    evaluate = jax.jit(HistoryPath(finer).log_likelihood_and_gradient)
    evaluate_own = jax.jit(HistoryPath(model).log_likelihood_and_gradient)
    double = _literal_data(exact, contexts, statistics, jnp.float64)
    single = _literal_data(exact, contexts, statistics, jnp.float32)
    on_nodes, between = change_of(snapped, statistics), change_of(contexts, statistics)
    everything, particles32 = jnp.ones(()), particles.astype(jnp.float32)
    taken = in_turns(
        {
            "baseline_seconds": lambda: literal.value_and_gradient(particles, *double),
            "baseline32_seconds": lambda: literal.value_and_gradient(particles32, *single),
            "seconds": lambda: evaluate(particles, on_nodes, everything),
            "own_contexts_seconds": lambda: evaluate_own(particles, between, everything),
        },
        scale.repeats,
    )
    value_error, gradient_error = _errors(
        evaluate(particles, on_nodes, everything), literal.value_and_gradient(particles, *double)
    )
    if value_error > _MOST_VALUE_ERROR or gradient_error > _MOST_GRADIENT_ERROR:
        raise AssertionError(
            "Expected both to compute the same; got relative differences of "
            f"{value_error:g} and {gradient_error:g}. Run tests/benchmarks first."
        )
    return {
        "particles": len(particles),
        "users": len(contexts),
        "context_points": _CONTEXT_POINTS,
        "nodes": int(double[0].shape[0] * double[0].shape[1]),
        **taken,
        "ratio": taken["baseline_seconds"] / taken["seconds"],
        "ratio32": taken["baseline32_seconds"] / taken["seconds"],
        "value_error": value_error,
        "gradient_error": gradient_error,
    }


def _literal_data(
    model: LogDensityModel,
    contexts: list[tuple[float, ...]],
    statistics: list[Statistics],
    dtype: Any,
) -> tuple[Any, literal.Users]:
    posterior = literal.LiteralPosterior(model, len(contexts), 0, 1, dtype)
    for user, context in enumerate(contexts):
        posterior.enrol(context)
        posterior._record(user, statistics[user])
    return posterior.basis, posterior.users


def _errors(ours: Any, theirs: Any) -> list[float]:
    """Compute the largest difference over the largest number, of values and of gradients."""
    return [
        float(jnp.max(jnp.abs(mine - other)) / jnp.max(jnp.abs(other)))
        for mine, other in zip(ours, theirs, strict=True)
    ]
