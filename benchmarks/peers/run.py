"""Run MABWiser and bayesianbandits on our environments: regret, and time per interaction.

    make peers                                                            # installs both, runs all
    .venv/bin/python benchmarks/peers/run.py --env mixture --seeds 2 --out runs/compare/peers.json

On a seed, every peer meets the users and the noise that our own policies meet. Cells that are in
the file are not run again. In the folder of a finished `coco compare`, the file adds a section to
the page: `coco compare --show --out runs/compare`. What each library is told is said in the files
beside this one.
"""

import argparse
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

# Run as a script, its own folder is on the path, and the package that it belongs to is not.
sys.path.insert(0, str(Path(__file__).parents[1]))

from cocobandits.environments.registry import build_environment
from cocobandits.experiments.presets import COMPARED_ENVIRONMENTS, GROUPS
from cocobandits.experiments.provenance import environments_digest, source_digest
from cocobandits.simulation.world import draw_world
from peers.adapters import PEERS, build_peer
from peers.task import Encoder

PACKAGES = ("mabwiser", "bayesianbandits", "numpy", "scipy", "scikit-learn")


def run_cell(name: str, policy: str, seed: int) -> dict[str, Any]:
    """Serve all users of one run; seconds are the processor's, of choosing and learning."""
    environment = build_environment(name)
    world, encoder = draw_world(environment, seed), Encoder(environment)
    peer = build_peer(policy, environment, seed)
    seconds, regret, steps = 0.0, 0.0, 0
    for served in environment.recruitment.rounds():
        for user, user_step in served:
            # Not by the clock: other work on the machine is not the library's.
            started = time.process_time()
            context = encoder.encode(world.cohort.contexts[user])
            arm = peer.choose(user, context)
            peer.learn(user, context, arm, float(world.rewards[user, user_step, arm]))
            seconds += time.process_time() - started
            means = world.cohort.arm_means[user]
            regret += float(means.max() - means[arm])
            steps += 1
    return {
        "environment": name,
        "policy": policy,
        "seed": seed,
        "steps": steps,
        "total_regret": regret,
        "seconds": seconds,
    }


def provenance() -> dict[str, Any]:
    """Tell with which packages cells are made, and by which code."""
    return {
        "packages": {name: version(name) for name in PACKAGES},
        "environments_sha256": environments_digest(),
        "adapters_sha256": source_digest(Path(__file__).parents[1], ("peers",)),
    }


def read_cells(path: Path, made_with: dict[str, Any]) -> list[dict[str, Any]]:
    """Read the cells of an earlier call; none if there is no file.

    Raises:
        ValueError: the file is no file of peers, or was made with other packages or code.
    """
    if not path.exists():
        return []
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        cells, told = list(found["cells"]), {name: found[name] for name in made_with}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"Expected a file that this script wrote; got out={str(path)!r}. Choose another."
        ) from error
    if told != made_with:
        raise ValueError(
            f"Expected cells made with {made_with}; got {told} in out={str(path)!r}. "
            "Choose another file."
        )
    return cells


def write_cells(path: Path, made_with: dict[str, Any], cells: list[dict[str, Any]]) -> None:
    """Write the file beside its place, and move it there in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".partial")
    text = json.dumps({**made_with, "cells": cells}, indent=1)
    beside.write_text(text + "\n", encoding="utf-8")
    beside.replace(path)


def run(environments: list[str], policies: list[str], num_seeds: int, path: Path) -> None:
    """Run the cells that are not in the file, seed by seed, and write it after each.

    Raises:
        ValueError: the file is no file of peers, or was made with other packages or code; or
            there are no seeds.
    """
    if num_seeds < 1:
        raise ValueError(f"Expected at least one seed; got seeds={num_seeds}. Use for example 10.")
    made_with = provenance()
    cells = read_cells(path, made_with)
    done = {(cell["environment"], cell["policy"], cell["seed"]) for cell in cells}
    wanted = [
        (name, policy, seed)
        for seed in range(num_seeds)
        for name in environments
        for policy in policies
        if (name, policy, seed) not in done
    ]
    for number, key in enumerate(wanted, start=1):
        # One thread, as our own policies have.
        with threadpool_limits(1):
            cell = run_cell(*key)
        cells.append(cell)
        write_cells(path, made_with, cells)
        print(
            f"{number}/{len(wanted)} {' / '.join(map(str, key))}: regret "
            f"{cell['total_regret']:.1f}, {1e3 * cell['seconds'] / cell['steps']:.2f} ms",
            flush=True,
        )


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    names = [*COMPARED_ENVIRONMENTS, *GROUPS]
    add("--env", action="append", choices=names, help="an environment; repeat for more")
    add("--peer", action="append", choices=PEERS, help="a peer; repeat for more")
    add("--seeds", type=int, default=10, help="seeds 0 to N-1")
    add("--out", type=Path, default=Path("runs/compare/peers.json"), help="the file of results")
    told = parser.parse_args()
    asked = told.env or COMPARED_ENVIRONMENTS
    environments = [name for each in asked for name in GROUPS.get(each, (each,))]
    try:
        run(list(dict.fromkeys(environments)), told.peer or list(PEERS), told.seeds, told.out)
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
