"""What `coco reproduce` and `coco compare` run."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from cocobandits import (
    MTTS,
    CoIDS,
    Gaussian,
    IndTS,
    LogDensity,
    Mixture,
    NpmTS,
    PaperLogDensity,
    RobustAgg,
)
from cocobandits.environments.base import NOTHING_SHARED, Environment
from cocobandits.environments.recruitment import Recruitment
from cocobandits.environments.registry import environment_names, find_environment
from cocobandits.errors import CocoError, ConfigurationError, ConflictError, UnknownNameError
from cocobandits.experiments import populations, suites
from cocobandits.experiments.claims import PAPER, PAPER_POLICIES, STRESS
from cocobandits.experiments.density import CONTEXTS, PAPER_RANGE, TIMES, DensityTask, one_by_one
from cocobandits.experiments.suites import (
    Suite,
    agent_for,
    compare_suite,
    find_agent,
    paper_suite,
)
from cocobandits.policies.coco.descriptions import Learner
from cocobandits.policies.plain import to_plain
from cocobandits.runs.info import Source
from cocobandits.runs.pool import plan
from cocobandits.runs.results import read_results
from cocobandits.runs.store import RunFolder, open_folder
from cocobandits.simulation.loop import facts_of
from cocobandits.simulation.world import draw_world

RESULTS = Path(__file__).parents[2] / "results"


def settings_of(suite, environment, name):
    """Return the settings of a policy in an environment, as they are stored."""
    return agent_for(suite.agents()[name], find_environment(environment)).policy


def informed_in(suite, environment, name):
    """Return the settings with which a policy starts."""
    place = find_environment(environment)
    low, high = suite.range_for(name, place)
    rewards = replace(place.rewards, low=low, high=high)
    facts = facts_of(place, draw_world(place, 0), rewards)
    return settings_of(suite, environment, name).informed(facts)


def names_of(suite) -> list[str]:
    return [environment.name for environment in suite.known_environments()]


def test_default_is_the_whole_paper_and_coids():
    suite = paper_suite()
    assert names_of(suite) == ["mixture", "partial", "lmm", "lmm-misspecified"] == list(PAPER)
    assert set(suite.policies) == {"coids", "oracle-plan", *PAPER_POLICIES}
    assert len(suite.cells()) == 4 * 8 * 10
    assert suite.newcomers == (20, 10)
    assert paper_suite(is_quick=True).num_seeds == 4


def test_stress_is_the_name_of_four_environments():
    assert names_of(paper_suite(environments=["lmm", "stress", "stress-ring"])) == ["lmm", *STRESS]
    assert [name for name in environment_names() if name.startswith("stress-")] == list(STRESS)


def test_all_that_is_compared_has_a_name_for_display():
    suite = compare_suite()
    cells = replace(suite, num_seeds=1).cells()
    assert {cell.name for cell in cells} == set(suites.COMPARED)
    assert {cell.environment.name for cell in cells} == set(environment_names())
    for cell in cells:
        assert cell.agent.label != cell.name
        assert cell.environment.label
    labels = {cell.agent.label for cell in cells}
    assert len(labels) == len(suites.COMPARED)


@pytest.mark.parametrize(
    ("environment", "policy", "is_paper"),
    [
        ("mixture", "ind-ts", True),
        ("lmm", "gids", True),
        ("mixture", "coids", False),
        ("lmm-misspecified", "oracle-plan", False),
        ("stress-skewed", "ind-ts", False),
        ("diet", "npm-ts", False),
    ],
)
def test_papers_range_is_for_the_papers_policies_in_its_environments(environment, policy, is_paper):
    place = find_environment(environment)
    assert PAPER_RANGE == (-2, 2) != place.rewards.range
    expected = PAPER_RANGE if is_paper else place.rewards.range
    assert paper_suite().range_for(policy, place) == expected
    assert compare_suite(policies=[policy]).range_for(policy, place) == place.rewards.range


def test_mtts_knows_the_truth_in_the_units_of_the_range():
    """On [-3, 3] a reward unit is two thirds of a standardised one; on [-2, 2] it is one."""
    paper, wide = (informed_in(each, "lmm", "mtts") for each in (paper_suite(), compare_suite()))
    assert paper.design == (((0, 0.9), (1, 0)), ((0, -1.1), (1, 0)), ((0, 0.2), (1, 0)))
    numbers = paper.coefficient_mean, paper.coefficient_deviation, paper.user_deviation
    assert numbers == (1, 0.5, 0.05)
    assert wide.design == paper.design
    assert wide.coefficient_mean == pytest.approx(2 / 3)
    assert wide.user_deviation == pytest.approx(2 / 3 * paper.user_deviation)
    moments = informed_in(paper_suite(), "lmm-misspecified", "mtts")
    assert moments.coefficient_mean == 0
    assert moments.coefficient_deviation**2 == pytest.approx(1.25)
    assert informed_in(paper_suite(), "stress-ring", "mtts") == MTTS()


def test_variants_are_policies_with_other_settings():
    """Their labels differ too, and they have no row of Table 1."""
    place, suite = find_environment("stress-ring"), compare_suite(policies=suites.NAMES)
    for name, variant in suites.VARIANTS.items():
        changed = agent_for(suite.agents()[name], place)
        original = agent_for(suite.agents()[variant.policy.name], place)
        assert type(changed.policy) is type(original.policy)
        assert changed.settings != original.settings
        assert (changed.label, changed.table_one, changed.published) == (variant.label, "", "")
        assert original.label != variant.label
        assert len(original.table_one) == 6


def test_robustagg_knows_the_decisions_and_has_units_of_rewards():
    for name, given in (("robustagg", 0.9), ("robustagg-0.2", 0.2), ("robustagg-0", 0.0)):
        settings = informed_in(compare_suite(), "lmm", name)
        assert settings.horizon == 250
        assert settings.dissimilarity == pytest.approx(2 / 3 * given)


def test_coids_learns_a_mixture_and_the_papers_policies_the_papers_log_density():
    suite = paper_suite(policies=[*suites.REPRODUCED, "coids-log-density"])
    assert settings_of(suite, "lmm", "gids").population == PaperLogDensity()
    assert settings_of(suite, "lmm", "coids").population == Mixture()
    assert CoIDS.default_population.name == populations.DEFAULT
    assert settings_of(suite, "lmm", "coids-log-density").population == LogDensity()
    ours = settings_of(suite, "lmm", "coids").inference()
    assert settings_of(suite, "lmm", "gids").inference() != ours
    for name in suites.STUDIES:
        gids, coids = (settings_of(suite, name, each) for each in ("gids", "coids"))
        assert gids.population == coids.population
        assert gids.inference() == coids.inference() == ours


@dataclass(frozen=True)
class Large(Environment):
    """Four arms, which are too many for a grid."""

    name = "large"
    arms = ("a", "b", "c", "d")
    context = {}  # noqa: RUF012 - a declaration, never changed
    rewards = Gaussian(-1.0, 1.0, noise=0.1)
    recruitment = Recruitment.all_at_once(2, 2)

    def draw_users(self, generator, num_users, shared=NOTHING_SHARED):
        """Never drawn."""

    def population(self, shared=NOTHING_SHARED):
        """Never asked for."""


def test_papers_policies_have_our_mixture_wherever_a_grid_does_not_fit():
    """Also in an environment that the package does not know, and with a grid given."""
    for policy in (NpmTS(), NpmTS(PaperLogDensity(nodes_per_arm=8))):
        found = agent_for(find_agent(policy), Large()).policy
        assert found.population == Mixture()
        assert found.inference() == CoIDS().inference()


def test_names_stand_for_environments_policies_and_variants():
    suite = Suite("mine", ["diet", find_environment("lmm")], ("uniform", "robustagg-0"), 1)
    assert [(cell.environment.name, cell.name, cell.agent.label) for cell in suite.cells()] == [
        (place, *policy)
        for place in ("diet", "lmm")
        for policy in (("uniform", "Uniform"), ("robustagg-0", "RobustAgg, ε = 0"))
    ]
    mine = {"a": "ind-ts", "b": RobustAgg(dissimilarity=0.1), "c": "mtts-fitted"}
    found = Suite("mine", "diet", mine, 1).agents()
    assert found["a"].policy == IndTS()
    assert found["b"].policy is mine["b"]
    assert found["c"] == suites.VARIANTS["mtts-fitted"]
    assert list(Suite("mine", "diet", "ind-ts", 1).agents()) == ["ind-ts"]


@pytest.mark.parametrize(
    ("environments", "policies", "message"),
    [
        (["moon"], ["ind-ts"], r"environment='moon'. Known: mixture"),
        (["diet"], {"mine": "best"}, r"policy='best'. Known: coids, .*24 in all"),
        (["diet"], {"mine": IndTS}, r"name of a policy, or its settings; got policy=<class"),
        ([3], ["ind-ts"], r"environment=3. Known"),
    ],
)
def test_anything_else_than_known_names_is_refused(environments, policies, message):
    with pytest.raises(CocoError, match=message):
        Suite("mine", environments, policies, 1)


def test_quick_learners_are_coarser():
    suite = paper_suite(is_quick=True, policies=[*suites.REPRODUCED, "coids-log-density"])
    quick = [agent.policy for agent in suite.agents().values()]
    learners = [each for each in quick if isinstance(each, Learner)]
    assert [each.name for each in learners] == ["coids", "npm-ts", "gids", "coids"]
    papers = PaperLogDensity(nodes_per_arm=8)
    assert [each.population for each in learners] == [None, papers, papers, LogDensity()]
    assert {each.num_particles for each in learners} == {60}


def test_settings_of_a_cell_are_those_of_its_policy():
    """With the population that is the default."""
    cells = paper_suite(environments=["lmm"], num_seeds=1).cells()
    found = {cell.name: cell.agent.settings for cell in cells}
    assert found["coids"] == to_plain(CoIDS(population=Mixture()))
    assert found["gids"]["population"] == to_plain(PaperLogDensity())
    assert found["mtts"] == to_plain(MTTS())
    assert found["ind-ts"] == {"kind": "ind-ts"}


COMMITTED = {
    "reproduction": paper_suite(),
    "compare": compare_suite(),
    "studies": paper_suite(environments=["studies"], policies=["coids", "ind-ts"], num_seeds=5),
}


@pytest.mark.parametrize("run", COMMITTED)
def test_committed_runs_can_be_extended(run):
    """Nothing is left to compute, except for coids where it learned the log-density."""
    suite, folder = COMMITTED[run], RunFolder(RESULTS / run)
    source, tasks = Source({}, []), [*suite.cells(), *suite.tables()]
    if run != "studies":
        with pytest.raises(ConflictError, match=r"mixture / coids / seed 0.*\(population\), and"):
            plan(folder, tasks, source)
        tasks = [task for task in tasks if "coids" not in task.key]
    planned = plan(folder, tasks, source)
    assert (planned.todo, planned.num_stale) == ([], len(tasks))


def test_committed_cells_hold_what_was_used_and_its_library():
    runs = ("reproduction", "studies", "models", "compare")
    infos = [info for run in runs for info in read_results(RESULTS / run).cells.values()]
    assert {info.library for info in infos} == {"", "mabwiser", "bayesianbandits"}
    assert all(bool(info.used) == (not info.library) for info in infos)


def test_the_oracle_always_takes_part():
    assert list(paper_suite(policies=["gids"]).policies) == ["gids", "oracle-ts"]
    compared = compare_suite(policies=["gids"]).policies
    assert set(compared) == {"gids", "coids", "ind-ts", "oracle-ts"}


def test_unknown_names_list_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"environment='moon'. Known: mixture, partial"):
        paper_suite(environments=["moon"])
    with pytest.raises(UnknownNameError, match=r"policy='best'. Known: coids, npm-ts, gids"):
        paper_suite(policies=["best"])


@pytest.mark.parametrize("num_seeds", [-1, 0, 100_000_000_000, 1.5, "1", True])
def test_impossible_numbers_of_seeds_are_refused_at_once(num_seeds):
    with pytest.raises(ConfigurationError, match=f"got num_seeds={num_seeds!r}"):
        paper_suite(num_seeds=num_seeds)


@pytest.mark.parametrize("newcomers", [3, (20,), (20, 0), (-1, 5), (2.0, 5), [20, 10]])
def test_impossible_newcomers_are_refused(newcomers):
    with pytest.raises(ConfigurationError, match=r"newcomers=.*\(20, 10\)"):
        Suite("mine", ["diet"], ["uniform"], 1, newcomers)


def test_other_grids():
    found, usual = paper_suite(nodes_per_arm=12).agents(), paper_suite().agents()
    assert found["gids"].policy.population == PaperLogDensity(nodes_per_arm=12)
    assert found["coids"] == usual["coids"]
    for nodes in (1, 71, 100_000):
        with pytest.raises(ConfigurationError, match=f"grid points per arm; got nodes={nodes}"):
            paper_suite(nodes_per_arm=nodes)


def test_longest_cells_of_a_seed_come_first(tmp_path):
    suite = paper_suite(is_quick=True)
    with open_folder(tmp_path) as folder:
        todo = plan(folder, suite.cells(), Source({}, [])).todo
    assert {task.name for task in todo[:6]} == {"coids", "npm-ts", "gids"}
    assert [task.seed for task in todo] == sorted(task.seed for task in todo)
    assert todo[0].cost > 10 * todo[20].cost


def test_tables_of_figures_need_their_environments_and_policies():
    assert [task.key for task in paper_suite().tables()] == ["diet", "densities"]
    assert [task.key for task in paper_suite(environments=["lmm"]).tables()] == ["diet"]
    assert [task.key for task in paper_suite(policies=["gids"]).tables()] == ["diet"]
    assert paper_suite(environments=["diet"]).tables() == compare_suite().tables() == []


def test_policies_that_cannot_deal_with_an_environment_are_left_out():
    """MTTS assumes normal rewards."""
    suite = paper_suite(environments=["yes-no", "lmm"], policies=["mtts", "uniform"], num_seeds=1)
    assert [(cell.environment.name, cell.name) for cell in suite.cells()] == [
        *(("yes-no", name) for name in ("uniform", "oracle-ts")),
        *(("lmm", name) for name in ("mtts", "uniform", "oracle-ts")),
    ]


def test_densities_are_of_five_times_and_contexts():
    policy = NpmTS(PaperLogDensity(nodes_per_arm=6, num_modes=20), num_particles=20)
    agent = agent_for(find_agent(policy), find_environment("mixture"))
    table = DensityTask(agent).run(Source({}, []))
    assert set(table["time"].to_pylist()) == set(TIMES)
    assert set(table["context"].to_pylist()) == set(CONTEXTS)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    width = columns["high"] - columns["low"]
    for time in TIMES:
        for name, least in (("density", 1 - 1e-9), ("truth", 0.7)):
            chosen = (columns["time"] == time) & (columns["context"] == 0) & (columns["arm"] == 1)
            # The range cuts off part of the truth, and nothing of what is learned.
            assert least <= np.sum((columns[name] * width)[chosen]) <= 1 + 1e-9
    first, last = (
        np.abs(columns["density"] - columns["truth"])[columns["time"] == time].mean()
        for time in (TIMES[0], TIMES[-1])
    )
    assert last < 0.8 * first


def test_users_of_the_density_figure_come_one_after_another():
    served = list(one_by_one().recruitment.rounds())
    assert len(served) == 5 * TIMES[-1]
    assert all(len(users) == 1 for users in served)


def test_names_may_come_from_an_iterator():
    suite = Suite("mine", (name for name in ["diet"]), (name for name in ["uniform"]), 2)
    assert [cell.key for cell in suite.cells()] == [("diet", "uniform", 0), ("diet", "uniform", 1)]


@pytest.mark.parametrize(
    ("environments", "policies", "message"),
    [
        ([], ["uniform"], r"at least one environment; got \[\]"),
        (None, ["uniform"], r"at least one environment; got None"),
        (["diet"], {}, r"at least one policy; got \{\}"),
        (["diet"], ["uniform", "uniform"], r"different names; got policy=\['uniform'\]"),
    ],
)
def test_lists_that_are_no_suite_are_refused(environments, policies, message):
    with pytest.raises(ConfigurationError, match=message):
        Suite("mine", environments, policies, 1)
