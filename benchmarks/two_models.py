"""Two population models behind one policy: what CoIDS loses with each, seed by seed.

    make models                                                  # runs the mixture, then this
    .venv/bin/python benchmarks/two_models.py results/coids results/mixture

Prints a page. Both folders were written by `coco reproduce`, the second with `--model mixture`; the
first, with the log-density, is the yardstick.
"""

import argparse
from pathlib import Path

from cocobandits.experiments.estimates import estimate, ratio
from cocobandits.experiments.measures import Measures, measure
from cocobandits.experiments.reading import load_run

POLICY, LIMIT = "coids", 1.1
PAGE = """# Two models of the population

Total regret of CoIDS in the paper's environments, with the log-density on a grid and with the
mixture: mean ± standard error over {seeds} seeds, on each of which both met the same users and
noise. Ratios are below 1 where the mixture loses less; at most {limit:g} was asked for. The first
was run at commit {commits[0]}, the second at {commits[1]}; `make models` runs the second.

| environment | log-density | mixture | ratio | 95 % interval | at most {limit:g} |
| --- | ---: | ---: | ---: | ---: | --- |
{rows}
"""


def row(yardstick: Measures, other: Measures, environment: str) -> str:
    """Write both total regrets, and the second over the first."""
    first, second = (each.total_regret(environment, POLICY) for each in (yardstick, other))
    share = ratio(second, first)
    cells = (
        environment,
        estimate(first).show(),
        estimate(second).show(),
        f"{share.mean:.2f}",
        share.show_interval(2),
        "yes" if share.mean <= LIMIT else "no",
    )
    return f"| {' | '.join(cells)} |"


def write_page(yardstick: Path, other: Path) -> str:
    """Compare the environments that both runs have.

    Raises:
        ValueError: the runs have other seeds, or no environment in common.
    """
    runs = load_run(yardstick), load_run(other)
    if runs[0].config["seeds"] != runs[1].config["seeds"]:
        raise ValueError("Expected two runs of the same seeds; run one of them again, see --seeds.")
    first, second = (measure(run) for run in runs)
    shared = [name for name in first.environments if second.has(name, POLICY)]
    if not shared:
        raise ValueError(f"Expected an environment in which both ran {POLICY}; got none.")
    rows = "\n".join(row(first, second, name) for name in shared)
    commits = [run.provenance["commit"] for run in runs]
    return PAGE.format(seeds=len(runs[0].config["seeds"]), limit=LIMIT, rows=rows, commits=commits)


def main() -> None:
    """Read the folders and print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("yardstick", type=Path, help="folder of the run with the log-density")
    parser.add_argument("other", type=Path, help="folder of the run with the mixture")
    arguments = parser.parse_args()
    try:
        print(write_page(arguments.yardstick, arguments.other), end="")
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
