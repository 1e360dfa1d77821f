"""Results with curves known in closed form, in which every claim of the paper holds.

A policy's regret at step t is floor + start · decay^t + drift · seed, so totals are geometric sums,
except where it plays the best arm on purpose.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from cocobandits.runs.info import second_half, total
from cocobandits.runs.results import CellInfo, CellKey, Line, Results

ENVIRONMENTS = ("mixture", "partial", "lmm", "lmm-misspecified")
STRESS = ("stress-skewed", "stress-groups", "stress-ring", "stress-heteroscedastic")
LABELS = {
    **{"coids": "CoIDS", "npm-ts": "NPM-TS", "gids": "GIDS", "mtts": "MTTS", "ind-ts": "Ind-TS"},
    **{"oracle-ts": "OraclePrior-TS", "oracle-plan": "Limit", "uniform": "Uniform"},
}
POLICIES = ("npm-ts", "gids", "mtts", "ind-ts", "oracle-ts", "uniform")
LINES = {name: Line(f"#0000{place:02x}") for place, name in enumerate(LABELS)}
SETTINGS = {
    "npm-ts": {"nodes_per_arm": 8, "num_modes": 80, "inference": {"move_every": None}},
    "gids": {"nodes_per_arm": 8, "num_modes": 80, "inference": {"move_every": None}},
    "coids": {
        "kind": "coids",
        "population": {
            **{"kind": "mixture", "arm_lengthscale": 0.7},
            **{"context_lengthscale": 1.0, "amplitude": 4.0},
        },
        "inference": {"correlation_target": 0.65},
    },
}
NUM_STEPS, NUM_ROUNDS = 100, 11


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

    def regrets(self, seed):
        """Play the best arm, at no regret, in the last steps of the first fifth if asked for."""
        regrets = self.floor + self.start * self.decay ** np.arange(NUM_STEPS) + self.drift * seed
        regrets[NUM_STEPS // 5 - self.early_best : NUM_STEPS // 5] = 0.0
        return regrets

    def arms(self):
        """Pull the third arm at the start of the first and of the last fifth."""
        arms, late = np.arange(NUM_STEPS) % 2, NUM_STEPS - NUM_STEPS // 5
        arms[: self.early_third] = 2
        arms[late : late + self.late_third] = 2
        return arms


def falling(first, last, num_rounds=NUM_ROUNDS):
    """Fall from the first to the last value, half of the rest in every round."""
    rest = 0.5 ** np.arange(num_rounds)
    rest = (rest - rest[-1]) / (1 - rest[-1])
    return tuple(last + (first - last) * rest)


def level(value, num_rounds=NUM_ROUNDS):
    return (value,) * num_rounds


TURNING = (4.0, 3.0, 2.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)


def paper_curves():
    """Every claim holds: per (environment, policy), with four seeds."""
    usual = {
        "npm-ts": Curve(0.1, 0.5, 0.9, 0.001, early_third=1, evaluation=falling(4, 1.1)),
        "gids": Curve(
            0.1, 0.4, 0.9, 0.002, early_third=8, late_third=1, evaluation=falling(4, 1.05)
        ),
        "mtts": Curve(0.1, 0.2, 0.9, 0.001, evaluation=falling(4, 1.05)),
        "ind-ts": Curve(0.5, drift=0.003, evaluation=level(4.0)),
        "oracle-ts": Curve(0.1, drift=0.001, evaluation=level(1.0)),
        "uniform": Curve(1.0, early_third=7, late_third=7),
    }
    made = {(name, policy): curve for name in ENVIRONMENTS for policy, curve in usual.items()}
    made["mixture", "npm-ts"] = replace(usual["npm-ts"], early_best=2)
    made["lmm-misspecified", "mtts"] = Curve(0.7, evaluation=TURNING)
    return made


def own_curves():
    """Every target of coids is met; gids does a little worse everywhere."""
    usual = {
        "coids": Curve(0.04, 0.3, 0.9, 0.001, evaluation=falling(4, 0.9)),
        "gids": Curve(0.06, 0.3, 0.9, 0.001, evaluation=falling(4, 0.9)),
        "ind-ts": Curve(0.5, drift=0.003, evaluation=level(4.0)),
        "oracle-ts": Curve(0.1, drift=0.001, evaluation=level(1.0)),
        "oracle-plan": Curve(0.02, evaluation=level(1.0)),
    }
    places = (*ENVIRONMENTS, *STRESS)
    return {(name, policy): curve for name in places for policy, curve in usual.items()}


@dataclass(frozen=True)
class Scenario:
    """The content of synthetic results; a test replaces what it is about."""

    curves: dict = field(default_factory=paper_curves)
    seeds: tuple = (0, 1, 2, 3)
    info: dict = field(default_factory=dict)
    has_tables: bool = True

    @classmethod
    def of_coids(cls):
        """Coids in eight environments, without further tables."""
        return cls(curves=own_curves(), has_tables=False)

    def with_curve(self, environment, policy, **changes):
        key = (environment, policy)
        return replace(self, curves=self.curves | {key: replace(self.curves[key], **changes)})

    def only(self, environments=ENVIRONMENTS, policies=POLICIES):
        kept = (key for key in self.curves if key[0] in environments and key[1] in policies)
        return replace(self, curves={key: self.curves[key] for key in kept})

    def results(self):
        """Build the results as `read_results` does from files."""
        names, ran = ({key[place]: None for key in self.curves} for place in (0, 1))
        cells = [
            (CellKey(*key, seed), curve)
            for key, curve in self.curves.items()
            for seed in self.seeds
        ]
        moved = [key for key in self.curves if key[1] in SETTINGS]
        evaluated = {key: curve for key, curve in self.curves.items() if curve.evaluation}
        return Results(
            environments=tuple(names),
            policies=tuple(sorted(ran, key=[*LABELS, *ran].index)),
            seeds=self.seeds,
            cells={key: info_of(key, curve)._replace(**self.info) for key, curve in cells},
            regrets={key: self._stack(curve.regrets) for key, curve in self.curves.items()},
            arms={key: self._stack(lambda _, c=c: c.arms()) for key, c in self.curves.items()},
            evaluations={
                key: np.outer([1 + 0.01 * seed for seed in self.seeds], curve.evaluation)
                for key, curve in evaluated.items()
            },
            health={key: self._health() for key in moved},
            hyperparameters={key: self._learned() for key in moved if key[1] == "coids"},
            tables={"densities": densities(), "diet": diet()} if self.has_tables else {},
        )

    def _stack(self, make):
        return np.stack([make(seed) for seed in self.seeds])

    def _health(self):
        """Move at every tenth step, three times; acceptance falls, correlation grows with seeds."""
        seeds, steps = (each.ravel() for each in np.meshgrid(self.seeds, np.arange(0, 100, 10)))
        return {
            **{"seed": seeds, "step": steps, "ess": 90.0 - seeds},
            "acceptance_rate": 0.6 - 0.001 * steps,
            **{"num_moves": np.full(len(steps), 3), "start_correlation": 0.4 + 0.1 * seeds},
        }

    def _learned(self):
        """At every tenth step from the seed on, the amplitude doubles; seeds differ by a factor."""
        rows = [
            (seed, step, name, value / 2, value, value * 4)
            for seed in self.seeds
            for turn, step in enumerate(range(seed, NUM_STEPS, 10))
            for name, value in (("arm lengthscale", 0.8), ("amplitude", 2.0**turn * 1.5**seed))
        ]
        names = ("seed", "step", "name", "low", "median", "high")
        return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))


TABLE_ONE = {
    "coids": {"table_one": "++++++", "published": "++++++"},
    "mtts": {"table_one": "+---++", "published": "+----+"},
}


def info_of(key, curve):
    """Describe a cell; a policy or environment of no known name has a default label and line."""
    regrets = curve.regrets(key.seed)
    return CellInfo(
        *key,
        environment_label=key.environment.title(),
        label=LABELS.get(key.name, key.name),
        line=LINES.get(key.name, Line("#56B4E9", "-", 1.0)),
        order=(0, 0),
        settings=SETTINGS.get(key.name, {}),
        reward_range=(-2.0, 2.0 if key.name in POLICIES else 2.5),
        newcomers=(20, 10),
        world_sha256="",
        num_users=50,
        num_outside=10,
        num_steps=NUM_STEPS,
        num_evaluations=0,
        total_regret=float(total(regrets)),
        second_half_regret=float(second_half(regrets)),
        seconds=60.0 * (1 + key.seed),
        suite="paper",
        is_quick=True,
        provenance={"commit": None, "machine": "x86_64 <test>", "jobs": 1},
        argv=["coco", "reproduce", "--quick"],
        **TABLE_ONE.get(key.name, {}),
    )


def densities():
    """Learn a triangle whose top goes to the truth's with time."""
    edges = np.linspace(-2.0, 2.0, 41)
    rows = []
    for time in (0, 2, 10, 30, 49):
        for context in (-1.0, -0.5, 0.0, 0.5, 1.0):
            for arm, top in enumerate((1.0 + 0.4 * context, 1.0 - 0.4 * context)):
                truth = np.clip(1 - np.abs((edges[:-1] + edges[1:]) / 2 - top), 0, None)
                learned = (time * truth + (49 - time) * 0.25) / 49
                place = {"time": time, "context": context, "arm": arm}
                rows += [
                    {**place, "low": low, "high": high, "density": density, "truth": true}
                    for low, high, density, true in zip(
                        edges[:-1], edges[1:], learned, truth, strict=True
                    )
                ]
    return pa.Table.from_pylist(rows)


def diet():
    """Three plans, flat densities."""
    groups = [("metabolism", ("low", "high")), ("age group", ("young", "middle-aged", "old"))]
    return pa.Table.from_pylist(
        [
            {"group": group, "name": name, "arm": arm, "reward": reward, "density": 0.5}
            for group, names in groups
            for name in names
            for arm in range(3)
            for reward in (0.0, 1.0, 2.0)
        ]
    )
