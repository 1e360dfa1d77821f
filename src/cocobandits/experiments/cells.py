"""One cell of an experiment: one policy, in one environment, with one seed."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from cocobandits.environments.base import Environment
from cocobandits.environments.registry import build_environment
from cocobandits.errors import UnsupportedError
from cocobandits.experiments.presets import Experiment, policy_of
from cocobandits.experiments.schemas import EVALUATIONS, HEALTH, HYPERPARAMETERS, RECORDS
from cocobandits.simulation.evaluation import Evaluation
from cocobandits.simulation.loop import open_study, simulate, telling
from cocobandits.simulation.world import World, draw_evaluation, draw_world
from cocobandits.study import Study

# Called after every interaction with the number of steps made and the regret so far.
OnStep = Callable[[int, float], None]


class Cell(NamedTuple):
    """The coordinates of a cell."""

    environment: str
    policy: str
    seed: int

    def __str__(self) -> str:
        return f"{self.environment} / {self.policy} / seed {self.seed}"


class CellResult(NamedTuple):
    """What a cell leaves behind; `seconds` are those of the interactions, evaluation apart."""

    records: pa.Table
    evaluations: pa.Table
    health: pa.Table
    hyperparameters: pa.Table
    seconds: float


class _Rows(NamedTuple):
    records: list[dict[str, Any]]
    evaluations: list[dict[str, Any]]
    health: list[dict[str, Any]]
    hyperparameters: list[dict[str, Any]]


def run_cell(cell: Cell, experiment: Experiment, on_step: OnStep) -> CellResult:
    """Simulate a cell, and evaluate the learned prior before the first and after every round."""
    environment = build_environment(cell.environment)
    world = draw_world(environment, cell.seed)
    scale = experiment.scale
    newcomers = None
    if scale.evaluation_users:
        newcomers = Evaluation(
            draw_evaluation(environment, cell.seed, scale.evaluation_users, scale.evaluation_pulls)
        )
    study = _open(cell, experiment, environment, world)
    rows = _Rows([], _evaluations(cell, study, newcomers, 0), [], [])
    ends = _round_ends(environment)
    seconds, regret, started = 0.0, 0.0, time.perf_counter()
    for record in simulate(study, environment, world):
        seconds += time.perf_counter() - started
        regret += record.regret
        rows.records.append(cell._asdict() | record._asdict())
        if study.health is not None and study.health.is_rejuvenated:
            rows.health.append(_health(cell, study, record.step))
            rows.hyperparameters.extend(_hyperparameters(cell, study, record.step))
        if record.step in ends:
            rows.evaluations.extend(_evaluations(cell, study, newcomers, ends[record.step]))
        on_step(record.step + 1, regret)
        started = time.perf_counter()
    return CellResult(
        pa.Table.from_pylist(rows.records, RECORDS),
        pa.Table.from_pylist(rows.evaluations, EVALUATIONS),
        pa.Table.from_pylist(rows.health, HEALTH),
        pa.Table.from_pylist(rows.hyperparameters, HYPERPARAMETERS),
        seconds,
    )


def _open(cell: Cell, experiment: Experiment, environment: Environment, world: World) -> Study:
    reward_range = experiment.range_for(cell.environment, cell.policy)
    settings = experiment.settings_for(cell.environment, cell.policy)
    told = telling(settings, environment, world, reward_range)
    policy = policy_of(cell.policy)
    return open_study(environment, policy, cell.seed, told, reward_range)


def _round_ends(environment: Environment) -> dict[int, int]:
    """Map the last step of every round to how many rounds are then over."""
    ends, step = {}, 0
    for number, served in enumerate(environment.recruitment.rounds()):
        step += len(served)
        if served:
            ends[step - 1] = number + 1
    return ends


def _evaluations(
    cell: Cell, study: Study, newcomers: Evaluation | None, num_rounds: int
) -> list[dict[str, Any]]:
    if newcomers is None:
        return []
    try:
        regret = newcomers.regret(study)
    except UnsupportedError:
        return []  # a policy without beliefs has no prior to try out
    return [cell._asdict() | {"round": num_rounds, "regret": regret}]


def _health(cell: Cell, study: Study, step: int) -> dict[str, Any]:
    """Keep the diagnostics of an update that moved particles."""
    info = study.health
    kept = {name: getattr(info, name) for name in HEALTH.names if hasattr(info, name)}
    return cell._asdict() | {"step": step} | kept


def _hyperparameters(cell: Cell, study: Study, step: int) -> list[dict[str, Any]]:
    """Keep what the particles then say about the hyperparameters; nothing, if they are fixed."""
    return [
        cell._asdict() | {"step": step, "name": name, "low": low, "median": median, "high": high}
        for name, (low, median, high) in study.hyperparameters().items()
    ]
