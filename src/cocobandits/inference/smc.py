"""One step of sequential Monte Carlo: from the current posterior to the next (paper, App. "SMC").

The step reads: reweight by the increment; if the effective sample size falls too low, go there in
tempered stages, and at each stage resample and move until the copies have parted. The moves leave
prior × likelihood of all users invariant at each stage.
"""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Int

from cocobandits.checks import check_numbers, check_whole
from cocobandits.errors import ConfigurationError, NumericalError
from cocobandits.inference import moves, weights
from cocobandits.inference.resampling import systematic
from cocobandits.inference.tempering import next_temperature
from cocobandits.types import (
    Ancestors,
    LogWeights,
    Matrix,
    Parameters,
    Particles,
    PerParticle,
    RngKey,
    Scalar,
)

_HOPELESS = -1e300


@runtime_checkable
class Path(Protocol):
    """Targets from temperature 0 (now) to 1 (next). Hashable; what changes is in `data`."""

    def increment(self, particles: Particles, data: Any) -> PerParticle:
        """Compute the log-likelihood at temperature 1 minus that at temperature 0."""

    def log_likelihood_and_gradient(
        self, particles: Particles, data: Any, temperature: Scalar
    ) -> tuple[PerParticle, Particles]:
        """Compute the whole log-likelihood at a temperature, with its gradient."""

    def information(
        self, particles: Particles, data: Any, temperature: Scalar
    ) -> Matrix | Parameters:
        """Estimate how much the likelihood says about each direction, averaged over particles."""

    def interweave(self, rng_key: RngKey, particles: Particles) -> Particles:
        """Move particles such that every likelihood and the prior's law stay."""


@dataclass(frozen=True)
class SmcConfig:
    """When to move, and for how long.

    Attributes:
        num_particles: N.
        ess_threshold: moves are due when ESS < ess_threshold · N.
        stage_threshold: a stage of tempering may lower the ESS to this share of N.
        move_every: also move after this many changes (the paper: 5); never, if None.
        moves_per_block: moves between two looks at the diversity.
        max_blocks: budget of blocks per stage.
        correlation_target: stop when particles correlate less than this with their ancestors.
        first_step_size: η before any adaptation.
    """

    num_particles: int = 200
    ess_threshold: float = 0.5
    stage_threshold: float = 0.25
    move_every: int | None = None
    moves_per_block: int = 5
    max_blocks: int = 6
    correlation_target: float = 0.5
    first_step_size: float = 0.5

    def __post_init__(self) -> None:
        counts = "num_particles", "moves_per_block", "max_blocks"
        check_whole(self, *counts, remedy="Change it, or leave it out.")
        if self.move_every is not None:
            check_whole(self, "move_every", remedy="The paper uses 5; leave it out for never.")
        check_numbers(self, "fraction", "ess_threshold", remedy="The paper uses 0.5.")
        check_numbers(self, "fraction", "stage_threshold", remedy="The default is 0.25.")
        if self.stage_threshold > self.ess_threshold:
            raise ConfigurationError(
                f"Expected stage_threshold <= ess_threshold; got stage_threshold="
                f"{self.stage_threshold}, ess_threshold={self.ess_threshold}. Lower the first."
            )
        check_numbers(self, "share", "correlation_target", remedy="The default is 0.5.")
        check_numbers(self, "positive", "first_step_size", remedy="The default is 0.5.")


class SmcState(NamedTuple):
    """Weighted particles, and what the next step needs to go on."""

    particles: Particles
    log_weights: LogWeights
    log_evidence: Scalar
    step_size: Scalar
    changes_since_move: Int[Array, ""]


class SmcInfo(NamedTuple):
    """Diagnostics of one step.

    Attributes:
        ess: effective sample size after the reweighting, before any resampling.
        log_evidence_increment: log p(new rewards | earlier ones).
        temperatures: the stages of this step; empty if no moves were due.
        acceptance_rate: mean over all moves of this step; NaN without moves.
        num_moves: moves per particle in this step.
        distinct_ancestors: particles of before the step that have descendants now.
        start_correlation: how much particles still resemble their ancestors after the moves of the
            last stage (one: copies, zero: forgotten); NaN without moves.
    """

    ess: float
    log_evidence_increment: float
    temperatures: tuple[float, ...]
    acceptance_rate: float
    num_moves: int
    distinct_ancestors: int
    start_correlation: float

    @property
    def is_rejuvenated(self) -> bool:
        """Whether particles were resampled and moved."""
        return bool(self.temperatures)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Bridge:
    """A path with its data, and where on it the target lies; compiled anew for a new path only."""

    path: Path = field(metadata={"static": True})
    data: Any
    temperature: Scalar

    def at(self, temperature: Scalar) -> "_Bridge":
        """Go to another temperature."""
        return replace(self, temperature=temperature)

    def information(self, particles: Particles) -> Matrix | Parameters:
        """Evaluate the information of the likelihood at this temperature."""
        return self.path.information(particles, self.data, self.temperature)

    def log_likelihood(self, particles: Particles) -> tuple[PerParticle, Particles]:
        """Evaluate the log-likelihood at this temperature, with its gradient."""
        return self.path.log_likelihood_and_gradient(particles, self.data, self.temperature)


class _Stage(NamedTuple):
    """What one stage of resampling and moving did."""

    state: SmcState
    ancestors: Ancestors
    acceptance_rates: list[float]
    start_correlation: float


def init(rng_key: RngKey, num_parameters: int, config: SmcConfig) -> SmcState:
    """Draw particles from the prior N(0, I)."""
    return SmcState(
        jax.random.normal(rng_key, (config.num_particles, num_parameters)),
        weights.uniform(config.num_particles),
        # Arrays of a firm type: a weakly typed number would make jit compile everything twice.
        jnp.zeros(()),
        jnp.full((), config.first_step_size, dtype=float),
        jnp.zeros((), dtype=int),
    )


def step(
    rng_key: RngKey, state: SmcState, path: Path, data: Any, config: SmcConfig
) -> tuple[SmcState, SmcInfo]:
    """Bring the particles from the current posterior to the next.

    Raises:
        NumericalError: no particle can explain the change.
    """
    after, info = reweigh(state, path, data)
    if not is_due(after, info, config):
        return after, info
    after, moved = _rejuvenate(rng_key, state, _Bridge(path, data, jnp.zeros(())), config)
    return after, moved._replace(ess=info.ess)


def reweigh(state: SmcState, path: Path, data: Any) -> tuple[SmcState, SmcInfo]:
    """Follow a change by weights alone, whatever becomes of the effective sample size.

    Raises:
        NumericalError: no particle can explain the change.
    """
    increments = _increments(_Bridge(path, data, jnp.zeros(())), state.particles)
    if not bool(jnp.any(increments > _HOPELESS)):
        raise NumericalError(
            "Expected a finite likelihood under some particle; got none. Check that the reward "
            "range and noise of the study fit the rewards."
        )
    after, ess = _reweight(state, increments, jnp.ones(()))
    increment = float(after.log_evidence - state.log_evidence)
    num_particles = len(state.particles)
    return after, SmcInfo(float(ess), increment, (), math.nan, 0, num_particles, math.nan)


def is_due(state: SmcState, info: SmcInfo, config: SmcConfig) -> bool:
    """Tell whether a reweighting asks for moves."""
    if config.move_every is not None and int(state.changes_since_move) >= config.move_every:
        return True
    return info.ess < config.ess_threshold * config.num_particles


def _rejuvenate(
    rng_key: RngKey, start: SmcState, bridge: _Bridge, config: SmcConfig
) -> tuple[SmcState, SmcInfo]:
    """Reweight, resample and move in as many stages as the target ESS asks for."""
    state, temperature = start, jnp.zeros(())
    target_ess = jnp.full((), config.stage_threshold * config.num_particles, dtype=float)
    lineage = jnp.arange(config.num_particles)
    ladder: list[float] = []
    rates: list[float] = []
    while temperature < 1:
        rng_key, stage_key = jax.random.split(rng_key)
        increments = _increments(bridge, state.particles)
        reached = next_temperature(state.log_weights, increments, temperature, target_ess)
        if not reached > temperature:
            raise NumericalError(
                f"Expected some particles to be able to follow the change; got none beyond "
                f"temperature={float(temperature):g}. Use more particles, or check the reward."
            )
        state, _ = _reweight(state, increments, reached - temperature)
        stage = _resample_and_move(stage_key, state, bridge, reached, config)
        state, temperature = stage.state, reached
        lineage = lineage[stage.ancestors]
        ladder.append(float(temperature))
        rates += stage.acceptance_rates
    return state._replace(changes_since_move=jnp.zeros((), dtype=int)), SmcInfo(
        math.nan,
        float(state.log_evidence - start.log_evidence),
        tuple(ladder),
        sum(rates) / len(rates),
        config.moves_per_block * len(rates),
        len(set(lineage.tolist())),
        stage.start_correlation,
    )


def _resample_and_move(
    rng_key: RngKey, state: SmcState, bridge: _Bridge, temperature: Scalar, config: SmcConfig
) -> _Stage:
    """Resample, then move in blocks until the copies have parted or the budget is spent."""
    resample_key, move_key, first_key, last_key = jax.random.split(rng_key, 4)
    ancestors = systematic(resample_key, state.log_weights)
    target = bridge.at(temperature)
    start = state.particles[ancestors]
    root = _root(start, target)
    point = _evaluate(_interweave(first_key, start, target), target)
    step_size, correlation = state.step_size, 1.0
    rates: list[float] = []
    for block in range(config.max_blocks):
        key, proposal = jax.random.fold_in(move_key, block), moves.Proposal(step_size, root)
        point, acceptance_rate = _move_block(key, point, target, proposal, config.moves_per_block)
        rates.append(float(acceptance_rate))
        step_size = moves.adapt(step_size, acceptance_rate)
        correlation = float(moves.start_correlation(start, point.particles))
        if correlation < config.correlation_target:
            break
    moved = state._replace(
        particles=_interweave(last_key, point.particles, target),
        log_weights=weights.uniform(len(start)),
        step_size=step_size,
    )
    return _Stage(moved, ancestors, rates, correlation)


@jax.jit
def _increments(bridge: _Bridge, particles: Particles) -> PerParticle:
    increments = bridge.path.increment(particles, bridge.data)
    # A particle that cannot explain a reward loses all weight; finite, since 0 · ∞ is not a number.
    return jnp.maximum(jnp.where(jnp.isnan(increments), _HOPELESS, increments), _HOPELESS)


@jax.jit
def _root(particles: Particles, target: _Bridge) -> Matrix | Parameters:
    return moves.information_root(target.information(particles))


@jax.jit
def _interweave(rng_key: RngKey, particles: Particles, target: _Bridge) -> Particles:
    return target.path.interweave(rng_key, particles)


@jax.jit
def _evaluate(particles: Particles, target: _Bridge) -> moves.Point:
    return moves.evaluate(particles, target.log_likelihood)


@partial(jax.jit, static_argnames="num_moves")
def _move_block(
    rng_key: RngKey,
    start: moves.Point,
    target: _Bridge,
    proposal: moves.Proposal,
    num_moves: int,
) -> tuple[moves.Point, Scalar]:
    return moves.langevin(rng_key, start, target.log_likelihood, proposal, num_moves)


@jax.jit
def _reweight(
    state: SmcState, increments: PerParticle, distance: Scalar
) -> tuple[SmcState, Scalar]:
    """Go a distance in temperature; the mean weight is the evidence of that stretch."""
    log_weights = state.log_weights + distance * increments
    log_mean = logsumexp(log_weights)
    after = state._replace(
        log_weights=log_weights - log_mean,
        log_evidence=state.log_evidence + log_mean,
        changes_since_move=state.changes_since_move + 1,
    )
    return after, weights.effective_sample_size(after.log_weights)
