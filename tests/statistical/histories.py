"""Small populations whose posterior can be computed otherwise, and histories from them."""

from functools import partial
from typing import NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

from cocobandits.inference.smc import SmcConfig
from cocobandits.policies.base import Problem
from cocobandits.policies.coco.npm_ts import ThompsonSampling
from cocobandits.policies.coco.policy import CocoPolicy
from cocobandits.populations.base import Belief, PopulationModel
from cocobandits.populations.history_path import HistoryPath
from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change, UserTable
from support.draws import draw_means, one_of
from support.sessions import Session, SessionState


class Reward(NamedTuple):
    """One observation."""

    user: int
    arm: int
    value: float


class History(NamedTuple):
    """Contexts of users and their rewards in some order."""

    contexts: np.ndarray
    rewards: list[Reward]

    def table(self, num_arms: int) -> UserTable:
        """Sum the rewards per user."""
        table = UserTable.empty(self.contexts.shape[1], num_arms)
        for context in self.contexts:
            table = table.append(jnp.asarray(context))
        for reward in self.rewards:
            statistics = table.of(reward.user)[1].add(reward.arm, reward.value)
            table = table.replace(reward.user, statistics)
        return table


def tiny_model() -> LogDensityModel:
    """Two arms, five nodes each, three coefficients: small enough to integrate over."""
    return LogDensityModel(
        LogDensityConfig(
            2,
            (Axis(-1.0, 1.0, 3),),
            Axis(-1.0, 1.0, 5),
            reward_noise=0.3,
            arm_lengthscale=0.8,
            num_modes=3,
            amplitude=2.5,
        )
    )


def policy_for(model: PopulationModel, inference: SmcConfig, num_features: int = 1) -> CocoPolicy:
    """Wrap a model of numbers as features as a policy."""
    features = (None,) * num_features
    problem = Problem(model.num_arms, features, model.mean_range, model.reward_noise)
    return Session(CocoPolicy(problem, model, ThompsonSampling(), inference))


def draw_history(
    model: PopulationModel, parameters: jax.Array, seed: int, num_users: int, per_user: int
) -> History:
    """Draw users of one feature and rewards from one particle's population, arms at random."""
    generator = np.random.default_rng(seed)
    contexts = generator.uniform(-1, 1, (num_users, 1))
    beliefs = _beliefs(model, parameters, jnp.asarray(contexts))
    draws = [draw_means(one_of(beliefs, user), 1000 * seed + user, 1) for user in range(num_users)]
    means = np.concatenate(draws)
    rewards = []
    for user in range(num_users):
        for arm in generator.integers(model.num_arms, size=per_user):
            value = means[user, arm] + model.reward_noise * generator.normal()
            rewards.append(Reward(user, int(arm), float(value)))
    return History(contexts, rewards)


@partial(jax.jit, static_argnames="model")
def _beliefs(model: PopulationModel, parameters: jax.Array, contexts: jax.Array) -> Belief:
    nothing = Statistics.empty(model.num_arms)
    return jax.vmap(model.posterior, (None, 0, None))(parameters, contexts, nothing)


def run_smc(policy: Session, history: History, seed: int) -> SessionState:
    """Learn from a history, one reward at a time."""
    key = jax.random.key(seed)
    state = policy.init(jax.random.fold_in(key, 0))
    for context in history.contexts:
        state = policy.enrol(state, jnp.asarray(context))
    for number, reward in enumerate(history.rewards):
        statistics = state.users.of(reward.user)[1].add(reward.arm, reward.value)
        update_key = jax.random.fold_in(key, number + 1)
        state, _ = policy.update(update_key, state, reward.user, statistics)
    return state


def nuts_draws(model: PopulationModel, history: History, num_warmup: int, num_draws: int):
    """Sample the posterior of a whole history with one long chain of NUTS (BlackJAX)."""
    table = history.table(model.num_arms)
    change = Change.of(table, jnp.asarray(0), table.of(0)[1])
    path = HistoryPath(model)

    @jax.custom_vjp
    def log_likelihood(parameters: jax.Array) -> jax.Array:
        return path.log_likelihood_and_gradient(parameters[None], change, jnp.ones(()))[0][0]

    def forward(parameters: jax.Array) -> tuple[jax.Array, jax.Array]:
        value, gradient = path.log_likelihood_and_gradient(parameters[None], change, jnp.ones(()))
        return value[0], gradient[0]

    log_likelihood.defvjp(forward, lambda gradient, cotangent: (cotangent * gradient,))

    def log_posterior(parameters: jax.Array) -> jax.Array:
        return log_likelihood(parameters) - 0.5 * parameters @ parameters

    warm_key, run_key = jax.random.split(jax.random.key(0))
    adaptation = blackjax.window_adaptation(blackjax.nuts, log_posterior)
    start = jnp.zeros(model.num_parameters)
    (state, tuned), _ = adaptation.run(warm_key, start, num_steps=num_warmup)
    kernel = blackjax.nuts(log_posterior, **tuned)

    def draw(current, key):
        following, _ = kernel.step(key, current)
        return following, following.position

    return jax.lax.scan(draw, state, jax.random.split(run_key, num_draws))[1]
