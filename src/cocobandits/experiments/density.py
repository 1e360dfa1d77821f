"""How the learned population comes to resemble the true one (paper, App.: the density figure).

The paper shows five contexts at five times t without saying what a unit of t is. Here users of
`mixture` come one after another, each is served to the end before the next, and t counts them.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from cocobandits.environments.base import Environment
from cocobandits.environments.mixture import MixtureEnvironment
from cocobandits.environments.recruitment import Recruitment
from cocobandits.experiments.cells import OnStep
from cocobandits.experiments.presets import PAPER_RANGE, Experiment
from cocobandits.experiments.schemas import DENSITIES
from cocobandits.models.base import Statistics
from cocobandits.models.gaussian_mixture import ConditionalMixture, GaussianMixtureModel
from cocobandits.simulation.loop import open_study, simulate
from cocobandits.simulation.world import draw_world
from cocobandits.study import Study

POLICY = "npm-ts"
TIMES = (0, 2, 10, 30, 49)
CONTEXTS = (-1.0, -0.5, 0.0, 0.5, 1.0)
_ARMS = (0, 1)
_SEED = 0


def one_by_one() -> Environment:
    """Let as many users as are shown at the last time come one after another."""
    environment = MixtureEnvironment()
    steps = environment.recruitment.steps_per_user
    return environment.recruiting(Recruitment.schedule(range(0, TIMES[-1] * steps, steps), steps))


def run_density(experiment: Experiment, on_step: OnStep) -> pa.Table:
    """Learn from one user after another, and keep marginal densities along the way."""
    environment = one_by_one()
    world = draw_world(environment, _SEED)
    settings = experiment.settings_for(environment.name, POLICY)
    study = open_study(environment, POLICY, _SEED, settings, PAPER_RANGE)
    rows = _snapshot(study, environment, 0)
    regret = 0.0
    for record in simulate(study, environment, world):
        regret += record.regret
        on_step(record.step + 1, regret)
        observed, rest = divmod(record.step + 1, environment.recruitment.steps_per_user)
        if not rest and observed in TIMES:
            rows.extend(_snapshot(study, environment, observed))
    return pa.Table.from_pylist(rows, DENSITIES)


def _snapshot(study: Study, environment: Environment, observed: int) -> list[dict[str, Any]]:
    rows = []
    for x in CONTEXTS:
        population = study.population({"x": x})
        edges = population.edges
        for arm in _ARMS:
            learned = population.marginal[environment.arms[arm]]
            truth = _true_marginal(environment, x, arm, edges)
            for number, density in enumerate(learned):
                rows.append(
                    {
                        "time": observed,
                        "context": x,
                        "arm": arm,
                        "low": edges[number],
                        "high": edges[number + 1],
                        "density": density,
                        "truth": truth[number],
                    }
                )
    return rows


def _true_marginal(environment: Environment, x: float, arm: int, edges: np.ndarray) -> np.ndarray:
    """Average the true density of one arm over each bin."""
    population, noise = environment.population(), environment.reward_noise
    assert isinstance(population, ConditionalMixture)
    assert noise is not None
    truth = GaussianMixtureModel(population, (None,), PAPER_RANGE, noise)
    nobody = Statistics.empty(truth.num_arms)
    belief = truth.posterior(jnp.zeros(0), jnp.array([x]), nobody)
    return np.diff(np.asarray(belief.cumulative(jnp.asarray(edges)))[arm]) / np.diff(edges)
