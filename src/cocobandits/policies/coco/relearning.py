"""A population learned from its prior, from all that users have told."""

import jax
import jax.numpy as jnp
import numpy as np

from cocobandits.inference import smc
from cocobandits.models.base import PopulationModel, Statistics
from cocobandits.models.histories import Change, HistoryPath, UserTable
from cocobandits.types import RngKey


def relearn(
    rng_key: RngKey, model: PopulationModel, users: UserTable, config: smc.SmcConfig
) -> smc.SmcState:
    """Start from the prior, and take one user after the other with all rewards at once.

    Raises:
        NumericalError: no particle can explain a user.
    """
    start_key, update_key = jax.random.split(rng_key)
    state = smc.init(start_key, model.num_parameters, config)
    learned = users._replace(statistics=Statistics(*map(jnp.zeros_like, users.statistics)))
    counts = np.asarray(users.statistics.count).sum(axis=1)
    for user in map(int, np.flatnonzero(counts)):
        change = Change.of(learned, user, users.of(user)[1])
        key = jax.random.fold_in(update_key, user)
        state, _ = smc.step(key, state, HistoryPath(model), change, config)
        learned = change.applied()
    return state
