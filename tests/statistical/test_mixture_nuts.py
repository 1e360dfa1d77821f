"""The mixture's posterior of a frozen history against a long run of NUTS (BlackJAX).

Three arms, two components, 25 users with four rewards. Components can change places, so not
parameters are compared but what does not depend on their order: what newcomers are expected to have
of each arm, how unlike they are, and P(arm is best), at three contexts.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from histories import draw_history, nuts_draws, policy_for, run_smc

from cocobandits.inference.smc import SmcConfig
from cocobandits.populations.mixture import MixtureConfig, MixtureModel
from cocobandits.users.statistics import Statistics

RUNS = 4
NUM_PARTICLES = 200
CONTEXTS = jnp.array([-0.8, 0.0, 0.8])[:, None]


def model_of(rank):
    return MixtureModel(
        MixtureConfig(
            3,
            (None,),
            num_components=2,
            rank=rank,
            mean_range=(-1.5, 1.5),
            reward_noise=0.3,
            precision="double",
        )
    )


def answers_of(model, particles):
    """Ask every particle: mean, deviation and P(best) of each arm for newcomers."""

    def one(parameters, context):
        belief = model.posterior(parameters, context, Statistics.empty(3))
        parts = belief.mean(), jnp.sqrt(belief.variance()), belief.best_probability()
        return jnp.concatenate(parts)

    ask = jax.vmap(one, (None, 0))
    each = jax.jit(lambda rows: jax.lax.map(lambda row: ask(row, CONTEXTS), rows))(particles)
    return np.asarray(each).reshape(len(particles), -1)


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_particles_of_a_mixture_agree_with_nuts(rank):
    model = model_of(rank)
    truth = jax.random.normal(jax.random.key(3), (model.num_parameters,))
    history = draw_history(model, truth, seed=11, num_users=25, per_user=4)
    draws = answers_of(model, nuts_draws(model, history, num_warmup=400, num_draws=1500))
    mean, deviation = draws.mean(axis=0), draws.std(axis=0)
    policy = policy_for(model, SmcConfig(num_particles=NUM_PARTICLES))
    states = [run_smc(policy, history, seed) for seed in range(RUNS)]
    weights = [np.exp(np.asarray(state.own.log_weights)) for state in states]
    answers = [answers_of(model, state.own.particles) for state in states]
    means = np.array([w @ a for w, a in zip(weights, answers, strict=True)])
    variances = [w @ (a - w @ a) ** 2 for w, a in zip(weights, answers, strict=True)]
    one_run = np.sqrt(np.mean(((means - mean) / deviation) ** 2))
    all_runs = np.sqrt(np.mean(((means.mean(axis=0) - mean) / deviation) ** 2))
    spread = np.mean(np.sqrt(np.mean(variances, axis=0)) / deviation)
    print(
        f"\nNUTS, rank {rank}: distance of means {one_run:.3f} deviations for one run, "
        f"{all_runs:.3f} for the average of {RUNS}; ratio of deviations {spread:.3f}"
    )
    # 200 independent draws would have a distance of 0.07, four times as many 0.035.
    assert one_run < 0.25
    assert all_runs < 0.15
    assert 0.9 < spread < 1.1
