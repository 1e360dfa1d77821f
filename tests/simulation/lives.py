"""Two studies of one shape in a new process: what the second compiles, and what it leaves behind.

Its noise, range, floor, seed, prior scales and eligible arms are others. Prints a line of JSON.
"""

import gc
import json
import sys

import jax

from cocobandits import CoIDS, Gaussian, LogDensity, Mixture, Study

ARMS, CONTEXT = ["walk", "swim", "yoga"], {"age": (18, 90)}
SMALL = {"num_particles": 40, "moves_per_block": 1}
# Policy, rewards, floor and seed of both. A noise of 6 % of the range asks for as many nodes and
# windows as wide as one of 5.7 % does. A noise that is not given is learned.
PAIRS = {
    "mixture": (
        (CoIDS(Mixture(4), **SMALL), Gaussian(0, 10, noise=0.6), 0.05, 1),
        (CoIDS(Mixture(4), **SMALL, population_weight=0.7), Gaussian(-3, 4, noise=0.4), 0.0, 2),
    ),
    "learned noise": (
        (CoIDS(Mixture(4), **SMALL), Gaussian(0, 10), 0.05, 1),
        (CoIDS(Mixture(4), **SMALL, ess_threshold=0.5), Gaussian(-3, 4), 0.0, 2),
    ),
    "log-density": (
        (CoIDS(LogDensity(num_modes=40), **SMALL), Gaussian(0, 10, noise=0.6), 0.05, 1),
        (
            CoIDS(LogDensity(num_modes=40, amplitude=3.0, amplitude_deviation=0.4), **SMALL),
            *(Gaussian(-3, 4, noise=0.4), 0.0, 2),
        ),
    ),
}
_MOST_USERS = 40

COMPILATION = "/jax/core/compile/backend_compile_duration"
compiled = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, _, **__: compiled.extend([event] * (event == COMPILATION))
)


def live(policy, rewards, floor, seed):
    """Enrol, decide and reward until particles have moved twice, and ask all there is to ask."""
    study = Study(ARMS, CONTEXT, rewards, policy, floor=floor, seed=seed)
    low, high = rewards.range
    num_moved = 0
    for number in range(_MOST_USERS):
        user = f"user-{number}"
        study.enrol(user, {"age": 20 + number})
        for step in range(2):
            decision = study.decide(user)
            place = 0.1 + 0.8 * ((ARMS.index(decision.arm) + number + step) % 2)
            study.reward(decision.id, low + place * (high - low))
            num_moved += study.health.is_rejuvenated
        if num_moved >= 2:
            break
    study.explain("user-0")
    study.population({"age": 40})
    study.hyperparameters()
    return num_moved, restrict(study)


def restrict(study):
    """Decide among two of three arms, then without a suspended one; count what that compiles."""
    before = len(compiled)
    study.enrol("late", {"age": 50})
    study.decide("late", eligible=ARMS[:2])
    study.suspend("yoga", "out of stock")
    study.decide("user-0")
    return len(compiled) - before


def held():
    """Count the bytes of all arrays that are not garbage."""
    gc.collect()
    return sum(array.nbytes for array in jax.live_arrays())


def main(name):
    """Print compilations and rejuvenations of both studies, and what the second leaves behind."""
    moved, counts, left, restricted = [], [], [], []
    for study in PAIRS[name]:
        num_before, bytes_before = len(compiled), held()
        num_moved, num_compiled = live(*study)
        moved.append(num_moved)
        restricted.append(num_compiled)
        counts.append(len(compiled) - num_before)
        left.append(held() - bytes_before)
    found = {"compilations": counts, "moved": moved, "left": left[1], "restricted": restricted}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
