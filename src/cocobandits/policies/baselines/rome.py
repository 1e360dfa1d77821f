"""Robust mixed-effects Thompson sampling (RoME; Huch et al., NeurIPS 2024), with bagged ridge fits.

Arm 0 is the control. The advantage of any other arm over it is linear, with a part of θ for all and
one for each user, and is learned from pseudo-rewards that are right on average whatever the working
model f̂ of the reward says. With the candidate ā, the arm played A and π = P(A = 0 | ā):

    R̃ = f̂(ā) - f̂(0) + (R - f̂(A)) / (1[A = ā] - π),   σ̃² = π(1 - π)
    V = V₀ + Σ σ̃² φφᵀ,   b = Σ σ̃² R̃ φ,   θ̃ ~ N(V⁻¹b, (v β/β₁)² V⁻¹),   ā = argmax_{a≠0} φ_aᵀθ̃
    β = v √(2 log(2K(K + 1)/δ) + log det V̄ - log det Λ) + ζ max(1, (log K)^¾)

for K users, β₁ being β of as many users without rewards. V̄ = C V⁻¹ Cᵀ and Λ = C V⁻¹ V₀ V⁻¹ Cᵀ are
of the coefficients of the user who is served: C adds up the shared ones and the user's own. Control
is played with probability clip(P(φ_āᵀθ̃ ≤ 0)), and ā otherwise. f̂ is the average of ridge
regressions on the context, the arm and their products, each on a random bag of rewards; a poor f̂
makes pseudo-rewards noisier, not biased.

Its authors have two arms, contexts that change, effects of time as well, and a graph on which
neighbouring users are alike. Here contexts and arm means stay, so there are no effects of time.
There is no graph (λ = 0): the authors' is drawn from the true effects, which nobody knows here; one
drawn from contexts would repeat the shared line, would change with every user who joins, and would
make V dense. Without it V₀ = diag(γ I, γᵤ I, …), arms are independent, and users are eliminated one
by one: O(users) per decision. With several arms φ = one-hot(a) ⊗ (1, x), and the law of the arm
played is defined as: draw ā with P(φ_āᵀθ̃ is the largest), then play control with the clipped
probability of that ā alone. If control cannot be chosen, ā is played. π and f̂ are those of the
state just before the reward arrives, with all arms to choose from; a reward that comes late, or of
a choice among some arms, has another π than it was drawn with. An update does not know the
candidate when control was played, so that pseudo-reward is shared among all candidates by P(ā | A =
0), which leaves the mean of the sums as it is. The one noise v is the deviation that f̂ leaves
unexplained (1 in the authors' code, which has it in β alone); the declared noise is not used.

Of the paper's Table 1 it does not meet partial context: a user's effects are separate for every
arm, and only rewards of control inform several. It does not distinguish uncertainties: V has blocks
for all users and for each, but only the variance of their sum is used.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from cocobandits.checks import check_numbers, check_whole
from cocobandits.display import Line
from cocobandits.errors import ConfigurationError
from cocobandits.policies.base import Arms, Problem, SequentialPolicy, UserIndex
from cocobandits.policies.baselines.rome_algebra import (
    Bags,
    Contribution,
    Law,
    Terms,
    advantages,
    control_probability,
    exploration,
    largest_probability,
    predict,
)
from cocobandits.policies.description import PolicySettings, description
from cocobandits.populations.features import FeatureKinds, expected_terms
from cocobandits.types import ArmVector, RngKey
from cocobandits.users.table import Change, UserTable

Choices = Int[Array, " candidate"]


@description(
    "rome",
    line=Line("#6A51A3", (0, (4, 1.5)), 1.2),
    table_one="+-/-++",
    published="+-/-++",
    chooses="Thompson sampling between a control and the best other arm",
    knows="learns effects that all users share, and deviations of each user",
)
class RoME(PolicySettings):
    """Robust mixed-effects Thompson sampling, in standardised units.

    Attributes:
        shared_precision: γ, of the effects that all users share: their deviation is v/√γ, here 1.
        user_precision: γᵤ, of each user's own effects: their deviation is v/√γᵤ, here 0.28.
        scale: v, the deviation of a reward from f̂.
        error: δ.
        floor: ζ.
        least_control: the smallest probability of control, given a candidate.
        most_control: the largest.
        num_bags: regressions that f̂ is the average of.
        bag_share: the probability that a reward is in a bag.
        ridge: the penalty of the regressions.
    """

    shared_precision: float = 0.04
    user_precision: float = 0.5
    scale: float = 0.2
    error: float = 0.01
    floor: float = 10.0
    least_control: float = 0.05
    most_control: float = 0.95
    num_bags: int = 10
    bag_share: float = 0.8
    ridge: float = 1.0

    def __post_init__(self) -> None:
        precisions = "shared_precision", "user_precision"
        check_numbers(self, "positive", *precisions, "scale", "floor", "ridge")
        check_numbers(self, "fraction", "error", "least_control", "most_control")
        check_numbers(self, "share", "bag_share")
        check_whole(self, "num_bags", remedy="Use for example 10.")
        if self.least_control > self.most_control:
            raise ConfigurationError(
                f"Expected least_control <= most_control; got least_control={self.least_control}, "
                f"most_control={self.most_control}. Exchange the two."
            )


class RomeState(NamedTuple):
    """The pseudo-rewards' part of V and b, and the bags of f̂."""

    evidence: Contribution  # each field: user × candidate
    bags: Bags


class Rules(NamedTuple):
    """The static arguments of compiled functions."""

    kinds: FeatureKinds
    settings: RoME
    has_control: bool = True


class RomePolicy(SequentialPolicy[RomeState], settings=RoME):
    """Learn by how much each arm beats the control, for all users and for each."""

    def __init__(self, problem: Problem, settings: RoME) -> None:
        super().__init__(problem, settings)
        self._rules = Rules(problem.features, settings)

    def init(self, rng_key: RngKey) -> RomeState:
        """Start without users."""
        num_arms = self.problem.num_arms
        candidates = jnp.zeros((0, num_arms - 1))
        arms = jnp.zeros((0, self.settings.num_bags, num_arms))
        return RomeState(Contribution(candidates, candidates), Bags(arms, arms))

    def update(self, rng_key: RngKey, state: RomeState, change: Change) -> tuple[RomeState, None]:
        """Learn from one more reward."""
        return _learn(self._rules, rng_key, state, change), None

    def probabilities(self, state: RomeState, users: UserTable, user: int, arms: Arms) -> ArmVector:
        """Compute Σ_ā P(ā) π_ā for the control, and P(ā) (1 - π_ā) for every other arm."""
        chosen = tuple(range(self.problem.num_arms)) if arms is None else arms
        candidates = jnp.asarray([arm - 1 for arm in chosen if arm > 0])
        rules = self._rules._replace(has_control=0 in chosen)
        return _probabilities(rules, state, users, user, candidates)


def _terms(kinds: FeatureKinds, users: UserTable) -> Terms:
    return jax.vmap(partial(expected_terms, kinds))(users.contexts)


def _law(
    rules: Rules, users: UserTable, state: RomeState, user: UserIndex, candidates: Choices
) -> Law:
    """Compute the probability of each candidate among some, and of control given each."""
    settings, terms = rules.settings, _terms(rules.kinds, users)
    precisions = settings.shared_precision, settings.user_precision
    mean, variance, gain = advantages(terms, state.evidence, user, precisions)
    constants = settings.scale, settings.error, settings.floor
    num_users = users.num_users
    first = exploration(num_users, 0.0, *constants)
    width = settings.scale * exploration(num_users, gain, *constants) / first
    mean, deviation = mean[candidates], width * jnp.sqrt(variance[candidates])
    limits = settings.least_control, settings.most_control
    return Law(largest_probability(mean, deviation), control_probability(mean, deviation, limits))


@partial(jax.jit, static_argnames="rules")
def _probabilities(
    rules: Rules, state: RomeState, users: UserTable, user: UserIndex, candidates: Choices
) -> ArmVector:
    law = _law(rules, users, state, jnp.asarray(user), candidates)
    if not rules.has_control:
        return law.candidate
    stay = jnp.vdot(law.candidate, law.control)
    return jnp.concatenate([stay[None], law.candidate * (1 - law.control)])


@partial(jax.jit, static_argnames="rules")
def _learn(rules: Rules, rng_key: RngKey, state: RomeState, change: Change) -> RomeState:
    """Add one more reward to V, b and the bags."""
    users, user, added = change.table, change.user, change.added
    terms = _terms(rules.kinds, users)
    row, bags = jax.tree.map(lambda rows: rows[user], (state.evidence, state.bags))
    law = _law(rules, users, state, user, jnp.arange(len(row.weight)))
    predicted = predict(terms, state.bags, rules.settings.ridge, terms[user])
    is_in = jax.random.bernoulli(rng_key, rules.settings.bag_share, bags.counts.shape)
    rows = row.with_reward(law, predicted, added), bags.with_reward(added, is_in)
    tables = state.evidence, state.bags
    written = jax.tree.map(lambda table, new: table.at[user].set(new), tables, rows)
    return RomeState(*written)
