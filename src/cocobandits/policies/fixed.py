"""Policies under a population that is given, not learned: `Uniform`, `IndTS` and the oracles."""

from dataclasses import replace
from typing import Any

from cocobandits.checks import check_whole
from cocobandits.display import Line
from cocobandits.errors import ConfigurationError
from cocobandits.models.chances import ChanceMixture, ChanceModel
from cocobandits.models.features import num_terms
from cocobandits.models.flat import FlatModel
from cocobandits.models.gaussian_mixture import ConditionalMixture, GaussianMixtureModel
from cocobandits.policies.base import Policy, Problem
from cocobandits.policies.description import Facts, PolicySettings, Population, description
from cocobandits.policies.fixed_prior import FixedPriorPolicy
from cocobandits.policies.planner import PlannerPolicy
from cocobandits.policies.uniform import UniformPolicy


@description(
    "uniform",
    label="Uniform",
    line=Line("#999999", (0, (6, 5)), 0.9),
    table_one="--/---",
    chooses="every arm with the same probability",
    knows="nothing, and learns nothing",
)
class Uniform(PolicySettings):
    """Every arm with the same probability: the control of a randomised study."""

    def build(self, problem: Problem) -> Policy[Any]:
        """Build the policy for a problem."""
        return UniformPolicy(problem)


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

    def build(self, problem: Problem) -> Policy[Any]:
        """Build the policy for a problem.

        Raises:
            ConfigurationError: the noise is not known.
        """
        if problem.rewards == "bernoulli":
            unknown = ChanceMixture.unknown(problem.num_arms, num_terms(problem.features))
            model = ChanceModel(unknown, problem.features, problem.reward_range)
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
            `ChanceMixture` if rewards are 0 or 1. A simulation fills it in.
    """

    population: Population | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.population, ConditionalMixture | ChanceMixture | None):
            raise ConfigurationError(
                "Expected a ConditionalMixture or a ChanceMixture; got "
                f"population={self.population!r}. Change it, or leave it out."
            )

    def build(self, problem: Problem) -> Policy[Any]:
        """Build the policy for a problem.

        Raises:
            ConfigurationError: the population is missing or does not fit.
        """
        return FixedPriorPolicy(problem, self.model(problem))

    def informed(self, facts: Facts) -> "OracleTS":
        """Use the true population."""
        return replace(self, population=facts.population)

    def model(self, problem: Problem) -> GaussianMixtureModel | ChanceModel:
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
        if isinstance(population, ChanceMixture) != (problem.rewards == "bernoulli"):
            raise ConfigurationError(
                f"Expected a population of {problem.rewards} rewards; got a "
                f"{type(population).__name__}. Give a ChanceMixture for yes/no rewards, and a "
                "ConditionalMixture for all others."
            )
        if isinstance(population, ChanceMixture):
            return ChanceModel(population, problem.features, problem.reward_range)
        return GaussianMixtureModel(
            population, problem.features, problem.reward_range, problem.known_noise()
        )


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
        steps_per_user: rewards that each user will give.
    """

    steps_per_user: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps_per_user is not None:
            check_whole(self, "steps_per_user", remedy="Give the rewards of each user.")

    def informed(self, facts: Facts) -> "OraclePlan":
        """Use the true population, and the steps of the simulation."""
        return replace(self, population=facts.population, steps_per_user=facts.steps_per_user)

    def build(self, problem: Problem) -> Policy[Any]:
        """Build the policy for a problem.

        Raises:
            ConfigurationError: the population or the number of steps is missing or does not fit.
        """
        model = self.model(problem)
        assert isinstance(model, GaussianMixtureModel)  # rewards are Gaussian
        if self.steps_per_user is None:
            raise ConfigurationError(
                "Expected a number of steps; got steps_per_user=None. Give oracle-plan the rewards "
                "of each user."
            )
        return PlannerPolicy(problem, model, self.steps_per_user)
