"""All systems on one bench: total regrets per cell, their ranking, and paired differences.

Reads `config.json`, `provenance.json` and `summary.json` of a run folder, and nothing else: single
interactions are not needed to say who lost how much.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cocobandits.errors import StorageError
from cocobandits.experiments.estimates import Values
from cocobandits.experiments.reading import read_outline

# Who is compared with all others, and what everybody's regret is a share of.
OURS, YARDSTICK = "coids", "ind-ts"


class Place(NamedTuple):
    """Where a policy stands, over all environments in which it ran.

    Attributes:
        policy: its name.
        mean_rank: place among the policies of an environment, averaged; one is best.
        share: its regret over that of the yardstick, as a geometric mean.
        num_environments: in how many it ran.
        milliseconds: per interaction, averaged over cells.
    """

    policy: str
    mean_rank: float
    share: float
    num_environments: int
    milliseconds: float


@dataclass(frozen=True)
class Comparison:
    """Total regret and time of every cell.

    Attributes:
        environments: in the order of the run.
        policies: in the order of the run.
        seeds: in the order of the run.
        totals: per (environment, policy), one total regret per seed.
        milliseconds: the same, per interaction.
        config: what was asked for.
        provenance: with which code, packages and machine.
    """

    environments: tuple[str, ...]
    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    totals: dict[tuple[str, str], Values]
    milliseconds: dict[tuple[str, str], Values]
    config: dict[str, Any]
    provenance: dict[str, Any]

    def has(self, environment: str, policy: str) -> bool:
        """Tell whether a policy ran in an environment."""
        return (environment, policy) in self.totals

    def mean(self, environment: str, policy: str) -> float:
        """Average total regret over seeds."""
        return float(self.totals[environment, policy].mean())

    def share(self, environment: str, policy: str, of: str = YARDSTICK) -> float:
        """Divide mean total regrets."""
        return self.mean(environment, policy) / self.mean(environment, of)


def load_comparison(folder: Path) -> Comparison:
    """Read the outline of a finished run.

    Raises:
        StorageError: the folder is no finished run, or a cell is missing or has other steps.
    """
    config, provenance, summary = read_outline(folder)
    seeds = tuple(config["seeds"])
    rows = {(row["environment"], row["policy"], row["seed"]): row for row in summary}
    totals: dict[tuple[str, str], Values] = {}
    times: dict[tuple[str, str], Values] = {}
    for environment, policy in dict.fromkeys(key[:2] for key in rows):
        cells = [rows.get((environment, policy, seed)) for seed in seeds]
        if not all(cell and _is_whole(cell) for cell in cells):
            raise StorageError(
                f"Expected every seed of every cell; got folder={str(folder)!r}, in which "
                f"{environment} / {policy} is not whole. Finish the run with --resume."
            )
        whole = [cell for cell in cells if cell]
        totals[environment, policy] = np.array([cell["total_regret"] for cell in whole])
        times[environment, policy] = np.array(
            [1e3 * cell["seconds"] / cell["steps"] for cell in whole]
        )
    return Comparison(
        tuple(config["environments"]),
        tuple(config["policies"]),
        seeds,
        totals,
        times,
        config,
        provenance,
    )


def rank(comparison: Comparison) -> list[Place]:
    """Order policies by their mean rank, those with a smaller share first among equals."""
    ranks: dict[str, list[float]] = {}
    for environment in comparison.environments:
        ran = [name for name in comparison.policies if comparison.has(environment, name)]
        means = np.array([comparison.mean(environment, name) for name in ran])
        for name, mean in zip(ran, means, strict=True):
            # Equals share their places.
            place = 1 + np.sum(means < mean) + (np.sum(means == mean) - 1) / 2
            ranks.setdefault(name, []).append(float(place))
    places = [_place(comparison, policy, found) for policy, found in ranks.items()]
    return sorted(places, key=lambda place: (place.mean_rank, place.share))


def _place(comparison: Comparison, policy: str, ranks: list[float]) -> Place:
    shared = [
        comparison.share(environment, policy)
        for environment in comparison.environments
        if comparison.has(environment, policy) and comparison.has(environment, YARDSTICK)
    ]
    share = float(np.exp(np.mean(np.log(np.maximum(shared, 1e-12))))) if shared else np.nan
    times = [
        values.mean() for (_, name), values in comparison.milliseconds.items() if name == policy
    ]
    return Place(policy, float(np.mean(ranks)), share, len(ranks), float(np.mean(times)))


def _is_whole(cell: dict[str, Any]) -> bool:
    return all(
        isinstance(cell.get(name), int | float) for name in ("steps", "total_regret", "seconds")
    )
