"""A policy, an environment and an agent from outside the package; worker processes import them."""

import os
from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from cocobandits.environments.base import NOTHING_SHARED, Cohort, Environment
from cocobandits.environments.recruitment import Recruitment
from cocobandits.errors import UnsupportedError
from cocobandits.policies.base import PlainPolicy
from cocobandits.policies.description import PolicySettings
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.rewards import Gaussian
from cocobandits.runs.cell import Agent
from cocobandits.runs.info import Made
from cocobandits.simulation.loop import open_study


class Village(Environment):
    """Six people; the second of two arms is better for everybody."""

    name = "village"
    arms = ("walk", "rest")
    context = {"x": (-1.0, 1.0)}  # noqa: RUF012 - a declaration, never changed
    rewards = Gaussian(-2.0, 2.0, noise=0.1)
    recruitment = Recruitment.batches(2, 3, 2)

    def __init__(self, shift=0.0):
        self.shift = shift

    def draw_users(self, generator, num_users, shared=NOTHING_SHARED):
        """Draw a context and two arm means for each user."""
        del shared
        means = np.array([-0.5, 0.5 + self.shift]) + 0.1 * generator.normal(size=(num_users, 2))
        return Cohort([{"x": value} for value in generator.uniform(-1, 1, num_users)], means)

    def population(self, shared=NOTHING_SHARED):
        """One component."""
        del shared
        return ConditionalMixture.from_arrays(
            logits=[[0.0, 0.0]],
            means=[[[-0.5, 0.0], [0.5 + self.shift, 0.0]]],
            factors=[np.multiply.outer(0.1 * np.eye(2), [1.0, 0.0])],
        )


@dataclass(frozen=True)
class Last(PolicySettings):
    """Give the last arm to everybody."""


class LastPolicy(PlainPolicy, settings=Last):
    """The policy itself."""

    def probabilities(self, state, users, user, arms=None):
        """Give all to the last arm that can be chosen."""
        del state, users, user
        num_arms = self.problem.num_arms if arms is None else len(arms)
        return jnp.zeros(num_arms).at[-1].set(1.0)


@dataclass(frozen=True)
class Large:
    """A task with a table of 24 MB."""

    key: str
    cost: float = 1.0

    def made(self, source):
        """Describe how it is made."""
        return Made({}, source.provenance)

    def run(self, source):
        """Make the table."""
        del source
        return pa.table({"zero": np.zeros(3_000_000)})


@dataclass(frozen=True, kw_only=True)
class Stubborn(Agent):
    """Uniform under another name; may fail, or kill its process."""

    fault: str = ""
    trace: Path | None = None

    def start(self, environment, world, seed, reward_range):
        """Start a study, unless it fails."""
        del reward_range
        if self.trace:
            (self.trace / str(seed)).touch()
        if self.fault == "refuse":
            raise UnsupportedError("Expected nothing; got this agent. Use another.")
        if self.fault == "break":
            raise ZeroDivisionError
        if self.fault == "die":
            os._exit(9)
        return open_study("uniform", environment, world, seed)
