"""Runs of the literal reference: along a history that is given, or with decisions of its own."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from literal import LiteralInfo, LiteralPosterior

from cocobandits.environments.base import Environment
from cocobandits.experiments.presets import range_for
from cocobandits.policies.choice import log_density_model
from cocobandits.policies.settings import PRESETS, CocoSettings
from cocobandits.simulation.loop import open_study
from cocobandits.simulation.world import draw_world
from cocobandits.study.decisions import choose_arm

POLICY = "gids"


class Interaction(NamedTuple):
    """One observation in standardised units."""

    user: int
    context: tuple[float, ...]
    arm: int
    reward: float


@dataclass(frozen=True)
class LiteralRun:
    """What a run left behind; `seconds` and `diagnostics` have an entry per observation."""

    regret: float
    seconds: tuple[float, ...]
    diagnostics: tuple[LiteralInfo, ...]
    history: tuple[Interaction, ...]

    @property
    def diversity(self) -> dict[str, float]:
        """Average over resamplings: ancestors left, and what moves since the last one forgot."""
        later = list(itertools.pairwise(self.diagnostics))
        parted = [before.start_correlation for before, after in later if after.is_resampled]
        ancestors = [after.distinct_ancestors for _, after in later if after.is_resampled]
        return {
            "start_correlation": float(np.mean(parted)) if parted else float("nan"),
            "resamplings": float(sum(info.is_resampled for info in self.diagnostics)),
            "distinct_ancestors": float(np.mean(ancestors)) if ancestors else float("nan"),
            "acceptance_rate": float(np.mean([info.acceptance_rate for info in self.diagnostics])),
        }


def replay(posterior: LiteralPosterior, history: Sequence[Interaction]) -> LiteralRun:
    """Decide and learn along a history whose arms and rewards are given."""
    seconds: list[float] = []
    diagnostics: list[LiteralInfo] = []
    for user, context, arm, reward in history:
        began = time.perf_counter()
        if user == len(posterior.statistics):
            posterior.enrol(context)
        posterior.probabilities(user)
        diagnostics.append(posterior.update(user, posterior.statistics[user].add(arm, reward)))
        jax.block_until_ready(posterior.particles)
        seconds.append(time.perf_counter() - began)
    return LiteralRun(float("nan"), tuple(seconds), tuple(diagnostics), tuple(history))


def run(
    environment: Environment,
    seed: int,
    draws: Sequence[float],
    settings: CocoSettings = PRESETS["paper"],
) -> LiteralRun:
    """Serve the first interactions of an environment with decisions of its own.

    Each uniform number of `draws` chooses an arm. They are to owe nothing to the users and noise of
    the seed.
    """
    reward_range = range_for(environment.name, POLICY)
    design = open_study(environment, POLICY, seed, settings, reward_range).design
    world = draw_world(environment, seed)
    served = list(itertools.chain.from_iterable(environment.recruitment.rounds()))
    served = served[: len(draws)]
    posterior = LiteralPosterior(
        log_density_model(design.problem(), settings),
        1 + max(user for user, _ in served),
        seed,
        settings.inference.num_particles,
    )
    regret, parts = 0.0, []
    for (user, user_step), draw in zip(served, draws, strict=True):
        context = tuple(map(float, design.encode_context(world.cohort.contexts[user])))
        began = time.perf_counter()
        if user == len(posterior.statistics):
            posterior.enrol(context)
        probabilities = posterior.probabilities(user)
        arm = choose_arm(probabilities / probabilities.sum(), draw)
        means = world.cohort.arm_means[user]
        reward = design.standardise(float(world.rewards[user, user_step, arm]))
        info = posterior.update(user, posterior.statistics[user].add(arm, reward))
        parts.append((time.perf_counter() - began, info, Interaction(user, context, arm, reward)))
        regret += float(means.max() - means[arm])
    seconds, diagnostics, history = zip(*parts, strict=True)
    return LiteralRun(regret, seconds, diagnostics, history)
