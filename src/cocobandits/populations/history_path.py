"""The likelihood of all users' rewards along a change of one user, particle by particle."""

from dataclasses import dataclass
from typing import NamedTuple

import jax

from cocobandits.populations.base import PopulationModel
from cocobandits.types import (
    Matrix,
    Parameters,
    Particles,
    PerParticle,
    PossibleContext,
    RngKey,
    Scalar,
)
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change


class Ends(NamedTuple):
    """One user before and after a change."""

    context_before: PossibleContext
    before: Statistics
    context_after: PossibleContext
    after: Statistics


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HistoryPath:
    """The likelihood along a change: old^(1 - temperature) · new^temperature, for one model."""

    model: PopulationModel

    def ends(self, change: Change) -> Ends:
        """Read the user before and after the change: other users do not count."""
        return Ends(*change.before, change.context, change.statistics)

    def increment(self, particles: Particles, ends: Ends) -> PerParticle:
        """Compute the log-likelihood at temperature 1 minus that at temperature 0."""
        evidence = jax.vmap(self.model.log_evidence, in_axes=(0, None, None))
        after = evidence(particles, ends.context_after, ends.after)
        return after - evidence(particles, ends.context_before, ends.before)

    def log_likelihood_and_gradient(
        self, particles: Particles, change: Change, temperature: Scalar
    ) -> tuple[PerParticle, Particles]:
        """Sum the log-evidences of all users, and their gradients."""
        return self.model.log_likelihood_and_gradient(particles, change.rows(temperature))

    def information(
        self, particles: Particles, change: Change, temperature: Scalar
    ) -> Matrix | Parameters:
        """Average over particles what all users' rewards say about each parameter.

        At most half as many particles as there are parameters, to save time.
        """
        # Evenly over all ancestors: resampling leaves copies side by side.
        some = particles[:: -(-2 * len(particles) // particles.shape[1])]
        return self.model.information(some, change.rows(temperature))

    def interweave(self, rng_key: RngKey, particles: Particles) -> Particles:
        """Move every particle without touching any likelihood, if the model knows how."""
        keys = jax.random.split(rng_key, len(particles))
        return jax.vmap(self.model.interweave)(keys, particles)
