"""What a run measured: regrets, evaluations and shares of arms (paper, "Regret and the Value...").

Owns the definitions of all curves and totals. Reads a loaded run; never simulates. Arrays have one
row per seed, in the order of the run's configuration.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cocobandits.experiments.estimates import Values
from cocobandits.experiments.reading import Run

POLICY_LABELS = {
    "coids": "CoIDS",
    "npm-ts": "NPM-TS",
    "gids": "GIDS",
    "mtts": "MTTS",
    "hierts": "HierTS",
    "hlinucb": "hLinUCB",
    "hlinucb-t": "hLinUCB-T",
    "kmtl-ucb": "KMTL-UCB",
    "gradband": "GradBand",
    "meta-ts": "Meta-TS",
    "ada-ts": "AdaTS",
    "robustagg": "RobustAgg",
    "mtts-fitted": "MTTS, Σ fitted",
    "kmtl-ucb-independent": "KMTL-UCB, arms apart",
    "kmtl-ucb-contexts": "KMTL-UCB, S by contexts",
    "kmtl-ucb-own": "KMTL-UCB, own share",
    "robustagg-0.2": "RobustAgg, ε = 0.2",
    "robustagg-0": "RobustAgg, ε = 0",
    "rome": "RoME",
    "ind-ts": "Ind-TS",
    "oracle-ts": "OraclePrior-TS",
    "oracle-plan": "Limit (knows the prior)",
    "uniform": "Uniform",
}
ENVIRONMENT_LABELS = {
    "mixture": "Mixture of Gaussians",
    "partial": "Partially observed context",
    "lmm": "LMM: Gaussian latent",
    "lmm-misspecified": "LMM: non-Gaussian latent",
    "stress-skewed": "Stress: skewed",
    "stress-groups": "Stress: three groups",
    "stress-ring": "Stress: ring",
    "stress-heteroscedastic": "Stress: uneven spread",
    "diet": "Diet plans",
    "groups": "Ten arms, four groups",
    "yes-no": "Yes or no",
    "survey": "Four features",
    "survey-missing": "Four features, 30 % missing",
}
ORACLE = "oracle-ts"
THIRD_ARM = 2
NUM_PARTS = 5
# Below, moves are mostly refused; above, they are too small to get anywhere.
ACCEPTANCE_BAND = (0.3, 0.8)
# Of runs that do not tell.
_CORRELATION_TARGET = 0.5

Key = tuple[str, str]


@dataclass(frozen=True)
class Measures:
    """Per (environment, policy), what happened at every step and round of every seed.

    Not every policy needs to have run in every environment.

    Attributes:
        environments: in the order of the run.
        policies: in display order.
        seeds: in the order of the run.
        regrets: regret of each single step, seed × step.
        arms: arm played, seed × step.
        evaluations: regret of the evaluation users, seed × round; not for policies without a prior.
    """

    environments: tuple[str, ...]
    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    regrets: dict[Key, Values]
    arms: dict[Key, Values]
    evaluations: dict[Key, Values]

    def has(self, environment: str, *policies: str) -> bool:
        """Say whether all these policies were run in this environment."""
        return all((environment, policy) in self.regrets for policy in policies)

    def within(self, environments: Iterable[str]) -> "Measures":
        """Look at some environments only, and at the policies that ran there."""
        kept = tuple(environments)
        ran = [policy for policy in self.policies if any(self.has(each, policy) for each in kept)]
        return replace(self, environments=kept, policies=tuple(ran))

    def cumulative_regret(self, environment: str, policy: str) -> Values:
        """Add up regret over steps, seed × step."""
        return np.cumsum(self.regrets[environment, policy], axis=1)

    def multitask_regret(self, environment: str, policy: str) -> Values:
        """Subtract the oracle's cumulative regret, seed × step.

        Raises:
            KeyError: the oracle was not run.
        """
        oracle = self.cumulative_regret(environment, ORACLE)
        return self.cumulative_regret(environment, policy) - oracle

    def total_regret(self, environment: str, policy: str) -> Values:
        """Sum regret over the run, one value per seed."""
        return self.regrets[environment, policy].sum(axis=1)

    def second_half_regret(self, environment: str, policy: str) -> Values:
        """Sum regret over the later half of the steps, one value per seed."""
        regrets = self.regrets[environment, policy]
        return regrets[:, regrets.shape[1] // 2 :].sum(axis=1)

    def third_arm_share(self, environment: str, policy: str) -> Values:
        """Compute the share of pulls of the third arm, one value per seed."""
        return (self.arms[environment, policy] == THIRD_ARM).mean(axis=1)

    def third_arm_parts(self, environment: str, policy: str) -> Values:
        """Compute the share of the third arm in each fifth of the run, seed × fifth."""
        is_third = self.arms[environment, policy] == THIRD_ARM
        parts = fifths(is_third.shape[1])
        return np.stack([is_third[:, part].mean(axis=1) for part in parts], axis=1)


class Health(NamedTuple):
    """The particles of one policy in one environment, over all seeds.

    A rejuvenation that ends above the target for the start correlation has spent its budget.
    """

    num_rejuvenations: int
    acceptance_rate: float
    lowest_acceptance: float
    highest_acceptance: float
    median_correlation: float
    worst_correlation: float
    num_above_target: int
    lowest_ess: float
    moves_per_run: float

    @property
    def is_accepting(self) -> bool:
        """Whether every rejuvenation accepted neither too few moves nor too many."""
        low, high = ACCEPTANCE_BAND
        return low <= self.lowest_acceptance and self.highest_acceptance <= high


def measure(run: Run) -> Measures:
    """Turn the tables of a run into arrays."""
    seeds = tuple(run.config["seeds"])
    per_step = {key: _arrays(columns, "step", seeds) for key, columns in group(run.records).items()}
    rounds = group(run.evaluations).items()
    return Measures(
        environments=tuple(run.config["environments"]),
        policies=tuple(in_display_order(run.config["policies"])),
        seeds=seeds,
        regrets={key: arrays["regret"] for key, arrays in per_step.items()},
        arms={key: arrays["arm"] for key, arrays in per_step.items()},
        evaluations={key: _arrays(columns, "round", seeds)["regret"] for key, columns in rounds},
    )


def fifths(num_steps: int) -> list[slice]:
    """Cut a run into five parts, as equal as can be and none empty."""
    bounds = [part * num_steps // NUM_PARTS for part in range(NUM_PARTS + 1)]
    return [slice(low, max(high, low + 1)) for low, high in pairwise(bounds)]


def slopes(values: Values, part: slice) -> Values:
    """Compute, for every seed, how fast a cumulative curve rises per step in a part of the run."""
    start = values[:, part.start - 1] if part.start > 0 else 0.0
    return (values[:, part.stop - 1] - start) / (part.stop - part.start)


def in_display_order(policies: Iterable[str]) -> list[str]:
    """Order policies as the paper's legend does; strangers last."""
    known = list(POLICY_LABELS)
    return sorted(policies, key=lambda name: known.index(name) if name in known else len(known))


def particle_health(run: Run) -> dict[Key, Health]:
    """Summarise the updates that moved particles, per (environment, policy)."""
    num_seeds = len(run.config["seeds"])
    return {
        key: Health(
            len(columns["step"]),
            float(np.nanmean(columns["acceptance_rate"])),
            float(np.nanmin(columns["acceptance_rate"])),
            float(np.nanmax(columns["acceptance_rate"])),
            float(np.nanmedian(columns["start_correlation"])),
            float(np.nanmax(columns["start_correlation"])),
            int((columns["start_correlation"] >= correlation_target(run, key[1])).sum()),
            float(np.nanmin(columns["ess"])),
            float(columns["num_moves"].sum()) / num_seeds,
        )
        for key, columns in group(run.health).items()
    }


def correlation_target(run: Run, policy: str) -> float:
    """Look up below which start correlation the moves of a policy were to end."""
    settings = run.config.get("learned" if policy == "coids" else "settings", {})
    return float(settings.get("inference", {}).get("correlation_target", _CORRELATION_TARGET))


def group(table: pa.Table) -> dict[Key, dict[str, Values]]:
    """Split a table by (environment, policy) into columns of numbers."""
    names = [name for name in table.column_names if name not in ("environment", "policy")]
    columns = {name: table[name].to_numpy() for name in names}
    keys = list(zip(*(table[name].to_pylist() for name in ("environment", "policy")), strict=True))
    rows: dict[Key, list[int]] = {}
    for number, key in enumerate(keys):
        rows.setdefault(key, []).append(number)
    return {
        key: {name: column[numbers] for name, column in columns.items()}
        for key, numbers in rows.items()
    }


def _arrays(columns: dict[str, Values], index: str, seeds: tuple[int, ...]) -> dict[str, Values]:
    """Lay columns out as seed × index."""
    shape = (len(seeds), int(columns[index].max()) + 1)
    rank = {seed: place for place, seed in enumerate(seeds)}
    place = [rank[seed] for seed in columns["seed"].tolist()]
    arrays = {name: np.full(shape, np.nan) for name in columns}
    for name, array in arrays.items():
        array[place, columns[index]] = columns[name]
    return arrays
