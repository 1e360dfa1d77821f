"""Two finished runs, read as one: what the second has and the first has not is added to the first.

Owns what makes two runs fit together: seeds in common, the same newcomers, and the same regrets in
every cell that both have, since both met the same users and noise. Changes no file.
"""

from collections.abc import Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cocobandits.errors import StorageError
from cocobandits.experiments.measures import Key, Measures, measure
from cocobandits.experiments.reading import Run

_TOLERANCE = 1e-9
_NAMES = ("environments", "policies")
_TABLES = ("records", "evaluations", "health", "hyperparameters")
# Which policies work with which settings of a configuration.
SETTINGS_OF = {"settings": ("npm-ts", "gids"), "learned": ("coids",)}


def join(run: Run, other: Run, place: Path) -> Run:
    """Add the policies and environments of another run, on the seeds that both have.

    Args:
        run: the run that is reported.
        other: the run beside it.
        place: the folder of the run beside it, for messages.

    Raises:
        StorageError: the runs do not fit together.
    """
    seeds = [seed for seed in run.config["seeds"] if seed in other.config["seeds"]]
    if not seeds:
        raise _unfit("a seed in common", place, "no seed of this run", "the same seeds")
    if run.config.get("evaluation") != other.config.get("evaluation"):
        raise _unfit("the same newcomers", place, "another evaluation", "the same evaluation")
    ours, theirs = _only(run, seeds), _only(other, seeds)
    measured = measure(ours)
    _check_lengths(measured, measure(theirs), place)
    _check_regrets(measured, measure(theirs), place)
    added = _only(theirs, seeds, without=set(measured.regrets))
    return replace(
        ours,
        config=_join_configs(ours.config, other.config),
        summary=ours.summary + added.summary,
        densities=ours.densities if ours.densities is not None else other.densities,
        **{name: pa.concat_tables([getattr(ours, name), getattr(added, name)]) for name in _TABLES},
    )


def _only(run: Run, seeds: list[int], without: Set[Key] = frozenset()) -> Run:
    """Keep some seeds, and leave out some policies of some environments."""

    def is_kept(row: dict[str, Any]) -> bool:
        return row["seed"] in seeds and (row["environment"], row["policy"]) not in without

    return replace(
        run,
        config=run.config | {"seeds": seeds},
        summary=[row for row in run.summary if is_kept(row)],
        **{name: _rows(getattr(run, name), seeds, without) for name in _TABLES},
    )


def _rows(table: pa.Table, seeds: list[int], without: Set[Key]) -> pa.Table:
    is_wanted = pc.is_in(table["seed"], value_set=pa.array(seeds, pa.int64()))
    keys = pc.binary_join_element_wise(table["environment"], table["policy"], "/")
    names = pa.array(["/".join(key) for key in without], pa.string())
    return table.filter(pc.and_(is_wanted, pc.invert(pc.is_in(keys, value_set=names))))


def _check_lengths(ours: Measures, theirs: Measures, place: Path) -> None:
    """Refuse environments with another number of steps or rounds, also where no cell is shared."""
    for name, unit in (("regrets", "steps"), ("evaluations", "rounds")):
        lengths = {key[0]: curve.shape[1] for key, curve in getattr(ours, name).items()}
        for (environment, _), curve in getattr(theirs, name).items():
            if lengths.get(environment, curve.shape[1]) != curve.shape[1]:
                told = f"{curve.shape[1]} {unit} in {environment}, not {lengths[environment]}"
                raise _unfit("the same environments", place, told, "the same code")


def _check_regrets(ours: Measures, theirs: Measures, place: Path) -> None:
    for key in ours.regrets.keys() & theirs.regrets.keys():
        gaps = np.abs(ours.regrets[key] - theirs.regrets[key])
        if gaps.max() > _TOLERANCE:
            seed, step = np.unravel_index(gaps.argmax(), gaps.shape)
            cell = f"{key[0]} / {key[1]} / seed {ours.seeds[seed]}"
            told = f"another regret, by {gaps.max():.3g} in step {step} of {cell}"
            raise _unfit("the same regrets in cells of both runs", place, told, "the same code")


def _join_configs(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """List what either has; settings are those of the run whose policies work with them."""
    joined: dict[str, Any] = {
        name: list(dict.fromkeys(first[name] + second[name])) for name in _NAMES
    }
    joined["scale"] = " and ".join(
        dict.fromkeys(str(config.get("scale", "not stated")) for config in (first, second))
    )
    for name, policies in SETTINGS_OF.items():
        users = [config for config in (first, second) if set(policies) & set(config["policies"])]
        found = [config[name] for config in [*users, first, second] if name in config]
        joined |= {name: found[0]} if found else {}
    return first | joined


def _unfit(expected: str, place: Path, told: str, alike: str) -> StorageError:
    return StorageError(
        f"Expected {expected}; got beside={str(place)!r}, which has {told}. Report the runs one by "
        f"one, or make both with {alike}."
    )
