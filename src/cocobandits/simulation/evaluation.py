"""The worth of a learned prior, measured on newcomers (paper, "Results": the bottom row).

Newcomers are served a few times by Thompson sampling that starts from the learned prior and learns
from each newcomer's own rewards alone. The study itself learns nothing from it.
"""

import jax
import jax.numpy as jnp
import numpy as np

from cocobandits.models.base import Belief, Statistics
from cocobandits.simulation.world import EvaluationBatch
from cocobandits.study import Study


def evaluate(study: Study, batch: EvaluationBatch) -> float:
    """Compute the regret that the learned prior costs a newcomer, on average over the batch.

    Raises:
        UnsupportedError: the policy holds no beliefs.
    """
    design, means = study.design, batch.cohort.arm_means
    rewards = (means[:, None, :] + batch.noise - design.centre) * design.scale
    beliefs = [study.prior(context) for context in batch.cohort.contexts]
    together = jax.tree.map(lambda *parts: jnp.stack(parts), *beliefs)
    arms = _serve_all(together, jnp.asarray(rewards), jnp.asarray(batch.draws))
    earned = np.take_along_axis(means, np.asarray(arms), axis=1)
    return float(np.mean(np.sum(means.max(axis=1)[:, None] - earned, axis=1)))


@jax.jit
def _serve_all(beliefs: Belief, rewards: jax.Array, draws: jax.Array) -> jax.Array:
    return jax.vmap(_serve)(beliefs, rewards, draws)


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
