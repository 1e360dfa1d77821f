"""Thompson sampling with a Gaussian linear mixed model (MTTS; Wan, Ge and Song, NeurIPS 2021).

Its authors assume that arm means are linear in known features, with coefficients shared by all
users, and that each user deviates from that line by independent Gaussians of a known size:

    θ ~ N(m, v I),   μ_i = Φ(x_i) θ + δ_i,   δ_i ~ N(0, s² I),   r = μ_ia + N(0, σ²)

Everything is Gaussian, so the posterior is exact. A user's average reward of an arm is all that
arm's rewards say about θ, with variance s² + σ²/n; the sums of those terms are the whole memory,
and a changed statistic replaces its own terms: O(d³ + K) per update, whoever came before.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.errors import ConfigurationError, UnsupportedError
from cocobandits.models.base import Belief, Statistics
from cocobandits.models.features import FeatureKinds, expected_terms, num_terms
from cocobandits.models.gaussian_belief import GaussianBelief
from cocobandits.models.histories import Change, UserTable
from cocobandits.policies.base import Arms, Policy, Problem, Readings
from cocobandits.types import ArmVector, Number, PossibleContext, RngKey

Design = Float[Array, "arm coefficient"]


@dataclass(frozen=True)
class MttsSettings:
    """What the mixed model is told, in standardised units.

    Attributes:
        design: arm × coefficient × term of the context, as nested tuples: Φ(x) is linear in
            (1, x). None gives every arm its own line: one-hot(arm) ⊗ (1, x).
        coefficient_mean: m, the same for all coefficients.
        coefficient_deviation: √v.
        user_deviation: s.
    """

    design: Any = None
    coefficient_mean: float = 0.0
    coefficient_deviation: float = 1.0
    user_deviation: float = 0.5

    def __post_init__(self) -> None:
        if self.design is not None:
            # Lists come back from JSON; tuples can be hashed.
            rows = tuple(tuple(tuple(terms) for terms in arm) for arm in self.design)
            object.__setattr__(self, "design", rows)
        if not np.isfinite(self.coefficient_mean):
            raise ConfigurationError(
                f"Expected a finite number; got coefficient_mean={self.coefficient_mean}. Use 0."
            )
        for name in ("coefficient_deviation", "user_deviation"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise ConfigurationError(
                    f"Expected a positive number; got {name}={value}. Give a positive value."
                )

    def tensor(self, problem: Problem) -> "np.ndarray[tuple[int, int, int], np.dtype[np.float64]]":
        """Lay out the design for a problem.

        Raises:
            ConfigurationError: the given design does not fit it.
        """
        terms = num_terms(problem.features)
        if self.design is None:
            eye = np.eye(problem.num_arms * terms)
            return eye.reshape(problem.num_arms, terms, -1).transpose(0, 2, 1)
        try:
            tensor = np.array(self.design, dtype=float)
        except (TypeError, ValueError):
            tensor = np.zeros(0)  # rows of unequal length, or not of numbers
        is_fitting = tensor.ndim == 3 and tensor.shape[::2] == (problem.num_arms, terms)
        if not is_fitting or not np.all(np.isfinite(tensor)):
            raise ConfigurationError(
                f"Expected a design of {problem.num_arms} arms × coefficients × {terms} terms, all "
                f"finite; got shape {tensor.shape}. Give one row per arm."
            )
        return tensor


class Sums(NamedTuple):
    """The coefficients are N(precision⁻¹ shift, precision⁻¹)."""

    precision: Float[Array, "coefficient coefficient"]
    shift: Float[Array, " coefficient"]


class MttsState(NamedTuple):
    """All users, and what their rewards say about the coefficients."""

    users: UserTable
    sums: Sums


class MttsPolicy(Policy[MttsState]):
    """Learn one line for all users, and each user's deviation from it."""

    def __init__(self, problem: Problem, settings: MttsSettings) -> None:
        self.problem = problem
        self._noise = problem.known_noise()
        self.settings = settings
        self._tensor = jnp.asarray(settings.tensor(problem))

    @property
    def mean_range(self) -> tuple[float, float]:
        """The declared range; Gaussian tails reach beyond it."""
        return self.problem.reward_range

    def init(self, rng_key: RngKey) -> MttsState:
        """Start from the prior of the coefficients."""
        del rng_key
        users = UserTable.empty(len(self.problem.features), self.problem.num_arms)
        num_coefficients = self._tensor.shape[1]
        precision = jnp.eye(num_coefficients) / self.settings.coefficient_deviation**2
        mean = jnp.full(num_coefficients, float(self.settings.coefficient_mean))
        return MttsState(users, Sums(precision, precision @ mean))

    def users(self, state: MttsState) -> UserTable:
        """Read the users."""
        return state.users

    def enrol(self, state: MttsState, context: PossibleContext) -> MttsState:
        """Add a row; a context alone says nothing about the coefficients."""
        return state._replace(users=state.users.append(context))

    def update(
        self,
        rng_key: RngKey,
        state: MttsState,
        user: int,
        statistics: Statistics,
        context: PossibleContext | None = None,
    ) -> tuple[MttsState, None]:
        """Replace the user's terms in the sums."""
        del rng_key
        change = Change.of(state.users, user, statistics, context)
        before, now = change.table.of(user)[0], change.context
        variances = self.settings.user_deviation**2, self._noise**2
        nothing = Statistics.empty(self.problem.num_arms)
        old = state.users.of(user)[1]
        without = _replace_terms(state.sums, self._design(before), old, nothing, variances)
        sums = _replace_terms(without, self._design(now), nothing, statistics, variances)
        return MttsState(change.applied(), sums), None

    def probabilities(self, state: MttsState, user: int, arms: Arms = None) -> ArmVector:
        """Compute P(arm is best) for a user."""
        chosen = None if arms is None else jnp.asarray(arms)
        return _best_probability(self._belief(state, *state.users.of(user)), chosen)

    def add_arm(self, rng_key: RngKey, state: MttsState) -> tuple["MttsPolicy", MttsState]:
        """Give the new arm its own line, of which nothing is known.

        Raises:
            UnsupportedError: the design was given for the arms there were.
        """
        del rng_key
        if self.settings.design is not None:
            raise UnsupportedError(
                "Expected mtts without a design of its own; got settings.mtts.design for "
                f"{self.problem.num_arms} arms. Start a new study with a row for every arm."
            )
        policy = MttsPolicy(self.problem.with_arm(), self.settings)
        fresh = policy.init(jax.random.key(0)).sums
        size = len(state.sums.shift)
        sums = Sums(
            fresh.precision.at[:size, :size].set(state.sums.precision),
            fresh.shift.at[:size].set(state.sums.shift),
        )
        return policy, MttsState(state.users.with_arm(), sums)

    def read(
        self,
        state: MttsState,
        context: PossibleContext,
        statistics: Statistics,
        read_fn: Callable[[Belief], Any],
    ) -> Readings:
        """Read off the one belief there is."""
        values = _read(read_fn, self._belief(state, context, statistics))
        return Readings(jnp.zeros(1), jax.tree.map(lambda leaf: leaf[None], values))

    def prior(self, state: MttsState, context: PossibleContext) -> GaussianBelief:
        """Return N(Φ θ̂, Φ Λ⁻¹ Φᵀ + s² I)."""
        return self._belief(state, context, Statistics.empty(self.problem.num_arms))

    def _design(self, context: PossibleContext) -> Design:
        return _design(self.problem.features, self._tensor, context)

    def _belief(
        self, state: MttsState, context: PossibleContext, statistics: Statistics
    ) -> GaussianBelief:
        return _belief(
            state.sums,
            self._design(context),
            statistics,
            self.settings.user_deviation**2,
            self._noise,
        )


@partial(jax.jit, static_argnames="kinds")
def _design(
    kinds: FeatureKinds, tensor: Float[Array, "arm coefficient term"], context: PossibleContext
) -> Design:
    return tensor @ expected_terms(kinds, context)


@jax.jit
def _replace_terms(
    sums: Sums,
    design: Design,
    before: Statistics,
    after: Statistics,
    variances: tuple[Number, Number],
) -> Sums:
    """Take the user's old terms out of Λ and h, and put the new ones in."""
    user_variance, noise_variance = variances

    def terms(statistics: Statistics) -> tuple[ArmVector, ArmVector]:
        # n/(n s² + σ²) is 1/(s² + σ²/n), and zero without rewards.
        scale = statistics.count * user_variance + noise_variance
        return statistics.count / scale, statistics.total / scale

    (old_weight, old_pull), (new_weight, new_pull) = terms(before), terms(after)
    return Sums(
        sums.precision + design.T @ ((new_weight - old_weight)[:, None] * design),
        sums.shift + design.T @ (new_pull - old_pull),
    )


@partial(jax.jit, static_argnames="reward_noise")
def _belief(
    sums: Sums,
    design: Design,
    statistics: Statistics,
    user_variance: Number,
    reward_noise: float,
) -> GaussianBelief:
    """Combine the line with the user's own rewards.

    The user's rewards are in θ̂ and Λ already; given θ, arms are independent with precision
    1/s² + n/σ², and the uncertainty of θ reaches each arm through the share c of the line in it.
    """
    data = statistics.count / reward_noise**2
    own_precision = 1 / user_variance + data
    line = design @ jnp.linalg.solve(*sums)
    mean = (line / user_variance + statistics.total / reward_noise**2) / own_precision
    share = (1 / user_variance / own_precision)[:, None] * design
    covariance = jnp.diag(1 / own_precision) + share @ jnp.linalg.solve(sums.precision, share.T)
    return GaussianBelief(jnp.zeros(1), mean[None], covariance[None], reward_noise)


@jax.jit
def _best_probability(belief: GaussianBelief, arms: Any) -> ArmVector:
    return (belief if arms is None else belief.among(arms)).best_probability()


@partial(jax.jit, static_argnames="read_fn")
def _read(read_fn: Callable[[Belief], Any], belief: GaussianBelief) -> Any:
    return read_fn(belief)
