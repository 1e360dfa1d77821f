"""What is it worth to coids to know how often a user is served? Total regret, seed by seed.

    .venv/bin/python benchmarks/horizon.py --env lmm-misspecified --seeds 5      (10 to 20 minutes)

Both variants meet the same users and the same noise, with the settings of `coco reproduce`. One
knows `steps_per_user` and plans, the other does not.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np

from cocobandits.environments.registry import build_environment
from cocobandits.policies.settings import PRESETS
from cocobandits.simulation.loop import open_study, simulate
from cocobandits.simulation.world import draw_world


def regret(name: str, seed: int, knows_steps: bool) -> tuple[float, float]:
    """Run one study; return total regret, and that of the second half."""
    environment = build_environment(name)
    steps = environment.recruitment.steps_per_user if knows_steps else None
    settings = replace(PRESETS["learned"], steps_per_user=steps)
    study = open_study(environment, "coids", seed, settings)
    losses = [
        record.regret for record in simulate(study, environment, draw_world(environment, seed))
    ]
    return sum(losses), sum(losses[len(losses) // 2 :])


def compare(name: str, num_seeds: int, jobs: int) -> None:
    """Print both variants side by side, and their paired difference."""
    variants = [(seed, knows) for seed in range(num_seeds) for knows in (False, True)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(regret, name, *variant) for variant in variants]
        found = np.array([each.result() for each in waiting]).reshape(num_seeds, 2, 2)
    print(f"\n{name}, total regret (second half)")
    print(f"{'seed':>6}{'unknown':>18}{'known':>18}")
    for seed, rows in enumerate(found):
        cells = "".join(f"{total:>9.1f} ({half:6.1f})" for total, half in rows)
        print(f"{seed:>6}{cells}")
    for label, part in (("total", 0), ("second half", 1)):
        gap = found[:, 1, part] - found[:, 0, part]
        error = gap.std(ddof=1) / np.sqrt(num_seeds) if num_seeds > 1 else float("nan")
        print(f"known minus unknown, {label}: {gap.mean():.1f} ± {error:.1f} (standard error)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", action="append", help="several if given several times")
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0 to this, excluded")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    for chosen in options.env or ["lmm-misspecified"]:
        compare(chosen, options.seeds, options.jobs)
