"""Soft elimination, with a softness that is learned by policy gradients (GradBand).

The system is GradBand of Boutilier, Hsu, Kveton, Mladenov, Szepesvári and Zaheer, "Differentiable
Meta-Learning of Bandit Policies" (NeurIPS 2020), with their policy SoftElim. From T_a rewards with
average μ̂_a of each arm it takes

    S_a = -2 T_a (max_b μ̂_b - μ̂_a)²,   π_w(a) ∝ exp(S_a / w²)
    d log π_w(A)/dw = -(2/w³) (S_A - Σ_b π_b S_b)
    d E[Σ_t r_t]/dw = E[Σ_t d log π_w(A_t)/dw · Σ_{u≥t} (r_u - b_u)]

and climbs the last line, averaged over bandit instances.

Its authors assume rewards on [0, 1], instances that can be drawn at will before the policy is used,
and counts and sums that start at 1e-6, so that an arm without rewards has the average 1, the best
there is. Here exp(S_a) is still a bound on how likely noise alone makes such a gap: exp(-2 T gap²)
is exp(-T gap²/(2σ²)) at σ = 1/2, so S_a = -T_a gap²/(2σ²) with the noise σ, or half of the range
where rewards are yes or no; and sums start at 1e-6 times the top of the range. Where σ is far below
the range, an arm that falls short of its top is in effect left until all have been tried. An
instance is a user: G sums the gradients of log π at the statistics before each reward and at the w
of that time, and J sums (r - b) G, which is the inner double sum. The authors' b is none, the best
arm's reward of that instance, or a second run's on it, which need a simulator; here b is the
average reward of all other users, which this user's arms have no part in, and zero while there are
none. Their contextual form is left out. After `horizon` rewards the instance is finished, and after
`batch` of these log w takes one step along w times their average J, its gradient, of at most
`most_step`: slopes grow as w⁻³ and with gaps in units of σ, so plain steps of w jump from one end
of its range to the other. Users who leave early teach nothing, nor do rewards beyond the horizon.
After a correction, a withdrawal or a new arm it is refitted from all rewards in their order.
Gradients take all arms as choosable.

Of the six criteria of the paper's Table 1 it meets dynamic recruitment, which the table denies it:
anybody may join. Multi-task learning and concurrent interaction are not met: one number is learned
across users, and it says nothing of which arm is good. Contexts are unused, and a user's rewards of
an arm say nothing of the user's others; a structure of rewards does not apply, and uncertainties
are not told apart, as in the table.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from cocobandits.checks import check_numbers, check_whole
from cocobandits.display import Line
from cocobandits.errors import ConfigurationError
from cocobandits.models.base import Statistics
from cocobandits.models.histories import Added, Change, UserTable
from cocobandits.policies.base import Arms, Problem, SequentialPolicy, with_rows
from cocobandits.policies.description import Facts, PolicySettings, description
from cocobandits.types import ArmVector, RngKey, Scalar

# Rewards of which an arm is given so few at first: enough to have an average.
_START = 1e-6
_SOFTNESS_RANGE = (0.1, 100.0)


@description(
    "gradband",
    label="GradBand",
    line=Line("#8C6D31", (0, (1, 1.2)), 1.2),
    table_one="--/-+-",
    published="--/---",
    chooses="eliminates arms softly",
    knows="learns how softly",
)
class GradBand(PolicySettings):
    """Soft elimination with a learned softness w.

    Attributes:
        horizon: rewards of a user that make a finished instance.
        batch: finished instances per step of w.
        step_size: what the average gradient by log w is multiplied by.
        softness: w at first; it stays between 0.1 and 100.
        most_step: by how much log w changes at most in a step.
    """

    horizon: int = 5
    batch: int = 5
    step_size: float = 1.0
    softness: float = 1.0
    most_step: float = 0.25

    def __post_init__(self) -> None:
        check_whole(self, "horizon", "batch", remedy="Use 5.")
        remedy = "Use 0 to learn nothing."
        check_numbers(self, "not negative", "step_size", "most_step", remedy=remedy)
        check_numbers(self, "positive", "softness", remedy="Use 1.")
        least, most = _SOFTNESS_RANGE
        if not least <= self.softness <= most:
            raise ConfigurationError(
                f"Expected a softness from {least:g} to {most:g}; got softness={self.softness}. "
                "Use 1."
            )

    def build(self, problem: Problem) -> "GradBandPolicy":
        """Build the policy for a problem."""
        return GradBandPolicy(problem, self)

    def informed(self, facts: Facts) -> "GradBand":
        """Take the rewards of a user as an instance."""
        return replace(self, horizon=facts.steps_per_user)


class Told(NamedTuple):
    """The settings, and the scale of rewards."""

    top: Scalar
    variance: Scalar
    horizon: Scalar
    batch: Scalar
    step_size: Scalar
    most_step: Scalar
    least: Scalar
    most: Scalar


class Lessons(NamedTuple):
    """The softness, and what has been gathered for its next steps."""

    softness: Scalar
    gradient: Scalar  # sum of J over users who finished since the last step
    num_finished: Int[Array, ""]
    log_gradients: Float[Array, " user"]  # G
    products: Float[Array, " user"]  # J
    num_steps: Int[Array, " user"]


class GradBandPolicy(SequentialPolicy[Lessons]):
    """Eliminate each user's arms softly, and learn from all users how softly."""

    def __init__(self, problem: Problem, settings: GradBand) -> None:
        self.problem = problem
        self.settings = settings
        low, high = problem.reward_range
        is_binary = problem.rewards == "bernoulli"
        deviation = (high - low) / 2 if is_binary else problem.known_noise()
        plan = settings.horizon, settings.batch, settings.step_size, settings.most_step
        told = high, deviation**2, *plan, *_SOFTNESS_RANGE
        self._told = Told(*(jnp.asarray(number, dtype=float) for number in told))

    def init(self, rng_key: RngKey) -> Lessons:
        """Start with the first softness."""
        del rng_key
        blank, none = jnp.zeros(0), jnp.zeros(0, dtype=int)
        softness = jnp.asarray(float(self.settings.softness))
        start = softness, jnp.zeros(()), jnp.zeros((), dtype=int)
        return Lessons(*start, blank, blank, none)

    def enrol(self, state: Lessons, users: UserTable) -> Lessons:
        """Make room for as many users as the table has."""
        return with_rows(state, len(users.contexts))

    def update(self, rng_key: RngKey, state: Lessons, change: Change) -> tuple[Lessons, None]:
        """Learn from one more reward."""
        del rng_key
        return learn(state, change.table.statistics, change.user, change.added, self._told), None

    def probabilities(
        self, state: Lessons, users: UserTable, user: int, arms: Arms = None
    ) -> ArmVector:
        """Compute π_w of the user's own statistics, gaps being to the best of the arms given."""
        chosen = None if arms is None else jnp.asarray(arms)
        return _probabilities(state.softness, users.statistics, user, self._told, chosen)

    def widened(self, problem: Problem) -> "GradBandPolicy":
        """Make the same policy for a problem with another arm."""
        return GradBandPolicy(problem, self.settings)


def elimination(statistics: Statistics, top: Scalar, variance: Scalar) -> ArmVector:
    """Compute S_a = -T_a (max_b μ̂_b - μ̂_a)² / (2σ²)."""
    count = statistics.count + _START
    average = (statistics.total + _START * top) / count
    return -count * (jnp.max(average) - average) ** 2 / (2 * variance)


def log_gradient(scores: ArmVector, softness: Scalar) -> ArmVector:
    """Compute d log π_w(a)/dw of every arm a."""
    expected = jnp.vdot(jax.nn.softmax(scores / softness**2), scores)
    return -2 / softness**3 * (scores - expected)


@jax.jit
def learn(
    lessons: Lessons, table: Statistics, user: Int[Array, ""], added: Added, told: Told
) -> Lessons:
    """Learn from a user's next reward; rewards beyond the horizon teach nothing."""
    taught = _add_reward(lessons, table, user, added, told)
    finished = _count_instance(taught, taught.products[user], told)
    is_open = lessons.num_steps[user] < told.horizon
    is_finished = is_open & (taught.num_steps[user] >= told.horizon)
    kept = jax.tree.map(lambda new, old: jnp.where(is_open, new, old), taught, lessons)
    return jax.tree.map(lambda new, old: jnp.where(is_finished, new, old), finished, kept)


def _add_reward(
    lessons: Lessons, table: Statistics, user: Int[Array, ""], added: Added, told: Told
) -> Lessons:
    """Add the gradient of log π to G, and the reward beyond the baseline times G to J."""
    arm, reward = added
    before = _row(table, user)
    total, count = (jnp.sum(part.at[user].set(0.0)) for part in (table.total, table.count))
    slopes = log_gradient(elimination(before, told.top, told.variance), lessons.softness)
    gradient = lessons.log_gradients[user] + slopes[arm]
    product = (reward - total / jnp.maximum(count, 1.0)) * gradient
    return lessons._replace(
        log_gradients=lessons.log_gradients.at[user].set(gradient),
        products=lessons.products.at[user].add(product),
        num_steps=lessons.num_steps.at[user].add(1),
    )


def _row(table: Statistics, user: Int[ArrayLike, ""]) -> Statistics:
    return Statistics(*(part[user] for part in table))


def _count_instance(lessons: Lessons, product: Scalar, told: Told) -> Lessons:
    """Count a finished instance, and move the softness if the batch is full."""
    gradient, num_finished = lessons.gradient + product, lessons.num_finished + 1
    step = told.step_size * lessons.softness * gradient / told.batch
    moved = lessons.softness * jnp.exp(jnp.clip(step, -told.most_step, told.most_step))
    is_full = num_finished >= told.batch
    return lessons._replace(
        softness=jnp.where(is_full, jnp.clip(moved, told.least, told.most), lessons.softness),
        gradient=jnp.where(is_full, 0.0, gradient),
        num_finished=jnp.where(is_full, 0, num_finished),
    )


@jax.jit
def _probabilities(
    softness: Scalar,
    table: Statistics,
    user: Int[ArrayLike, ""],
    told: Told,
    arms: Int[Array, " chosen"] | None,
) -> ArmVector:
    own = _row(table, user)
    own = own if arms is None else Statistics(*(part[arms] for part in own))
    return jax.nn.softmax(elimination(own, told.top, told.variance) / softness**2)
