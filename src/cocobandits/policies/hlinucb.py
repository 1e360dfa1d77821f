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
included. A user's rewards of an arm are remembered by the sums of what they were entered with. One
reward more is entered as published, and several at once as so many rewards of their average, arm by
arm. Any other change (a correction, a withdrawal, another context) takes the user out and enters
all of the user's rewards anew, with what the others have taught until now; what others were entered
with meanwhile stays. An update and a decision cost O(users · arms).

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

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from cocobandits.checks import check_numbers, check_whole
from cocobandits.models.histories import Change, UserTable
from cocobandits.policies.base import Arms, Policy, Problem, with_rows
from cocobandits.policies.hidden_features import (
    Entries,
    Form,
    HiddenState,
    Published,
    Scales,
    Transposed,
    completed,
    entered,
    hidden_features,
    solved,
    surroundings,
)
from cocobandits.policies.ucb import highest_probability
from cocobandits.types import ArmVector, Number, RngKey

# λ and start deviation, then α and α₂.
Numbers = tuple[Scales, tuple[Number | None, Number]]
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


class HlinucbPolicy(Policy[HiddenState]):
    """Learn hidden features and weights in turn, and be optimistic about both."""

    def __init__(
        self, problem: Problem, settings: HlinucbSettings, is_transposed: bool = False
    ) -> None:
        self.problem = problem
        self.settings = settings
        self.is_transposed = is_transposed
        self._form: Form = (Transposed if is_transposed else Published)(problem.features)
        self._scales = Scales(float(settings.ridge), float(settings.start_deviation))
        hidden_alpha = float(settings.hidden_alpha)
        self._alphas = (None if settings.alpha is None else float(settings.alpha)), hidden_alpha

    def init(self, rng_key: RngKey) -> HiddenState:
        """Start without users; the key is kept for the hidden features of whoever comes."""
        size = self.problem.num_arms, self.settings.num_hidden
        return HiddenState(Entries.empty(0, *size), jax.random.key_data(rng_key))

    def enrol(self, state: HiddenState, users: UserTable) -> HiddenState:
        """Make room for as many users as the table has."""
        return state._replace(entries=with_rows(state.entries, len(users.contexts)))

    def update(
        self, rng_key: RngKey, state: HiddenState, change: Change
    ) -> tuple[HiddenState, None]:
        """Enter further rewards; after any other change, enter all of the user's rewards again."""
        del rng_key
        return state._replace(entries=entered(self._form, state, change, self._scales)), None

    def probabilities(
        self, state: HiddenState, users: UserTable, user: int, arms: Arms = None
    ) -> ArmVector:
        """Give all probability to the highest upper bound."""
        return highest_probability(self.scores(state, users, user), arms)

    def scores(self, state: HiddenState, users: UserTable, user: int) -> ArmVector:
        """Compute every arm's upper bound for a user."""
        return _scores(self._form, state, users, jnp.asarray(user), (self._scales, self._alphas))

    def add_arm(
        self, rng_key: RngKey, state: HiddenState, users: UserTable
    ) -> tuple["HlinucbPolicy", HiddenState]:
        """Add an arm of which nobody has entered anything."""
        del rng_key, users
        problem = self.problem.with_arm()
        policy = HlinucbPolicy(problem, self.settings, self.is_transposed)
        entries = state.entries.padded(1, problem.num_arms)
        return policy, state._replace(entries=entries)


@partial(jax.jit, static_argnames="form")
def _scores(
    form: Form,
    state: HiddenState,
    users: UserTable,
    user: Int[Array, ""],
    numbers: Numbers,
) -> ArmVector:
    scales, alphas = numbers
    around = surroundings(form, state, users, user, scales)
    own = jax.tree.map(lambda leaf: leaf[user], state.entries)
    sums = completed(form, around, own)
    hidden = hidden_features(around, sums)
    known = jnp.concatenate([jnp.ones((len(hidden), 1)), hidden], axis=1)
    z = jnp.einsum("apq,aq->ap", around.lifts, known)
    columns = jnp.stack([sums.weight_shift, z], axis=2)
    theta, spread = jnp.moveaxis(solved(sums.weight_precision, columns), 2, 0)
    inner = theta[:, -hidden.shape[1] :]
    hidden_spread = solved(sums.feature_precision, inner[:, :, None])[:, :, 0]
    alpha, hidden_alpha = alphas
    if alpha is None:
        owned = form.rewards_of_weights(state.entries.features[..., 0, 0], user)
        alpha, hidden_alpha = _scheduled(owned), _scheduled(sums.count)
    bonus = hidden_alpha * jnp.sqrt(jnp.sum(inner * hidden_spread, axis=1))
    return jnp.sum(z * theta, axis=1) + alpha * jnp.sqrt(jnp.sum(z * spread, axis=1)) + bonus


def _scheduled(num_rewards: ArmVector) -> ArmVector:
    return 0.1 * jnp.sqrt(jnp.log(num_rewards + 1)) + 0.1 * (1 - 0.8**num_rewards)
