"""Suites: environments, named policies, seeds, newcomers and a rule for ranges, as data.

The paper's suite runs the paper's policies in the paper's environments on the paper's range of arm
means. Everything else runs on the range that the environment declares.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from cocobandits.checks import check_names, check_whole
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
from cocobandits.policies.coco.populations import LogDensity, Mixture, PaperLogDensity
from cocobandits.policies.description import PolicySettings
from cocobandits.policies.registry import POLICIES, find_policy
from cocobandits.runs.cell import Agent, Cell, PolicyAgent
from cocobandits.runs.results import ORACLE
from cocobandits.study.design import StudyDesign

STUDIES = ("groups", "yes-no", "survey", "survey-missing")
COMPARED_ENVIRONMENTS = (*PAPER, "diet", *STRESS, *STUDIES)
# Names that stand for several environments on the command line.
GROUPS = {"stress": STRESS, "studies": STUDIES}
REPRODUCED = (OURS, "npm-ts", "gids", "mtts", ALONE, ORACLE, "oracle-plan", "uniform")
_MOST_SEEDS, _MOST_NODES = 10_000, 70
# Of the name of a folder, on most file systems.
_MOST_BYTES = 255


# Settings that the authors of these systems leave open, or would allow.
VARIANTS = {
    name: PolicyAgent.of(policy, label)
    for name, label, policy in (
        ("coids-log-density", "CoIDS, log-density", CoIDS(population=LogDensity())),
        ("mtts-fitted", "MTTS, Σ fitted", MTTS(prior_users=10.0)),
        ("kmtl-ucb-independent", "KMTL-UCB, arms apart", KmtlUCB(similarity="independent")),
        ("kmtl-ucb-contexts", "KMTL-UCB, S by contexts", KmtlUCB(similarity="contexts")),
        (
            *("kmtl-ucb-own", "KMTL-UCB, own rewards"),
            KmtlUCB(similarity="independent", user_share=0.5),
        ),
        ("robustagg-0.2", "RobustAgg, ε = 0.2", RobustAgg(dissimilarity=0.2)),
        ("robustagg-0", "RobustAgg, ε = 0", RobustAgg(dissimilarity=0.0)),
    )
}
NAMES = (*POLICIES, *VARIANTS)
COMPARED = tuple(name for name in NAMES if name not in ("oracle-plan", "coids-log-density"))
Given = PolicySettings | Agent | str


@dataclass(frozen=True)
class Suite:
    """An experiment; names stand for environments, policies and variants of the package.

    Attributes:
        name: stored in every cell.
        environments: names or objects.
        policies: by name; or a list of names.
        num_seeds: seeds start at zero.
        newcomers: evaluation users and their pulls.
        is_quick: whether models are coarser than usual.
        in_paper_range: policies that have the paper's range of arm means in its environments.
    """

    name: str
    environments: Iterable[Environment | str]
    policies: Mapping[str, Given] | Iterable[str]
    num_seeds: int
    newcomers: tuple[int, int] = (0, 0)
    is_quick: bool = False
    in_paper_range: Collection[str] = ()

    def __post_init__(self) -> None:
        # Listed once: an iterator has its items once.
        object.__setattr__(self, "environments", _listed("environment", self.environments))
        names = _listed("policy", self.policies)
        if not isinstance(self.policies, Mapping):
            if not all(isinstance(name, str) for name in names):
                raise ConfigurationError(
                    "Expected names of policies, or a mapping from names to policies; got "
                    f"policies={brief(list(names))}. Write for example {{'mine': Mine()}}."
                )
            check_names("policy", names)
            object.__setattr__(self, "policies", dict(zip(names, names, strict=True)))
        check_whole(self, "num_seeds", most=_MOST_SEEDS, remedy="Use for example 10.")
        _check_newcomers(self.newcomers)
        for kind, names in (
            ("environment", tuple(each.name for each in self.known_environments())),
            ("policy", tuple(self.agents())),
        ):
            check_names(kind, names)
            for name in names:
                # Names are folders of a run.
                if name[0] == "." or set(name) & set("/\\\0") or len(name.encode()) > _MOST_BYTES:
                    raise ConfigurationError(
                        f"Expected a name of at most {_MOST_BYTES} bytes without slashes, null "
                        f"characters, or a dot in front; got {kind}={brief(name)}. Rename it."
                    )

    def known_environments(self) -> tuple[Environment, ...]:
        """Look up environments that are given by name."""
        return tuple(map(find_environment, self.environments))

    def agents(self) -> dict[str, Agent]:
        """Look up policies that are given by name."""
        assert isinstance(self.policies, Mapping)
        return {
            name: policy if isinstance(policy, Agent) else find_agent(policy)
            for name, policy in self.policies.items()
        }

    def range_for(self, name: str, environment: Environment) -> tuple[float, float]:
        """Choose the range of arm means that a policy is configured with."""
        is_paper = name in self.in_paper_range and environment.name in PAPER
        return PAPER_RANGE if is_paper else environment.rewards.range

    def cells(self) -> list[Cell]:
        """List the cells, environment by environment; policies skip rewards they cannot learn."""
        made, known = [], environment_names()
        for environment, (name, agent) in product(self.known_environments(), self.agents().items()):
            if environment.rewards.kind in agent.rewards:
                # Strangers come last in displays.
                first = [*known, environment.name].index(environment.name)
                order = first, [*NAMES, name].index(name)
                fitting = agent_for(agent, environment)
                rest = self.range_for(name, environment), self.newcomers, order
                made += [
                    Cell(environment, name, seed, fitting, *rest, self.name, self.is_quick)
                    for seed in range(self.num_seeds)
                ]
        return made

    def tables(self) -> list[DensityTask | DietTask]:
        """List the tables for figures of the paper that no cell has."""
        environments = {each.name: each for each in self.known_environments()}
        if self.name != "paper" or not set(environments) & set(PAPER):
            return []
        agent = self.agents().get(DensityTask.policy)
        if "mixture" not in environments or agent is None:
            return [DietTask()]
        return [DietTask(), DensityTask(agent_for(agent, environments["mixture"]))]


def find_agent(policy: PolicySettings | str) -> PolicyAgent:
    """Make the agent of a policy, or of the name of a policy or variant.

    Raises:
        UnknownNameError: there is no policy or variant of that name.
        ConfigurationError: it is none of these.
    """
    if isinstance(policy, str) and policy not in POLICIES:
        if policy not in VARIANTS:
            raise UnknownNameError("policy", policy, NAMES, "Choose one of these.")
        return VARIANTS[policy]
    return PolicyAgent.of(find_policy(policy))


def agent_for(agent: Agent, environment: Environment) -> Agent:
    """Choose the population that an agent learns in an environment, if it learns one.

    The paper's hyperparameters are those of the log-density. Where a study is too large for it, the
    paper's policies learn the mixture with our settings.
    """
    if not isinstance(agent, PolicyAgent) or not isinstance(agent.policy, Learner):
        return agent
    policy = agent.policy
    declared = environment.arms, environment.context, environment.rewards
    problem = StudyDesign.declare(*declared, "uniform", floor=0.0, seed=0).problem()
    fitting = replace(policy, population=None).chosen(problem).settings
    if isinstance(policy, PaperLearner) and isinstance(fitting, Mixture):
        names = ("num_particles", "ess_threshold", "moves_per_block", "max_blocks")
        ours = {name: getattr(CoIDS(), name) for name in names}
        policy = replace(policy, population=fitting, **ours)
    # Stored in the cell, whatever decides by default.
    return agent.having(replace(policy, population=policy.population or fitting))


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
        expanded(environments or PAPER),
        _agents([*(policies or REPRODUCED), ORACLE], is_quick, nodes_per_arm),
        (4 if is_quick else 10) if num_seeds is None else num_seeds,
        newcomers=(20, 10),
        is_quick=is_quick,
        in_paper_range=PAPER_POLICIES,
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
        expanded(environments or COMPARED_ENVIRONMENTS),
        _agents([*(policies or COMPARED), OURS, ALONE, ORACLE], is_quick),
        (2 if is_quick else 10) if num_seeds is None else num_seeds,
        is_quick=is_quick,
    )


def expanded(names: Iterable[str]) -> tuple[str, ...]:
    """Replace names of groups by those of their environments, each once."""
    return tuple(dict.fromkeys(each for name in names for each in GROUPS.get(name, (name,))))


def _listed(kind: str, given: Any) -> tuple[Any, ...]:
    """List what is given, one name alone as well.

    Raises:
        ConfigurationError: it is no list, or an empty one.
    """
    listed = (given,) if isinstance(given, str) else given
    if not isinstance(listed, Iterable) or not (found := tuple(listed)):
        raise ConfigurationError(
            f"Expected at least one {kind}; got {brief(given)}. Give a list of names or objects."
        )
    return found


def _check_newcomers(newcomers: Any) -> None:
    """Refuse what is not two numbers above zero, or two zeros.

    Raises:
        ConfigurationError: it is not.
    """
    is_pair = isinstance(newcomers, tuple) and [type(each) for each in newcomers] == [int, int]
    if not is_pair or (newcomers != (0, 0) and min(newcomers) < 1):
        raise ConfigurationError(
            "Expected two whole numbers above zero, users and their pulls, or (0, 0) for none; got "
            f"newcomers={brief(newcomers)}. Give for example (20, 10)."
        )


def _agents(
    names: Iterable[str], is_quick: bool, nodes_per_arm: int | None = None
) -> dict[str, PolicyAgent]:
    """Find policies and variants, and choose the size of learners."""
    if nodes_per_arm is not None and not 2 <= nodes_per_arm <= _MOST_NODES:
        raise ConfigurationError(
            f"Expected 2 to {_MOST_NODES} grid points per arm; got nodes={nodes_per_arm}. The "
            "paper uses 20."
        )
    found = {name: find_agent(name) for name in names}
    for name, agent in found.items():
        policy = agent.policy
        if isinstance(policy, PaperLearner) and (is_quick or nodes_per_arm):
            policy = replace(policy, population=PaperLogDensity(nodes_per_arm=nodes_per_arm or 8))
        if isinstance(policy, Learner) and is_quick:
            policy = replace(policy, num_particles=60)
        found[name] = agent.having(policy)
    return found
