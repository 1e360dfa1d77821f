"""Upper confidence bounds from own and others' rewards (RobustAgg).

The system is RobustAgg(ε) of Wang, Zhang, Singh, Riek and Chaudhuri (AISTATS 2021): players meet
the same arms with means that differ by at most ε. A player with n rewards of an arm, summing to X,
while all others have m of them, summing to Y, trusts the average α X/n + (1-α) Y/m, and plays the
arm with the largest sum of that average and its width

    width(α) = √(c (α²/n + (1-α)²/m)) + (1-α) ε
    α* = 1                                              if n ε² ≥ c, else
    α* = n/(n+m) · (1 + ε m / √(c (n+m) - ε² n m))      the α of the smallest width

Its authors assume rewards on [0, 1]. Their code (zhiwang123/eps-MPMAB, where it is called adapted;
what they prove has a larger constant) takes c = 2 ln T, Hoeffding's bound for a proxy deviation of
1/2, after T rounds in which all players act. Here c = 8 σ² ln T, where σ is the noise, or half of
the range where rewards are yes or no, and T counts decisions, since users come and go. They also
replace counts of zero by one, which their wide intervals make harmless. Here intervals may be
narrow compared with the range, and a reward that nobody gave would rule an arm out. So α* is taken
at the actual counts: 0 without own rewards, 1 without others', and an arm that nobody has been
given comes first. Players are users, present and past. Contexts are ignored, and ε is a guess.

Unlike in the published Table 1, dynamic recruitment is met: a newcomer is a player without rewards.
"""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp

from cocobandits.checks import check_numbers, check_whole
from cocobandits.display import Line
from cocobandits.policies.base import Arms, PlainPolicy, Problem, UserIndex, highest_probability
from cocobandits.policies.description import Facts, PolicySettings, description
from cocobandits.types import ArmVector, Number
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import UserTable

_HORIZON = 1000


@description(
    "robustagg",
    line=Line("#6A51A3", "-", 1.2),
    table_one="+-/-++",
    published="+//--+",
    chooses="upper confidence bounds",
    knows="weights others' rewards by a given dissimilarity of users",
)
class RobustAgg(PolicySettings):
    """Upper confidence bounds from own and others' rewards.

    Attributes:
        horizon: T, decisions of all users together; None stands for those of a simulation, and
            elsewhere for 1,000.
        dissimilarity: ε, by how much users differ at most in an arm's mean, in standardised units;
            in units of reward in a simulation.
    """

    horizon: int | None = None
    dissimilarity: float = 0.9

    def __post_init__(self) -> None:
        remedy = "Give the number of decisions, about as many as there will be."
        check_whole(self, "horizon", least=2, remedy=remedy)
        remedy = "Use 0 for users who are all alike."
        check_numbers(self, "not negative", "dissimilarity", remedy=remedy)

    def informed(self, facts: Facts) -> "PolicySettings":
        """Use the number of decisions, and translate ε from units of reward."""
        dissimilarity = facts.unit * self.dissimilarity
        return replace(self.filled(horizon=facts.num_steps), dissimilarity=dissimilarity)


class RobustAggPolicy(PlainPolicy, settings=RobustAgg):
    """Weigh own rewards against everybody's, and play the arm with the highest bound."""

    def __init__(self, problem: Problem, settings: RobustAgg) -> None:
        super().__init__(problem, settings)
        horizon = _HORIZON if settings.horizon is None else settings.horizon
        self._scale = 8 * problem.proxy_deviation() ** 2 * math.log(horizon)

    def probabilities(self, state: None, users: UserTable, user: int, arms: Arms) -> ArmVector:
        """Give all probability to the highest bound, in equal parts where several tie."""
        bounds = upper_bounds(users.statistics, user, self.settings.dissimilarity, self._scale)
        return highest_probability(bounds, arms)


def best_share(
    own: ArmVector, others: ArmVector, dissimilarity: Number, scale: Number
) -> ArmVector:
    """Compute α*, the share of own rewards, from the counts n and m; zero where both are."""
    is_own_enough = own * dissimilarity**2 >= scale
    square = scale * (own + others) - dissimilarity**2 * own * others
    is_usable = ~is_own_enough & (own + others > 0)
    stretch = 1 + dissimilarity * others / jnp.sqrt(jnp.where(is_usable, square, 1.0))
    share = own / jnp.maximum(own + others, 1.0) * stretch
    return jnp.where(is_own_enough, 1.0, share)


@jax.jit
def upper_bounds(
    table: Statistics, user: UserIndex, dissimilarity: Number, scale: Number
) -> ArmVector:
    """Compute α* X/n + (1-α*) Y/m + width(α*) of every arm, from the statistics of all users."""
    own, total = table.count[user], table.total[user]
    # Not the sum of all less the own, which would leave rounding where equal bounds should tie.
    others, further = (jnp.sum(part.at[user].set(0.0), axis=0) for part in table[:2])
    share = best_share(own, others, dissimilarity, scale)
    n, m = jnp.maximum(own, 1.0), jnp.maximum(others, 1.0)
    average = share * total / n + (1 - share) * further / m
    width = jnp.sqrt(scale * (share**2 / n + (1 - share) ** 2 / m)) + (1 - share) * dissimilarity
    return jnp.where(own + others > 0, average + width, jnp.inf)
