"""UCB with hidden features, learned by coordinate descent (hLinUCB; Wang, Wu and Wang, CIKM 2016).

A reward is linear in features of which some are seen and l are hidden: r = (x, v)ᵀθ + noise. As
published, arms have the features and users own the weights; transposed (`hlinucb-t`), users have
the features and arms own the weights. With z = (x, v̂), the owner of the weights and the owner of
the hidden features keep

    A = λI + Σ z zᵀ,     b = Σ z r,               θ̂ = A⁻¹ b
    C = λI + Σ θ̂ᵛ θ̂ᵛᵀ,   d = Σ θ̂ᵛ (r - xᵀθ̂ˣ),   v̂ = C⁻¹ d

and the arm with the highest zᵀθ̂ + α √(zᵀA⁻¹z) + α₂ √(θ̂ᵛᵀC⁻¹θ̂ᵛ) is chosen. Every reward makes one
sweep, first θ̂ with the v̂ held, then v̂ with the new θ̂; what older rewards were entered with
stays. Hidden features start at random: from v̂ = 0 the sweeps would never leave θ̂ᵛ = 0.

The formulas are those of its authors' code (HCDM/BanditLib, lib/hLinUCB.py), with every reward
entered at once. There v̂ starts at zero by default, which learns nothing hidden, or uniformly on
[0, 1), and so do a newcomer's weights; here v̂ starts around zero, and weights at zero. Its authors
recommend articles with known features to users who come back for long. Here arms have
no features, so as published x is one-hot(arm); products with the context would be collinear with
it, since within one user's own weights the context is a constant. Transposed, x is the terms of
the context, expected where values are missing. Least squares takes rewards of any law, yes or no
included. After a correction, a withdrawal, another context or a new arm it is refitted from all
rewards in their order. An update costs one sweep, and a decision one per arm.

Of the six criteria, `hlinucb` does not meet multi-task: hidden features of arms are shared, but a
newcomer's weights are zero and say nothing of which arm is good. Nor does it meet concurrent
interaction: rewards may come from anybody in any order, but what others earn with an arm moves only
the length of its hidden features, not whether a user is expected to like it. `hlinucb-t` meets
both: what users have in common is learned. Partial context: met by both, since a user's rewards of
one arm move what is expected of the others, through θ̂ᵛ of the user or v̂ of the user.
Nonparametric latent structure: not applicable, the reward is bilinear in l dimensions and no law of
users is held. Distinction of uncertainties: no, two bonuses tell the owner of weights from the
owner of features, but only their sum is used. Dynamic recruitment: yes, anybody may join.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from cocobandits.checks import check_numbers, check_whole
from cocobandits.models.features import FeatureKinds, expected_terms, num_terms
from cocobandits.models.histories import Change, UserTable
from cocobandits.policies.base import Arms, Problem, SequentialPolicy, with_rows
from cocobandits.policies.hidden_features import (
    HiddenState,
    Scales,
    Sums,
    Turn,
    swept,
    upper_bound,
)
from cocobandits.policies.ucb import highest_probability
from cocobandits.types import ArmVector, Number, PossibleContext, RngKey, Scalar

# α and α₂; None for the schedule of both.
Alphas = tuple[Number | None, Number]
_MOST_HIDDEN = 100


@dataclass(frozen=True)
class HlinucbSettings:
    """What both forms are told, in standardised units.

    Attributes:
        num_hidden: l.
        ridge: λ, of weights and of hidden features.
        alpha: α; None for the authors' schedule 0.1 √log(t+1) + 0.1 (1 - 0.8ᵗ), after t rewards of
            whoever owns the weights, and of α₂ too, after t of whoever owns the hidden features.
        hidden_alpha: α₂, unless it has the schedule.
        start_deviation: of the hidden features that somebody without rewards is given.
    """

    num_hidden: int = 2
    ridge: float = 0.1
    alpha: float | None = 0.3
    hidden_alpha: float = 0.1
    start_deviation: float = 0.03

    def __post_init__(self) -> None:
        check_whole(self, "num_hidden", most=_MOST_HIDDEN, remedy="Use for example 2.")
        check_numbers(self, "positive", "ridge")
        check_numbers(self, "not negative", "hidden_alpha", "start_deviation")
        if self.alpha is not None:
            check_numbers(self, "not negative", "alpha")


class Form(NamedTuple):
    """Who owns what: as published arms have the features; transposed, users have them."""

    is_transposed: bool
    num_arms: int
    features: FeatureKinds

    def turn(self, user: Int[Array, ""], arm: Int[Array, ""], context: PossibleContext) -> Turn:
        """Say whose sums a reward enters, and its seen features."""
        if self.is_transposed:
            return Turn(arm, user, expected_terms(self.features, context))
        return Turn(user, arm, (jnp.arange(self.num_arms) == arm).astype(float))


class HlinucbPolicy(SequentialPolicy[HiddenState]):
    """Learn hidden features and weights in turn, and be optimistic about both."""

    def __init__(
        self, problem: Problem, settings: HlinucbSettings, is_transposed: bool = False
    ) -> None:
        self.problem = problem
        self.settings = settings
        self.is_transposed = is_transposed
        self._form = Form(is_transposed, problem.num_arms, problem.features)
        self._scales = Scales(float(settings.ridge), float(settings.start_deviation))
        hidden_alpha = float(settings.hidden_alpha)
        self._alphas = (None if settings.alpha is None else float(settings.alpha)), hidden_alpha

    def init(self, rng_key: RngKey) -> HiddenState:
        """Start without users; the key is kept for the hidden features of whoever comes."""
        num_arms, num_hidden = self.problem.num_arms, self.settings.num_hidden
        num_seen = num_terms(self.problem.features) if self._form.is_transposed else num_arms
        owners = (num_arms, 0) if self._form.is_transposed else (0, num_arms)
        return HiddenState(
            Sums.empty(owners[0], num_seen + num_hidden),
            Sums.empty(owners[1], num_hidden),
            jax.random.key_data(rng_key),
        )

    def enrol(self, state: HiddenState, users: UserTable) -> HiddenState:
        """Make room for as many users as the table has."""
        size = len(users.contexts)
        if self._form.is_transposed:
            return state._replace(features=with_rows(state.features, size))
        return state._replace(weights=with_rows(state.weights, size))

    def update(
        self, rng_key: RngKey, state: HiddenState, change: Change
    ) -> tuple[HiddenState, None]:
        """Enter one more reward."""
        del rng_key
        return _enter(self._form, state, change, self._scales), None

    def probabilities(
        self, state: HiddenState, users: UserTable, user: int, arms: Arms = None
    ) -> ArmVector:
        """Give all probability to the highest upper bound."""
        return highest_probability(self.scores(state, users, user), arms)

    def scores(self, state: HiddenState, users: UserTable, user: int) -> ArmVector:
        """Compute every arm's upper bound for a user."""
        context = users.of(user)[0]
        numbers = self._scales, self._alphas
        return _scores(self._form, state, jnp.asarray(user), context, numbers)

    def widened(self, problem: Problem) -> "HlinucbPolicy":
        """Make the same policy for a problem with another arm."""
        return HlinucbPolicy(problem, self.settings, self.is_transposed)


@partial(jax.jit, static_argnames="form")
def _enter(form: Form, state: HiddenState, change: Change, scales: Scales) -> HiddenState:
    turn = form.turn(change.user, change.added.arm, change.context)
    return swept(state, turn, change.added.reward, scales)


@partial(jax.jit, static_argnames="form")
def _scores(
    form: Form,
    state: HiddenState,
    user: Int[Array, ""],
    context: PossibleContext,
    numbers: tuple[Scales, Alphas],
) -> ArmVector:
    scales, alphas = numbers

    def bound(arm: Int[Array, ""]) -> Float[Array, ""]:
        turn = form.turn(user, arm, context)
        return upper_bound(state, turn, scales, _alphas(state, turn, alphas))

    return jax.vmap(bound)(jnp.arange(form.num_arms))


def _alphas(state: HiddenState, turn: Turn, alphas: Alphas) -> tuple[Number, Number]:
    alpha, hidden_alpha = alphas
    if alpha is not None:
        return alpha, hidden_alpha
    weights, features = state.weights.of(turn.weight_owner), state.features.of(turn.feature_owner)
    return _scheduled(weights.num_terms), _scheduled(features.num_terms)


def _scheduled(num_rewards: Scalar) -> Scalar:
    return 0.1 * jnp.sqrt(jnp.log(num_rewards + 1)) + 0.1 * (1 - 0.8**num_rewards)
