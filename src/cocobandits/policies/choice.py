"""Which population model a study learns, and its prior: the log-density grid, or the mixture."""

from typing import NamedTuple

from cocobandits.errors import ConfigurationError
from cocobandits.models.base import PopulationModel
from cocobandits.models.log_density import (
    Axis,
    CategoricalAxis,
    LogDensityConfig,
    LogDensityModel,
)
from cocobandits.models.mixture import MixtureConfig, MixtureModel
from cocobandits.policies.base import Problem
from cocobandits.policies.settings import CocoSettings

# What a particle believes of a noise that it must learn, before any reward: a twentieth of the
# range, give or take a factor of 2.2.
_NOISE_SHARE, _NOISE_DEVIATION = 0.05, 0.8
# Width of a grid cell in noise deviations, and the grids that are not left for it.
_CELL_DEVIATIONS = 4.5
_FEWEST_NODES, _MOST_NODES = 10, 16
# Up to here a grid over all arms is small, and its waves over all features are few enough.
MOST_GRID_ARMS, MOST_GRID_FEATURES = 3, 2
# Up to here the places of a common factor are few enough to sum over in every decision.
_MOST_FACTOR_ARMS = 3


class ModelChoice(NamedTuple):
    """The name of a population model, and why it was chosen."""

    name: str
    reason: str


def choose_model(problem: Problem, settings: CocoSettings) -> ModelChoice:
    """Take the grid where it fits, and the mixture otherwise, unless one is asked for."""
    if settings.model != "auto":
        return ModelChoice(settings.model, "it was asked for")
    num_arms, num_features = problem.num_arms, len(problem.features)
    if problem.rewards != "gaussian":
        return ModelChoice("mixture", f"{problem.rewards} rewards have no grid")
    if num_arms > MOST_GRID_ARMS:
        nodes = _nodes_for(problem, noise_prior(problem)[0])
        reason = f"a grid of {num_arms} arms would have {nodes}^{num_arms} cells"
        return ModelChoice("mixture", f"{reason}, and {MOST_GRID_ARMS} arms are the most for it")
    if num_features > MOST_GRID_FEATURES:
        reason = f"{num_features} features are more than a grid is for ({MOST_GRID_FEATURES})"
        return ModelChoice("mixture", reason)
    fits = f"a grid fits {num_arms} arms and {num_features} feature{'s' * (num_features != 1)}"
    return ModelChoice("log-density", f"{fits}, and takes any shape of population")


def population_model(problem: Problem, settings: CocoSettings) -> PopulationModel:
    """Lay out the population model of a study.

    Raises:
        ConfigurationError: the settings do not fit the problem.
    """
    if choose_model(problem, settings).name == "mixture":
        return mixture_model(problem, settings)
    return log_density_model(problem, settings)


def mixture_model(problem: Problem, settings: CocoSettings) -> MixtureModel:
    """Lay out the mixture for a problem."""
    noise, noise_deviation = noise_prior(problem)
    is_gaussian = problem.rewards == "gaussian"
    rank = settings.rank
    if rank is None:
        rank = int(is_gaussian and problem.num_arms <= _MOST_FACTOR_ARMS)
    return MixtureModel(
        MixtureConfig(
            problem.num_arms,
            problem.features,
            num_components=settings.num_components,
            rank=rank,
            smooth_terms=settings.smooth_terms,
            rewards=problem.rewards,
            mean_range=problem.reward_range,
            reward_noise=noise,
            noise_deviation=noise_deviation if is_gaussian else 0.0,
            precision=settings.precision,
        )
    )


def log_density_model(problem: Problem, settings: CocoSettings) -> LogDensityModel:
    """Lay out the paper's population model for a problem.

    Raises:
        ConfigurationError: rewards are not Gaussian, or the grid is too large.
    """
    if problem.rewards != "gaussian":
        raise ConfigurationError(
            f"Expected Gaussian rewards for model='log-density'; got rewards={problem.rewards!r}. "
            "Use model='mixture', or leave the choice to 'auto'."
        )
    low, high = problem.reward_range
    noise, noise_deviation = noise_prior(problem)
    nodes = settings.nodes_per_arm
    return LogDensityModel(
        LogDensityConfig(
            num_arms=problem.num_arms,
            context_axes=tuple(
                Axis(-1.0, 1.0, settings.nodes_per_feature)
                if num_categories is None
                else CategoricalAxis(num_categories)
                for num_categories in problem.features
            ),
            arm_axis=Axis(low, high, _nodes_for(problem, noise) if nodes is None else nodes),
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
