"""Suites: environments, named policies, seeds, newcomers and a rule for ranges, as data.

The paper's suite runs the paper's policies in the paper's environments on the paper's range of arm
means. Everything else runs on the range that the environment declares.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product

from cocobandits.checks import check_names
from cocobandits.environments.base import Environment
from cocobandits.environments.registry import environment_names, find_environment
from cocobandits.errors import ConfigurationError, UnknownNameError, brief
from cocobandits.experiments.claims import OURS, PAPER, PAPER_POLICIES, STRESS
from cocobandits.experiments.density import PAPER_RANGE, DensityTask, DietTask
from cocobandits.experiments.rules import ALONE
from cocobandits.policies.baselines.kmtl_ucb import KmtlUCB
from cocobandits.policies.baselines.mtts import MTTS
from cocobandits.policies.baselines.robustagg import RobustAgg
from cocobandits.policies.coco.descriptions import CoIDS, Learner, PaperLearner
from cocobandits.policies.coco.populations import Mixture, PaperLogDensity
from cocobandits.policies.description import PolicySettings
from cocobandits.policies.registry import POLICIES
from cocobandits.runs.cell import Agent, Cell, PolicyAgent
from cocobandits.runs.results import ORACLE
from cocobandits.study.design import StudyDesign

STUDIES = ("groups", "yes-no", "survey", "survey-missing")
COMPARED_ENVIRONMENTS = (*PAPER, "diet", *STRESS, *STUDIES)
# Names that stand for several environments on the command line.
GROUPS = {"stress": STRESS, "studies": STUDIES}
REPRODUCED = (OURS, "npm-ts", "gids", "mtts", ALONE, ORACLE, "oracle-plan", "uniform")
_MOST_SEEDS, _MOST_NODES = 10_000, 70

# Settings that the authors of these systems leave open, or would allow, with a label.
VARIANTS: dict[str, tuple[str, PolicySettings]] = {
    "coids-mixture": ("CoIDS, mixture", CoIDS(population=Mixture())),
    "mtts-fitted": ("MTTS, Σ fitted", MTTS(prior_users=10.0)),
    "kmtl-ucb-independent": ("KMTL-UCB, arms apart", KmtlUCB(similarity="independent")),
    "kmtl-ucb-contexts": ("KMTL-UCB, S by contexts", KmtlUCB(similarity="contexts")),
    "kmtl-ucb-own": ("KMTL-UCB, own share", KmtlUCB(similarity="independent", user_share=0.5)),
    "robustagg-0.2": ("RobustAgg, ε = 0.2", RobustAgg(dissimilarity=0.2)),
    "robustagg-0": ("RobustAgg, ε = 0", RobustAgg(dissimilarity=0.0)),
}
NAMES = (*POLICIES, *VARIANTS)
COMPARED = tuple(name for name in NAMES if name not in ("oracle-plan", "coids-mixture"))


@dataclass(frozen=True)
class Suite:
    """An experiment.

    Attributes:
        name: stored in every cell.
        environments: from the registry, or from outside of the package.
        policies: settings or agents by name, from the package or from outside of it.
        num_seeds: seeds start at zero.
        newcomers: evaluation users and their pulls.
        has_paper_range: whether the paper's policies have its range in its environments.
        is_quick: whether models are coarser than usual.
    """

    name: str
    environments: tuple[Environment, ...]
    policies: Mapping[str, PolicySettings | Agent]
    num_seeds: int
    newcomers: tuple[int, int] = (0, 0)
    has_paper_range: bool = False
    is_quick: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.num_seeds <= _MOST_SEEDS:
            raise ConfigurationError(
                f"Expected 1 to {_MOST_SEEDS:,} seeds; got seeds={self.num_seeds}. Use for "
                "example 10."
            )
        for kind, names in (
            ("environment", tuple(each.name for each in self.environments)),
            ("policy", tuple(self.policies)),
        ):
            check_names(kind, names)
            for name in names:
                # Names are folders of a run.
                if name in (".", "..") or set(name) & set("/\\"):
                    raise ConfigurationError(
                        f"Expected a name without slashes; got {kind}={brief(name)}. Rename it."
                    )

    def cells(self) -> list[Cell]:
        """List the cells, environment by environment; policies skip rewards they cannot learn."""
        made, known = [], environment_names()
        labels = Counter(policy.label for policy in self.policies.values())
        for environment, (name, policy) in product(self.environments, self.policies.items()):
            if isinstance(policy, Agent) or environment.rewards.kind in policy.rewards:
                agent = agent_for(policy, environment, name)
                if labels[policy.label] > 1 and agent.label != name and name not in NAMES:
                    agent = replace(agent, label=f"{agent.label}, {name}")
                mean_range = self.range_for(environment, name)
                # Strangers come last in displays.
                place = [*known, environment.name].index(environment.name)
                order = place, [*NAMES, name].index(name)
                suite = self.newcomers, order, self.name, self.is_quick
                seeds = range(self.num_seeds)
                made += [Cell(environment, name, each, agent, mean_range, *suite) for each in seeds]
        return made

    def tables(self) -> list[DensityTask | DietTask]:
        """List the tables for figures of the paper that no cell has."""
        places = {environment.name: environment for environment in self.environments}
        if self.name != "paper" or not set(places) & set(PAPER):
            return []
        name = DensityTask.policy
        if "mixture" not in places or name not in self.policies:
            return [DietTask()]
        return [DietTask(), DensityTask(agent_for(self.policies[name], places["mixture"], name))]

    def range_for(self, environment: Environment, name: str) -> tuple[float, float]:
        """Choose the range of arm means that a policy is configured with."""
        is_paper = environment.name in PAPER and name in PAPER_POLICIES
        return PAPER_RANGE if self.has_paper_range and is_paper else environment.rewards.range


def agent_for(policy: PolicySettings | Agent, environment: Environment, name: str) -> Agent:
    """Make the agent of a policy in an environment.

    The paper's hyperparameters are those of the log-density. Studies that are too large for it have
    a mixture, which is learned with our settings whatever the policy.
    """
    if isinstance(policy, Agent):
        return policy
    if isinstance(policy, PaperLearner) and environment.name in STUDIES:
        names = ("num_particles", "ess_threshold", "moves_per_block", "max_blocks")
        ours = {name: getattr(CoIDS(), name) for name in names}
        policy = replace(policy, population=None, **ours)
    if isinstance(policy, Learner):
        place = environment.arms, environment.context, environment.rewards
        problem = StudyDesign.declare(*place, "uniform", floor=0.0, seed=0).problem()
        # Stored in the cell, whatever decides by default.
        policy = replace(policy, population=policy.chosen(problem).settings)
    if name in VARIANTS:
        # Table 1 is about the systems, not about their settings.
        return replace(PolicyAgent.of(policy, VARIANTS[name][0]), table_one="", published="")
    return PolicyAgent.of(policy, policy.label)


def paper_suite(
    is_quick: bool = False,
    environments: Iterable[str] | None = None,
    policies: Iterable[str] | None = None,
    num_seeds: int | None = None,
    nodes_per_arm: int | None = None,
) -> Suite:
    """Build the suite of the reproduction; by default all of it.

    Raises:
        UnknownNameError: an unknown environment or policy.
        ConfigurationError: a number of seeds or nodes out of range.
    """
    return Suite(
        "paper",
        _environments(environments or PAPER),
        _policies([*(policies or REPRODUCED), ORACLE], is_quick, nodes_per_arm),
        (4 if is_quick else 10) if num_seeds is None else num_seeds,
        newcomers=(20, 10),
        has_paper_range=True,
        is_quick=is_quick,
    )


def compare_suite(
    is_quick: bool = False,
    environments: Iterable[str] | None = None,
    policies: Iterable[str] | None = None,
    num_seeds: int | None = None,
) -> Suite:
    """Build the suite that compares all systems: one range for all, and no newcomers.

    Raises:
        UnknownNameError: an unknown environment or policy.
        ConfigurationError: a number of seeds out of range.
    """
    return Suite(
        "compare",
        _environments(environments or COMPARED_ENVIRONMENTS),
        _policies([*(policies or COMPARED), OURS, ALONE, ORACLE], is_quick),
        (2 if is_quick else 10) if num_seeds is None else num_seeds,
        is_quick=is_quick,
    )


def _environments(asked: Iterable[str]) -> tuple[Environment, ...]:
    found = dict.fromkeys(name for each in asked for name in GROUPS.get(each, (each,)))
    return tuple(find_environment(name) for name in found)


def _policies(
    asked: Iterable[str], is_quick: bool, nodes_per_arm: int | None = None
) -> dict[str, PolicySettings]:
    """Find policies and variants, and choose the size of learners."""
    if nodes_per_arm is not None and not 2 <= nodes_per_arm <= _MOST_NODES:
        raise ConfigurationError(
            f"Expected 2 to {_MOST_NODES} grid points per arm; got nodes={nodes_per_arm}. The "
            "paper uses 20."
        )
    found = {}
    for name in asked:
        if name not in NAMES:
            raise UnknownNameError("policy", name, NAMES, "Choose one of these.")
        policy = VARIANTS[name][1] if name in VARIANTS else POLICIES[name]()
        if isinstance(policy, PaperLearner) and (is_quick or nodes_per_arm):
            policy = replace(policy, population=PaperLogDensity(nodes_per_arm=nodes_per_arm or 8))
        elif isinstance(policy, Learner) and is_quick:
            # The mixture is three to five times as fast as the log-density.
            policy = replace(policy, population=Mixture())
        if isinstance(policy, Learner) and is_quick:
            policy = replace(policy, num_particles=60)
        found[name] = policy
    return found
