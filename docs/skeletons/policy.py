"""Follow the arm with the best average over all users, and now and then any arm.

Copy this file to `src/cocobandits/policies/<name>.py`. Replace this text by: the system with its
source and formulas; what its authors assume, and how that is mapped to users, contexts and arms;
and which of its promises the implementation keeps.
"""

from typing import Any

import jax
import jax.numpy as jnp

from cocobandits.errors import ConfigurationError
from cocobandits.policies.base import Arms, PlainPolicy
from cocobandits.policies.description import Line, PolicySettings, description
from cocobandits.types import ArmVector, Number
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import UserTable


# The settings are the policy's record: how it is called and drawn, which rewards it learns from,
# and which criteria of the paper's Table 1 it meets. Everything but the name has a default;
# see `PolicySettings`. Fields are hashable, and wrong values are refused at construction.
@description("follow", label="Follow", line=Line("#332288", "-", 1.2), table_one="+-/-++")
class Follow(PolicySettings):
    """Follow the best average.

    Attributes:
        exploration: share of decisions in which every arm is as likely as the others.
    """

    exploration: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.exploration <= 1:
            raise ConfigurationError(
                f"Expected a share from 0 to 1; got exploration={self.exploration}. Use 0.1."
            )

    # A policy that has to know something of the environment takes it from `informed(facts)`.


# `PlainPolicy` decides from the table of users, which the study owns and passes in, and keeps
# nothing: corrected and withdrawn rewards leave no trace. A policy with a memory of its own is a
# `Policy` with a NamedTuple of arrays as its state, as `policies/baselines/mtts.py` is. It names
# its settings in the header, and is built from them; they may instead have their own `build`.
class FollowPolicy(PlainPolicy, settings=Follow):
    """Play the arm with the best average so far; arms that nobody was given come first."""

    settings: Follow

    # Exact probabilities, not a drawn arm. With `arms`, of the best among these: not the
    # probabilities of all arms, cut and rescaled.
    def probabilities(self, state: None, users: UserTable, user: int, arms: Arms) -> ArmVector:
        """Share out exploration among all arms, and the rest among those that are best."""
        # Everybody is treated alike here. `users.of(user)` has this user's context and statistics,
        # for a rule that looks at them.
        del state, user
        chosen = None if arms is None else jnp.asarray(arms)
        return _probabilities(users.statistics, chosen, float(self.settings.exploration))


# Compiled once for all studies: a function of the module whose arguments are arrays. Rows of the
# table beyond the last user are zero, and add nothing to sums.
@jax.jit
def _probabilities(statistics: Statistics, arms: Any, exploration: Number) -> ArmVector:
    count, total = jnp.sum(statistics.count, axis=0), jnp.sum(statistics.total, axis=0)
    averages = jnp.where(count > 0, total / jnp.maximum(count, 1.0), jnp.inf)
    averages = averages if arms is None else averages[arms]
    is_best = (averages == jnp.max(averages)).astype(float)
    greedy = is_best / jnp.sum(is_best)
    return greedy + exploration * (1 / len(averages) - greedy)
