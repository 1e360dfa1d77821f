"""The reward densities behind figure 1 of the paper: by hidden type, and by what is seen."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from cocobandits.environments.diet import AGE_GROUPS, METABOLIC_TYPES, DietEnvironment
from cocobandits.experiments.estimates import Values
from cocobandits.models.base import Statistics
from cocobandits.models.gaussian_belief import GaussianBelief
from cocobandits.models.gaussian_mixture import GaussianMixtureModel

# Wide enough for the tails of every plan.
_REWARDS = (-1.0, 3.5, 181)


class DietTruth(NamedTuple):
    """Densities plan × reward, by hidden metabolic type and by age group."""

    rewards: Values
    by_type: dict[str, Values]
    by_age: dict[str, Values]


def diet_truth() -> DietTruth:
    """Compute the densities of noisy rewards in the diet example."""
    environment = DietEnvironment()
    rewards = np.linspace(*_REWARDS)
    model = GaussianMixtureModel(
        environment.population(),
        (len(AGE_GROUPS),),
        environment.reward_range,
        environment.reward_noise,
    )
    groups = [
        model.dense_posterior_at(
            jnp.zeros(0), jnp.array([float(number)]), Statistics.empty(model.num_arms)
        )
        for number in range(len(AGE_GROUPS))
    ]
    # A type is one component of the mixture, the same in every age group.
    first = groups[0]
    types = [
        GaussianBelief(
            jnp.zeros(1), first.means[n][None], first.covariances[n][None], first.reward_noise
        )
        for n in range(len(METABOLIC_TYPES))
    ]
    return DietTruth(
        rewards,
        {
            name: _densities(part, rewards)
            for name, part in zip(METABOLIC_TYPES, types, strict=True)
        },
        {name: _densities(part, rewards) for name, part in zip(AGE_GROUPS, groups, strict=True)},
    )


def _densities(belief: GaussianBelief, rewards: Values) -> Values:
    return np.asarray(belief.predictive(jnp.asarray(rewards)))
