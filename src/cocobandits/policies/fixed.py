"""Policies under a population that is given, not learned: `Uniform`, `IndTS` and the oracles."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from cocobandits.checks import check_whole
from cocobandits.display import Line
from cocobandits.errors import ConfigurationError, UnsupportedError
from cocobandits.policies.base import (
    Arms,
    PlainPolicy,
    Problem,
    ReadFn,
    Readings,
    UserData,
    eligibility,
    pick,
)
from cocobandits.policies.description import Facts, PolicySettings, Population, description
from cocobandits.populations.base import Belief, PopulationModel
from cocobandits.populations.features import num_terms
from cocobandits.populations.gaussian_belief import GaussianBelief
from cocobandits.populations.known.beta_mixture import BetaMixture, BetaMixtureModel
from cocobandits.populations.known.flat import FlatModel
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture, GaussianMixtureModel
from cocobandits.types import ArmVector, PossibleContext, Scalar
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import UserTable

# Values of plans closer than this are a tie: only rounding separates them.
_TIE = 1e-9


@description(
    "uniform",
    line=Line("#999999", (0, (6, 5)), 0.9),
    table_one="--/---",
    chooses="every arm with the same probability",
    knows="nothing, and learns nothing",
)
class Uniform(PolicySettings):
    """Every arm with the same probability: the control of a randomised study."""


class UniformPolicy(PlainPolicy, settings=Uniform):
    """Choose without looking."""

    def probabilities(self, state: None, users: UserTable, user: int, arms: Arms) -> ArmVector:
        """Give the same to every arm that can be chosen."""
        num_arms = self.problem.num_arms if arms is None else len(arms)
        return jnp.full(num_arms, 1.0 / num_arms)


@description(
    "ind-ts",
    label="Ind-TS",
    line=Line("#009E73", (0, (1, 1.2)), 1.6),
    assumes="no-sharing",
    table_one="----+-",
    chooses="Thompson sampling",
    knows="nothing: every user is independent",
)
class IndTS(PolicySettings):
    """The paper's Ind-TS: Thompson sampling from each user's own rewards alone."""

    def build(self, problem: Problem) -> "FixedPriorPolicy":
        """Build the policy for a problem."""
        if problem.rewards == "bernoulli":
            unknown = BetaMixture.unknown(problem.num_arms, num_terms(problem.features))
            model = BetaMixtureModel(unknown, problem.features, problem.reward_range)
            return FixedPriorPolicy(problem, model)
        flat = FlatModel(problem.num_arms, *problem.reward_range, problem.known_noise())
        return FixedPriorPolicy(problem, flat)


@description(
    "oracle-ts",
    label="OraclePrior-TS",
    line=Line("#000000", (0, (5, 1.5, 1, 1.5)), 1.6),
    chooses="Thompson sampling, for simulations",
    knows="knows the truth",
)
class OracleTS(PolicySettings):
    """Thompson sampling with the true population: multi-task regret is measured against it.

    Attributes:
        population: the true one, in standardised units: a `ConditionalMixture`, or a
            `BetaMixture` if rewards are 0 or 1. None in a simulation stands for its own.
    """

    population: Population | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.population, ConditionalMixture | BetaMixture | None):
            raise ConfigurationError(
                "Expected a ConditionalMixture or a BetaMixture; got "
                f"population={self.population!r}. Change it, or leave it out."
            )

    def build(self, problem: Problem) -> "FixedPriorPolicy":
        """Build the policy for a problem."""
        return FixedPriorPolicy(problem, self.model(problem))

    def informed(self, facts: Facts) -> "PolicySettings":
        """Use the true population."""
        return self.filled(population=facts.population)

    def model(self, problem: Problem) -> GaussianMixtureModel | BetaMixtureModel:
        """Describe the true population.

        Raises:
            ConfigurationError: it is missing or does not fit.
        """
        population = self.population
        if population is None:
            raise ConfigurationError(
                f"Expected the true population; got population=None. Give {self.name} a "
                "ConditionalMixture, or choose a policy that learns it, for example 'coids'."
            )
        if population.num_arms != problem.num_arms:
            raise ConfigurationError(
                f"Expected a population of {problem.num_arms} arms; got "
                f"num_arms={population.num_arms}. Give a mean for every arm."
            )
        if isinstance(population, BetaMixture) != (problem.rewards == "bernoulli"):
            raise ConfigurationError(
                f"Expected a population of {problem.rewards} rewards; got a "
                f"{type(population).__name__}. Give a BetaMixture for yes/no rewards, and a "
                "ConditionalMixture for all others."
            )
        if isinstance(population, BetaMixture):
            return BetaMixtureModel(population, problem.features, problem.reward_range)
        return GaussianMixtureModel(
            population, problem.features, problem.reward_range, problem.known_noise()
        )


class FixedPriorPolicy(PlainPolicy):
    """Condition a fixed population on each user, and play each arm as often as it is best."""

    def __init__(self, problem: Problem, model: PopulationModel) -> None:
        super().__init__(problem, None)  # `with_arm` needs no settings
        self.model = model

    @property
    def mean_range(self) -> tuple[float, float]:
        """The range of the population model."""
        return self.model.mean_range

    def probabilities(self, state: None, users: UserTable, user: int, arms: Arms) -> ArmVector:
        """Compute P(arm is best) for a user."""
        is_eligible = eligibility(self.problem.num_arms, arms)
        found = _best_probability(self.model, users.of(jnp.asarray(user)), is_eligible)
        return pick(found, arms)

    def with_arm(self) -> "FixedPriorPolicy":
        """Widen the model.

        Raises:
            UnsupportedError: its population was given for the present arms.
        """
        wider = self.model.with_arm()
        if wider is None:
            raise UnsupportedError(
                "Expected a population that another arm can be added to; got one that is given for "
                f"{self.problem.num_arms} arms. Start a new study with a population of all arms."
            )
        return FixedPriorPolicy(self.problem.with_arm(), wider)

    def read(self, state: None, users: UserTable, data: UserData, read_fn: ReadFn) -> Readings:
        """Apply the function to the one belief."""
        return Readings.of_one(_read(self.model, read_fn, data))

    def prior(self, state: None, users: UserTable, context: PossibleContext) -> Belief:
        """Return the population itself."""
        return _marginal(self.model, context)


@jax.jit
def _marginal(model: PopulationModel, context: PossibleContext) -> Belief:
    return _posterior(model, (context, Statistics.empty(model.num_arms)))


@jax.jit
def _best_probability(model: PopulationModel, data: UserData, is_eligible: Any) -> ArmVector:
    return _posterior(model, data).among(is_eligible).best_probability()


@partial(jax.jit, static_argnames="read_fn")
def _read(model: PopulationModel, read_fn: ReadFn, data: UserData) -> Any:
    return read_fn(_posterior(model, data))


def _posterior(model: PopulationModel, data: UserData) -> Belief:
    return model.posterior(jnp.zeros(model.num_parameters), *data)


@description(
    "oracle-plan",
    label="Limit (knows the prior)",
    line=Line("#444444", "-", 0.8, 1.5),
    rewards=("gaussian",),
    chooses="looks one reward ahead, for simulations",
    knows="knows the truth, and how often users are served",
)
class OraclePlan(OracleTS):
    """Planning one reward ahead under the true population: the limit of all learners.

    Attributes:
        steps_per_user: rewards that each user will give; None in a simulation stands for its own.
    """

    steps_per_user: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, "steps_per_user", remedy="Give the rewards of each user.")

    def informed(self, facts: Facts) -> "PolicySettings":
        """Use the true population, and the steps of the simulation."""
        return self.filled(population=facts.population, steps_per_user=facts.steps_per_user)

    def build(self, problem: Problem) -> "PlannerPolicy":
        """Build the policy for a problem."""
        model = self.model(problem)
        assert isinstance(model, GaussianMixtureModel)  # rewards are Gaussian
        if self.steps_per_user is None:
            raise ConfigurationError(
                "Expected a number of steps; got steps_per_user=None. Give oracle-plan the rewards "
                "of each user."
            )
        return PlannerPolicy(problem, model, self.steps_per_user)


class PlannerPolicy(FixedPriorPolicy):
    """Condition the true population on each user, and look one reward ahead.

    With n steps left, the present one included, the arm a with the largest

        E[μ_a] + (n - 1) E[max_b E[μ_b | r_a]]

    is played: one reward is learned from, and the best mean is then played to the end.
    """

    model: GaussianMixtureModel

    def __init__(self, problem: Problem, model: GaussianMixtureModel, steps_per_user: int) -> None:
        super().__init__(problem, model)
        self.steps_per_user = steps_per_user

    def probabilities(self, state: None, users: UserTable, user: int, arms: Arms) -> ArmVector:
        """Give all probability to the best plan; the lowest arm of a tie."""
        steps = jnp.asarray(self.steps_per_user, dtype=float)
        is_eligible = eligibility(self.problem.num_arms, arms)
        found = _best_plan(self.model, steps, users.of(jnp.asarray(user)), is_eligible)
        return pick(found, arms)


@jax.jit
def _best_plan(
    model: GaussianMixtureModel, steps_per_user: Scalar, data: UserData, is_eligible: Any
) -> ArmVector:
    belief = _dense_posterior(model, data).among(is_eligible)
    steps_after = jnp.maximum(steps_per_user - jnp.sum(data[1].count), 1.0) - 1.0
    value = belief.mean() + steps_after * belief.expected_best_mean_after_one()
    chosen = jnp.argmax(value >= jnp.max(value) - _TIE)
    return jax.nn.one_hot(chosen, len(value), dtype=value.dtype)


def _dense_posterior(model: GaussianMixtureModel, data: UserData) -> GaussianBelief:
    nothing, context = jnp.zeros(model.num_parameters), data[0]
    if context.ndim == 1:
        return model.dense_posterior_at(nothing, *data)
    beliefs = jax.vmap(model.dense_posterior_at, (None, 0, None))(nothing, *data)
    evidences = jax.vmap(model.log_evidence_at, (None, 0, None))(nothing, *data)
    return beliefs.blended(jax.nn.log_softmax(evidences))
