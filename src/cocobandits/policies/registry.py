"""Policies by name.

The only list of names that a study takes. A new policy is one line in `_BUILDERS`; what a report
calls it, and what it assumes of the population, is said where reports and diagnoses are made.
"""

from collections.abc import Callable
from typing import Any

from cocobandits.errors import ConfigurationError, UnknownNameError
from cocobandits.models.base import PopulationModel
from cocobandits.models.flat import FlatModel
from cocobandits.models.gaussian_mixture import GaussianMixtureModel
from cocobandits.models.log_density import (
    Axis,
    CategoricalAxis,
    LogDensityConfig,
    LogDensityModel,
)
from cocobandits.policies.acquisitions.base import Acquisition
from cocobandits.policies.acquisitions.coids import CoInformationDirectedSampling
from cocobandits.policies.acquisitions.gids import GlobalInformationDirectedSampling
from cocobandits.policies.acquisitions.npm_ts import ThompsonSampling
from cocobandits.policies.acquisitions.planned import PlannedInformationDirectedSampling
from cocobandits.policies.base import Policy, Problem
from cocobandits.policies.coco import CocoPolicy
from cocobandits.policies.fixed_prior import FixedPriorPolicy
from cocobandits.policies.mtts import MttsPolicy
from cocobandits.policies.planner import PlannerPolicy
from cocobandits.policies.settings import CocoSettings
from cocobandits.policies.uniform import UniformPolicy

# What a particle believes of a noise that it must learn, before any reward: a twentieth of the
# range, give or take a factor of 2.2.
_NOISE_SHARE, _NOISE_DEVIATION = 0.05, 0.8
# Width of a grid cell in noise deviations, and the grids that are not left for it.
_CELL_DEVIATIONS = 4.5
_FEWEST_NODES, _MOST_NODES = 10, 16


def build_policy(name: str, problem: Problem, settings: CocoSettings) -> Policy[Any]:
    """Build a policy by name.

    Raises:
        UnknownNameError: nobody registered that name.
        ConfigurationError: the settings do not fit the problem.
    """
    if name not in _BUILDERS:
        raise UnknownNameError("policy", name, policy_names(), "Choose one of these.")
    return _BUILDERS[name](problem, settings)


def policy_names() -> tuple[str, ...]:
    """List all names that `build_policy` takes."""
    return tuple(_BUILDERS)


def log_density_model(problem: Problem, settings: CocoSettings) -> LogDensityModel:
    """Lay out the paper's population model for a problem."""
    low, high = problem.reward_range
    noise, noise_deviation = noise_prior(problem)
    return LogDensityModel(
        LogDensityConfig(
            num_arms=problem.num_arms,
            context_axes=tuple(
                Axis(-1.0, 1.0, settings.nodes_per_feature)
                if num_categories is None
                else CategoricalAxis(num_categories)
                for num_categories in problem.features
            ),
            arm_axis=Axis(
                low,
                high,
                _nodes_for(problem, noise)
                if settings.nodes_per_arm is None
                else settings.nodes_per_arm,
            ),
            reward_noise=noise,
            noise_deviation=noise_deviation,
            kernel=settings.kernel,
            arm_lengthscale=settings.arm_lengthscale,
            context_lengthscale=settings.context_lengthscale,
            amplitude=settings.amplitude,
            num_modes=settings.num_modes,
            basis=settings.basis,
            lengthscale_deviation=settings.lengthscale_deviation,
            amplitude_deviation=settings.amplitude_deviation,
            likelihood=settings.likelihood,
            context_points=settings.context_points,
            precision=settings.precision,
            num_particles=settings.inference.num_particles,
            memory_limit_gb=settings.memory_limit_gb,
        )
    )


def noise_prior(problem: Problem) -> tuple[float, float]:
    """Give the prior median of the noise, and the deviation of its logarithm: zero if known."""
    if problem.reward_noise is not None:
        return problem.reward_noise, 0.0
    low, high = problem.reward_range
    return _NOISE_SHARE * (high - low), _NOISE_DEVIATION


def _nodes_for(problem: Problem, noise: float) -> int:
    """Choose cells a few noise deviations wide: what users share is seen no finer than a cell."""
    low, high = problem.reward_range
    wanted = round((high - low) / (_CELL_DEVIATIONS * noise)) + 1
    return min(max(wanted, _FEWEST_NODES), _MOST_NODES)


def _coco(
    acquisition_for: Callable[[PopulationModel], Acquisition[Any]],
) -> Callable[[Problem, CocoSettings], Policy[Any]]:
    def build(problem: Problem, settings: CocoSettings) -> Policy[Any]:
        model = log_density_model(problem, settings)
        return CocoPolicy(problem, model, acquisition_for(model), settings.inference)

    return build


def _coids(problem: Problem, settings: CocoSettings) -> Policy[Any]:
    model = log_density_model(problem, settings)
    weight = settings.population_weight
    acquisition: Acquisition[Any] = (
        CoInformationDirectedSampling.for_model(model, weight)
        if settings.steps_per_user is None
        else PlannedInformationDirectedSampling.for_model(model, settings.steps_per_user, weight)
    )
    return CocoPolicy(problem, model, acquisition, settings.inference)


def _independent(problem: Problem, settings: CocoSettings) -> Policy[Any]:
    del settings
    flat = FlatModel(problem.num_arms, *problem.reward_range, problem.known_noise())
    return FixedPriorPolicy(problem, flat)


def _told(problem: Problem, settings: CocoSettings) -> Policy[Any]:
    return FixedPriorPolicy(problem, _true_population("oracle-ts", problem, settings))


def _planner(problem: Problem, settings: CocoSettings) -> Policy[Any]:
    model = _true_population("oracle-plan", problem, settings)
    if settings.steps_per_user is None:
        raise ConfigurationError(
            "Expected a number of steps; got settings.steps_per_user=None. Tell oracle-plan how "
            "often each user is served."
        )
    return PlannerPolicy(problem, model, settings.steps_per_user)


def _true_population(policy: str, problem: Problem, settings: CocoSettings) -> GaussianMixtureModel:
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
    return GaussianMixtureModel(
        settings.prior, problem.features, problem.reward_range, problem.known_noise()
    )


def _mixed_model(problem: Problem, settings: CocoSettings) -> Policy[Any]:
    return MttsPolicy(problem, settings.mtts)


def _uniform(problem: Problem, settings: CocoSettings) -> Policy[Any]:
    del settings
    return UniformPolicy(problem)


_BUILDERS: dict[str, Callable[[Problem, CocoSettings], Policy[Any]]] = {
    "coids": _coids,
    "npm-ts": _coco(lambda _: ThompsonSampling()),
    "gids": _coco(GlobalInformationDirectedSampling.for_model),
    "mtts": _mixed_model,
    "ind-ts": _independent,
    "oracle-ts": _told,
    "oracle-plan": _planner,
    "uniform": _uniform,
}
