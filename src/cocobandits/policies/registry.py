"""Policies by name, and the settings of those that learn a population.

The only place that knows which names exist. A new policy is one line in `_BUILDERS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cocobandits.errors import ConfigurationError, UnknownNameError
from cocobandits.inference.smc import SmcConfig
from cocobandits.models.base import PopulationModel
from cocobandits.models.flat import FlatModel
from cocobandits.models.gaussian_mixture import ConditionalMixture, GaussianMixtureModel
from cocobandits.models.log_density import (
    Axis,
    CategoricalAxis,
    LogDensityConfig,
    LogDensityModel,
)
from cocobandits.models.log_density.kernel import KernelName
from cocobandits.models.log_density.likelihood import LikelihoodName
from cocobandits.policies.acquisitions.base import Acquisition
from cocobandits.policies.acquisitions.gids import GlobalInformationDirectedSampling
from cocobandits.policies.acquisitions.npm_ts import ThompsonSampling
from cocobandits.policies.base import Policy, Problem
from cocobandits.policies.coco import CocoPolicy
from cocobandits.policies.fixed_prior import FixedPriorPolicy
from cocobandits.policies.mtts import MttsPolicy, MttsSettings
from cocobandits.policies.uniform import UniformPolicy


@dataclass(frozen=True)
class CocoSettings:
    """How the population is modelled and learned; the defaults are the paper's preset.

    Everything is in standardised units: rewards span [-2, 2], continuous features [-1, 1].
    `mtts` is what that policy assumes, `prior` the population that `oracle-ts` is told.
    """

    nodes_per_arm: int = 20
    nodes_per_feature: int = 10
    num_modes: int = 80
    kernel: KernelName = "squared-exponential"
    arm_lengthscale: float = 0.7
    context_lengthscale: float = 0.7
    amplitude: float = 2.0
    likelihood: LikelihoodName = "cell"
    memory_limit_gb: float = 2.0
    inference: SmcConfig = SmcConfig()
    mtts: MttsSettings = MttsSettings()
    prior: ConditionalMixture | None = None


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
    return LogDensityModel(
        LogDensityConfig(
            num_arms=problem.num_arms,
            context_axes=tuple(
                Axis(-1.0, 1.0, settings.nodes_per_feature)
                if num_categories is None
                else CategoricalAxis(num_categories)
                for num_categories in problem.features
            ),
            arm_axis=Axis(*problem.reward_range, settings.nodes_per_arm),
            reward_noise=problem.reward_noise,
            kernel=settings.kernel,
            arm_lengthscale=settings.arm_lengthscale,
            context_lengthscale=settings.context_lengthscale,
            amplitude=settings.amplitude,
            num_modes=settings.num_modes,
            likelihood=settings.likelihood,
            num_particles=settings.inference.num_particles,
            memory_limit_gb=settings.memory_limit_gb,
        )
    )


def _coco(
    acquisition_for: Callable[[PopulationModel], Acquisition[Any]],
) -> Callable[[Problem, CocoSettings], Policy[Any]]:
    def build(problem: Problem, settings: CocoSettings) -> Policy[Any]:
        model = log_density_model(problem, settings)
        return CocoPolicy(problem, model, acquisition_for(model), settings.inference)

    return build


def _independent(problem: Problem, settings: CocoSettings) -> Policy[Any]:
    del settings
    flat = FlatModel(problem.num_arms, *problem.reward_range, problem.reward_noise)
    return FixedPriorPolicy(problem, flat)


def _told(problem: Problem, settings: CocoSettings) -> Policy[Any]:
    if settings.prior is None:
        raise ConfigurationError(
            "Expected the true population; got settings.prior=None. Give oracle-ts a "
            "ConditionalMixture, or choose a policy that learns it, for example 'npm-ts'."
        )
    if settings.prior.num_arms != problem.num_arms:
        raise ConfigurationError(
            f"Expected a population of {problem.num_arms} arms; got "
            f"num_arms={settings.prior.num_arms} in settings.prior. Give a mean for every arm."
        )
    told = GaussianMixtureModel(
        settings.prior, problem.features, problem.reward_range, problem.reward_noise
    )
    return FixedPriorPolicy(problem, told)


def _mixed_model(problem: Problem, settings: CocoSettings) -> Policy[Any]:
    return MttsPolicy(problem, settings.mtts)


def _uniform(problem: Problem, settings: CocoSettings) -> Policy[Any]:
    del settings
    return UniformPolicy(problem)


_BUILDERS: dict[str, Callable[[Problem, CocoSettings], Policy[Any]]] = {
    "npm-ts": _coco(lambda _: ThompsonSampling()),
    "gids": _coco(GlobalInformationDirectedSampling.for_model),
    "mtts": _mixed_model,
    "ind-ts": _independent,
    "oracle-ts": _told,
    "uniform": _uniform,
}
