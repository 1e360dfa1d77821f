"""Rebuild the rectangular simulation of RoME's authors, and set our regret beside theirs.

    .venv/bin/python benchmarks/rome_rectangular.py --repetitions 24      (about 5 minutes)

100 users at 100 times each: in stage s user i is at time s - i, so a stage serves one diagonal of
the array; all of them act, then all of them are learned from. Features are (1, s₁, s₂) with
s ~ U(-1, 1)², and the reward is 2 - 2s₁ + 3s₂ + a x·(θ + θ_user) + N(0, 1) with θ = (1, 0.5, -4).
In `homogeneous` all θ_user are zero, in `heterogeneous` N(0, I), the same in every repetition.

What the description leaves open is read as follows. The prior precision of user effects is
L ⊗ I + I ⊗ C⁻¹, with L of the graph that joins each user to its five nearest in the true effects,
and C the empirical covariance of these, or 1e-18 I where they are zero. Effects of time are zero,
and have 1e-18 I too. K in β is 100 from the start, as the array is known then; `growing` counts
the users who have joined instead. f̂ are linear regressions learned by one gradient step per reward,
of rate 0.01, and 0.1 for the intercept; the two irrelevant features are U(-1, 1) as well. Regret is
added up over all 10,000 decisions and divided by 100 users: what a user loses in 100 times.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cocobandits.policies.rome_algebra import (
    contribution,
    control_probability,
    exploration,
    read_forms,
)

RESULTS = Path(__file__).with_suffix(".json")
PUBLISHED = {"homogeneous": (2.58, 0.19), "heterogeneous": (7.81, 0.20)}
NUM_USERS = NUM_TIMES = 100
NUM_NEIGHBOURS, NUM_BAGS, BAG_SHARE = 5, 10, 0.8
BASE, BASELINE = np.array([1.0, 0.5, -4.0]), np.array([2.0, -2.0, 3.0])
SHARED_PRECISION, ZERO_VARIANCE = 25.0, 1e-18
SCALE, ERROR, FLOOR = 1.0, 0.01, 10.0
RATE, INTERCEPT_RATE = 0.01, 0.1


class Memory(NamedTuple):
    """V and b over (shared, users, times), and the coefficients of every bag."""

    precision: Any
    shift: Any
    bags: Any


class Stage(NamedTuple):
    """A diagonal of the array, padded to 100 rows: who is served, and what is random about it."""

    phi: Any
    extended: Any  # (s₁, s₂, two irrelevant features)
    is_served: Any
    uniform: Any
    baseline: Any
    advantage: Any
    noise: Any
    is_in: Any  # row × bag


def true_effects(setting: str) -> np.ndarray:
    """Draw the effects of users, once for all repetitions."""
    if setting == "homogeneous":
        return np.zeros((NUM_USERS, 3))
    return np.random.default_rng(2024).normal(size=(NUM_USERS, 3))


def laplacian(effects: np.ndarray) -> np.ndarray:
    """Join each user to its nearest in the true effects, and count degrees minus edges."""
    distance = np.linalg.norm(effects[:, None] - effects[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :NUM_NEIGHBOURS]
    edges = np.zeros_like(distance)
    np.put_along_axis(edges, nearest, 1.0, axis=1)
    edges = np.maximum(edges, edges.T)
    return np.diag(edges.sum(axis=1)) - edges


def prior_precision(effects: np.ndarray) -> np.ndarray:
    """Lay out V₀ over (shared, users, times)."""
    covariance = np.cov(effects.T) if effects.any() else ZERO_VARIANCE * np.eye(3)
    users, times = 3 + 3 * NUM_USERS, 3 + 3 * NUM_USERS + 3 * NUM_TIMES
    precision = np.eye(times) / ZERO_VARIANCE
    precision[:3, :3] = SHARED_PRECISION * np.eye(3)
    own = np.kron(np.eye(NUM_USERS), np.linalg.inv(covariance))
    precision[3:users, 3:users] = np.kron(laplacian(effects), np.eye(3)) + own
    return precision


def draw_stage(generator: np.random.Generator, number: int, effects: np.ndarray) -> Stage:
    """Draw everything random about a stage."""
    users = np.arange(NUM_USERS)
    times = number - users
    is_served = (times >= 0) & (times < NUM_TIMES)
    extended = generator.uniform(-1, 1, size=(NUM_USERS, 4))
    features = np.concatenate([np.ones((NUM_USERS, 1)), extended[:, :2]], axis=1)
    phi = np.zeros((NUM_USERS, 3 + 3 * NUM_USERS + 3 * NUM_TIMES))
    for user in users[is_served]:
        for start in (0, 3 + 3 * user, 3 + 3 * NUM_USERS + 3 * times[user]):
            phi[user, start : start + 3] = features[user]
    return Stage(
        phi,
        extended,
        is_served,
        generator.uniform(size=NUM_USERS),
        features @ BASELINE,
        np.sum(features * (BASE + effects), axis=1),
        generator.normal(size=NUM_USERS),
        generator.uniform(size=(NUM_USERS, NUM_BAGS)) < BAG_SHARE,
    )


def inputs_of_baseline(extended: Any, action: Any) -> Any:
    """Lay out (1, features, action, action × features) for every row."""
    plain = jnp.concatenate([jnp.ones((len(extended), 1)), extended], axis=1)
    return jnp.concatenate([plain, action[:, None] * plain], axis=1)


def learn_baseline(bags: Any, inputs: Any, rewards: Any, is_in: Any) -> Any:
    """Take one gradient step of the squared error per reward, in the bags that it is in."""
    rates = jnp.full(inputs.shape[1], RATE).at[0].set(INTERCEPT_RATE)

    def step(bags: Any, row: Any) -> tuple[Any, None]:
        row_inputs, reward, row_is_in = row
        error = row_is_in * (bags @ row_inputs - reward)
        return bags - 2 * error[:, None] * (rates * row_inputs)[None, :], None

    return jax.lax.scan(step, bags, (inputs, rewards, is_in))[0]


@jax.jit
def play(memory: Memory, stage: Stage, num_groups: Any, first: Any, prior: Any) -> Any:
    """Act for all users of a stage, then learn from all; the regret of each comes along."""
    forms = read_forms(memory.precision, memory.shift, stage.phi, prior)
    width = exploration(num_groups, forms.gain, SCALE, ERROR, FLOOR) / first
    control = control_probability(forms.mean, width * jnp.sqrt(forms.variance), (0.0, 1.0))
    action = jnp.where(stage.uniform >= control, 1.0, 0.0)
    rewards = stage.baseline + action * stage.advantage + stage.noise
    guess = jnp.mean(memory.bags, axis=0)
    all_inputs = [inputs_of_baseline(stage.extended, a) for a in (0 * action, 0 * action + 1)]
    none, some = (inputs @ guess for inputs in all_inputs)
    guessed = jnp.where(action > 0, some, none)
    weight, pull, _ = contribution(action > 0, control, some - none, rewards - guessed)
    weighted = (weight * stage.is_served)[:, None] * stage.phi
    inputs = inputs_of_baseline(stage.extended, action)
    is_in = stage.is_in & stage.is_served[:, None]
    learned = Memory(
        memory.precision + stage.phi.T @ weighted,
        memory.shift + stage.phi.T @ (pull * stage.is_served),
        learn_baseline(memory.bags, inputs, rewards, is_in),
    )
    regret = jnp.maximum(stage.advantage, 0.0) - action * stage.advantage
    return learned, regret * stage.is_served


def run(setting: str, seed: int, is_growing: bool = False) -> np.ndarray:
    """Run one repetition; return the summed regret of every stage."""
    effects = true_effects(setting)
    generator = np.random.default_rng([seed, 100])
    precision = jnp.asarray(prior_precision(effects))
    prior = np.linalg.slogdet(np.asarray(precision))[1]
    memory = Memory(precision, jnp.zeros(len(precision)), jnp.zeros((NUM_BAGS, 10)))
    regrets, first = [], None
    for number in range(NUM_USERS + NUM_TIMES - 1):
        groups = float(min(number + 1, NUM_USERS) if is_growing else NUM_USERS)
        if first is None:
            first = exploration(groups, 0.0, SCALE, ERROR, FLOOR)
        stage = jax.tree.map(jnp.asarray, draw_stage(generator, number, effects))
        memory, regret = play(memory, stage, groups, first, prior)
        regrets.append(float(jnp.sum(regret)))
    return np.array(regrets)


def summarise(repetitions: list[np.ndarray]) -> dict[str, Any]:
    """Average over repetitions: per user, and by the other reading, per stage and user served."""
    stages = np.arange(NUM_USERS + NUM_TIMES - 1)
    served = np.minimum(np.minimum(stages + 1, NUM_USERS), stages[::-1] + 1)
    per_user = np.array([regret.sum() / NUM_USERS for regret in repetitions])
    per_stage = np.array([np.sum(regret / served) for regret in repetitions])
    return {
        "repetitions": len(repetitions),
        "per_user": _mean_and_error(per_user),
        "sum_over_stages_of_mean": _mean_and_error(per_stage),
    }


def _mean_and_error(values: np.ndarray) -> dict[str, float]:
    error = values.std(ddof=1) / np.sqrt(len(values))
    return {"mean": round(float(values.mean()), 3), "standard_error": round(float(error), 3)}


def main(num_repetitions: int, num_growing: int) -> None:
    """Run both settings both ways, print a line for each and write them down."""
    results: dict[str, Any] = {}
    for setting, (mean, error) in PUBLISHED.items():
        results[setting] = {"published": {"mean": mean, "standard_error": error}}
        for name, number in (("array known", num_repetitions), ("growing", num_growing)):
            runs = [run(setting, seed, name == "growing") for seed in range(number)]
            results[setting][name] = summarise(runs)
            print(setting, name, results[setting][name], flush=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=24, help="with K = 100 from the start")
    parser.add_argument("--growing", type=int, default=4, help="with K growing; at least two")
    options = parser.parse_args()
    main(options.repetitions, options.growing)
