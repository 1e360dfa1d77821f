"""Results of one or more run folders, from their files alone; owns the definition of every regret.

Arrays have one row per seed. All policies meet the same users and noise on a seed, so seeds that
some policy lacks are left out.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cocobandits.display import DEFAULT_LINE, Line, distinct
from cocobandits.errors import StorageError
from cocobandits.runs.info import CellInfo, CellKey, Values
from cocobandits.runs.store import StoredCell, read_folder

__all__ = ["CellInfo", "CellKey", "Key", "Line", "Results", "Values", "read_results"]

Key = tuple[str, str]  # environment, policy
ORACLE = "oracle-ts"
_NUM_PARTS = 5
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Results:
    """Per (environment, policy), all that happened.

    Attributes:
        environments, policies: in display order; not every policy ran in every environment.
        seeds: those that every pair of environment and policy has.
        cells: the description of every cell.
        regrets, arms: seed × step, where steps were kept.
        evaluations: mean regret of newcomers, seed × round; 0 is before any reward.
        health: columns seed, step and those of the schema; one row per rejuvenation.
        hyperparameters: likewise; one row per rejuvenation and hyperparameter.
        tables: other tables of the runs, by name.
        num_left_out: cells of seeds that some pair lacks.
    """

    environments: tuple[str, ...]
    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    cells: dict[CellKey, CellInfo]
    regrets: dict[Key, Values]
    arms: dict[Key, Values]
    evaluations: dict[Key, Values]
    health: dict[Key, dict[str, Values]]
    hyperparameters: dict[Key, dict[str, Values]]
    tables: dict[str, pa.Table]
    num_left_out: int = 0

    def has(self, environment: str, *policies: str) -> bool:
        """Check whether all these policies ran in this environment."""
        return all((environment, policy, self.seeds[0]) in self.cells for policy in policies)

    def within(self, environments: Iterable[str]) -> "Results":
        """Keep some environments, and the policies that ran there."""
        kept = tuple(environments)
        ran = (name for name in self.policies if any(self.has(each, name) for each in kept))
        return self._only(kept, tuple(ran))

    def only(self, policies: Iterable[str]) -> "Results":
        """Keep some policies."""
        return self._only(self.environments, tuple(policies))

    def cumulative_regret(self, environment: str, policy: str) -> Values:
        """Add up regret over steps, seed × step."""
        return np.cumsum(self.regrets[environment, policy], axis=1)

    def multitask_regret(self, environment: str, policy: str) -> Values:
        """Subtract the cumulative regret of the policy that knows the prior, seed × step."""
        oracle = self.cumulative_regret(environment, ORACLE)
        return self.cumulative_regret(environment, policy) - oracle

    def total_regret(self, environment: str, policy: str) -> Values:
        """Return the regret of all steps, one value per seed."""
        return np.array([info.total_regret for info in self.infos(environment, policy)])

    def second_half_regret(self, environment: str, policy: str) -> Values:
        """Return the regret of the later half of the steps, one value per seed."""
        return np.array([info.second_half_regret for info in self.infos(environment, policy)])

    def milliseconds(self, environment: str, policy: str) -> Values:
        """Return the time per interaction, one value per seed."""
        infos = self.infos(environment, policy)
        return np.array([1e3 * info.seconds / info.num_steps for info in infos])

    def share_of_arm(self, environment: str, policy: str, arm: int) -> Values:
        """Compute the share of pulls of an arm in each fifth of the run, seed × fifth."""
        is_arm = self.arms[environment, policy] == arm
        parts = fifths(is_arm.shape[1])
        return np.stack([is_arm[:, part].mean(axis=1) for part in parts], axis=1)

    def fact(self, policy: str, field: str, default: Any = "") -> Any:
        """Read a field of the description of a policy, from its first cell.

        Returns the default if the policy did not run.
        """
        found = (info for key, info in self.cells.items() if key.name == policy)
        return getattr(next(found, None), field, default)

    def label(self, policy: str) -> str:
        """Return the display name of a policy; its name, if it did not run."""
        return self.fact(policy, "label", policy)

    def line(self, policy: str) -> Line:
        """Return the line style of a policy."""
        return self.fact(policy, "line", DEFAULT_LINE)

    def environment_label(self, environment: str) -> str:
        """Return the display name of an environment."""
        found = (info for key, info in self.cells.items() if key.environment == environment)
        return next(info.environment_label for info in found)

    def infos(self, environment: str, policy: str) -> list[CellInfo]:
        """Return the descriptions of the cells of a policy, one per seed."""
        return [self.cells[CellKey(environment, policy, seed)] for seed in self.seeds]

    def _only(self, environments: tuple[str, ...], policies: tuple[str, ...]) -> "Results":
        names = ("cells", "regrets", "arms", "evaluations", "health", "hyperparameters")
        changed: dict[str, Any] = {
            name: {
                key: value
                for key, value in getattr(self, name).items()
                if key[0] in environments and key[1] in policies
            }
            for name in names
        }
        return replace(self, environments=environments, policies=policies, **changed)


def fifths(num_steps: int) -> list[slice]:
    """Cut a run into five parts of about equal size, none empty."""
    bounds = [part * num_steps // _NUM_PARTS for part in range(_NUM_PARTS + 1)]
    return [slice(low, max(high, low + 1)) for low, high in pairwise(bounds)]


def slopes(values: Values, part: slice) -> Values:
    """Compute per seed how fast a cumulative curve rises per step in a part of the run."""
    start = values[:, part.start - 1] if part.start > 0 else 0.0
    return (values[:, part.stop - 1] - start) / (part.stop - part.start)


def read_results(*folders: Path) -> Results:
    """Join the cells of run folders.

    Raises:
        StorageError: a folder holds no cells, a file is damaged, or folders contradict each other.
    """
    stored: dict[CellKey, StoredCell] = {}
    tables: dict[str, pa.Table] = {}
    for folder in folders:
        cells, further = read_folder(folder)
        for cell in cells:
            _check_same(stored.get(cell.info.key, cell).info, cell.info, folder)
            stored.setdefault(cell.info.key, cell)
        tables = further | tables
    infos = [cell.info for cell in stored.values()]
    _check_worlds(infos)
    seeds = _common_seeds(infos)
    kept = {key: cell for key, cell in stored.items() if key.seed in seeds}
    policies = _ordered((info.order[1], info.name) for info in infos)
    return Results(
        environments=_ordered((info.order[0], info.environment) for info in infos),
        policies=policies,
        seeds=tuple(sorted(seeds)),
        cells=_distinguished({key: cell.info for key, cell in kept.items()}, policies),
        tables=tables,
        num_left_out=len(stored) - len(kept),
        **_arrays(kept),
    )


def _ordered(names: Iterable[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for _, name in sorted(names)))


def _distinguished(
    infos: dict[CellKey, CellInfo], policies: Iterable[str]
) -> dict[CellKey, CellInfo]:
    """Give variants of one policy labels and lines of their own, in the order of display."""
    known = {info.name: info for info in infos.values()}
    shared = Counter(info.label for info in known.values())
    labels = {
        name: info.label
        # A policy under its own name keeps its label.
        if shared[info.label] == 1 or info.settings.get("kind") == name
        else f"{info.label}, {name}"
        for name, info in known.items()
    }
    lines = distinct({name: known[name].line for name in policies})
    return {
        key: info._replace(label=labels[key.name], line=lines[key.name])
        for key, info in infos.items()
    }


def _common_seeds(infos: list[CellInfo]) -> set[int]:
    found: dict[Key, set[int]] = {}
    for info in infos:
        found.setdefault((info.environment, info.name), set()).add(info.seed)
    seeds = set.intersection(*found.values())
    if not seeds:
        raise StorageError(
            "Expected a seed that every policy has in every environment; got none. Run the same "
            "command again to complete it, or report fewer folders together."
        )
    return seeds


def _check_same(first: CellInfo, second: CellInfo, folder: Path) -> None:
    """Refuse two different results of one cell."""
    is_same = first.made.identity == second.made.identity
    if not is_same or abs(first.total_regret - second.total_regret) > _TOLERANCE:
        what = "regret" if is_same else "settings, range, newcomers or users"
        raise StorageError(
            f"Expected each cell once, or alike; got folder={str(folder)!r}, in which {first.key} "
            f"has another {what}. Report the folders one by one."
        )


def _check_worlds(infos: list[CellInfo]) -> None:
    """Refuse policies that met other users on the same seed, or were evaluated on other ones."""
    known: dict[tuple[str, str, int], Any] = {}
    for info in infos:
        for what, world in (
            ("users or rewards", info.world_sha256),
            ("number of steps", info.num_steps),
            ("newcomers", info.newcomers if info.num_evaluations else None),
        ):
            key = (what, info.environment, info.seed)
            if world and known.setdefault(key, world) != world:
                raise StorageError(
                    f"Expected the same {what} on a seed for all policies; got others in "
                    f"{info.key}. Run its environment again with --refresh, or in a new folder."
                )


def _arrays(cells: dict[CellKey, StoredCell]) -> dict[str, Any]:
    groups: dict[Key, list[StoredCell]] = {}
    for key in sorted(cells, key=lambda key: key.seed):
        if cells[key].info.has_steps:
            groups.setdefault((key.environment, key.name), []).append(cells[key])

    def stacked(column: str, among: Iterable[Key]) -> dict[Key, Values]:
        return {
            key: np.stack([cell.table[column].drop_null().to_numpy() for cell in groups[key]])
            for key in among
        }

    evaluated = [key for key, group in groups.items() if group[0].info.num_evaluations]
    return {
        "regrets": stacked("regret", groups),
        "arms": stacked("arm", groups),
        "evaluations": stacked("evaluation", evaluated),
        "health": _events(groups, "health"),
        "hyperparameters": _events(groups, "hyperparameters"),
    }


def _events(groups: dict[Key, list[StoredCell]], column: str) -> dict[Key, dict[str, Values]]:
    """Flatten a column that has values at some steps only; pairs without any are left out."""
    found = {}
    for key, group in groups.items():
        rows = [
            {"seed": cell.info.seed, "step": row["step"]} | event
            for cell in group
            for row in cell.steps.filter(cell.steps[column].is_valid()).to_pylist()
            for event in (row[column] if isinstance(row[column], list) else [row[column]])
        ]
        if rows:
            found[key] = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return found
