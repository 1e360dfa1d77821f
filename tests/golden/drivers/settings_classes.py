"""The API with one settings class per policy, and rewards as objects.

Imports name modules that stand at the same place in every tree of this API.
"""

from contextlib import closing
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

from cocobandits import (
    Bernoulli,
    Bounded,
    CoIDS,
    Gaussian,
    LogDensity,
    Mixture,
    PaperLogDensity,
    Study,
)
from cocobandits.environments.registry import find_environment
from cocobandits.experiments.suites import Suite
from cocobandits.policies import plain
from cocobandits.policies.coco.descriptions import Learner, PaperLearner
from cocobandits.policies.description import PolicySettings
from cocobandits.policies.registry import find_policy
from cocobandits.runs.pool import Source, fill, plan
from cocobandits.runs.store import StoredCell, open_folder, read_folder
from cocobandits.simulation import loop
from golden.runs import ResumedRun, SimulatedRun
from golden.scenarios import Plain, Scenario

_REWARDS = {"gaussian": Gaussian, "bounded": Bounded, "bernoulli": Bernoulli}
# Of commits before and after it got this name.
BetaMixture: Any = getattr(plain, "BetaMixture", None) or plain.ChanceMixture
_TRUTH = {"gaussian": plain.ConditionalMixture, "bernoulli": BetaMixture}


def open_study(scenario: Scenario) -> Study:
    """Start the study of a scenario."""
    declared = dict(scenario.rewards)
    return Study(
        scenario.arms,
        {name: _feature(each) for name, each in scenario.context.items()},
        _REWARDS[declared.pop("kind")](**declared),
        _settings(scenario.policy, scenario.overrides),
        floor=scenario.floor,
        seed=scenario.seed,
    )


def load_study(path: Path) -> Study:
    """Read a saved study."""
    return Study.load(path)


def explain(study: Study, user: str) -> dict[str, list[float]]:
    """List mean, interval, probability of being best and the parts of the variance, per arm."""
    explained = study.explain(user).arms
    return {
        arm: [each.mean, *each.interval, each.best_probability, *each.uncertainty]
        for arm, each in explained.items()
    }


def simulate(run: SimulatedRun) -> list[tuple[Any, ...]]:
    """Run the first steps of a policy in an environment."""
    records = loop.simulate(_settings(run.policy, run.overrides), run.environment, run.seed)
    return [tuple(each) for each in islice(records, run.num_steps)]


def run_tables(run: ResumedRun, folder: Path, is_interrupted: bool) -> dict[str, list[Plain]]:
    """Run a suite in a folder, at once or interrupted after its first cell and resumed."""
    if is_interrupted:
        _run(run, folder, has_one_cell=True)
    _run(run, folder)
    cells, _ = read_folder(folder)
    cells = sorted(cells, key=lambda cell: (run.policies.index(cell.info.name), cell.info.seed))
    return {name: [row for cell in cells for row in rows(cell)] for name, rows in _TABLES.items()}


def _run(run: ResumedRun, path: Path, has_one_cell: bool = False) -> None:
    policies = {name: _in_run(name, run.overrides) for name in run.policies}
    suite = Suite("golden", (find_environment(run.environment),), policies, run.num_seeds, (2, 2))
    source = Source.here(num_jobs=1)
    with open_folder(path) as folder:
        todo = plan(folder, suite.cells(), source).todo
        with closing(fill(folder, todo, source, 1)) as results:
            for _ in results:
                if has_one_cell:
                    return


def _in_run(policy: str, overrides: Plain) -> PolicySettings:
    """Give learners the overrides, and the moves of `CoIDS`; others have their defaults."""
    settings = find_policy(policy)
    if not isinstance(settings, Learner):
        return settings
    moves = {name: getattr(CoIDS(), name) for name in ("ess_threshold", "moves_per_block")}
    return _settings(policy, {**moves, **overrides})


def _key(cell: StoredCell) -> Plain:
    info = cell.info
    return {"environment": info.environment, "policy": info.name, "seed": info.seed}


def _records(cell: StoredCell) -> list[Plain]:
    return [
        _key(cell) | row for row in cell.steps.select(loop.InteractionRecord._fields).to_pylist()
    ]


def _evaluations(cell: StoredCell) -> list[Plain]:
    """Round 0 is before any reward."""
    found = cell.table["evaluation"].drop_null().to_pylist()
    return [_key(cell) | {"round": place, "regret": each} for place, each in enumerate(found)]


def _health(cell: StoredCell) -> list[Plain]:
    return [_key(cell) | {"step": row["step"]} | row["health"] for row in _moved(cell)]


def _hyperparameters(cell: StoredCell) -> list[Plain]:
    return [
        _key(cell) | {"step": row["step"]} | each
        for row in _moved(cell)
        for each in row["hyperparameters"] or ()
    ]


def _moved(cell: StoredCell) -> list[Plain]:
    return [row for row in cell.steps.to_pylist() if row["health"]]


# The tables that runs of 0.7 had.
_TABLES = {
    "records": _records,
    "evaluations": _evaluations,
    "health": _health,
    "hyperparameters": _hyperparameters,
}


def _feature(declared: Plain) -> Any:
    return declared.get("categories") or (declared["low"], declared["high"])


def _settings(policy: str, overrides: Plain) -> PolicySettings:
    """Put every override where it belongs: the policy's settings, or those of its population."""
    settings, given = find_policy(policy), dict(overrides)
    if "prior" in given:
        parts = dict(given.pop("prior"))
        given["population"] = _TRUTH[parts.pop("kind")](**parts)
    elif isinstance(settings, Learner):
        is_mixture = given.pop("population") == "mixture"
        grid = PaperLogDensity() if isinstance(settings, PaperLearner) else LogDensity()
        population = Mixture() if is_mixture else grid
        own = {each.name for each in fields(population)} & given.keys()
        given["population"] = replace(population, **{name: given.pop(name) for name in own})
    return replace(settings, **given)
