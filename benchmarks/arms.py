"""What many arms and features cost: a decision, an update, memory.

Run by hand, on a quiet machine:

    .venv/bin/python benchmarks/arms.py            # 50 arms, 20 features; then 2 to 50 arms
    .venv/bin/python benchmarks/arms.py --quick    # a glance

The growth is measured with all numbers of arms in turn, in one process, over several rounds.
"""

import argparse
import resource
import time
from statistics import median

import numpy as np

from cocobandits import CocoSettings, Study

NUM_ARMS, NUM_FEATURES = 50, 20
GROWTH = (2, 5, 10, 20, 50)
NUM_GROUPS, NOISE, SPREAD = 4, 0.3, 0.25


def open_study(num_arms: int, num_features: int) -> Study:
    """Open a study with the mixture model, whatever the number of arms."""
    return Study(
        [f"arm-{number}" for number in range(num_arms)],
        {f"feature-{number}": (-1.0, 1.0) for number in range(num_features)},
        (-3.0, 3.0),
        NOISE,
        settings=CocoSettings(model="mixture", rank=0),
        reward_limits=(-12.0, 12.0),
    )


class Crowd:
    """Users of hidden groups, who come one after another and are served a few times each."""

    def __init__(self, study: Study, num_features: int, steps_per_user: int) -> None:
        self._study = study
        self._arms = list(study.design.arms)
        self._num_features = num_features
        self._steps_per_user = steps_per_user
        self._generator = np.random.default_rng(1)
        self._centres = self._generator.normal(size=(NUM_GROUPS, len(self._arms)))
        self._num_steps = 0
        self._means = self._centres[0]

    def step(self) -> tuple[float, float, bool]:
        """Serve once; return the seconds of decision and update, and whether particles moved."""
        user, step = divmod(self._num_steps, self._steps_per_user)
        name = f"user-{user}"
        if step == 0:
            values = self._generator.uniform(-1, 1, self._num_features)
            self._study.enrol(name, {f"feature-{n}": float(v) for n, v in enumerate(values)})
            group = self._generator.integers(NUM_GROUPS)
            spread = SPREAD * self._generator.normal(size=len(self._arms))
            self._means = self._centres[group] + spread
        began = time.perf_counter()
        decision = self._study.decide(name)
        decided = time.perf_counter()
        mean = self._means[self._arms.index(decision.arm)]
        reward = float(mean + NOISE * self._generator.normal())
        resumed = time.perf_counter()
        self._study.reward(decision.id, reward)
        learned = time.perf_counter()
        self._num_steps += 1
        health = self._study.health
        has_moved = health is not None and health.is_rejuvenated
        return decided - began, learned - resumed, has_moved


def measure_large(num_steps: int) -> None:
    """Print what 50 arms and 20 features cost."""
    crowd = Crowd(open_study(NUM_ARMS, NUM_FEATURES), NUM_FEATURES, 10)
    # The first steps compile.
    rows = [crowd.step() for _ in range(num_steps)][5:]
    decisions = sorted(row[0] for row in rows)
    # While little is known, every type of every particle counts.
    slowest = max(row[0] for row in rows[len(rows) // 4 :])
    updates = [row[1] for row in rows if not row[2]]
    moves = [row[1] for row in rows if row[2]]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{NUM_ARMS} arms, {NUM_FEATURES} features, {num_steps} interactions")
    print(
        f"  decision  {1e3 * median(decisions):.1f} ms, "
        f"95 %: {1e3 * decisions[int(0.95 * len(decisions))]:.1f} ms, "
        f"slowest after a quarter: {1e3 * slowest:.1f} ms"
    )
    if updates:
        print(f"  reward    {1e3 * median(updates):.1f} ms, without moves ({len(updates)})")
    if moves:
        print(f"  moves     {median(moves):.2f} s ({len(moves)})")
    print(f"  memory    {peak:.0f} MB at the most")


def measure_growth(num_rounds: int, steps_per_round: int) -> None:
    """Print the cost per interaction of 2 to 50 arms, updates with all their moves."""
    crowds = {arms: Crowd(open_study(arms, 1), 1, 5) for arms in GROWTH}
    seconds: dict[int, list[tuple[float, float, bool]]] = {arms: [] for arms in GROWTH}
    for number in range(num_rounds):
        for arms, crowd in crowds.items():
            rows = [crowd.step() for _ in range(steps_per_round)]
            if number > 0:  # the first round compiles
                seconds[arms] += rows
    print("\narms  decision  reward  one move  parameters" + " " * 4 + "move per arm")
    for arms, rows in seconds.items():
        study = crowds[arms]._study
        decision = 1e3 * median(row[0] for row in rows)
        reward = 1e3 * median([row[1] for row in rows if not row[2]] or [np.nan])
        moved = 1e3 * float(np.mean([row[1] for row in rows if row[2]] or [np.nan]))
        num_parameters = study._learner.policy.model.num_parameters  # type: ignore[attr-defined]
        print(
            f"{arms:4d}  {decision:5.1f} ms  {reward:3.1f} ms  {moved:5.0f} ms  "
            f"{num_parameters:10d}  {moved / arms:8.1f} ms"
        )


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few steps: a glance")
    quick = parser.parse_args().quick
    measure_large(30 if quick else 150)
    measure_growth(2 if quick else 6, 20 if quick else 25)


if __name__ == "__main__":
    main()
