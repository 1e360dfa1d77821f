"""One cell: what it records, and when the learned prior is evaluated."""

from dataclasses import replace

import numpy as np
import pytest

from cocobandits import MTTS, CoIDS, LogDensity, NpmTS
from cocobandits.environments.recruitment import Recruitment
from cocobandits.environments.registry import find_environment
from cocobandits.experiments.density import PAPER_RANGE
from cocobandits.experiments.suites import Suite, paper_suite
from cocobandits.policies.coco.populations import PaperLogDensity
from cocobandits.policies.plain import to_plain
from cocobandits.runs.cell import Cell, num_outside, world_digest
from cocobandits.runs.info import Source, plain
from cocobandits.runs.store import StoredCell, read_cells, write_table
from cocobandits.simulation.loop import open_study, serve
from cocobandits.simulation.world import draw_world

SOURCE = Source({"commit": "abc"}, ["coco", "reproduce"])
SMALL = replace(paper_suite(True, ["lmm"], ["mtts", "uniform"], 4), newcomers=(10, 5))


def find(suite: Suite, name: str, seed: int = 0) -> Cell:
    return next(cell for cell in suite.cells() if (cell.name, cell.seed) == (name, seed))


@pytest.fixture
def stored(tmp_path):
    """Run a cell, write it and read it again."""

    def store(cell: Cell) -> StoredCell:
        write_table(tmp_path / "cell.parquet", cell.run(SOURCE))
        [read] = read_cells(tmp_path / "cell.parquet")
        return read

    return store


def test_steps_are_those_of_the_simulation(stored):
    """The cell's evaluations change no decision."""
    cell = find(SMALL, "mtts", 3)
    info, _ = result = stored(cell)
    environment = find_environment("lmm")
    world = draw_world(environment, 3)
    low, high = PAPER_RANGE
    rewards = replace(environment.rewards, low=low, high=high)
    study = open_study(MTTS(), environment, world, 3, rewards)
    records = [record._asdict() for record in serve(study, environment, world)]
    assert result.steps.select(list(records[0])).to_pylist() == records
    regrets = np.array([record["regret"] for record in records])
    assert (info.total_regret, info.second_half_regret) == (regrets.sum(), regrets[125:].sum())
    assert info.seconds > 0
    assert (info.num_users, info.num_steps, info.suite, info.is_quick) == (50, 250, "paper", True)
    assert (info.provenance, info.argv) == SOURCE
    assert info.settings == to_plain(MTTS())
    # With the mixed model of the environment.
    assert info.used == plain(to_plain(study.design.policy)) != info.settings
    assert (info.table_one, info.published) == (MTTS.table_one, MTTS.published)
    assert info.made == cell.made(SOURCE)


def test_prior_is_evaluated_before_and_after_every_round(stored):
    info, table = stored(find(SMALL, "mtts"))
    evaluations = table["evaluation"].to_numpy()
    assert info.num_evaluations == 6
    assert np.flatnonzero(~np.isnan(evaluations)).tolist() == [0, 50, 100, 150, 200, 250]
    assert evaluations[250] < evaluations[0]


def test_policy_without_prior_has_no_evaluations(stored):
    info, table = stored(find(SMALL, "uniform"))
    assert info.num_evaluations == 0
    for name in ("evaluation", "health", "hyperparameters"):
        assert table[name].null_count == 251


def test_hyperparameters_are_kept_where_particles_moved(stored):
    """Six people of the diet example; a policy with fixed hyperparameters keeps none."""
    short = find_environment("diet").recruiting(Recruitment.batches(2, 3, 2))
    policies = {
        "coids": CoIDS(LogDensity(nodes_per_arm=5, num_modes=12), num_particles=20),
        "npm-ts": NpmTS(PaperLogDensity(nodes_per_arm=5, num_modes=12), num_particles=20),
    }
    suite = Suite("small", (short,), policies, 1)
    learned, fixed = (stored(find(suite, name)).steps for name in ("coids", "npm-ts"))
    moved = [row for row in learned.to_pylist() if row["health"]]
    assert moved
    for row in moved:
        assert {each["name"] for each in row["hyperparameters"]} >= {"arm lengthscale", "amplitude"}
        assert all(0 < e["low"] <= e["median"] <= e["high"] for e in row["hyperparameters"])
    assert {tuple(row["hyperparameters"]) for row in fixed.to_pylist() if row["health"]} == {()}


def test_worlds_differ_in_their_digest():
    environment = find_environment("survey-missing")
    world = draw_world(environment, 1)
    assert world_digest(world) == world_digest(draw_world(environment, 1))
    assert world_digest(world) != world_digest(draw_world(environment, 2))
    contexts = [world.cohort.contexts[1], *world.cohort.contexts[1:]]
    other = world._replace(cohort=world.cohort._replace(contexts=contexts))
    assert world_digest(world) != world_digest(other)


def test_users_outside_the_range_are_counted():
    world = draw_world(find_environment("lmm"), 0)
    lowest, highest = world.cohort.arm_means.min(), world.cohort.arm_means.max()
    assert num_outside(world, (lowest, highest)) == 0
    assert num_outside(world, (lowest + 1e-9, highest)) == 1
    assert num_outside(world, (highest, highest)) == 50
