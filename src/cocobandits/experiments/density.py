"""Densities for two figures of the paper, as tables that are computed with a run.

The learned population comes to resemble the true one (App.: the density figure). The paper shows
five contexts at five times t without saying what a unit of t is. Here users of `mixture` come one
after another, each is served to the end before the next, and t counts them.

Figure 1 shows noisy rewards in the diet example, by latent type and by age group.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from cocobandits.environments.base import Environment
from cocobandits.environments.diet import AGE_GROUPS, METABOLIC_TYPES, DietEnvironment
from cocobandits.environments.mixture import MixtureEnvironment
from cocobandits.environments.recruitment import Recruitment
from cocobandits.populations.features import FeatureKinds
from cocobandits.populations.gaussian_belief import GaussianBelief
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture, GaussianMixtureModel
from cocobandits.runs.cell import Agent
from cocobandits.runs.info import Made, Source, plain
from cocobandits.simulation.loop import serve
from cocobandits.simulation.world import draw_world
from cocobandits.study import Study
from cocobandits.users.statistics import Statistics

# Arm means of many users lie outside of it, and that is reproduced too.
PAPER_RANGE = (-2.0, 2.0)
TIMES = (0, 2, 10, 30, 49)
CONTEXTS = (-1.0, -0.5, 0.0, 0.5, 1.0)
_ARMS = (0, 1)
_SEED = 0
# Wide enough for the tails of every diet plan.
_REWARDS = (-1.0, 3.5, 181)


@dataclass(frozen=True)
class DensityTask:
    """The table `densities`: learned and true marginals over time, the users observed in full."""

    agent: Agent
    key: ClassVar[str] = "densities"
    policy: ClassVar[str] = "npm-ts"
    # About that of a cell with as many users and steps.
    cost: ClassVar[float] = 1200.0

    def made(self, source: Source) -> Made:
        """Describe the result."""
        return Made({"settings": plain(self.agent.settings)}, source.provenance)

    def run(self, source: Source) -> pa.Table:
        """Learn from one user after another, and keep marginal densities along the way."""
        del source
        environment = one_by_one()
        world = draw_world(environment, _SEED)
        study = self.agent.start(environment, world, _SEED, PAPER_RANGE)
        rows = _snapshot(study, environment, 0)
        for record in serve(study, environment, world):
            observed, rest = divmod(record.step + 1, environment.recruitment.steps_per_user)
            if not rest and observed in TIMES:
                rows.extend(_snapshot(study, environment, observed))
        return pa.Table.from_pylist(rows)


@dataclass(frozen=True)
class DietTask:
    """The table `diet`: true densities of noisy rewards by metabolic type and by age group."""

    key: ClassVar[str] = "diet"
    cost: ClassVar[float] = 0.0

    def made(self, source: Source) -> Made:
        """Describe the result."""
        return Made({}, source.provenance)

    def run(self, source: Source) -> pa.Table:
        """Compute the densities."""
        del source
        environment, rewards = DietEnvironment(), np.linspace(*_REWARDS)
        model = _truth(environment, (len(AGE_GROUPS),), environment.rewards.range)
        nobody = Statistics.empty(model.num_arms)
        ages = [
            model.dense_posterior_at(jnp.zeros(0), jnp.array([float(number)]), nobody)
            for number in range(len(AGE_GROUPS))
        ]
        # A type is one component of the mixture, the same in every age group.
        types = [
            GaussianBelief(jnp.zeros(1), mean[None], covariance[None], ages[0].reward_noise)
            for mean, covariance in zip(ages[0].means, ages[0].covariances, strict=True)
        ]
        groups = {"metabolism": (METABOLIC_TYPES, types), "age group": (AGE_GROUPS, ages)}
        rows = [
            {"group": group, "name": name, "arm": arm, "reward": reward, "density": density}
            for group, named in groups.items()
            for name, belief in zip(*named, strict=True)
            for arm, densities in enumerate(np.asarray(belief.predictive(jnp.asarray(rewards))))
            for reward, density in zip(rewards.tolist(), densities.tolist(), strict=True)
        ]
        return pa.Table.from_pylist(rows)


def one_by_one() -> Environment:
    """Let as many users as are shown at the last time come one after another."""
    environment = MixtureEnvironment()
    steps = environment.recruitment.steps_per_user
    return environment.recruiting(Recruitment.schedule(range(0, TIMES[-1] * steps, steps), steps))


def _snapshot(study: Study, environment: Environment, observed: int) -> list[dict[str, Any]]:
    """Average learned and true densities over the same bins."""
    rows: list[dict[str, Any]] = []
    model = _truth(environment, (None,), PAPER_RANGE)
    nobody = Statistics.empty(model.num_arms)
    for x in CONTEXTS:
        population = study.population({"x": x})
        edges = population.edges
        belief = model.posterior(jnp.zeros(0), jnp.array([x]), nobody)
        truth = np.diff(np.asarray(belief.cumulative(jnp.asarray(edges)))) / np.diff(edges)
        for arm in _ARMS:
            place = {"time": observed, "context": x, "arm": arm}
            learned = population.marginal[environment.arms[arm]]
            bins = zip(edges[:-1], edges[1:], learned, truth[arm], strict=True)
            names = ("low", "high", "density", "truth")
            rows += [place | dict(zip(names, each, strict=True)) for each in bins]
    return rows


def _truth(
    environment: Environment, kinds: FeatureKinds, reward_range: tuple[float, float]
) -> GaussianMixtureModel:
    population, noise = environment.population(), environment.rewards.noise
    assert isinstance(population, ConditionalMixture)
    assert noise is not None
    return GaussianMixtureModel(population, kinds, reward_range, noise)
