"""UCB with hidden features, learned by coordinate descent (hLinUCB; Wang, Wu and Wang, CIKM 2016).

A reward is linear in features of which some are seen and l are hidden: r = (x, v)ᵀθ + noise. As
published, arms have the features and users own the weights; transposed (`hlinucb-t`), users have
the features and arms own the weights. With z = (x, v̂), the owner of the weights and the owner of
the hidden features keep

    A = λI + Σ z zᵀ,     b = Σ z r,               θ̂ = A⁻¹ b
    C = λI + Σ θ̂ᵛ θ̂ᵛᵀ,   d = Σ θ̂ᵛ (r - xᵀθ̂ˣ),   v̂ = C⁻¹ d

and the arm with the highest zᵀθ̂ + α √(zᵀA⁻¹z) + α₂ √(θ̂ᵛᵀC⁻¹θ̂ᵛ) is chosen. Every reward makes one
sweep, first θ̂ with the v̂ held, then v̂ with the new θ̂; the terms of older rewards stay. Hidden
features start at random: from v̂ = 0 the sweeps would never leave θ̂ᵛ = 0.

The formulas are those of its authors' code (HCDM/BanditLib, lib/hLinUCB.py), with every reward
entered at once. There v̂ starts at zero by default, which learns nothing hidden, or uniformly on
[0, 1), and so do a newcomer's weights; here v̂ starts around zero, and weights at zero. Its authors
have articles with known features. Here arms have none, so as published x is one-hot(arm); products
with the context would be collinear with it, since a user's own context is a constant. Transposed, x
is the terms of the context, expected where values are missing.

Of the paper's Table 1, `hlinucb` meets neither multi-task learning nor concurrent interaction: a
newcomer's weights are zero, and others' rewards change only the length of an arm's hidden features,
not whether a user is expected to like it. `hlinucb-t` meets both. Both meet partial context, as a
user's rewards of one arm change θ̂ᵛ or v̂ of the user, and with it all arms.
"""

from functools import partial
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float, Int, UInt32

from cocobandits.checks import check_numbers, check_whole
from cocobandits.display import Line
from cocobandits.policies.base import (
    Arms,
    Problem,
    SequentialPolicy,
    UserIndex,
    highest_probability,
    with_rows,
)
from cocobandits.policies.description import PolicySettings, description
from cocobandits.populations.features import FeatureKinds, expected_terms, num_terms
from cocobandits.types import ArmVector, Number, PossibleContext, RngKey
from cocobandits.users.table import Change, UserTable


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
        check_whole(self, "num_hidden", most=100, remedy="Use for example 2.")
        check_numbers(self, "positive", "ridge")
        check_numbers(self, "not negative", "alpha", "hidden_alpha", "start_deviation")


@description(
    "hlinucb-t",
    label="hLinUCB-T",
    line=Line("#E69F00", "-", 1.2),
    table_one="++/-++",
    published="",
    knows="learns latent features of users, and weights of arms",
)
class HLinUCBT(HLinUCB):
    """hLinUCB transposed: UCB with hidden features of users; see `HLinUCB`."""

    is_transposed: ClassVar[bool] = True


class Sums(NamedTuple):
    """Σ φφᵀ and Σ φ y of every owner, and the number of terms; λI is added when solving."""

    precision: Float[Array, "*owner size size"]
    shift: Float[Array, "*owner size"]
    num_terms: Float[Array, "*owner"]

    @classmethod
    def empty(cls, num_owners: int, size: int) -> "Sums":
        """Make the sums of owners without rewards."""
        shapes = (num_owners, size, size), (num_owners, size), (num_owners,)
        return cls(*map(jnp.zeros, shapes))

    def of(self, owner: UserIndex) -> "Sums":
        """Select the sums of one owner."""
        return jax.tree.map(lambda leaf: leaf[owner], self)

    def adding(self, owner: UserIndex, features: Float[Array, " size"], target: Number) -> "Sums":
        """Add the term of one reward to an owner's sums."""
        return Sums(
            self.precision.at[owner].add(jnp.outer(features, features)),
            self.shift.at[owner].add(target * features),
            self.num_terms.at[owner].add(1.0),
        )

    def solved(self, ridge: Number, columns: Float[Array, "size column"]) -> Array:
        """Solve with the ridged precision of one owner."""
        return cho_solve(cho_factor(self.precision + ridge * jnp.eye(len(columns))), columns)

    def solution(self, ridge: Number) -> Float[Array, " size"]:
        """Compute the ridge regression of one owner."""
        return self.solved(ridge, self.shift[:, None])[:, 0]


class UcbState(NamedTuple):
    """The sums of all owners, and the key of random starts."""

    weights: Sums  # A and b
    features: Sums  # C and d
    key_words: UInt32[Array, " word"]


class Constants(NamedTuple):
    """The settings as numbers."""

    ridge: Number
    start_deviation: Number
    alpha: Number
    hidden_alpha: Number


class Turn(NamedTuple):
    """A user and an arm: who owns the weights, who the hidden features, and the seen features x."""

    weight_owner: UserIndex
    feature_owner: UserIndex
    seen: Float[Array, " seen"]


class Form(NamedTuple):
    """The static part of a problem."""

    is_transposed: bool
    num_arms: int
    features: FeatureKinds

    def turn(self, user: UserIndex, arm: Int[Array, ""], context: PossibleContext) -> Turn:
        """Describe a user and an arm."""
        if self.is_transposed:
            return Turn(arm, user, expected_terms(self.features, context))
        return Turn(user, arm, (jnp.arange(self.num_arms) == arm).astype(float))


class HlinucbPolicy(SequentialPolicy[UcbState], settings=HLinUCB):
    """Learn hidden features and weights in turn, and be optimistic about both."""

    def __init__(self, problem: Problem, settings: HLinUCB) -> None:
        super().__init__(problem, settings)
        self._form = Form(settings.is_transposed, problem.num_arms, problem.features)
        self._constants = Constants(*(float(getattr(settings, x)) for x in Constants._fields))

    def init(self, rng_key: RngKey) -> UcbState:
        """Start without users; the key is kept for the hidden features of newcomers."""
        num_arms, num_hidden = self.problem.num_arms, self.settings.num_hidden
        num_seen = num_terms(self.problem.features) if self._form.is_transposed else num_arms
        owners = (num_arms, 0) if self._form.is_transposed else (0, num_arms)
        return UcbState(
            Sums.empty(owners[0], num_seen + num_hidden),
            Sums.empty(owners[1], num_hidden),
            jax.random.key_data(rng_key),
        )

    def enrol(self, state: UcbState, users: UserTable) -> UcbState:
        """Make room for as many users as the table has."""
        size = len(users.contexts)
        if self._form.is_transposed:
            return state._replace(features=with_rows(state.features, size))
        return state._replace(weights=with_rows(state.weights, size))

    def update(self, rng_key: RngKey, state: UcbState, change: Change) -> tuple[UcbState, None]:
        """Enter one more reward."""
        return _enter(self._form, state, change, self._constants), None

    def probabilities(self, state: UcbState, users: UserTable, user: int, arms: Arms) -> ArmVector:
        """Give all probability to the highest upper bound."""
        return highest_probability(self.scores(state, users, user), arms)

    def scores(self, state: UcbState, users: UserTable, user: int) -> ArmVector:
        """Compute every arm's upper bound for a user."""
        context = users.of(user)[0]
        return _scores(self._form, state, jnp.asarray(user), context, self._constants)


def hidden_features(state: UcbState, turn: Turn, constants: Constants) -> Float[Array, " hidden"]:
    """Compute v̂ = C⁻¹ d; a random start, drawn from the owner's number, without rewards."""
    own = state.features.of(turn.feature_owner)
    key = jax.random.fold_in(jax.random.wrap_key_data(state.key_words), turn.feature_owner)
    start = constants.start_deviation * jax.random.normal(key, own.shift.shape)
    return jnp.where(own.num_terms > 0, own.solution(constants.ridge), start)


@partial(jax.jit, static_argnames="form")
def _enter(form: Form, state: UcbState, change: Change, constants: Constants) -> UcbState:
    """Enter one reward: first into A and b with v̂ held, then into C and d with the new θ̂."""
    turn, reward = form.turn(change.user, change.added.arm, change.context), change.added.reward
    hidden = hidden_features(state, turn, constants)
    weights = state.weights.adding(turn.weight_owner, jnp.concatenate([turn.seen, hidden]), reward)
    theta = weights.of(turn.weight_owner).solution(constants.ridge)
    num_seen = len(turn.seen)
    residual = reward - turn.seen @ theta[:num_seen]
    features = state.features.adding(turn.feature_owner, theta[num_seen:], residual)
    return state._replace(weights=weights, features=features)


@partial(jax.jit, static_argnames="form")
def _scores(
    form: Form, state: UcbState, user: UserIndex, context: PossibleContext, constants: Constants
) -> ArmVector:
    """Compute zᵀθ̂ + α √(zᵀA⁻¹z) + α₂ √(θ̂ᵛᵀC⁻¹θ̂ᵛ) of every arm."""
    ridge, _, alpha, hidden_alpha = constants

    def bound(arm: Int[Array, ""]) -> Float[Array, ""]:
        turn = form.turn(user, arm, context)
        z = jnp.concatenate([turn.seen, hidden_features(state, turn, constants)])
        own = state.weights.of(turn.weight_owner)
        theta, spread = own.solved(ridge, jnp.stack([own.shift, z], axis=1)).T
        inner = theta[len(turn.seen) :]
        hidden_spread = state.features.of(turn.feature_owner).solved(ridge, inner[:, None])[:, 0]
        return (
            z @ theta
            + alpha * jnp.sqrt(z @ spread)
            + hidden_alpha * jnp.sqrt(inner @ hidden_spread)
        )

    return jax.vmap(bound)(jnp.arange(form.num_arms))
