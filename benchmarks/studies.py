"""The studies that benchmarks measure: all of them are constructed in this file."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cocobandits.environments.base import NOTHING_SHARED, Cohort, Environment, FloatVector
from cocobandits.environments.mixture import MixtureEnvironment
from cocobandits.environments.recruitment import Recruitment
from cocobandits.policies.coco.descriptions import GIDS, CoIDS, Learner
from cocobandits.policies.coco.populations import LogDensity, Mixture, PaperLogDensity
from cocobandits.populations.history_path import HistoryPath
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.rewards import Gaussian
from cocobandits.study import Study
from cocobandits.users.table import Change

_MIXTURE = MixtureEnvironment()


class ManyArms(Environment):
    """Independent arms whose means are linear in the first feature; only the sizes matter."""

    name = "many-arms"
    rewards = Gaussian(-2.0, 2.0, noise=0.1)

    def __init__(self, num_arms: int, num_features: int = 1) -> None:
        self.arms = tuple(f"arm-{number + 1}" for number in range(num_arms))
        self.context = {f"x{number}": (-1.0, 1.0) for number in range(num_features)}
        self.recruitment = Recruitment.batches(60, 1, 2)
        self._slopes = np.linspace(-1.0, 1.0, num_arms)

    def draw_users(
        self, generator: np.random.Generator, num_users: int, shared: FloatVector = NOTHING_SHARED
    ) -> Cohort:
        """Draw contexts, and arm means around lines."""
        del shared
        x = generator.uniform(-1.0, 1.0, (num_users, len(self.context)))
        noise = generator.normal(0.0, 0.3, (num_users, len(self.arms)))
        means = np.clip(np.outer(x[:, 0], self._slopes) + noise, -1.9, 1.9)
        return Cohort([dict(zip(self.context, row, strict=True)) for row in x.tolist()], means)

    def population(self, shared: FloatVector = NOTHING_SHARED) -> ConditionalMixture:
        """Describe the population by one component, up to the clipping."""
        del shared
        terms = np.eye(1 + len(self.context))
        means, factor = np.outer(self._slopes, terms[1]), np.eye(len(self.arms))
        return ConditionalMixture.from_arrays(
            logits=[0 * terms[0]],
            means=[means],
            factors=[0.3 * np.multiply.outer(factor, terms[0])],
        )


@dataclass(frozen=True)
class Case:
    """A policy in an environment: what one benchmark runs."""

    label: str  # on the page
    policy: Learner
    num_steps: int  # interactions that are served
    environment: Environment = _MIXTURE
    rewards: Gaussian | None = None  # the environment's
    sizes: dict[str, int] = field(default_factory=dict)  # what a table of the page compares

    def open(self, moves: str = "foreground") -> Study:
        """Start the study."""
        place = self.environment
        rewards = self.rewards or place.rewards
        return Study(place.arms, place.context, rewards, self.policy, moves=moves, seed=0)  # type: ignore[arg-type]

    def quick(self) -> "Case":
        """Shrink everything, to see that the benchmark works."""
        toy = self.policy.population
        if isinstance(toy, LogDensity):
            toy = replace(toy, nodes_per_arm=5, num_modes=10)
        policy = replace(self.policy, population=toy, num_particles=20, max_blocks=1)
        return replace(self, policy=policy, num_steps=16)


_PAPER_RANGE = replace(_MIXTURE.rewards, low=-2.0, high=2.0)
_GIDS = Case("`gids`", GIDS(population=PaperLogDensity()), 750, rewards=_PAPER_RANGE)
_COIDS = Case("`coids`, mixture, planned", CoIDS(population=Mixture(), steps_per_user=5), 750)


def _coarse(num_particles: int) -> GIDS:
    return GIDS(population=PaperLogDensity(nodes_per_arm=12), num_particles=num_particles)


def _sized(label: str, policy: Learner, arms: int, features: int = 1, **sizes: int) -> Case:
    sizes = sizes or {"arms": arms, "features": features}
    return Case(label, policy, 120, ManyArms(arms, features), sizes=sizes)


CASES = {
    "gids": _GIDS,
    "coids-log-density": Case("`coids`, log-density", CoIDS(population=LogDensity()), 300),
    "coids": _COIDS,
    "coids-unplanned": Case("`coids`, mixture", CoIDS(population=Mixture()), 750),
    "coids-noise": replace(
        _COIDS,
        label=f"{_COIDS.label}, noise learned",
        rewards=replace(_MIXTURE.rewards, noise=None),
    ),
    **{
        f"coids-{arms}-arms-{features}-features": _sized(
            _COIDS.label, _COIDS.policy, arms, features
        )
        for arms, features in ((2, 1), (10, 1), (50, 1), (50, 20))
    },
    **{f"gids-{arms}-arms": _sized(_GIDS.label, _coarse(200), arms) for arms in (2, 3, 4)},
    **{
        f"gids-{n}-particles": _sized(_GIDS.label, _coarse(n), 3, particles=n)
        for n in (50, 100, 200, 400)
    },
}


def value_and_gradient(study: Study) -> Callable[[], Any]:
    """Return a call that evaluates the log-likelihood of all users under all particles."""
    policy: Any = study._learner.policy
    users = study._learner.users
    change = Change.of(users, jnp.asarray(0), users.of(0)[1])
    evaluate = jax.jit(HistoryPath(policy.model).log_likelihood_and_gradient)
    particles, everything = study._learner.state.particles, jnp.ones(())
    return lambda: jax.block_until_ready(evaluate(particles, change, everything))  # type: ignore[no-untyped-call]
