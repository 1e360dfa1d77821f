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
put counts of one for zero, which their widths make harmless. Here a width may be small beside the
range, and a reward that nobody gave would rule an arm out; so α* is taken at the counts as they
are: 0 without own rewards, 1 without others', and an arm that nobody has been given comes first.
Players are users, present and past, in any order. Contexts are not looked at, and ε is a guess:
users of two kinds differ by as much as the kinds do.

Of the six criteria of the paper's Table 1 it meets multi-task learning, and concurrent interaction,
since every reward counts for everybody at once. Dynamic recruitment is met here though not in the
published table: a newcomer is a player without rewards, and those who left still count as others.
Partial context, no: a user's rewards of one arm say nothing of the others. A nonparametric reward
structure does not apply: there is no law of users. Uncertainties are not told apart: one width
covers noise and user, and ε is told, not learned.
"""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
from jaxtyping import ArrayLike, Int

from cocobandits.checks import check_numbers, check_whole
from cocobandits.display import Line
from cocobandits.models.base import Statistics
from cocobandits.models.histories import UserTable
from cocobandits.policies.base import Arms, PlainPolicy, Problem
from cocobandits.policies.baselines.ucb import highest_probability
from cocobandits.policies.description import Facts, PolicySettings, description
from cocobandits.types import ArmVector, Number


@description(
    "robustagg",
    label="RobustAgg",
    line=Line("#6A51A3", "-", 1.2),
    table_one="+-/-++",
    published="+//--+",
    chooses="upper confidence bounds",
    knows="weights others' rewards by a given dissimilarity of users",
)
class RobustAgg(PolicySettings):
    """Upper confidence bounds from own and others' rewards.

    Attributes:
        horizon: T, decisions of all users together.
        dissimilarity: ε, by how much users differ at most in an arm's mean, in standardised units;
            in units of reward in a simulation.
    """

    horizon: int = 1000
    dissimilarity: float = 0.9

    def __post_init__(self) -> None:
        remedy = "Give the number of decisions, about as many as there will be."
        check_whole(self, "horizon", least=2, remedy=remedy)
        remedy = "Use 0 for users who are all alike."
        check_numbers(self, "not negative", "dissimilarity", remedy=remedy)

    def build(self, problem: Problem) -> "RobustAggPolicy":
        """Build the policy for a problem."""
        return RobustAggPolicy(problem, self)

    def informed(self, facts: Facts) -> "RobustAgg":
        """Use the number of decisions, and translate ε from units of reward."""
        dissimilarity = facts.unit * self.dissimilarity
        return replace(self, horizon=facts.num_steps, dissimilarity=dissimilarity)


class RobustAggPolicy(PlainPolicy):
    """Weigh own rewards against everybody's, and play the arm with the highest bound."""

    def __init__(self, problem: Problem, settings: RobustAgg) -> None:
        super().__init__(problem)
        self.settings = settings
        self._scale = 8 * _proxy_deviation(problem) ** 2 * math.log(settings.horizon)

    def probabilities(
        self, state: None, users: UserTable, user: int, arms: Arms = None
    ) -> ArmVector:
        """Give all probability to the highest bound, in equal parts where several tie."""
        del state
        bounds = upper_bounds(users.statistics, user, self.settings.dissimilarity, self._scale)
        return highest_probability(bounds, arms)

    def widened(self, problem: Problem) -> "RobustAggPolicy":
        """Make the same policy for a problem with another arm."""
        return RobustAggPolicy(problem, self.settings)


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
    table: Statistics, user: Int[ArrayLike, ""], dissimilarity: Number, scale: Number
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


def _proxy_deviation(problem: Problem) -> float:
    low, high = problem.reward_range
    return (high - low) / 2 if problem.rewards == "bernoulli" else problem.known_noise()
