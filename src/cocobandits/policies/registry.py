"""Policies by name.

The only list of names that a study takes. A new policy is one line in `_BUILDERS`; what a report
calls it, and what it assumes of the population, is said where reports and diagnoses are made.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cocobandits.errors import ConfigurationError, UnknownNameError
from cocobandits.models.base import PopulationModel
from cocobandits.models.chances import ChanceMixture, ChanceModel
from cocobandits.models.features import num_terms
from cocobandits.models.flat import FlatModel
from cocobandits.models.gaussian_mixture import GaussianMixtureModel
from cocobandits.policies.acquisitions.base import Acquisition
from cocobandits.policies.acquisitions.coids import CoInformationDirectedSampling
from cocobandits.policies.acquisitions.gids import GlobalInformationDirectedSampling
from cocobandits.policies.acquisitions.npm_ts import ThompsonSampling
from cocobandits.policies.acquisitions.planned import PlannedInformationDirectedSampling
from cocobandits.policies.base import Policy, Problem
from cocobandits.policies.choice import ModelChoice, choose_model, population_model
from cocobandits.policies.coco import CocoPolicy
from cocobandits.policies.fixed_prior import FixedPriorPolicy
from cocobandits.policies.gradband import GradBandPolicy
from cocobandits.policies.hierts import HierTsPolicy
from cocobandits.policies.hlinucb import HlinucbPolicy
from cocobandits.policies.kmtl_ucb import KmtlUcbPolicy
from cocobandits.policies.meta_ts import MetaTsPolicy
from cocobandits.policies.mtts import MttsPolicy
from cocobandits.policies.planner import PlannerPolicy
from cocobandits.policies.robustagg import RobustAggPolicy
from cocobandits.policies.rome import RomePolicy
from cocobandits.policies.settings import CocoSettings
from cocobandits.policies.uniform import UniformPolicy


def build_policy(name: str, problem: Problem, settings: CocoSettings) -> Policy[Any]:
    """Build a policy by name.

    Raises:
        UnknownNameError: nobody registered that name.
        ConfigurationError: the settings do not fit the problem.
    """
    if name not in _BUILDERS:
        raise UnknownNameError("policy", name, policy_names(), "Choose one of these.")
    return _BUILDERS[name](problem, settings)


def describe_model(problem: Problem, settings: CocoSettings, policy: str) -> ModelChoice:
    """Say which population model a policy learns, and why that one."""
    if policy not in LEARNERS:
        return ModelChoice("none", f"{policy} does not learn a population")
    return choose_model(problem, settings)


def policy_names() -> tuple[str, ...]:
    """List all names that `build_policy` takes."""
    return tuple(_BUILDERS)


def _coco(
    acquisition_for: Callable[[PopulationModel, CocoSettings], Acquisition[Any, Any]],
) -> Callable[[Problem, CocoSettings], CocoPolicy]:
    def build(problem: Problem, settings: CocoSettings) -> CocoPolicy:
        model = population_model(problem, settings)
        return CocoPolicy(
            problem,
            model,
            acquisition_for(model, settings),
            settings.inference,
            lambda wider: build(wider, settings),
        )

    return build


def _coids(model: PopulationModel, settings: CocoSettings) -> Acquisition[Any, Any]:
    weight = settings.population_weight
    if settings.steps_per_user is None:
        return CoInformationDirectedSampling.for_model(model, weight)
    return PlannedInformationDirectedSampling.for_model(model, settings.steps_per_user, weight)


def _independent(problem: Problem, settings: CocoSettings) -> Policy[Any]:
    del settings
    if problem.rewards == "bernoulli":
        unknown = ChanceMixture.unknown(problem.num_arms, num_terms(problem.features))
        return FixedPriorPolicy(
            problem, ChanceModel(unknown, problem.features, problem.reward_range)
        )
    flat = FlatModel(problem.num_arms, *problem.reward_range, problem.known_noise())
    return FixedPriorPolicy(problem, flat)


def _told(problem: Problem, settings: CocoSettings) -> Policy[Any]:
    return FixedPriorPolicy(problem, _true_population("oracle-ts", problem, settings))


def _planner(problem: Problem, settings: CocoSettings) -> Policy[Any]:
    model = _true_population("oracle-plan", problem, settings)
    if not isinstance(model, GaussianMixtureModel):
        raise ConfigurationError(
            "Expected Gaussian rewards for oracle-plan; got rewards='bernoulli'. Use oracle-ts."
        )
    if settings.steps_per_user is None:
        raise ConfigurationError(
            "Expected a number of steps; got settings.steps_per_user=None. Tell oracle-plan how "
            "often each user is served."
        )
    return PlannerPolicy(problem, model, settings.steps_per_user)


def _true_population(
    policy: str, problem: Problem, settings: CocoSettings
) -> GaussianMixtureModel | ChanceModel:
    if settings.prior is None:
        raise ConfigurationError(
            f"Expected the true population; got settings.prior=None. Give {policy} a "
            "ConditionalMixture, or choose a policy that learns it, for example 'npm-ts'."
        )
    if settings.prior.num_arms != problem.num_arms:
        raise ConfigurationError(
            f"Expected a population of {problem.num_arms} arms; got "
            f"num_arms={settings.prior.num_arms} in settings.prior. Give a mean for every arm."
        )
    if isinstance(settings.prior, ChanceMixture) != (problem.rewards == "bernoulli"):
        raise ConfigurationError(
            f"Expected a population of {problem.rewards} rewards; got settings.prior of type "
            f"{type(settings.prior).__name__}. Give a ChanceMixture for yes/no rewards, and a "
            "ConditionalMixture for all others."
        )
    if isinstance(settings.prior, ChanceMixture):
        return ChanceModel(settings.prior, problem.features, problem.reward_range)
    return GaussianMixtureModel(
        settings.prior, problem.features, problem.reward_range, problem.known_noise()
    )


def _gaussian(
    name: str, build: Callable[[Problem, CocoSettings], Policy[Any]]
) -> Callable[[Problem, CocoSettings], Policy[Any]]:
    """Refuse rewards that are not normal."""

    def build_if_gaussian(problem: Problem, settings: CocoSettings) -> Policy[Any]:
        if problem.rewards == "bernoulli":
            raise ConfigurationError(
                f"Expected Gaussian rewards for {name}; got rewards='bernoulli'. Choose coids, "
                "npm-ts, gids or ind-ts."
            )
        return build(problem, settings)

    return build_if_gaussian


def _gradband(problem: Problem, settings: CocoSettings) -> Policy[Any]:
    if settings.steps_per_user is None:
        return GradBandPolicy(problem, settings.gradband)
    return GradBandPolicy(problem, replace(settings.gradband, horizon=settings.steps_per_user))


def _uniform(problem: Problem, settings: CocoSettings) -> Policy[Any]:
    del settings
    return UniformPolicy(problem)


_BUILDERS: dict[str, Callable[[Problem, CocoSettings], Policy[Any]]] = {
    "coids": _coco(_coids),
    "npm-ts": _coco(lambda *_: ThompsonSampling()),
    "gids": _coco(lambda model, _: GlobalInformationDirectedSampling.for_model(model)),
    "mtts": _gaussian("mtts", lambda problem, told: MttsPolicy(problem, told.mtts)),
    "hierts": _gaussian("hierts", lambda problem, told: HierTsPolicy(problem, told.hierts)),
    "hlinucb": lambda problem, told: HlinucbPolicy(problem, told.hlinucb),
    "hlinucb-t": lambda problem, told: HlinucbPolicy(problem, told.hlinucb, is_transposed=True),
    "kmtl-ucb": lambda problem, told: KmtlUcbPolicy(problem, told.kmtl_ucb),
    "gradband": _gradband,
    "meta-ts": _gaussian(
        "meta-ts", lambda problem, told: MetaTsPolicy(problem, told.meta_ts, is_drawn=True)
    ),
    "ada-ts": _gaussian(
        "ada-ts", lambda problem, told: MetaTsPolicy(problem, told.meta_ts, is_drawn=False)
    ),
    "robustagg": lambda problem, told: RobustAggPolicy(problem, told.robustagg),
    "rome": lambda problem, told: RomePolicy(problem, told.rome),
    "ind-ts": _independent,
    "oracle-ts": _told,
    "oracle-plan": _planner,
    "uniform": _uniform,
}
# Those that learn a population model with particles.
LEARNERS = ("coids", "npm-ts", "gids")
