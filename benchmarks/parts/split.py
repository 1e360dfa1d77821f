"""Where the time of a run goes: every compiled function of the library, with a watch around it.

Each is found by what it is, a function made by `jax.jit` anywhere in the package, so a new one is
counted without being named here. Calls while another is being compiled are part of that one.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
import literal

from cocobandits.environments.registry import build_environment
from cocobandits.models.histories import HistoryPath
from cocobandits.models.log_density import LogDensityModel
from cocobandits.policies.choice import log_density_model
from parts.clock import in_turns
from parts.gradient import change_of, particles_of, users_of
from parts.machine import measure_limits
from parts.runs import ENVIRONMENT, POLICY, SEED
from parts.scale import Scale
from parts.timed import TimedRun, warm_run

_PACKAGE = "cocobandits"
_COMPILED = type(jax.jit(lambda: None))
_LEAST_SHARE = 0.005


@contextmanager
def watched() -> Iterator[dict[str, list[float]]]:
    """Collect the seconds of every call of every compiled function, until the end of the block."""
    seconds: dict[str, list[float]] = defaultdict(list)
    replaced: list[tuple[Any, str, Any]] = []
    for holder in _holders():
        for name, value in list(vars(holder).items()):
            if isinstance(value, _COMPILED):
                replaced.append((holder, name, value))
                setattr(holder, name, _watch(value, seconds))
    try:
        yield seconds
    finally:
        for holder, name, value in replaced:
            setattr(holder, name, value)


def measure_profile(scale: Scale, run: TimedRun) -> dict[str, Any]:
    """Split a run by compiled function, and one evaluation of the likelihood by its parts."""
    with watched() as seconds:
        again = warm_run(build_environment(ENVIRONMENT), POLICY, SEED, scale.paper, run)
    total = again.seconds()
    shares = {name: sum(taken) / total for name, taken in seconds.items()}
    large = {name: share for name, share in shares.items() if share >= _LEAST_SHARE}
    limits = measure_limits(scale.repeats)
    return {
        "seconds": total,
        "functions": [
            {"function": name, "share": share, "calls": len(seconds[name])}
            for name, share in sorted(large.items(), key=lambda item: -item[1])
        ],
        "rest_share": 1 - sum(large.values()),
        "decisions_share": sum(again.decision_seconds) / total,
        "quiet_rewards_share": sum(again.quiet_rewards()) / total,
        "rejuvenations_share": sum(again.rejuvenations()) / total,
        "limits": limits,
        "likelihood": _likelihood(scale, run, limits),
    }


def _likelihood(scale: Scale, run: TimedRun, limits: dict[str, float]) -> dict[str, float]:
    """Compare one evaluation with its table of densities, and that with bare exponentials."""
    model = log_density_model(run.study.design.problem(), scale.paper)
    nodes = literal.context_nodes(model)
    particles = particles_of(run)
    contexts, statistics = users_of(run)
    nearest = [min(nodes.tolist(), key=lambda node: _gap(node, context)) for context in contexts]
    change = change_of([tuple(node) for node in nearest], statistics)
    evaluate = jax.jit(HistoryPath(model).log_likelihood_and_gradient)
    assert model._tables is not None
    points, everything = model._tables.points.contexts, jnp.ones(())
    taken = in_turns(
        {
            "all": lambda: evaluate(particles, change, everything),
            "densities": lambda: _densities(model, particles, points),
        },
        scale.repeats,
    )
    count = len(particles) * len(points) * model.config.arm_axis.size**model.num_arms
    bits = {"single": 32, "double": 64}[scale.paper.precision]
    bound = count / limits[f"exponentials_per_second{bits}"]
    return {
        "exponentials": count,
        "bits": bits,
        "value_and_gradient_seconds": taken["all"],
        "densities_seconds": taken["densities"],
        "exponentials_only_seconds": bound,
        "times_the_bound": taken["all"] / bound,
    }


@partial(jax.jit, static_argnames="model")
def _densities(model: LogDensityModel, particles: Any, contexts: Any) -> Any:
    """Exponentiate the log-density on every node, particle after particle, and sum it up."""

    def total(particle: Any) -> Any:
        return jax.vmap(lambda x: jnp.sum(jnp.exp(model.log_density(particle, x))))(contexts)

    return jax.lax.map(total, particles)


def _gap(node: list[float], context: tuple[float, ...]) -> float:
    return sum((mine - other) ** 2 for mine, other in zip(node, context, strict=True))


def _holders() -> Iterator[Any]:
    """List the package's modules and the classes in them."""
    classes = {}
    for name, module in list(sys.modules.items()):
        if name == _PACKAGE or name.startswith(f"{_PACKAGE}."):
            yield module
            classes |= {
                id(value): value
                for value in vars(module).values()
                if isinstance(value, type) and value.__module__.startswith(_PACKAGE)
            }
    yield from classes.values()


def _watch(function: Any, seconds: dict[str, list[float]]) -> Any:
    label = f"{function.__module__.removeprefix(f'{_PACKAGE}.')}:{function.__qualname__}"

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        leaves = jax.tree.leaves((arguments, options))
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return function(*arguments, **options)
        began = time.perf_counter()
        result = jax.block_until_ready(function(*arguments, **options))
        seconds[label].append(time.perf_counter() - began)
        return result

    return call
