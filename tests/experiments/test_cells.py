"""One cell: what it records, and when the learned prior is evaluated."""

from dataclasses import replace

import numpy as np
import pytest

from cocobandits.environments.recruitment import Recruitment
from cocobandits.environments.registry import build_environment
from cocobandits.experiments import cells
from cocobandits.experiments.cells import Cell, _round_ends, run_cell
from cocobandits.experiments.density import CONTEXTS, TIMES, one_by_one, run_density
from cocobandits.experiments.presets import PAPER_RANGE, QUICK, Experiment
from cocobandits.inference.smc import SmcConfig
from cocobandits.simulation.loop import open_study, simulate, telling
from cocobandits.simulation.world import draw_world

SMALL = replace(QUICK, evaluation_users=10, evaluation_pulls=5)
EXPERIMENT = Experiment.declare(SMALL, ["lmm"], None, 1)


def test_records_are_those_of_the_simulation():
    """The cell adds coordinates and nothing else; its evaluations change no decision."""
    seen = []
    result = run_cell(Cell("lmm", "mtts", 3), EXPERIMENT, lambda *step: seen.append(step))
    environment = build_environment("lmm")
    world = draw_world(environment, 3)
    settings = telling(EXPERIMENT.settings_for("lmm", "mtts"), environment, world, PAPER_RANGE)
    study = open_study(environment, "mtts", 3, settings, PAPER_RANGE)
    records = list(simulate(study, environment, world))
    regrets = np.array([record.regret for record in records])
    np.testing.assert_array_equal(result.records["regret"].to_numpy(), regrets)
    np.testing.assert_array_equal(
        result.records["arm"].to_numpy(), [record.arm for record in records]
    )
    assert set(result.records["seed"].to_pylist()) == {3}
    assert [steps for steps, _ in seen] == list(range(1, 251))
    assert seen[-1][1] == pytest.approx(regrets.sum())
    assert result.seconds > 0


def test_prior_is_evaluated_before_and_after_every_round():
    result = run_cell(Cell("lmm", "mtts", 0), EXPERIMENT, lambda *_: None)
    assert result.evaluations["round"].to_pylist() == [0, 1, 2, 3, 4, 5]
    regrets = result.evaluations["regret"].to_numpy()
    assert np.all(regrets >= 0)
    assert regrets[-1] < regrets[0]


def test_policy_without_prior_has_no_evaluations():
    result = run_cell(Cell("lmm", "uniform", 0), EXPERIMENT, lambda *_: None)
    assert result.evaluations.num_rows == 0
    assert result.health.num_rows == 0
    assert result.hyperparameters.num_rows == 0


def test_hyperparameters_are_kept_where_particles_moved(monkeypatch):
    """Six people of the diet example; a policy with fixed hyperparameters keeps none."""
    short = build_environment("diet").recruiting(Recruitment.batches(2, 3, 2))
    monkeypatch.setattr(cells, "build_environment", lambda _: short)
    tiny = SmcConfig(num_particles=20)
    scale = replace(
        SMALL,
        settings=replace(SMALL.settings, nodes_per_arm=5, num_modes=12, inference=tiny),
        learned=replace(
            SMALL.learned, nodes_per_arm=5, num_modes=12, inference=tiny, model="log-density"
        ),
    )
    experiment = Experiment.declare(scale, ["diet"], ["coids", "npm-ts"], 1)
    learned = run_cell(Cell("diet", "coids", 0), experiment, lambda *_: None)
    rows = learned.hyperparameters.to_pylist()
    assert {row["name"] for row in rows} >= {"arm lengthscale", "amplitude"}
    assert {row["step"] for row in rows} == set(learned.health["step"].to_pylist())
    assert all(0 < row["low"] <= row["median"] <= row["high"] for row in rows)
    fixed = run_cell(Cell("diet", "npm-ts", 0), experiment, lambda *_: None)
    assert fixed.health.num_rows > 0
    assert fixed.hyperparameters.num_rows == 0


def test_rounds_without_users_end_nothing():
    plan = Recruitment.schedule([1, 1, 5], 2)
    environment = build_environment("diet").recruiting(plan)
    assert _round_ends(environment) == {1: 2, 3: 3, 4: 6, 5: 7}


def test_densities_are_of_five_times_and_contexts():
    tiny = replace(
        QUICK.settings, nodes_per_arm=6, num_modes=20, inference=SmcConfig(num_particles=20)
    )
    experiment = Experiment.declare(replace(SMALL, settings=tiny), ["mixture"])
    table = run_density(experiment, lambda *_: None)
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
