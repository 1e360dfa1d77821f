"""Which moves forget where they started fastest? Expected squared jump per second, side by side.

    .venv/bin/python benchmarks/moves.py            compare on the stored posteriors
    .venv/bin/python benchmarks/moves.py --store    make the posteriors anew (minutes)

A stored posterior is a study of `coids` at the end of an environment's run. All contenders start
from the same particles, adapt their step size, and are then timed in turns in one process, in
seconds of processor time. Jumps are measured per parameter, in units of its posterior variance, and
averaged.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from cocobandits.environments.registry import build_environment
from cocobandits.inference import moves
from cocobandits.inference.smc import SmcConfig
from cocobandits.models.histories import Change, HistoryPath
from cocobandits.policies.settings import CocoSettings
from cocobandits.simulation.loop import open_study, simulate
from cocobandits.simulation.world import draw_world
from cocobandits.study import Study

ENVIRONMENTS = ("mixture", "partial", "lmm", "lmm-misspecified")
FOLDER = Path(__file__).parent / "posteriors"
SETTINGS = CocoSettings(nodes_per_arm=8, inference=SmcConfig(num_particles=60))
NUM_BLOCKS, BLOCK = 12, 5
SHRINKAGE = 0.5


class Kernel(NamedTuple):
    """One kind of move: where it proposes to go, and the log of the ratio it is accepted with."""

    propose: Callable[[moves.Point, Any, Any, Any], Any]
    log_ratio: Callable[[moves.Point, moves.Point, Any, Any, Any], Any]


def langevin() -> Kernel:
    """MALA, stretched by a root."""

    def propose(point: moves.Point, noise: Any, step: Any, root: Any) -> Any:
        drift = step / 2 * point.gradient @ root @ root.T
        return point.particles + drift + jnp.sqrt(step) * noise @ root.T

    def log_ratio(point: moves.Point, target: moves.Point, noise: Any, step: Any, root: Any) -> Any:
        back = noise + jnp.sqrt(step) / 2 * (point.gradient + target.gradient) @ root
        change = jnp.sum(noise**2, axis=1) - jnp.sum(back**2, axis=1)
        return target.log_density - point.log_density + change / 2

    return Kernel(propose, log_ratio)


def pcn_langevin() -> Kernel:
    """Crank-Nicolson on the prior, with the likelihood's gradient; keeps N(0, I) exactly."""

    def propose(point: moves.Point, noise: Any, step: Any, root: Any) -> Any:
        del root
        slope = -_likelihood_gradient(point)
        ahead = (2 - step) * point.particles - 2 * step * slope + jnp.sqrt(8 * step) * noise
        return ahead / (2 + step)

    def log_ratio(point: moves.Point, target: moves.Point, noise: Any, step: Any, root: Any) -> Any:
        del noise, root

        def rho(here: moves.Point, there: moves.Point) -> Any:
            slope = -_likelihood_gradient(here)
            return (
                -_log_likelihood(here)
                + jnp.sum((there.particles - here.particles) * slope, axis=1) / 2
                + step / 4 * jnp.sum((here.particles + there.particles) * slope, axis=1)
                + step / 4 * jnp.sum(slope**2, axis=1)
            )

        return rho(point, target) - rho(target, point)

    return Kernel(propose, log_ratio)


def latent_gaussian() -> Kernel:
    """Marginal move for latent Gaussian models (Titsias & Papaspiliopoulos, 2018), prior N(0, I).

    With A = (1 + 2/δ)⁻¹: y ~ N((2/δ) A (x + δ/2 ∇), (2/δ) A² + A).
    """

    def propose(point: moves.Point, noise: Any, step: Any, root: Any) -> Any:
        del root
        shrink = 1 / (1 + 2 / step)
        mean = 2 / step * shrink * (point.particles + step / 2 * _likelihood_gradient(point))
        return mean + jnp.sqrt(2 / step * shrink**2 + shrink) * noise

    def log_ratio(point: moves.Point, target: moves.Point, noise: Any, step: Any, root: Any) -> Any:
        del noise, root
        shrink = 1 / (1 + 2 / step)

        def pull(here: moves.Point, there: moves.Point) -> Any:
            slope = _likelihood_gradient(there)
            centre = 2 / step * shrink * (there.particles + step / 4 * slope)
            return jnp.sum((here.particles - centre) * slope, axis=1) / (2 / step * shrink + 1)

        change = _log_likelihood(target) - _log_likelihood(point)
        return change + pull(point, target) - pull(target, point)

    return Kernel(propose, log_ratio)


def _likelihood_gradient(point: moves.Point) -> Any:
    return point.gradient + point.particles


def _log_likelihood(point: moves.Point) -> Any:
    return point.log_density + jnp.sum(point.particles**2, axis=1) / 2


class Posterior:
    """A stored posterior: its particles, likelihood, and the roots that contenders may use."""

    def __init__(self, name: str) -> None:
        study = Study.load(FOLDER / f"{name}.study")
        state: Any = study._state
        policy: Any = study._policy
        self.path = HistoryPath(policy.model)
        self.change = Change(state.users, jnp.asarray(0), state.users.of(0)[1])
        self.particles = state.posterior.particles
        self.num_users = int(state.users.num_users)

    def likelihood(self, particles: Any) -> Any:
        """Sum over all users."""
        return self.path.log_likelihood_and_gradient(particles, self.change, jnp.ones(()))

    def roots(self) -> dict[str, Callable[[Any], Any]]:
        """List what gradients and noise can be stretched by, from the particles."""

        def covariance(particles: Any) -> Any:
            own = jnp.cov(particles.T)
            mixed = (1 - SHRINKAGE) * own + SHRINKAGE * jnp.eye(len(own))
            return jnp.linalg.cholesky(mixed)

        def gauss_newton(particles: Any) -> Any:
            def gradient(parameters: Any) -> Any:
                return self.likelihood(parameters[None, :])[1][0]

            hessian = jax.jacfwd(gradient)(jnp.mean(particles, axis=0))
            return moves.information_root(-(hessian + hessian.T) / 2)

        def information(particles: Any) -> Any:
            matrix = self.path.information(particles, self.change, jnp.ones(()))
            return moves.information_root(matrix)

        return {
            "plain": lambda particles: jnp.eye(particles.shape[1]),
            "scales": moves.scales_root,
            "covariance": covariance,
            "gauss-newton": gauss_newton,
            "information": information,
        }


def run_block(
    contender: tuple[Posterior, Kernel], rng_key: Any, start: moves.Point, step: Any, root: Any
) -> tuple[moves.Point, Any, Any]:
    """Move all particles a few times; return them, the acceptance and the mean squared jump."""
    posterior, kernel = contender
    variance = jnp.var(posterior.particles, axis=0)

    def move(point: moves.Point, key: Any) -> tuple[moves.Point, Any]:
        key_noise, key_accept = jax.random.split(key)
        noise = jax.random.normal(key_noise, point.particles.shape)
        there = kernel.propose(point, noise, step, root)
        target = moves.evaluate(there, posterior.likelihood)
        ratio = kernel.log_ratio(point, target, noise, step, root)
        is_accepted = jnp.log(jax.random.uniform(key_accept, ratio.shape)) < ratio
        jump = jnp.where(is_accepted[:, None], there - point.particles, 0.0)
        chosen = jax.tree.map(
            lambda new, old: jnp.where(is_accepted.reshape(-1, *[1] * (new.ndim - 1)), new, old),
            target,
            point,
        )
        return chosen, (jnp.mean(is_accepted), jnp.mean(jump**2 / variance))

    last, (acceptance, jumps) = jax.lax.scan(move, start, jax.random.split(rng_key, BLOCK))
    return last, jnp.mean(acceptance), jnp.mean(jumps)


def compare(name: str) -> None:
    """Let all contenders run on one posterior, in turns."""
    posterior = Posterior(name)
    contenders = {f"MALA, {root}": (langevin(), make) for root, make in posterior.roots().items()}
    contenders["pCN-Langevin"] = (pcn_langevin(), posterior.roots()["plain"])
    contenders["latent Gaussian"] = (latent_gaussian(), posterior.roots()["plain"])
    evaluate = jax.jit(lambda particles: moves.evaluate(particles, posterior.likelihood))
    start = evaluate(posterior.particles)
    rows: dict[str, dict[str, Any]] = {}
    for label, (kernel, make) in contenders.items():
        build = jax.jit(make)
        root = jax.block_until_ready(build(posterior.particles))
        began = time.process_time()
        jax.block_until_ready(build(posterior.particles))
        rows[label] = {
            "run": jax.jit(partial(run_block, (posterior, kernel))),
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
            row["point"], rate, jump = jax.block_until_ready(
                row["run"](jax.random.key(block), row["point"], row["step"], row["root"])
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
        f"{'':<20}{'step':>8}{'accepted':>10}{'jump²':>10}{'jump²/s':>10}{'ratio':>8}"
        f"{'set-up':>9}{'corr.':>7}"
    )
    speeds = {}
    for label, row in rows.items():
        jump = sum(row["jumps"]) / len(row["jumps"])
        speeds[label] = jump * NUM_BLOCKS * BLOCK / row["seconds"]
        rate = sum(row["rates"]) / len(row["rates"])
        correlation = moves.start_correlation(row["origin"], row["point"].particles)
        per_move = row["seconds"] / NUM_BLOCKS / BLOCK
        print(
            f"{label:<20}{float(row['step']):>8.4f}{rate:>10.2f}{jump:>10.5f}"
            f"{speeds[label]:>10.4f}{speeds[label] / speeds['MALA, plain']:>8.1f}"
            f"{row['setup'] / per_move:>9.2f}{float(correlation):>7.2f}"
        )
    print(f"set-up in moves; correlation with the start after {NUM_BLOCKS * BLOCK} moves")


def store() -> None:
    """Run coids on every environment and keep where it ended."""
    for name in ENVIRONMENTS:
        environment = build_environment(name)
        study = open_study(environment, "coids", 0, SETTINGS)
        for _ in simulate(study, environment, draw_world(environment, 0)):
            pass
        study.save(FOLDER / f"{name}.study")
        print(f"stored {name}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true", help="make the posteriors anew")
    parser.add_argument("--env", choices=ENVIRONMENTS, action="append", help="one of them")
    options = parser.parse_args()
    if options.store:
        store()
    else:
        for chosen in options.env or ENVIRONMENTS:
            compare(chosen)
