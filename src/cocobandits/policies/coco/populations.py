"""Settings of the population model that a policy learns: `Mixture`, `LogDensity`.

Owns their priors, and which of them a policy learns by default. Everything is in standardised
units: rewards span [-2, 2], continuous features [-1, 1].
"""

from dataclasses import asdict, dataclass
from typing import ClassVar, NamedTuple

from cocobandits.checks import check_choice, check_numbers, check_whole
from cocobandits.errors import ConfigurationError
from cocobandits.numerics.precision import DTYPES, Precision
from cocobandits.policies.base import Problem
from cocobandits.populations.log_density import (
    Axis,
    BasisName,
    CategoricalAxis,
    LogDensityConfig,
    LogDensityModel,
)
from cocobandits.populations.mixture import MixtureConfig, MixtureModel

# Prior of a noise that must be learned: a twentieth of the range, give or take a factor of 2.2.
_NOISE_SHARE, _NOISE_DEVIATION = 0.05, 0.8
# Width of a grid cell in noise deviations, and the limits of a grid that follows the noise.
_CELL_DEVIATIONS = 4.5
_FEWEST_NODES, _MOST_NODES = 10, 16
# Up to here a grid over all arms is small, and its waves over all features are few enough.
MOST_GRID_ARMS, MOST_GRID_FEATURES = 3, 2
# Up to here the places of a common factor are few enough to sum over in every decision.
_MOST_FACTOR_ARMS = 3
_MOST = 1_000_000
_REMEDY = "Change it, or leave it out."


@dataclass(frozen=True)
class Mixture:
    """A dependent mixture of Gaussian or Beta components, for any number of arms.

    Attributes:
        num_components: of the mixture.
        rank: common factors of the arms within a component, 0 or 1; None for one up to three arms.
        precision: of densities, "single" or "double"; log-evidences are added in double.
    """

    name: ClassVar[str] = "mixture"
    num_components: int = 8
    rank: int | None = None
    precision: Precision = "single"

    def __post_init__(self) -> None:
        check_whole(self, "num_components", most=_MOST, remedy=_REMEDY)
        check_whole(self, "rank", least=0, most=1, remedy=_REMEDY)
        check_choice(self, "precision", DTYPES)

    def model(self, problem: Problem, num_particles: int) -> MixtureModel:
        """Lay out the mixture for a problem."""
        noise, noise_deviation = noise_prior(problem)
        is_gaussian = problem.rewards == "gaussian"
        default_rank = int(is_gaussian and problem.num_arms <= _MOST_FACTOR_ARMS)
        return MixtureModel(
            MixtureConfig(
                problem.num_arms,
                problem.features,
                num_components=self.num_components,
                rank=default_rank if self.rank is None else self.rank,
                rewards=problem.rewards,
                mean_range=problem.reward_range,
                reward_noise=noise,
                noise_deviation=noise_deviation if is_gaussian else 0.0,
                precision=self.precision,
            )
        )


@dataclass(frozen=True)
class LogDensity:
    """The paper's Gaussian process on the log-density over a grid, with learned hyperparameters.

    Attributes:
        nodes_per_arm: grid points per arm; by default as many as the noise asks for.
        num_modes: basis functions, and as many more as are equally strong.
        arm_lengthscale, context_lengthscale, amplitude: prior medians.
        lengthscale_deviation, amplitude_deviation: of their logarithms.
        context_points: contexts per feature at which moves tabulate densities, to interpolate;
            None computes every user's own, exactly and slowly.
        precision: of densities, "single" or "double". Single precision is faster; per-user
            likelihoods are clipped at exp(-65).
        memory_limit_gb: grids that need more are refused.
    """

    name: ClassVar[str] = "log-density"
    basis: ClassVar[BasisName] = "hilbert"
    nodes_per_feature: ClassVar[int] = 10
    nodes_per_arm: int | None = None
    num_modes: int = 250
    arm_lengthscale: float = 0.7
    context_lengthscale: float = 1.5
    amplitude: float = 4.0
    lengthscale_deviation: float = 0.4
    amplitude_deviation: float = 0.6
    context_points: int | None = 20
    precision: Precision = "single"
    memory_limit_gb: float = 2.0

    def __post_init__(self) -> None:
        check_whole(self, "num_modes", "context_points", most=_MOST, remedy=_REMEDY)
        check_whole(self, "nodes_per_arm", least=2, most=_MOST, remedy=_REMEDY)
        lengthscales = "arm_lengthscale", "context_lengthscale"
        check_numbers(self, "positive", *lengthscales, "amplitude", "memory_limit_gb")
        check_numbers(self, "not negative", "lengthscale_deviation", "amplitude_deviation")
        check_choice(self, "precision", DTYPES)

    def model(self, problem: Problem, num_particles: int) -> LogDensityModel:
        """Lay out the grid for a problem.

        Raises:
            ConfigurationError: rewards are not Gaussian, or the grid is too large.
        """
        if problem.rewards != "gaussian":
            raise ConfigurationError(
                f"Expected Gaussian rewards for {type(self).__name__}; got {problem.rewards} ones. "
                "Use population=Mixture(), or leave it out."
            )
        low, high = problem.reward_range
        noise, noise_deviation = noise_prior(problem)
        feature = Axis(-1.0, 1.0, self.nodes_per_feature)
        shared = asdict(self)
        nodes = shared.pop("nodes_per_arm") or _nodes_for(problem, noise)
        return LogDensityModel(
            LogDensityConfig(
                num_arms=problem.num_arms,
                context_axes=tuple(
                    feature if size is None else CategoricalAxis(size) for size in problem.features
                ),
                arm_axis=Axis(low, high, nodes),
                reward_noise=noise,
                noise_deviation=noise_deviation,
                basis=self.basis,
                num_particles=num_particles,
                **shared,
            )
        )


@dataclass(frozen=True)
class PaperLogDensity(LogDensity):
    """The paper's population model with the paper's hyperparameters, which are not learned.

    Its basis is that of Karhunen and Loève, on 10 grid points per feature. The deviations have no
    effect. See `LogDensity` for the attributes.
    """

    name: ClassVar[str] = "paper-log-density"
    basis: ClassVar[BasisName] = "karhunen-loeve"
    nodes_per_arm: int | None = 20
    num_modes: int = 80
    context_lengthscale: float = 0.7
    amplitude: float = 2.0
    context_points: int | None = 8


PopulationSettings = Mixture | LogDensity
POPULATIONS = {each.name: each for each in (Mixture, LogDensity, PaperLogDensity)}


class ModelChoice(NamedTuple):
    """The settings of a population model, and why it was chosen."""

    settings: PopulationSettings
    reason: str

    @property
    def name(self) -> str:
        """Name the kind of model."""
        return "mixture" if isinstance(self.settings, Mixture) else "log-density"


def choose_population(
    problem: Problem, preferred: PopulationSettings | None, default: PopulationSettings
) -> ModelChoice:
    """Take the population asked for, else the default; a mixture where its grid does not fit."""
    if preferred is not None:
        return ModelChoice(preferred, "it was asked for")
    if isinstance(default, Mixture):
        return ModelChoice(default, "it is the default, for any number of arms and features")
    misfit = _misfit(problem)
    if misfit:
        return ModelChoice(Mixture(), misfit)
    num_arms, num_features = problem.num_arms, len(problem.features)
    fits = f"its grid fits {num_arms} arms and {num_features} feature{'s' * (num_features != 1)}"
    return ModelChoice(default, f"it is the paper's, and {fits}")


def _misfit(problem: Problem) -> str:
    """Say why a grid does not fit a problem; empty if it does."""
    num_arms, num_features = problem.num_arms, len(problem.features)
    if problem.rewards != "gaussian":
        return f"{problem.rewards} rewards have no grid"
    if num_arms > MOST_GRID_ARMS:
        nodes = _nodes_for(problem, noise_prior(problem)[0])
        cells = f"a grid of {num_arms} arms would have {nodes}^{num_arms} cells"
        return f"{cells}, and {MOST_GRID_ARMS} arms are the most for it"
    if num_features > MOST_GRID_FEATURES:
        return f"{num_features} features are more than a grid is for ({MOST_GRID_FEATURES})"
    return ""


def noise_prior(problem: Problem) -> tuple[float, float]:
    """Return the prior median of the noise, and the deviation of its logarithm: zero if known."""
    if problem.reward_noise is not None:
        return problem.reward_noise, 0.0
    low, high = problem.reward_range
    return _NOISE_SHARE * (high - low), _NOISE_DEVIATION


def _nodes_for(problem: Problem, noise: float) -> int:
    """Choose cells a few noise deviations wide: shared structure is seen no finer than a cell."""
    low, high = problem.reward_range
    wanted = round((high - low) / (_CELL_DEVIATIONS * noise)) + 1
    return min(max(wanted, _FEWEST_NODES), _MOST_NODES)
