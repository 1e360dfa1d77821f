"""All systems on one bench: total regrets per cell, their ranking, and paired differences.

Reads `config.json`, `provenance.json` and `summary.json` of a run folder, and nothing else: single
interactions are not needed to say who lost how much. A run may stand beside a finished one: what it
has not is taken from there, so that a new policy is ranked without running all others again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cocobandits.errors import StorageError
from cocobandits.experiments.estimates import Values
from cocobandits.experiments.presets import REFERENCE
from cocobandits.experiments.reading import read_outline

# Who is compared with all others, and what everybody's regret is a share of.
OURS, YARDSTICK = "coids", "ind-ts"
# By how much the reference may differ between two runs that met the same users and noise.
_TOLERANCE = 1e-9


class Place(NamedTuple):
    """Where a policy stands, over the environments in which all ran.

    Attributes:
        policy: its name.
        mean_rank: place among the policies of an environment, averaged; one is best.
        share: its regret over that of the yardstick, as a geometric mean.
        num_environments: in how many it ran at all.
        milliseconds: per interaction: the median over seeds, of which the first of each process
            compiles, averaged over environments.
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
        steps: per environment, the interactions of a cell.
        config: what was asked for.
        provenance: with which code, packages and machine.
        beside: the run that all else was taken from, if there is one.
    """

    environments: tuple[str, ...]
    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    totals: dict[tuple[str, str], Values]
    milliseconds: dict[tuple[str, str], Values]
    steps: dict[str, int]
    config: dict[str, Any]
    provenance: dict[str, Any]
    beside: "Comparison | None" = None

    def has(self, environment: str, policy: str) -> bool:
        """Tell whether a policy ran in an environment."""
        return (environment, policy) in self.totals

    def mean(self, environment: str, policy: str) -> float:
        """Average total regret over seeds."""
        return float(self.totals[environment, policy].mean())

    def common_environments(self) -> tuple[str, ...]:
        """List the environments in which all policies ran; there may be none."""
        return tuple(
            name
            for name in self.environments
            if all(self.has(name, policy) for policy in self.policies)
        )

    def share(self, environment: str, policy: str, of: str = YARDSTICK) -> float:
        """Divide mean total regrets."""
        return self.mean(environment, policy) / self.mean(environment, of)


def load_comparison(folder: Path, beside: Path | None = None) -> Comparison:
    """Read the outline of a finished run, and what another has that it has not.

    Raises:
        StorageError: a folder is no finished comparison, a cell is missing or has other steps, the
            runs do not fit together, or one of those who are always compared is in neither.
    """
    comparison = read_comparison(folder)
    if beside is not None:
        check_places(folder, beside)
        comparison = _joined(comparison, read_comparison(beside), beside)
    check_compared(comparison.policies, folder)
    return comparison


def check_compared(policies: Iterable[str], folder: Path) -> None:
    """Refuse a comparison without those who are always compared.

    Raises:
        StorageError: one of them is missing.
    """
    for policy in (OURS, YARDSTICK):
        if policy not in policies:
            raise StorageError(
                f"Expected a run with {OURS} and {YARDSTICK}; got folder={str(folder)!r}, which "
                f"has no {policy}. Name a run that has both with --beside."
            )


def check_places(folder: Path, beside: Path) -> None:
    """Refuse a run beside itself.

    Raises:
        StorageError: both are one folder.
    """
    if folder.resolve() == beside.resolve():
        raise StorageError(
            f"Expected two runs; got out={str(folder)!r} and beside={str(beside)!r}, the same "
            "folder. Choose another --out."
        )


def check_fit(other: Comparison, place: Path, seeds: Any, scale: str, environments: Any) -> None:
    """Refuse to put a run of these seeds and environments at this scale beside another.

    Raises:
        StorageError: it has other seeds, another scale, or not all of the environments.
    """
    missing = [name for name in environments if name not in other.environments]
    for expected, told in (
        (f"seeds {list(seeds)}", "" if seeds == other.seeds else f"seeds {list(other.seeds)}"),
        (f"scale={scale!r}", "" if scale == other.config.get("scale") else "another scale"),
        ("all of the environments", f"no {', '.join(missing)}" if missing else ""),
    ):
        if told:
            raise StorageError(
                f"Expected {expected}; got beside={str(place)!r}, which has {told}. Make both runs "
                "with the same seeds and scale, in environments that both have."
            )


def _joined(ours: Comparison, other: Comparison, place: Path) -> Comparison:
    """Take whom the first did not run from the second, in the environments of the first.

    Times of the first are put on the clock of the second, by what the reference took in both: one
    machine is not as fast as another, nor today as tomorrow.
    """
    check_fit(other, place, ours.seeds, str(ours.config.get("scale")), ours.environments)
    for name in ours.environments:
        gap = np.max(np.abs(ours.totals[name, REFERENCE] - other.totals[name, REFERENCE]))
        if gap > _TOLERANCE:
            raise StorageError(
                f"Expected the same users and noise; got beside={str(place)!r}, in which "
                f"{REFERENCE} lost another total in {name}, by {gap:.3g}. Make both with the same "
                "code of environments."
            )
    paces = {
        name: np.median(other.milliseconds[name, REFERENCE])
        / np.median(ours.milliseconds[name, REFERENCE])
        for name in ours.environments
    }
    times = {key: paces[key[0]] * values for key, values in ours.milliseconds.items()}
    mine = set(ours.policies)
    added = [key for key in other.totals if key[0] in ours.steps and key[1] not in mine]
    return replace(
        ours,
        policies=tuple(dict.fromkeys(other.policies + ours.policies)),
        totals={key: other.totals[key] for key in added} | ours.totals,
        milliseconds={key: other.milliseconds[key] for key in added} | times,
        beside=other,
    )


def read_comparison(folder: Path) -> Comparison:
    """Read the outline of one run, whoever is in it.

    Raises:
        StorageError: the folder is no finished comparison, or a cell is missing.
    """
    config, provenance, summary = read_outline(folder)
    if config.get("is_reproduction") is not False:
        raise StorageError(
            f"Expected a run of `coco compare`; got folder={str(folder)!r}, which is none. Use "
            "`coco report` for runs of `coco reproduce`."
        )
    seeds = tuple(config["seeds"])
    rows = {(row["environment"], row["policy"], row["seed"]): row for row in summary}
    left_out = {tuple(pair) for pair in config.get("left_out", [])}
    totals: dict[tuple[str, str], Values] = {}
    times: dict[tuple[str, str], Values] = {}
    steps: dict[str, int] = {}
    for environment, policy in product(config["environments"], config["policies"]):
        if (environment, policy) in left_out:
            continue
        cells = [rows.get((environment, policy, seed)) for seed in seeds]
        if not all(cell and _is_whole(cell) for cell in cells):
            raise StorageError(
                f"Expected every seed of every cell; got folder={str(folder)!r}, in which "
                f"{environment} / {policy} is not whole. Finish it: give the command it was "
                "started with, and --resume."
            )
        whole = [cell for cell in cells if cell]
        steps[environment] = whole[0]["steps"]
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
        steps,
        config,
        provenance,
    )


def rank(comparison: Comparison) -> list[Place]:
    """Order policies by their mean rank, those with a smaller share first among equals.

    Where no environment has all policies, each counts among those that ran there.
    """
    common = comparison.common_environments() or comparison.environments
    ranks: dict[str, list[float]] = {}
    for environment in common:
        ran = [name for name in comparison.policies if comparison.has(environment, name)]
        means = np.array([comparison.mean(environment, name) for name in ran])
        for name, mean in zip(ran, means, strict=True):
            # Equals share their places.
            place = 1 + np.sum(means < mean) + (np.sum(means == mean) - 1) / 2
            ranks.setdefault(name, []).append(float(place))
    places = [_place(comparison, common, policy, found) for policy, found in ranks.items()]
    return sorted(places, key=lambda place: (place.mean_rank, place.share))


def _place(
    comparison: Comparison, common: tuple[str, ...], policy: str, ranks: list[float]
) -> Place:
    ran = [name for name in common if comparison.has(name, policy)]
    shares = [comparison.share(name, policy) for name in ran]
    times = [float(np.median(comparison.milliseconds[name, policy])) for name in ran]
    return Place(
        policy,
        float(np.mean(ranks)),
        float(np.exp(np.mean(np.log(np.maximum(shares, 1e-12))))),
        sum(comparison.has(name, policy) for name in comparison.environments),
        float(np.mean(times)),
    )


def _is_whole(cell: dict[str, Any]) -> bool:
    return all(
        isinstance(cell.get(name), int | float) for name in ("steps", "total_regret", "seconds")
    )
