"""The API of 0.7: one `CocoSettings` for all policies, and `Study` with flat arguments."""

from contextlib import closing
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from cocobandits.experiments.folder import RunFolder
from cocobandits.experiments.presets import Experiment, Scale
from cocobandits.models.chances import ChanceMixture
from cocobandits.models.gaussian_mixture import ConditionalMixture
from cocobandits.policies.settings import SYSTEM_SETTINGS, default_settings

from cocobandits import CocoSettings, SmcConfig, Study
from cocobandits.environments.registry import build_environment
from cocobandits.experiments import runner
from cocobandits.simulation import loop
from cocobandits.simulation.world import draw_world
from golden.runs import ResumedRun, SimulatedRun
from golden.scenarios import Plain, Scenario

_TABLES = ("records", "evaluations", "health", "hyperparameters")
_POPULATION = {"gaussian": ConditionalMixture, "bernoulli": ChanceMixture}
# Pairs of policies that share their settings.
_SYSTEM_OF = {"hlinucb-t": "hlinucb", "ada-ts": "meta_ts"}


def open_study(scenario: Scenario) -> Study:
    """Start the study of a scenario."""
    rewards = scenario.rewards
    has_range = "low" in rewards
    return Study(
        scenario.arms,
        {name: _feature(declared) for name, declared in scenario.context.items()},
        (rewards["low"], rewards["high"]) if has_range else None,
        rewards.get("noise"),
        policy=scenario.policy,
        seed=scenario.seed,
        settings=_settings(scenario.policy, scenario.overrides),
        rewards=rewards["kind"],
        maximise=rewards.get("maximise", True),
        floor=scenario.floor,
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
    environment = build_environment(run.environment)
    world = draw_world(environment, run.seed)
    settings = loop.telling(_settings(run.policy, run.overrides), environment, world)
    study = loop.open_study(environment, run.policy, run.seed, settings)
    return [tuple(each) for each in islice(loop.simulate(study, environment, world), run.num_steps)]


def run_tables(run: ResumedRun, folder: Path, is_interrupted: bool) -> dict[str, list[Plain]]:
    """Run an experiment in a folder, at once or interrupted after its first cell and resumed."""
    experiment = _experiment(run)
    if is_interrupted:
        _run(RunFolder(folder, experiment), is_resumed=False, has_one_cell=True)
    _run(RunFolder(folder, experiment), is_resumed=is_interrupted)
    return {name: pq.read_table(folder / f"{name}.parquet").to_pylist() for name in _TABLES}


def _run(folder: RunFolder, is_resumed: bool, has_one_cell: bool = False) -> None:
    folder.prepare(is_resumed, num_jobs=1)
    tasks = runner.tasks_of(folder.experiment)
    missing = [task for task in tasks if not runner.is_done(folder, task)]
    with closing(runner.run(folder, missing, num_jobs=1)) as events:
        for event in events:
            if has_one_cell and event.is_finished:
                return
    folder.finish(runner.cells_of(folder.experiment))


def _experiment(run: ResumedRun) -> Experiment:
    settings = _settings("coids", run.overrides)
    scale = Scale("golden", run.num_seeds, settings, settings, 2, 2, is_reproduction=False)
    return Experiment.declare(scale, [run.environment], list(run.policies), run.num_seeds)


def _feature(declared: Plain) -> Any:
    return declared.get("categories") or (declared["low"], declared["high"])


def _settings(policy: str, overrides: Plain) -> CocoSettings:
    """Put every override where it belongs: the policy's own record, the particles, or the rest."""
    settings = default_settings(policy)
    system = _SYSTEM_OF.get(policy, policy.replace("-", "_"))
    own, inference, rest = {}, {}, {}
    for name, value in overrides.items():
        if system in SYSTEM_SETTINGS and name in _names(SYSTEM_SETTINGS[system]):
            own[name] = value
        elif name in _names(SmcConfig):
            inference[name] = value
        else:
            rest["model" if name == "population" else name] = value
    if "prior" in rest:
        parts = dict(rest["prior"])
        rest["prior"] = _POPULATION[parts.pop("kind")](**parts)
    if own:
        rest[system] = replace(getattr(settings, system), **own)
    return replace(settings, inference=replace(settings.inference, **inference), **rest)


def _names(kind: type) -> set[str]:
    return {field.name for field in fields(kind)}  # type: ignore[arg-type]
