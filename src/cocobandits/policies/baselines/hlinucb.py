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

from functools import partial
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from cocobandits.checks import check_numbers, check_whole
from cocobandits.display import Line
from cocobandits.models.features import FeatureKinds, expected_terms, num_terms
from cocobandits.models.histories import Change, UserTable
from cocobandits.policies.base import Arms, Problem, SequentialPolicy, with_rows
from cocobandits.policies.baselines.hidden_features import (
    HiddenState,
    Scales,
    Sums,
    Turn,
    swept,
    upper_bound,
)
from cocobandits.policies.baselines.ucb import highest_probability
from cocobandits.policies.description import PolicySettings, description
from cocobandits.types import ArmVector, Number, PossibleContext, RngKey

_MOST_HIDDEN = 100


@description(
    "hlinucb",
    label="hLinUCB",
    line=Line("#E69F00", (0, (2, 1.2)), 1.2),
    table_one="-+/-+-",
    published="-+----",
    chooses="upper confidence bounds",
    knows="learns latent features of arms",
)
class HLinUCB(PolicySettings):
    """UCB with hidden features of arms, in standardised units.

    Attributes:
        num_hidden: l.
        ridge: λ, of weights and of hidden features.
        alpha: α.
        hidden_alpha: α₂.
        start_deviation: of the hidden features that somebody without rewards is given.
    """

    is_transposed: ClassVar[bool] = False
    num_hidden: int = 2
    ridge: float = 0.1
    alpha: float = 0.3
    hidden_alpha: float = 0.1
    start_deviation: float = 0.03

    def __post_init__(self) -> None:
        check_whole(self, "num_hidden", most=_MOST_HIDDEN, remedy="Use for example 2.")
        check_numbers(self, "positive", "ridge")
        check_numbers(self, "not negative", "alpha", "hidden_alpha", "start_deviation")

    def build(self, problem: Problem) -> "HlinucbPolicy":
        """Build the policy for a problem."""
        return HlinucbPolicy(problem, self)


@description(
    "hlinucb-t",
    label="hLinUCB-T",
    line=Line("#E69F00", "-", 1.2),
    table_one="++/-++",
    published="",
    chooses="upper confidence bounds",
    knows="learns latent features of users, and weights of arms",
)
class HLinUCBT(HLinUCB):
    """hLinUCB transposed: UCB with hidden features of users; see `HLinUCB`."""

    is_transposed: ClassVar[bool] = True


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

    def __init__(self, problem: Problem, settings: HLinUCB) -> None:
        self.problem = problem
        self.settings = settings
        self._form = Form(settings.is_transposed, problem.num_arms, problem.features)
        self._scales = Scales(float(settings.ridge), float(settings.start_deviation))
        self._alphas = float(settings.alpha), float(settings.hidden_alpha)

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
        return HlinucbPolicy(problem, self.settings)


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
    numbers: tuple[Scales, tuple[Number, Number]],
) -> ArmVector:
    def bound(arm: Int[Array, ""]) -> Float[Array, ""]:
        return upper_bound(state, form.turn(user, arm, context), *numbers)

    return jax.vmap(bound)(jnp.arange(form.num_arms))
