"""Which moves forget where they started faster? Expected squared jump per second, side by side.

    .venv/bin/python benchmarks/moves.py [--env NAME]    a minute or two per environment

The posterior is that of `coids` at the end of an environment's run. Both kinds of moves start from
its particles, adapt their step size, and are then timed in turns in one process, in seconds of
processor time. Jumps are measured per parameter, move by move, in units of its posterior variance,
and averaged.
"""

import argparse
import time
from collections import deque
from functools import partial
from typing import Any, get_args

import jax
import jax.numpy as jnp

from cocobandits.environments.registry import build_environment
from cocobandits.inference import moves
from cocobandits.inference.smc import MoveName, SmcConfig
from cocobandits.inference.weights import uniform
from cocobandits.models.histories import Change, HistoryPath
from cocobandits.policies.settings import CocoSettings
from cocobandits.simulation.loop import open_study, simulate
from cocobandits.simulation.world import draw_world

ENVIRONMENTS = ("mixture", "partial", "lmm", "lmm-misspecified")
SETTINGS = CocoSettings(nodes_per_arm=8, inference=SmcConfig(num_particles=60))
NUM_BLOCKS, BLOCK = 12, 5


class Posterior:
    """Where a run of coids ended: its particles, likelihood and roots."""

    def __init__(self, name: str) -> None:
        environment = build_environment(name)
        study = open_study(environment, "coids", 0, SETTINGS)
        deque(simulate(study, environment, draw_world(environment, 0)), maxlen=0)
        state: Any = study._state
        policy: Any = study._policy
        self.path = HistoryPath(policy.model)
        self.change = Change.of(state.users, jnp.asarray(0), state.users.of(0)[1])
        self.particles = state.posterior.particles
        self.num_users = int(state.users.num_users)

    def likelihood(self, particles: Any) -> Any:
        """Sum over all users."""
        return self.path.log_likelihood_and_gradient(particles, self.change, jnp.ones(()))

    def root(self, name: MoveName, particles: Any) -> Any:
        """Stretch moves as the library does."""
        if name == "scales":
            return moves.scales_root(particles, uniform(len(particles)))
        return moves.information_root(self.path.information(particles, self.change, jnp.ones(())))

    def run_block(
        self, rng_key: Any, start: moves.Point, proposal: moves.Proposal
    ) -> tuple[moves.Point, Any, Any]:
        """Move all particles a few times; return them, the acceptance and the mean squared jump."""
        variance = jnp.var(self.particles, axis=0)

        def move(point: moves.Point, key: Any) -> tuple[moves.Point, Any]:
            there, rate = moves.langevin(key, point, self.likelihood, proposal, 1)
            return there, (rate, jnp.mean((there.particles - point.particles) ** 2 / variance))

        last, (rates, jumps) = jax.lax.scan(move, start, jax.random.split(rng_key, BLOCK))
        return last, jnp.mean(rates), jnp.mean(jumps)


def compare(name: str) -> None:
    """Let both kinds of moves run on one posterior, in turns."""
    posterior = Posterior(name)
    run = jax.jit(posterior.run_block)
    start = jax.jit(lambda particles: moves.evaluate(particles, posterior.likelihood))(
        posterior.particles
    )
    rows: dict[str, dict[str, Any]] = {}
    for kind in get_args(MoveName):
        build = jax.jit(partial(posterior.root, kind))
        root = jax.block_until_ready(build(posterior.particles))
        began = time.process_time()
        jax.block_until_ready(build(posterior.particles))
        rows[kind] = {
            "root": root,
            "setup": time.process_time() - began,
            "point": start,
            "step": jnp.asarray(0.05),
            "seconds": 0.0,
            "jumps": [],
            "rates": [],
        }
    for block in range(3 * NUM_BLOCKS):
        for row in rows.values():
            if block == 2 * NUM_BLOCKS:
                row["origin"] = row["point"].particles
            began = time.process_time()
            proposal = moves.Proposal(row["step"], row["root"])
            row["point"], rate, jump = jax.block_until_ready(
                run(jax.random.key(block), row["point"], proposal)
            )
            if block < 2 * NUM_BLOCKS:
                row["step"] = moves.adapt(row["step"], rate)
                continue
            row["seconds"] += time.process_time() - began
            row["jumps"].append(float(jump))
            row["rates"].append(float(rate))
    _print(name, posterior, rows)


def _print(name: str, posterior: Posterior, rows: dict[str, dict[str, Any]]) -> None:
    num_parameters = posterior.particles.shape[1]
    print(f"\n{name}: {posterior.num_users} users, {num_parameters} parameters")
    print(
        f"{'':<14}{'step':>8}{'accepted':>10}{'jump²':>10}{'jump²/s':>10}{'ratio':>8}"
        f"{'set-up':>9}{'corr.':>7}"
    )
    speeds = {kind: sum(row["jumps"]) * BLOCK / row["seconds"] for kind, row in rows.items()}
    for kind, row in rows.items():
        rate = sum(row["rates"]) / NUM_BLOCKS
        correlation = moves.start_correlation(row["origin"], row["point"].particles)
        per_move = row["seconds"] / NUM_BLOCKS / BLOCK
        print(
            f"{kind:<14}{float(row['step']):>8.4f}{rate:>10.2f}"
            f"{sum(row['jumps']) / NUM_BLOCKS:>10.5f}{speeds[kind]:>10.4f}"
            f"{speeds[kind] / speeds['scales']:>8.1f}"
            f"{row['setup'] / per_move:>9.2f}{float(correlation):>7.2f}"
        )
    print(f"set-up in moves; correlation with the start after {NUM_BLOCKS * BLOCK} moves")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", choices=ENVIRONMENTS, action="append", help="one of them")
    options = parser.parse_args()
    for chosen in options.env or ENVIRONMENTS:
        compare(chosen)
