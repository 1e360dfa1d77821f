"""Experiments as frozen data: environments, policies, settings, ranges, seeds.

A reproduction runs the paper's policies in the paper's environments on the paper's range of arm
means. Everything else runs on the range that the environment declares.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from cocobandits.environments import lmm
from cocobandits.environments.registry import build_environment
from cocobandits.errors import ConfigurationError, UnknownNameError
from cocobandits.policies.registry import policy_names
from cocobandits.policies.settings import PRESETS, CocoSettings, ModelName
from cocobandits.study.units import STANDARD_RANGE

ENVIRONMENTS = ("mixture", "partial", "lmm", "lmm-misspecified")
STRESS = ("stress-skewed", "stress-groups", "stress-ring", "stress-heteroscedastic")
STUDIES = ("groups", "yes-no", "survey", "survey-missing")
# Names that stand for several environments on the command line.
GROUPS = {"stress": STRESS, "studies": STUDIES}
# Multi-task regret is measured against it, so every experiment has it.
REFERENCE = "oracle-ts"
PAPER_POLICIES = ("npm-ts", "gids", "mtts", "ind-ts", "oracle-ts", "uniform")
POLICIES = (
    *("coids", "npm-ts", "gids", "mtts", "ind-ts"),
    *("oracle-ts", "oracle-plan", "uniform"),
)
# The other systems of the paper's Table 1 and their kin, which `coco compare` runs beside ours.
SYSTEMS = (
    *("hierts", "hlinucb", "hlinucb-t", "kmtl-ucb", "gradband"),
    *("meta-ts", "ada-ts", "robustagg", "rome"),
)


class Variant(NamedTuple):
    """A policy with a setting of its own, under a name of its own."""

    policy: str
    settings: str
    values: dict[str, Any]


# What the authors of these systems leave open, or would allow.
VARIANTS = {
    "mtts-fitted": Variant("mtts", "mtts", {"prior_users": 10.0}),
    "kmtl-ucb-independent": Variant("kmtl-ucb", "kmtl_ucb", {"similarity": "independent"}),
    "kmtl-ucb-contexts": Variant("kmtl-ucb", "kmtl_ucb", {"similarity": "contexts"}),
    "kmtl-ucb-own": Variant(
        "kmtl-ucb", "kmtl_ucb", {"similarity": "independent", "user_share": 0.5}
    ),
    "robustagg-0.2": Variant("robustagg", "robustagg", {"dissimilarity": 0.2}),
    "robustagg-0": Variant("robustagg", "robustagg", {"dissimilarity": 0.0}),
}
# Who takes part in a comparison: ours, all other systems, and who is told the truth or nothing.
COMPARED = (
    *("coids", "npm-ts", "gids", "mtts", *SYSTEMS, *VARIANTS),
    *("ind-ts", REFERENCE, "uniform"),
)
COMPARED_ENVIRONMENTS = (*ENVIRONMENTS, "diet", *STRESS, *STUDIES)
# They assume normal rewards, and refuse others.
GAUSSIAN_ONLY = ("mtts", "hierts", "meta-ts", "ada-ts", "oracle-plan")
# Cuts off the arm means of many users, which is part of what is reproduced.
PAPER_RANGE = (-2.0, 2.0)

# What MTTS is told, in the units of rewards. In `lmm` the truth; in `lmm-misspecified` the true
# mean and variance of the coefficients over both modes; elsewhere a line per arm, and its defaults.
_MTTS: dict[str, dict[str, Any]] = {
    "lmm": {
        "design": lmm.DESIGN,
        "coefficient_mean": 1.0,
        "coefficient_deviation": lmm.COEFFICIENT_DEVIATION,
        "user_deviation": lmm.USER_DEVIATION,
    },
    "lmm-misspecified": {
        "design": lmm.DESIGN,
        "coefficient_mean": 0.0,
        "coefficient_deviation": math.sqrt(1 + lmm.COEFFICIENT_DEVIATION**2),
        "user_deviation": lmm.USER_DEVIATION,
    },
}


@dataclass(frozen=True)
class Scale:
    """How much is computed.

    Attributes:
        name: as in the configuration of a run.
        num_seeds: unless another number is asked for.
        settings: of the paper's policies, where the population is a log-density.
        learned: of coids, and of all where it is a mixture.
        evaluation_users: newcomers on whom a learned prior is tried out.
        evaluation_pulls: of each newcomer.
        is_reproduction: the paper's policies have the paper's range in the paper's environments.
    """

    name: str
    num_seeds: int
    settings: CocoSettings
    learned: CocoSettings
    evaluation_users: int = 20
    evaluation_pulls: int = 10
    is_reproduction: bool = True


def _coarser(settings: CocoSettings) -> CocoSettings:
    """Take coarser cells and fewer particles: the same curves, less smooth."""
    inference = replace(settings.inference, num_particles=60)
    return replace(settings, nodes_per_arm=8, inference=inference)


PAPER = Scale("paper", 10, PRESETS["paper"], PRESETS["learned"])
# The mixture is three to five times as fast as the log-density that CoIDS learns at full scale.
QUICK = Scale(
    "quick", 4, _coarser(PAPER.settings), replace(_coarser(PAPER.learned), model="mixture")
)


def scale(
    is_quick: bool, nodes_per_arm: int | None = None, model: ModelName | None = None
) -> Scale:
    """Choose a scale, with another grid for the paper's policies or another model if given.

    Raises:
        ConfigurationError: a grid of fewer than two points, or an unknown model.
    """
    chosen = QUICK if is_quick else PAPER
    if model is not None:
        chosen = replace(
            chosen,
            settings=replace(chosen.settings, model=model),
            learned=replace(chosen.learned, model=model),
        )
    if nodes_per_arm is None:
        return chosen
    if nodes_per_arm < 2:
        raise ConfigurationError(
            f"Expected at least two grid points; got nodes={nodes_per_arm}. The paper uses 20."
        )
    return replace(chosen, settings=replace(chosen.settings, nodes_per_arm=nodes_per_arm))


def comparison(is_quick: bool) -> Scale:
    """Choose a scale for comparing all systems: one range for all, and no newcomers."""
    # As at full scale, CoIDS chooses its population model by the size of the study.
    quick = replace(QUICK, num_seeds=2, learned=_coarser(PAPER.learned))
    chosen = quick if is_quick else PAPER
    return replace(chosen, evaluation_users=0, evaluation_pulls=0, is_reproduction=False)


@dataclass(frozen=True)
class Experiment:
    """A grid of cells (environment, policy, seed), all at one scale."""

    scale: Scale
    environments: tuple[str, ...]
    policies: tuple[str, ...]
    num_seeds: int

    def __post_init__(self) -> None:
        if self.num_seeds < 1:
            raise ConfigurationError(
                f"Expected at least one seed; got seeds={self.num_seeds}. Use for example 10."
            )

    @classmethod
    def declare(
        cls,
        scale: Scale,
        environments: list[str] | None = None,
        policies: list[str] | None = None,
        num_seeds: int | None = None,
    ) -> "Experiment":
        """Read what was asked for; nothing asked is everything.

        Raises:
            UnknownNameError: an environment or policy that nobody registered.
            ConfigurationError: no seeds.
        """
        asked = dict.fromkeys(
            name for each in environments or ENVIRONMENTS for name in GROUPS.get(each, (each,))
        )
        for name in asked:
            build_environment(name)
        wanted = dict.fromkeys([*(policies or POLICIES), REFERENCE])
        known = (*policy_names(), *VARIANTS)
        for name in wanted:
            if name not in known:
                raise UnknownNameError("policy", name, known, "Choose one of these.")
        return cls(
            scale,
            tuple(asked),
            tuple(name for name in known if name in wanted),
            scale.num_seeds if num_seeds is None else num_seeds,
        )

    def policies_for(self, environment: str) -> tuple[str, ...]:
        """List the policies that can deal with the rewards of an environment."""
        if build_environment(environment).rewards == "gaussian":
            return self.policies
        return tuple(name for name in self.policies if policy_of(name) not in GAUSSIAN_ONLY)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, from zero."""
        return tuple(range(self.num_seeds))

    def settings_for(self, environment: str, policy: str) -> CocoSettings:
        """Complete the settings of the scale for a policy in an environment.

        MTTS is told what is known of the coefficients, RobustAgg how many decisions there will be;
        its ε is in units of rewards here.

        The paper's hyperparameters are of the log-density. Studies that are too large for it have a
        mixture, which learns its own whatever the policy.
        """
        is_paper = policy in PAPER_POLICIES and environment not in STUDIES
        settings = self.scale.settings if is_paper else self.scale.learned
        if policy in VARIANTS:
            _, name, values = VARIANTS[policy]
            changed: dict[str, Any] = {name: replace(getattr(settings, name), **values)}
            settings = replace(settings, **changed)
        low, high = self.range_for(environment, policy)
        unit = (STANDARD_RANGE[1] - STANDARD_RANGE[0]) / (high - low)
        mtts, robustagg = settings.mtts, settings.robustagg
        if environment in _MTTS:
            mtts = replace(mtts, **_MTTS[environment]).scaled(unit)
        num_steps = build_environment(environment).recruitment.num_steps
        robustagg = replace(robustagg, horizon=num_steps).scaled(unit)
        return replace(settings, mtts=mtts, robustagg=robustagg)

    def range_for(self, environment: str, policy: str) -> tuple[float, float]:
        """Choose the range of arm means that a policy works with in an environment."""
        if self.scale.is_reproduction:
            return range_for(environment, policy)
        return build_environment(environment).reward_range

    def as_json(self) -> dict[str, Any]:
        """Describe the experiment in plain values."""
        return {
            "scale": self.scale.name,
            "is_reproduction": self.scale.is_reproduction,
            "environments": list(self.environments),
            "policies": list(self.policies),
            "seeds": list(self.seeds),
            "left_out": [
                [environment, policy]
                for environment in self.environments
                for policy in self.policies
                if policy not in self.policies_for(environment)
            ],
            "evaluation": {
                "users": self.scale.evaluation_users,
                "pulls": self.scale.evaluation_pulls,
            },
            "settings": asdict(self.scale.settings),
            "learned": asdict(self.scale.learned),
        }


def policy_of(name: str) -> str:
    """Name the policy that a variant is one of; any other name is that of a policy."""
    return VARIANTS[name].policy if name in VARIANTS else name


def range_for(environment: str, policy: str) -> tuple[float, float]:
    """Choose the range of arm means that a policy has in an environment in a reproduction."""
    if has_paper_range(environment, policy):
        return PAPER_RANGE
    return build_environment(environment).reward_range


def has_paper_range(environment: str, policy: str) -> bool:
    """Tell whether policy and environment are both the paper's."""
    return environment in ENVIRONMENTS and policy in PAPER_POLICIES
