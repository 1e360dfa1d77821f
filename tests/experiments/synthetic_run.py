"""Run folders with curves known in closed form, in which every claim of the paper holds.

A policy's regret at step t is floor + start · decay^t + drift · seed, so totals are geometric sums,
except where it plays the best arm on purpose.
"""

import json
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cocobandits.experiments.schemas import (
    DENSITIES,
    EVALUATIONS,
    HEALTH,
    HYPERPARAMETERS,
    RECORDS,
)

ENVIRONMENTS = ("mixture", "partial", "lmm", "lmm-misspecified")
POLICIES = ("npm-ts", "gids", "mtts", "ind-ts", "oracle-ts", "uniform")
STRESS = ("stress-skewed", "stress-groups", "stress-ring", "stress-heteroscedastic")
SEEDS = (0, 1, 2, 3)
NUM_STEPS = 100
NUM_ROUNDS = 11


@dataclass(frozen=True)
class Curve:
    """How one policy does in one environment."""

    floor: float
    start: float = 0.0
    decay: float = 0.5
    drift: float = 0.001
    early_third: int = 0
    late_third: int = 0
    early_best: int = 0
    evaluation: tuple[float, ...] | None = None

    def regrets(self, seed, num_steps=NUM_STEPS):
        """Play the best arm, at no regret, in the last steps of the first fifth if asked for."""
        steps = np.arange(num_steps)
        regrets = self.floor + self.start * self.decay**steps + self.drift * seed
        first_fifth = num_steps // 5
        regrets[first_fifth - self.early_best : first_fifth] = 0.0
        return regrets

    def arms(self, num_steps=NUM_STEPS):
        """Pull the third arm so often at the start of the first and of the last fifth."""
        arms = np.arange(num_steps) % 2
        arms[: self.early_third] = 2
        late = num_steps - num_steps // 5
        arms[late : late + self.late_third] = 2
        return arms

    def evaluations(self, seed):
        return np.array(self.evaluation) * (1 + 0.01 * seed)


def falling(first, last, num_rounds=NUM_ROUNDS):
    """Fall from the first to the last value, half of the rest in every round."""
    rest = 0.5 ** np.arange(num_rounds)
    rest = (rest - rest[-1]) / (1 - rest[-1])
    return tuple(last + (first - last) * rest)


def level(value, num_rounds=NUM_ROUNDS):
    return (value,) * num_rounds


TURNING = (4.0, 3.0, 2.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)


def curves():
    """Every claim holds: per (environment, policy), with four seeds."""
    made = {}
    for environment in ENVIRONMENTS:
        made[environment, "npm-ts"] = Curve(
            0.1, 0.5, 0.9, 0.001, early_third=1, evaluation=falling(4, 1.1)
        )
        made[environment, "gids"] = Curve(
            0.1, 0.4, 0.9, 0.002, early_third=8, late_third=1, evaluation=falling(4, 1.05)
        )
        made[environment, "mtts"] = Curve(0.1, 0.2, 0.9, 0.001, evaluation=falling(4, 1.05))
        made[environment, "ind-ts"] = Curve(0.5, drift=0.003, evaluation=level(4.0))
        made[environment, "oracle-ts"] = Curve(0.1, drift=0.001, evaluation=level(1.0))
        made[environment, "uniform"] = Curve(1.0, early_third=7, late_third=7)
    made["mixture", "npm-ts"] = replace(made["mixture", "npm-ts"], early_best=2)
    made["lmm-misspecified", "mtts"] = Curve(0.7, evaluation=TURNING)
    return made


def own_curves():
    """Every target of coids is met: coids, the limit and two policies of the paper."""
    papers = curves()
    made = {}
    for environment in (*ENVIRONMENTS, *STRESS):
        made[environment, "coids"] = Curve(0.04, 0.3, 0.9, 0.001, evaluation=falling(4, 0.9))
        for policy in ("ind-ts", "oracle-ts"):
            made[environment, policy] = papers.get((environment, policy), papers["lmm", policy])
        made[environment, "oracle-plan"] = Curve(0.02, evaluation=level(1.0))
    return made


@dataclass(frozen=True)
class Scenario:
    """What a synthetic run consists of; a test replaces what it is about."""

    curves: dict = field(default_factory=curves)
    seeds: tuple = SEEDS
    num_steps: int = NUM_STEPS
    has_densities: bool = True

    @classmethod
    def of_coids(cls):
        """The run that is joined with the paper's: eight environments, no densities."""
        return cls(curves=own_curves(), has_densities=False)

    def with_curve(self, environment, policy, **changes):
        key = (environment, policy)
        return replace(self, curves=self.curves | {key: replace(self.curves[key], **changes)})

    def only(self, environments=ENVIRONMENTS, policies=POLICIES):
        kept = {
            key: curve
            for key, curve in self.curves.items()
            if key[0] in environments and key[1] in policies
        }
        return replace(self, curves=kept)

    @property
    def environments(self):
        return list(dict.fromkeys(environment for environment, _ in self.curves))

    @property
    def policies(self):
        return list(dict.fromkeys(policy for _, policy in self.curves))

    def cells(self):
        return [(*key, seed, curve) for key, curve in self.curves.items() for seed in self.seeds]


def write_run(folder, scenario=None):
    """Write a run folder of format version 1."""
    scenario = scenario or Scenario()
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config(scenario))
    write_json(folder / "provenance.json", provenance())
    write_json(folder / "summary.json", [summary(scenario, *cell) for cell in scenario.cells()])
    write_table(folder / "records.parquet", record_rows(scenario), RECORDS)
    write_table(folder / "evaluations.parquet", evaluation_rows(scenario), EVALUATIONS)
    write_table(folder / "health.parquet", health_rows(scenario), HEALTH)
    learned = hyperparameter_rows(scenario)
    write_table(folder / "hyperparameters.parquet", learned, HYPERPARAMETERS)
    if scenario.has_densities:
        write_table(folder / "densities.parquet", density_rows(), DENSITIES)
    return folder


def write_json(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")


def write_table(path, rows, schema):
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def config(scenario):
    return {
        "format": "cocobandits-run",
        "version": 1,
        "scale": "quick",
        "environments": scenario.environments,
        "policies": scenario.policies,
        "seeds": list(scenario.seeds),
        "evaluation": {"users": 20, "pulls": 10},
        "settings": {
            "nodes_per_arm": 8,
            "num_modes": 80,
            "inference": {"num_particles": 200, "move_every": None},
        },
        "learned": {
            "nodes_per_arm": None,
            "arm_lengthscale": 0.7,
            "context_lengthscale": 1.0,
            "amplitude": 4.0,
            "inference": {"num_particles": 200, "correlation_target": 0.65},
        },
    }


def provenance():
    return {
        "cocobandits": "0.2.0",
        "commit": None,
        "python": "3.11.7",
        "packages": {"jax": "0.10.0", "numpy": "2.4.0"},
        "machine": "x86_64 <test>",
        "processor": "a processor",
        "num_cores": 2,
        "jobs": 1,
    }


def summary(scenario, environment, policy, seed, curve):
    regrets = curve.regrets(seed, scenario.num_steps)
    return {
        "environment": environment,
        "policy": policy,
        "seed": seed,
        "steps": scenario.num_steps,
        "total_regret": float(regrets.sum()),
        "second_half_regret": float(regrets[scenario.num_steps // 2 :].sum()),
        "multitask_regret": None,
        "seconds": 60.0 * (1 + seed),
    }


def record_rows(scenario):
    return [
        {
            "environment": environment,
            "policy": policy,
            "seed": seed,
            "step": step,
            "round": step // 10,
            "user": step // 5,
            "user_step": step % 5,
            "arm": int(arm),
            "probability": 0.5,
            "reward": 1.0,
            "regret": float(regret),
        }
        for environment, policy, seed, curve in scenario.cells()
        for step, (arm, regret) in enumerate(
            zip(
                curve.arms(scenario.num_steps),
                curve.regrets(seed, scenario.num_steps),
                strict=True,
            )
        )
    ]


def evaluation_rows(scenario):
    return [
        {"environment": environment, "policy": policy, "seed": seed, "round": r, "regret": value}
        for environment, policy, seed, curve in scenario.cells()
        if curve.evaluation is not None
        for r, value in enumerate(curve.evaluations(seed).tolist())
    ]


def health_rows(scenario):
    """Move at every tenth step, three times; acceptance falls, correlation grows with the seed."""
    return [
        {
            "environment": environment,
            "policy": policy,
            "seed": seed,
            "step": step,
            "ess": 90.0 - seed,
            "acceptance_rate": 0.6 - 0.001 * step,
            "num_moves": 3,
            "distinct_ancestors": 100,
            "start_correlation": 0.4 + 0.1 * seed,
        }
        for environment, policy, seed, _ in scenario.cells()
        if policy in ("coids", "npm-ts", "gids")
        for step in range(0, scenario.num_steps, 10)
    ]


def hyperparameter_rows(scenario):
    """At every tenth step from the seed on, the amplitude doubles; seeds differ by a factor."""
    return [
        {
            "environment": environment,
            "policy": policy,
            "seed": seed,
            "step": step,
            "name": name,
            "low": value / 2,
            "median": value,
            "high": value * 4,
        }
        for environment, policy, seed, _ in scenario.cells()
        if policy == "coids"
        for turn, step in enumerate(range(seed, scenario.num_steps, 10))
        for name, value in (("arm lengthscale", 0.8), ("amplitude", 2.0**turn * 1.5**seed))
    ]


def density_rows(num_bins=40):
    """Learn a triangle whose top goes to the truth's with time."""
    edges = np.linspace(-2.0, 2.0, num_bins + 1)
    middles = (edges[:-1] + edges[1:]) / 2
    rows = []
    for time in (0, 2, 10, 30, 49):
        for context in (-1.0, -0.5, 0.0, 0.5, 1.0):
            for arm, top in enumerate((1.0 + 0.4 * context, 1.0 - 0.4 * context)):
                truth = np.clip(1 - np.abs(middles - top), 0, None)
                learned = (time * truth + (49 - time) * 0.25) / 49
                rows += [
                    {
                        "time": time,
                        "context": context,
                        "arm": arm,
                        "low": float(edges[number]),
                        "high": float(edges[number + 1]),
                        "density": float(learned[number]),
                        "truth": float(truth[number]),
                    }
                    for number in range(num_bins)
                ]
    return rows
