"""Kernel UCB whose tasks are the arms (KMTL-UCB; Deshmukh, Dogan and Scott, NIPS 2017).

Rewards of an arm in a context are a function in the reproducing space of a product kernel, fitted
by kernel ridge regression in which every arm counts the same, however often it was played:

    k((x, a), (x', a')) = S_aa' exp(-γ_x |x - x'|²),   η = diag(1 / rewards of the row's arm)
    f̂(x, a) = k_xᵀ (ηK + γI)⁻¹ η y,   s²(x, a) = k(x, x) - k_xᵀ (ηK + γI)⁻¹ η k_x

and the arm with the highest f̂ + α s is chosen. S says how alike arms are. As published it is
estimated from contexts: with E_ij the average of exp(-γ_s |x - x'|²) over the contexts of arms i
and j, S_ij = exp(-c (E_ii + E_jj - 2 E_ij)). The authors compare it with S = I (independent). The
estimate by rewards is ours: the same formula, for contexts and users' average rewards together.

Its authors (code: aniketde/MultiTaskLearningContextualBandits) give every arm once at first, choose
γ, γ_x, γ_s and c by cross-validation, mostly c = 28 or 100, and have α = 0.1 for rewards on [0, 1].
Here no arm is forced, c = 100, and S is by rewards by default; with that c it is near the identity,
unless arms earn the same. They see a new context at every step and no user twice. Here x is a
user's features (on [-1, 1], categories one-hot, expected values where some are missing), the same
at all of the user's steps. Rewards of one user and arm have the same kernel row, so they are merged
without loss into one row with their average and η = their share of the arm's rewards. All users are
offered the same arms, so the policy itself chooses the contexts of an arm: arms given in the same
contexts look alike to the published S, whatever they earn. As published, only the context
distinguishes users; a `user_share` τ adds τ S_aa' to the kernel of a user with itself. A decision
factors a matrix with a row per pair of user and arm with rewards, O(rows³).

Of the paper's Table 1 it does not meet partial context: beyond the context, a user's rewards affect
other arms by S alone, as much for everybody in that context; with `user_share` and S ≠ I it does. A
nonparametric latent structure is not applicable: f̂ is nonparametric, but nothing is latent.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Bool, Float, Int

from cocobandits.checks import check_choice, check_numbers
from cocobandits.display import Line
from cocobandits.policies.base import Arms, PlainPolicy, Problem, UserIndex, highest_probability
from cocobandits.policies.description import PolicySettings, description
from cocobandits.populations.features import FeatureKinds, expected_terms
from cocobandits.types import ArmVector, Number
from cocobandits.users.table import UserTable

Points = Float[Array, "_ feature"]
# Rows are padded to a multiple of this, so that few shapes are compiled.
_ROW_BLOCK = 128


@description(
    "kmtl-ucb",
    label="KMTL-UCB",
    line=Line("#56B4E9", (0, (4, 1.5, 1, 1.5)), 1.2),
    table_one="+-/-++",
    published="+-/---",
    chooses="upper confidence bounds",
    knows="learns kernel regressions of arms on the context",
)
class KmtlUCB(PolicySettings):
    """Kernel UCB whose tasks are the arms, in standardised units.

    Attributes:
        similarity: S: "contexts" as published, "rewards" by contexts and rewards, "independent".
        bandwidth: γ_x, of features on [-1, 1].
        ridge: γ.
        alpha: α.
        contrast: c, of the estimated S.
        similarity_bandwidth: γ_s, of the estimated S; rewards are put on [-1, 1] too.
        user_share: τ, how much a user's own deviation adds to the kernel; 0 is as published.
    """

    similarity: str = "rewards"
    bandwidth: float = 1.0
    ridge: float = 0.001
    alpha: float = 1.0
    contrast: float = 100.0
    similarity_bandwidth: float = 1.0
    user_share: float = 0.0

    def __post_init__(self) -> None:
        check_choice(self, "similarity", ("independent", "contexts", "rewards"))
        check_numbers(self, "positive", "ridge")
        check_numbers(self, "not negative", "bandwidth", "alpha", "contrast", "user_share")
        check_numbers(self, "not negative", "similarity_bandwidth")


class Numbers(NamedTuple):
    """The settings as numbers, which are traced: others compile nothing new."""

    similarity: Float[Array, "arm other"] | None  # if it is not estimated
    reward_scale: Number  # weight of rewards in the estimated S
    bandwidth: Number
    ridge: Number
    alpha: Number
    contrast: Number
    similarity_bandwidth: Number
    user_share: Number


class Rows(NamedTuple):
    """Pairs of a user and an arm with rewards, then padding."""

    users: Int[Array, " row"]
    arms: Int[Array, " row"]
    is_pair: Bool[Array, " row"]


class KmtlUcbPolicy(PlainPolicy, settings=KmtlUCB):
    """Regress rewards on context and arm, and be optimistic where few were alike."""

    def __init__(self, problem: Problem, settings: KmtlUCB) -> None:
        super().__init__(problem, settings)
        similarity = jnp.eye(problem.num_arms) if settings.similarity == "independent" else None
        low, high = problem.reward_range
        reward_scale = 2 / (high - low) if settings.similarity == "rewards" else 0.0
        numbers = [float(getattr(settings, name)) for name in Numbers._fields[2:]]
        self._numbers = Numbers(similarity, reward_scale, *numbers)

    def probabilities(self, state: None, users: UserTable, user: int, arms: Arms) -> ArmVector:
        """Give all probability to the highest upper bound."""
        return highest_probability(self.scores(state, users, user), arms)

    def scores(self, state: None, users: UserTable, user: int) -> ArmVector:
        """Compute every arm's upper bound for a user."""
        rows, features = _rows(users), self.problem.features
        return _scores(features, users, rows, jnp.asarray(user), self._numbers)


def _rows(table: UserTable) -> Rows:
    """List the pairs with rewards."""
    users, arms = np.nonzero(np.asarray(table.statistics.count))
    size = max(-(-len(users) // _ROW_BLOCK), 1) * _ROW_BLOCK
    padding = (0, size - len(users))
    is_pair = jnp.asarray(np.arange(size) < len(users))
    return Rows(jnp.asarray(np.pad(users, padding)), jnp.asarray(np.pad(arms, padding)), is_pair)


@partial(jax.jit, static_argnames="kinds")
def _scores(
    kinds: FeatureKinds, table: UserTable, rows: Rows, user: UserIndex, numbers: Numbers
) -> ArmVector:
    """Compute f̂ + α s for every arm, with the symmetric root: (ηK + γI)⁻¹η = √η (√ηK√η + γI)⁻¹√η.

    Padding has η = 0, and so no effect.
    """
    points = jax.vmap(partial(expected_terms, kinds))(table.contexts)[:, 1:]
    counts = jnp.where(rows.is_pair, table.statistics.count[rows.users, rows.arms], 0.0)
    totals = jnp.where(rows.is_pair, table.statistics.total[rows.users, rows.arms], 0.0)
    share = counts / jnp.maximum(jnp.sum(table.statistics.count, axis=0), 1.0)[rows.arms]
    seen, averages = points[rows.users], totals / jnp.maximum(counts, 1.0)
    near = _radial(seen, seen, numbers.bandwidth)
    similarity = numbers.similarity
    if similarity is None:
        compared = jnp.concatenate([seen, numbers.reward_scale * averages[:, None]], axis=1)
        similarity = _estimate_similarity(compared, share, rows, table, numbers)
    is_own = rows.users[:, None] == rows.users[None, :]
    kernel = similarity[rows.arms][:, rows.arms] * (near + numbers.user_share * is_own)
    here = _radial(seen, points[user][None], numbers.bandwidth)[:, 0]
    here = here + numbers.user_share * (rows.users == user)
    root = jnp.sqrt(share)
    asked = (root * here)[:, None] * similarity[rows.arms]
    weighted = root[:, None] * kernel * root[None, :] + numbers.ridge * jnp.eye(len(root))
    columns = jnp.concatenate([(root * averages)[:, None], asked], axis=1)
    solved = cho_solve(cho_factor(weighted), columns)
    prior = jnp.diagonal(similarity) * (1 + numbers.user_share)
    variance = prior - jnp.sum(asked * solved[:, 1:], axis=0)
    return asked.T @ solved[:, 0] + numbers.alpha * jnp.sqrt(jnp.maximum(variance, 0.0))


def _radial(first: Points, second: Points, bandwidth: Number) -> Float[Array, "..."]:
    """Compute exp(-γ |x - x'|²)."""
    squares = jnp.sum(first**2, axis=1)[:, None] + jnp.sum(second**2, axis=1)[None, :]
    return jnp.exp(jnp.minimum(2 * first @ second.T - squares, 0.0) * bandwidth)


def _estimate_similarity(
    compared: Points, share: Float[Array, " row"], rows: Rows, table: UserTable, numbers: Numbers
) -> Float[Array, "arm other"]:
    """Compare the contexts, and maybe rewards, of arms; one without rewards is like no other."""
    near = _radial(compared, compared, numbers.similarity_bandwidth)
    has_rewards = jnp.sum(table.statistics.count, axis=0) > 0
    num_arms = len(has_rewards)
    weights = share[:, None] * jax.nn.one_hot(rows.arms, num_arms, dtype=share.dtype)
    means = weights.T @ near @ weights
    own = jnp.diagonal(means)
    alike = jnp.exp((2 * means - own[:, None] - own[None, :]) * numbers.contrast)
    is_seen = has_rewards[:, None] & has_rewards[None, :]
    return jnp.where(is_seen, alike, jnp.eye(num_arms))
