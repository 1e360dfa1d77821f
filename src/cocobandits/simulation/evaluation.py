"""The worth of a learned prior, measured on newcomers (paper, "Results": the bottom row).

Newcomers are served a few times by Thompson sampling that starts from the learned prior and learns
from each newcomer's own rewards alone. The study itself learns nothing from it.
"""

import jax
import jax.numpy as jnp
import numpy as np

from cocobandits.populations.base import Belief
from cocobandits.simulation.world import EvaluationBatch
from cocobandits.study import Study
from cocobandits.study.design import StudyDesign
from cocobandits.users.statistics import Statistics


class Evaluation:
    """The same newcomers, served again whenever the prior has changed."""

    def __init__(self, batch: EvaluationBatch) -> None:
        self._batch = batch
        self._priors: list[Belief] = []
        self._regret = 0.0

    def regret(self, study: Study) -> float:
        """Compute the regret that the learned prior costs a newcomer, on average over the batch.

        Raises:
            UnsupportedError: the policy holds no beliefs.
        """
        priors = [study.prior(context) for context in self._batch.cohort.contexts]
        if not _are_equal(priors, self._priors):
            self._priors, self._regret = priors, self._serve(priors, study.design)
        return self._regret

    def _serve(self, priors: list[Belief], design: StudyDesign) -> float:
        batch, means = self._batch, self._batch.cohort.arm_means
        rewards = (batch.rewards - design.rewards.centre) * design.rewards.scale
        arms = np.zeros(batch.draws.shape, dtype=int)
        for alike in _alike(priors):
            some = [priors[number] for number in alike]
            arms[alike] = _serve_all(some, jnp.asarray(rewards[alike]), batch.draws[alike])
        earned = np.take_along_axis(means, arms, axis=1)
        return float(np.mean(np.sum(means.max(axis=1)[:, None] - earned, axis=1)))


def _are_equal(priors: list[Belief], others: list[Belief]) -> bool:
    numbers, other_numbers = jax.tree.leaves(priors), jax.tree.leaves(others)
    return len(numbers) == len(other_numbers) and all(map(np.array_equal, numbers, other_numbers))


def _alike(priors: list[Belief]) -> list[list[int]]:
    """Number those whose beliefs have the same shape: gaps in the context make more types."""
    groups: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for number, prior in enumerate(priors):
        shapes = tuple(part.shape for part in jax.tree.leaves(prior))
        groups.setdefault(shapes, []).append(number)
    return list(groups.values())


@jax.jit
def _serve_all(priors: list[Belief], rewards: jax.Array, draws: jax.Array) -> jax.Array:
    """Serve newcomers at once whose beliefs have the same shape."""
    structure = jax.tree.structure(priors[0])
    numbers = [jnp.stack(parts) for parts in zip(*map(jax.tree.leaves, priors), strict=True)]

    def serve(numbers: list[jax.Array], rewards: jax.Array, draws: jax.Array) -> jax.Array:
        return _serve(jax.tree.unflatten(structure, numbers), rewards, draws)

    return jax.lax.map(lambda given: serve(*given), (numbers, rewards, draws))


def _serve(belief: Belief, rewards: jax.Array, draws: jax.Array) -> jax.Array:
    """Pull arms, one after another; `rewards` is pull × arm, `draws` one uniform per pull."""

    def pull(
        statistics: Statistics, given: tuple[jax.Array, jax.Array]
    ) -> tuple[Statistics, jax.Array]:
        reward, draw = given
        probabilities = belief.condition(statistics).best_probability()
        reached = jnp.cumsum(probabilities) > draw * jnp.sum(probabilities)
        arm = jnp.argmax(reached)
        chosen = (jnp.arange(len(reward)) == arm).astype(float)
        further = Statistics(chosen, chosen * reward, chosen * reward**2)
        return statistics.plus(further), arm

    return jax.lax.scan(pull, Statistics.empty(rewards.shape[1]), (rewards, draws))[1]
