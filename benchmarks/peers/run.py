"""Run MABWiser and bayesianbandits on our environments, as cells of a comparison.

    make peers                                                     # installs both, runs all
    .venv/bin/python benchmarks/peers/run.py --env mixture --seeds 2 --out runs/compare

On a seed, every peer meets the users and the noise that our own policies meet. Cells that are in
the folder are not run again; the next `coco compare` or `coco report` shows them. The other files
of this folder say how each library is configured.
"""

import argparse
import sys
from pathlib import Path

# Run as a script, its own folder is on the path, and the package that it belongs to is not.
sys.path.insert(0, str(Path(__file__).parents[1]))

from cocobandits.cli.experiments import run_suite
from cocobandits.environments.registry import find_environment
from cocobandits.errors import CocoError
from cocobandits.experiments.suites import COMPARED_ENVIRONMENTS, GROUPS, Suite
from peers.adapters import PEERS, PeerAgent


def peer_suite(environments: list[str], peers: list[str], num_seeds: int) -> Suite:
    """Build the suite of peers: cells of a comparison."""
    named = dict.fromkeys(name for each in environments for name in GROUPS.get(each, (each,)))
    agents = {name: PeerAgent.of(name) for name in peers}
    return Suite("compare", tuple(map(find_environment, named)), agents, num_seeds)


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    names = [*COMPARED_ENVIRONMENTS, *GROUPS]
    add("--env", action="append", choices=names, help="an environment; repeat for more")
    add("--peer", action="append", choices=PEERS, help="a peer; repeat for more")
    add("--seeds", type=int, default=10, help="seeds 0 to N-1")
    add("--jobs", type=int, default=1, help="parallel processes")
    add("--out", type=Path, default=Path("runs/compare"), help="the folder of the comparison")
    add("--refresh", action="store_true", help="run cells again that other code made")
    asked = parser.parse_args()
    try:
        suite = peer_suite(asked.env or names, asked.peer or list(PEERS), asked.seeds)
        run_suite(suite, asked.out, asked.jobs, asked.refresh)
    except CocoError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
