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
there is. Here S_a = -T_a gap²/(2σ²) with the noise σ, or half of the range where rewards are yes or
no, which is theirs at σ = 1/2, and sums start at 1e-6 times the top of the range. Where σ is far
below the range, an arm that falls short of its top is in effect left until all have been tried.

An instance is a user: G sums the gradients of log π at the statistics before each reward and at the
w of that time, and J sums (r - b) G, which is the inner double sum. The authors' baselines b need a
simulator; here b is the average reward of all other users, and zero while there are none. Their
contextual form is left out. After `horizon` rewards the instance is finished, and after `batch` of
these log w takes one step along w times their average J, its gradient, of at most `most_step`:
slopes grow as w⁻³, so plain steps of w jump from one end of its range to the other. Users who leave
early and rewards beyond the horizon are ignored. Gradients assume that all arms can be chosen.

Of the paper's Table 1 it meets dynamic recruitment, unlike published. It does not meet multi-task
learning, since the one number it shares says nothing of which arm is good.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from cocobandits.checks import check_numbers, check_whole
from cocobandits.display import Line
from cocobandits.errors import ConfigurationError
from cocobandits.policies.base import ArmIndices, Arms, Problem, SequentialPolicy, UserIndex
from cocobandits.policies.description import Facts, PolicySettings, description
from cocobandits.types import ArmVector, RngKey, Scalar
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Added, Change, UserTable

# Counts start here, so that an arm without rewards has an average.
_START = 1e-6
_SOFTNESS_RANGE = (0.1, 100.0)
_HORIZON = 5


@description(
    "gradband",
    line=Line("#8C6D31", (0, (1, 1.2)), 1.2),
    table_one="--/-+-",
    published="--/---",
    chooses="eliminates arms softly",
    knows="learns how softly",
)
class GradBand(PolicySettings):
    """Soft elimination with a learned softness w.

    Attributes:
        horizon: rewards of a user that make a finished instance; None stands for those of each
            user of a simulation, and elsewhere for 5.
        batch: finished instances per step of w.
        step_size: what the average gradient by log w is multiplied by.
        softness: w at first; it stays between 0.1 and 100.
        most_step: by how much log w changes at most in a step.
    """

    horizon: int | None = None
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

    def informed(self, facts: Facts) -> "PolicySettings":
        """Take the rewards of a user as an instance."""
        return self.filled(horizon=facts.steps_per_user)


class Constants(NamedTuple):
    """The scale of rewards, and the settings."""

    top: Scalar
    variance: Scalar
    horizon: Scalar
    batch: Scalar
    step_size: Scalar
    most_step: Scalar


class Lessons(NamedTuple):
    """The softness, and the sums for its next steps."""

    softness: Scalar
    gradient: Scalar  # sum of J over users who finished since the last step
    num_finished: Int[Array, ""]
    log_gradients: Float[Array, " user"]  # G
    products: Float[Array, " user"]  # J
    num_steps: Int[Array, " user"]


class GradBandPolicy(SequentialPolicy[Lessons], settings=GradBand):
    """Eliminate each user's arms softly, and learn from all users how softly."""

    def __init__(self, problem: Problem, settings: GradBand) -> None:
        super().__init__(problem, settings)
        horizon = _HORIZON if settings.horizon is None else settings.horizon
        plan = horizon, settings.batch, settings.step_size, settings.most_step
        numbers = problem.reward_range[1], problem.proxy_deviation() ** 2, *plan
        self._constants = Constants(*(jnp.asarray(number, dtype=float) for number in numbers))

    def init(self, rng_key: RngKey) -> Lessons:
        """Start with the first softness."""
        blank, none = jnp.zeros(0), jnp.zeros(0, dtype=int)
        softness = jnp.asarray(float(self.settings.softness))
        start = softness, jnp.zeros(()), jnp.zeros((), dtype=int)
        return Lessons(*start, blank, blank, none)

    def update(self, rng_key: RngKey, state: Lessons, change: Change) -> tuple[Lessons, None]:
        """Learn from one more reward."""
        table = change.table.statistics
        return learn(state, table, change.user, change.added, self._constants), None

    def probabilities(self, state: Lessons, users: UserTable, user: int, arms: Arms) -> ArmVector:
        """Compute π_w of the user's own statistics, gaps being to the best of the arms given."""
        chosen = None if arms is None else jnp.asarray(arms)
        return _probabilities(state.softness, users.statistics, user, self._constants, chosen)


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
    lessons: Lessons, table: Statistics, user: UserIndex, added: Added, constants: Constants
) -> Lessons:
    """Learn from a user's next reward; rewards beyond the horizon are ignored."""
    longer = _add_reward(lessons, table, user, added, constants)
    finished = _count_instance(longer, longer.products[user], constants)
    is_open = lessons.num_steps[user] < constants.horizon
    is_finished = is_open & (longer.num_steps[user] >= constants.horizon)
    kept = jax.tree.map(lambda new, old: jnp.where(is_open, new, old), longer, lessons)
    return jax.tree.map(lambda new, old: jnp.where(is_finished, new, old), finished, kept)


def _add_reward(
    lessons: Lessons, table: Statistics, user: UserIndex, added: Added, constants: Constants
) -> Lessons:
    """Add the gradient of log π to G, and the reward beyond the baseline times G to J."""
    arm, reward = added
    before = _row(table, user)
    total, count = (jnp.sum(part.at[user].set(0.0)) for part in (table.total, table.count))
    slopes = log_gradient(elimination(before, constants.top, constants.variance), lessons.softness)
    gradient = lessons.log_gradients[user] + slopes[arm]
    product = (reward - total / jnp.maximum(count, 1.0)) * gradient
    return lessons._replace(
        log_gradients=lessons.log_gradients.at[user].set(gradient),
        products=lessons.products.at[user].add(product),
        num_steps=lessons.num_steps.at[user].add(1),
    )


def _row(table: Statistics, user: UserIndex) -> Statistics:
    return Statistics(*(part[user] for part in table))


def _count_instance(lessons: Lessons, product: Scalar, constants: Constants) -> Lessons:
    """Count a finished instance, and move the softness if the batch is full."""
    gradient, num_finished = lessons.gradient + product, lessons.num_finished + 1
    step = constants.step_size * lessons.softness * gradient / constants.batch
    most = constants.most_step
    moved = lessons.softness * jnp.exp(jnp.clip(step, -most, most))
    is_full = num_finished >= constants.batch
    return lessons._replace(
        softness=jnp.where(is_full, jnp.clip(moved, *_SOFTNESS_RANGE), lessons.softness),
        gradient=jnp.where(is_full, 0.0, gradient),
        num_finished=jnp.where(is_full, 0, num_finished),
    )


@jax.jit
def _probabilities(
    softness: Scalar, table: Statistics, user: UserIndex, constants: Constants, arms: ArmIndices
) -> ArmVector:
    own = _row(table, user)
    own = own if arms is None else Statistics(*(part[arms] for part in own))
    return jax.nn.softmax(elimination(own, constants.top, constants.variance) / softness**2)
