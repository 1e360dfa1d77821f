"""What people install today: other libraries on the same users and noise, beside ours.

Reads `peers.json` of a run folder, which `benchmarks/peers/run.py` writes. A library counts where
it met all steps of all seeds of the run, and ours are shown in the same environments, so that
shares compare.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cocobandits.errors import StorageError
from cocobandits.experiments.comparison import OURS, YARDSTICK, Comparison, rank
from cocobandits.experiments.drawing import label_of
from cocobandits.experiments.estimates import DASH, Values, estimate, number
from cocobandits.experiments.markdown import table
from cocobandits.experiments.tables import Table

FILE = "peers.json"
_NAMES, _KINDS = ("environment", "policy", "seed"), (str, str, int)
_NUMBERS = ("steps", "total_regret", "seconds")
_SECTION = """## What people install today

{packages}: Thompson sampling with a regression on the context per
arm (per user, with counts where rewards are yes or no); every user alone, all users pooled, or
pooled with a one-hot feature for every user. Priors and noise follow from what the study declares;
where users are pooled, bayesianbandits learns the noise. Regrets are means ± standard error; share
and time as above, over the environments in which all of these have numbers. Libraries' times are
those of the processor, on one thread.

{table}

"""


_MISSING = """## What people install today

Nothing to show: {reason}.

"""
_OTHER_CODE = f"`{FILE}` was made with other code of environments than the run"
_TOO_FEW = f"in `{FILE}` no library met all steps of all seeds of the run; `make peers` runs them"


def peers_section(folders: list[Path], comparison: Comparison) -> str:
    """Write the section, from the first folder that has libraries for this run.

    Nothing if no folder has the file; the reason if none has libraries that fit.

    Raises:
        StorageError: a file cannot be read as what `benchmarks/peers/run.py` writes.
    """
    reasons = []
    for path in (folder / FILE for folder in folders):
        if not path.is_file():
            continue
        packages, cells, environments = read_peers(path)
        beside = beside_peers(comparison, cells)
        if environments != comparison.provenance.get("environments_sha256", environments):
            reasons.append(_OTHER_CODE)
        elif not beside.environments:
            reasons.append(_TOO_FEW)
        else:
            named = [f"{name} {packages[name]}" for name in ("mabwiser", "bayesianbandits")]
            return _SECTION.format(packages=" and ".join(named), table=table(_table(beside)))
    return _MISSING.format(reason="; ".join(dict.fromkeys(reasons))) if reasons else ""


def beside_peers(comparison: Comparison, cells: list[dict[str, Any]]) -> Comparison:
    """Put peers beside ours and the yardstick, in the environments where a peer met all seeds."""
    rows = {(cell["environment"], cell["policy"], cell["seed"]): cell for cell in cells}
    totals: dict[tuple[str, str], Values] = {}
    times: dict[tuple[str, str], Values] = {}
    for key in dict.fromkeys(row[:2] for row in rows):
        found = [rows.get((*key, seed)) for seed in comparison.seeds]
        whole = [cell for cell in found if cell and cell["steps"] == comparison.steps.get(key[0])]
        if len(whole) == len(found):
            totals[key] = np.array([cell["total_regret"] for cell in whole])
            times[key] = np.array([1e3 * cell["seconds"] / cell["steps"] for cell in whole])
    shown = {environment for environment, _ in totals}
    for key in comparison.totals:
        if key[0] in shown and key[1] in (OURS, YARDSTICK):
            totals[key], times[key] = comparison.totals[key], comparison.milliseconds[key]
    return replace(
        comparison,
        environments=tuple(name for name in comparison.environments if name in shown),
        policies=tuple(dict.fromkeys(policy for _, policy in totals)),
        totals=totals,
        milliseconds=times,
    )


def _table(beside: Comparison) -> Table:
    header = ("policy", "share", "ms per interaction", *beside.environments)
    rows = [
        (
            label_of(each.policy),
            number(each.share, 2),
            number(each.milliseconds),
            *(
                estimate(beside.totals[name, each.policy]).show()
                if beside.has(name, each.policy)
                else DASH
                for name in beside.environments
            ),
        )
        for each in sorted(rank(beside), key=lambda place: place.share)
    ]
    return Table(header, rows, num_names=1)


def _is_cell(cell: dict[str, Any]) -> bool:
    names, numbers = [cell[name] for name in _NAMES], [cell[name] for name in _NUMBERS]
    are_numbers = all(isinstance(each, int | float) and np.isfinite(each) for each in numbers)
    is_named = all(isinstance(each, kind) for each, kind in zip(names, _KINDS, strict=True))
    return is_named and are_numbers and cell["steps"] > 0


def read_peers(path: Path) -> tuple[dict[str, str], list[dict[str, Any]], str]:
    """Read the packages, the cells, and the digest of the environments.

    Raises:
        StorageError: the file cannot be read as what `benchmarks/peers/run.py` writes.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        packages, cells = found["packages"], found["cells"]
        environments = str(found["environments_sha256"])
        is_whole = {"mabwiser", "bayesianbandits"} <= set(packages) and all(map(_is_cell, cells))
    except (OSError, ValueError, KeyError, TypeError):
        is_whole = False
    if not is_whole:
        raise StorageError(
            f"Expected a file that benchmarks/peers/run.py wrote; got {str(path)!r}. "
            "Remove it, and run `make peers` again."
        )
    return packages, cells, environments
