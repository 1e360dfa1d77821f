"""Policies that learn the population with particles: `CoIDS`, `NpmTS` and `GIDS`."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from cocobandits.checks import check_numbers, check_whole
from cocobandits.display import Line
from cocobandits.errors import ConfigurationError
from cocobandits.inference.smc import SmcConfig
from cocobandits.policies.base import Problem
from cocobandits.policies.coco.acquisition import Acquisition
from cocobandits.policies.coco.coids import (
    CoInformationDirectedSampling,
    PlannedInformationDirectedSampling,
)
from cocobandits.policies.coco.gids import GlobalInformationDirectedSampling
from cocobandits.policies.coco.npm_ts import ThompsonSampling
from cocobandits.policies.coco.policy import CocoPolicy
from cocobandits.policies.coco.populations import (
    LogDensity,
    Mixture,
    ModelChoice,
    PaperLogDensity,
    PopulationSettings,
    choose_population,
)
from cocobandits.policies.description import Assumption, Facts, PolicySettings, description
from cocobandits.populations.base import PopulationModel


@dataclass(frozen=True)
class Learner(PolicySettings):
    """The common settings of policies that learn the population with particles.

    Attributes:
        population: the population model, `Mixture(...)` or `LogDensity(...)`; None is the default.
        num_particles: of the posterior over populations.
        ess_threshold: moves are due when the effective sample size falls below this share.
        stage_threshold: a stage of tempering may lower the effective sample size to this share.
        move_every: also move after this many changes; never, if None.
        moves_per_block: moves between two looks at the diversity.
        max_blocks: budget of blocks per stage.
        correlation_target: stop when particles correlate less than this with their ancestors.
    """

    is_learner: ClassVar[bool] = True
    assumes: ClassVar[Assumption | None] = "nonparametric"
    table_one: ClassVar[str] = "++++++"
    published: ClassVar[str] = "++++++"
    default_population: ClassVar[PopulationSettings] = Mixture()
    log_density: ClassVar[LogDensity] = LogDensity()
    population: PopulationSettings | None = None
    num_particles: int = 100
    ess_threshold: float = 0.4
    stage_threshold: float = 0.25
    move_every: int | None = None
    moves_per_block: int = 5
    max_blocks: int = 5
    correlation_target: float = 0.5

    def __post_init__(self) -> None:
        if not isinstance(self.population, Mixture | LogDensity | None):
            raise ConfigurationError(
                f"Expected Mixture(...), LogDensity(...) or None; got "
                f"population={self.population!r}. Leave it out for the default."
            )
        self.inference()

    def inference(self) -> SmcConfig:
        """Return when to move particles, and for how long; raises as its constructor does."""
        return SmcConfig(
            self.num_particles,
            self.ess_threshold,
            self.stage_threshold,
            self.move_every,
            self.moves_per_block,
            self.max_blocks,
            self.correlation_target,
        )

    def chosen(self, problem: Problem) -> ModelChoice:
        """Choose the population model for a problem."""
        return choose_population(problem, self.population, self.default_population)

    def not_chosen(self, problem: Problem) -> PopulationSettings:
        """Return the population model that was not chosen: the log-density, or the mixture."""
        is_mixture = isinstance(self.chosen(problem).settings, Mixture)
        return self.log_density if is_mixture else Mixture()

    def build(self, problem: Problem) -> CocoPolicy:
        """Build the policy for a problem."""
        model = self.chosen(problem).settings.model(problem, self.num_particles)
        return CocoPolicy(problem, model, self.acquisition(model), self.inference(), self)

    @abstractmethod
    def acquisition(self, model: PopulationModel) -> Acquisition:
        """Make the rule that turns beliefs into probabilities."""


@description(
    "coids",
    line=Line("#AA1144", "-", 2.6, 3.0),
    chooses="least squared regret per nat about this user and the population; plans ahead if it "
    "knows how often users are served (`steps_per_user`); the default",
    knows="learns one of any shape, with its hyperparameters",
)
class CoIDS(Learner):
    """Information-directed sampling about this user and the population.

    Attributes:
        population_weight: weight of the population against this user; 0 ignores later users.
        steps_per_user: rewards that each user will give, if that is known: it then plans ahead.

    See `Learner` for the others.
    """

    population_weight: float = 1.0
    steps_per_user: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        remedy = "The default is 1; 0 ignores later users."
        check_numbers(self, "not negative", "population_weight", remedy=remedy)
        check_whole(self, "steps_per_user", most=1_000_000, remedy="Leave it out.")

    def informed(self, facts: Facts) -> "PolicySettings":
        """Plan for the steps of the simulation, unless a number was given."""
        return self.filled(steps_per_user=facts.steps_per_user)

    def acquisition(self, model: PopulationModel) -> Acquisition:
        """Plan ahead if the end is known, and else weigh regret against information."""
        rewards, weight = model.reward_grid, self.population_weight
        if self.steps_per_user is None:
            return CoInformationDirectedSampling(rewards, weight)
        return PlannedInformationDirectedSampling(rewards, self.steps_per_user, weight)


@dataclass(frozen=True)
class PaperLearner(Learner):
    """The settings that the paper gives its policies; see `Learner`.

    The default population is the paper's log-density, or a mixture in studies too large for it.
    """

    default_population: ClassVar[PopulationSettings] = PaperLogDensity()
    log_density: ClassVar[LogDensity] = PaperLogDensity()
    num_particles: int = 200
    ess_threshold: float = 0.5
    moves_per_block: int = 1
    max_blocks: int = 30


@description(
    "npm-ts",
    label="NPM-TS",
    line=Line("#0072B2", "-", 1.6),
    chooses="the paper's: Thompson sampling",
    knows="learns one of any shape",
)
class NpmTS(PaperLearner):
    """The paper's Thompson sampling with a learned population; see `Learner`."""

    def acquisition(self, model: PopulationModel) -> Acquisition:
        """Play each arm as often as it is best."""
        return ThompsonSampling()


@description(
    "gids",
    line=Line("#D55E00", (0, (4, 1.5)), 1.6),
    chooses="the paper's: information about the population, against regret",
    knows="learns one of any shape",
)
class GIDS(PaperLearner):
    """The paper's global information-directed sampling; see `Learner`."""

    def acquisition(self, model: PopulationModel) -> Acquisition:
        """Weigh every particle's regret against the entropy of the weights."""
        return GlobalInformationDirectedSampling(model.reward_grid)
