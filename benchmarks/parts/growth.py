"""How costs grow: with users, with arms, with particles."""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cocobandits.environments.base import NOTHING_SHARED, Cohort, Environment, FloatVector
from cocobandits.environments.recruitment import Recruitment
from cocobandits.environments.registry import build_environment
from cocobandits.models.gaussian_mixture import ConditionalMixture
from cocobandits.models.histories import HistoryPath
from cocobandits.policies.choice import log_density_model
from cocobandits.policies.settings import CocoSettings
from parts.clock import in_turns, milliseconds
from parts.gradient import change_of, particles_of, users_of
from parts.runs import ENVIRONMENT, POLICY
from parts.scale import Scale
from parts.timed import timed_run, warm_run


class ManyArms(Environment):
    """Independent arms whose means rise and fall with the context; only their number matters."""

    name = "many-arms"
    context = {"x": (-1.0, 1.0)}  # noqa: RUF012 - a declaration, never changed
    reward_range = (-2.0, 2.0)
    reward_noise = 0.1

    def __init__(self, num_arms: int, num_users: int) -> None:
        self.arms = tuple(f"arm-{number + 1}" for number in range(num_arms))
        self.recruitment = Recruitment.batches(num_users, 1, 2)

    def draw_users(
        self, generator: np.random.Generator, num_users: int, shared: FloatVector = NOTHING_SHARED
    ) -> Cohort:
        """Draw contexts, and arm means around lines."""
        del shared
        x = generator.uniform(-1.0, 1.0, num_users)
        noise = generator.normal(0.0, 0.3, (num_users, len(self.arms)))
        means = np.clip(np.outer(x, self._slopes()) + noise, -1.9, 1.9)
        return Cohort([{"x": float(value)} for value in x], means)

    def population(self, shared: FloatVector = NOTHING_SHARED) -> ConditionalMixture:
        """One component, up to what is clipped."""
        del shared
        terms = np.stack([np.zeros(len(self.arms)), self._slopes()], axis=1)
        factor = np.multiply.outer(np.eye(len(self.arms)), (0.3, 0.0))
        return ConditionalMixture.from_arrays(logits=((0.0, 0.0),), means=[terms], factors=[factor])

    def _slopes(self) -> FloatVector:
        return np.linspace(-1.0, 1.0, len(self.arms))


def measure_users(scale: Scale) -> dict[str, Any]:
    """Serve users once each; between half and all of each number of users, average the cost.

    Compiling is left out of the cost and told apart: tables of users grow by steps, and every step
    is compiled once.
    """
    num_users = max(scale.users)
    environment = build_environment(ENVIRONMENT).recruiting(Recruitment.batches(num_users, 1, 1))
    run = timed_run(environment, POLICY, 0, scale.paper, num_users)
    rows = []
    for users in scale.users:
        first = users // 2
        compiling = sum(run.compile_seconds[first:users])
        num_moved = int(run.is_rejuvenated[first:users].sum())
        rows.append(
            {
                "users": users,
                "ms_per_interaction": 1e3
                * (run.seconds(first, users) - compiling)
                / (users - first),
                "decision_ms": milliseconds(run.decision_seconds[first:users]),
                "reward_ms": milliseconds(run.quiet_rewards(first, users)),
                "rejuvenations_per_1000": 1e3 * num_moved / (users - first),
                "compile_seconds": compiling,
            }
        )
    lowest, highest = rows[0], rows[-1]
    return {
        "growth_users": rows,
        "growth_users_ratio": highest["ms_per_interaction"] / lowest["ms_per_interaction"],
        "growth_users_bound": math.log(highest["users"]) / math.log(lowest["users"]),
    }


def measure_arms(scale: Scale) -> list[dict[str, Any]]:
    """Compare numbers of arms on the same grid per arm."""
    settings = replace(scale.paper, nodes_per_arm=scale.growth_nodes)
    return [{"arms": arms, **_costs(scale, settings, arms)} for arms in scale.arms]


def measure_particles(scale: Scale) -> list[dict[str, Any]]:
    """Compare numbers of particles, with three arms."""
    rows = []
    for num_particles in scale.particles:
        inference = replace(scale.paper.inference, num_particles=num_particles)
        settings = replace(scale.paper, nodes_per_arm=scale.growth_nodes, inference=inference)
        rows.append({"particles": num_particles, **_costs(scale, settings, 3)})
    return rows


def _costs(scale: Scale, settings: CocoSettings, num_arms: int) -> dict[str, float]:
    environment = ManyArms(num_arms, math.ceil(scale.growth_steps / 2))
    cold = timed_run(environment, POLICY, 0, settings, scale.growth_steps)
    run = warm_run(environment, POLICY, 0, settings, cold)
    model = log_density_model(run.study.design.problem(), settings)
    evaluate = jax.jit(HistoryPath(model).log_likelihood_and_gradient)
    change, particles, everything = change_of(*users_of(run)), particles_of(run), jnp.ones(())
    taken = in_turns({"all": lambda: evaluate(particles, change, everything)}, scale.repeats)
    return {
        "decision_ms": milliseconds(run.decision_seconds),
        "reward_ms": milliseconds(run.quiet_rewards()),
        "value_and_gradient_ms": 1e3 * taken["all"],
    }
