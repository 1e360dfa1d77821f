"""`coco bench`: measure speed with the scripts of a clone of the repository."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from cocobandits.cli.extras import needs_experiments
from cocobandits.errors import ConfigurationError

_SCRIPT = Path("benchmarks", "bench.py")


def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed, fewer users; nothing is written.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Measure the library against a literal reading of the paper, and how its costs grow.

    Example: coco bench --quick --json

    Works inside a clone of the repository, whose benchmarks it runs. Without --quick it takes one
    to two hours and writes benchmarks/results.json and docs/performance.md. The script itself,
    benchmarks/bench.py, has more options.
    """
    needs_experiments()
    options = [name for name, is_given in (("--quick", quick), ("--json", json)) if is_given]
    command = [sys.executable, str(find_script(Path.cwd())), *options]
    done = subprocess.run(command, check=False)
    raise typer.Exit(done.returncode)


def find_script(folder: Path) -> Path:
    """Look for the benchmarks in a folder and above it.

    Raises:
        ConfigurationError: they are not there.
    """
    for place in (folder, *folder.parents):
        if (place / _SCRIPT).is_file():
            return place / _SCRIPT
    raise ConfigurationError(
        f"Expected a clone of the repository; got folder={str(folder)!r}, with no {_SCRIPT} in it "
        "or above it. Do this in a clone, which has the benchmarks that a package has not."
    )
