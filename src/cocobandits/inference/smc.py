"""One step of sequential Monte Carlo: from the current posterior to the next (paper, App. "SMC").

The step reads: reweight by the increment; if the effective sample size falls too low, go there in
tempered stages, and at each stage resample and move until the copies have parted. The moves leave
prior × likelihood of all users invariant at each stage.

A step is for targets that become narrower. Weights towards a wider one, as after a withdrawal, have
tails that no sample shows; `anneal` starts from the prior instead.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from cocobandits.checks import check_numbers, check_whole
from cocobandits.errors import ConfigurationError, NumericalError
from cocobandits.inference import moves, weights
from cocobandits.inference.resampling import systematic
from cocobandits.inference.tempering import next_temperature
from cocobandits.types import (
    Ancestors,
    LogWeights,
    Matrix,
    Number,
    Parameters,
    Particles,
    PerParticle,
    RngKey,
    Scalar,
)

_HOPELESS = -1e300
# From the prior the whole likelihood is ahead: many short stages give a better evidence than few
# long ones, for the same number of moves (decision 48).
_ANNEALING_THRESHOLD = 0.7


@runtime_checkable
class Path(Protocol):
    """Targets from temperature 0 (now) to 1 (next): a tree; what changes is in `data`."""

    def ends(self, data: Any) -> Any:
        """Return what `increment` needs of the data: then it is compiled for fewer shapes."""

    def increment(self, particles: Particles, ends: Any) -> PerParticle:
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
        log_evidence_increment: log p(new rewards | earlier ones); from the prior, of all rewards.
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

    @classmethod
    def without_moves(cls, ess: float, increment: float, num_particles: int) -> "SmcInfo":
        """Describe a step that only reweighted."""
        return cls(ess, increment, (), math.nan, 0, num_particles, math.nan)

    @property
    def is_rejuvenated(self) -> bool:
        """Whether particles were resampled and moved."""
        return bool(self.temperatures)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class _Bridge:
    """A path with its data, and where on it the target lies."""

    path: Path
    data: Any
    temperature: Scalar

    @classmethod
    def to_end(cls, path: Path, data: Any) -> "_Bridge":
        """Put the target at the end of the path."""
        return cls(path, data, jnp.ones(()))

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
    acceptance: float
    num_moves: int
    start_correlation: float


class _Keys(NamedTuple):
    """Keys of one stage, and the key of the next."""

    next_stage: RngKey
    move: RngKey
    first: RngKey
    last: RngKey


class _Resampled(NamedTuple):
    """Copies of the particles that a stage starts from."""

    keys: _Keys
    state: SmcState
    temperature: Scalar
    ancestors: Ancestors


def init(rng_key: RngKey, num_parameters: int, config: SmcConfig) -> SmcState:
    """Draw particles from the prior N(0, I)."""
    return _drawn(rng_key, config.first_step_size, (config.num_particles, num_parameters))


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
    ends = path.ends(data)

    def follow(now: SmcState) -> _Reweighed:
        return _reweighed(now, path, ends)

    after, moved = _rejuvenate(rng_key, state, _Bridge.to_end(path, data), follow, config)
    return after, moved._replace(ess=info.ess)


def anneal(
    rng_key: RngKey, num_parameters: int, path: Path, data: Any, config: SmcConfig
) -> tuple[SmcState, SmcInfo]:
    """Bring particles from the prior to the end of a path that starts there, in tempered stages.

    Raises:
        NumericalError: no particle can explain the data.
    """
    start_key, stage_key = jax.random.split(rng_key)
    start, end = init(start_key, num_parameters, config), _Bridge.to_end(path, data)
    after, info = _followed(start, _annealed(start, end))
    threshold = max(config.stage_threshold, _ANNEALING_THRESHOLD)
    if info.ess >= threshold * config.num_particles:
        return after, info
    stages = replace(
        config, ess_threshold=max(config.ess_threshold, threshold), stage_threshold=threshold
    )
    after, moved = _rejuvenate(stage_key, start, end, partial(_annealed, end=end), stages)
    return after, moved._replace(ess=info.ess)


def reweigh(state: SmcState, path: Path, data: Any) -> tuple[SmcState, SmcInfo]:
    """Follow a change by weights alone, whatever becomes of the effective sample size.

    Raises:
        NumericalError: no particle can explain the change.
    """
    return _followed(state, _reweighed(state, path, path.ends(data)))


def is_due(state: SmcState, info: SmcInfo, config: SmcConfig) -> bool:
    """Tell whether a reweighting asks for moves."""
    if config.move_every is not None and int(state.changes_since_move) >= config.move_every:
        return True
    return info.ess < config.ess_threshold * config.num_particles


def _followed(state: SmcState, reweighed: "_Reweighed") -> tuple[SmcState, SmcInfo]:
    """Describe the step; raise if no particle can follow."""
    ess, increment, is_possible = np.asarray(reweighed.summary).tolist()
    if not is_possible:
        raise NumericalError(
            "Expected a finite likelihood under some particle; got none. Check that the reward "
            "range and noise of the study fit the rewards."
        )
    return reweighed.state, SmcInfo.without_moves(ess, increment, len(state.particles))


def _rejuvenate(
    rng_key: RngKey, start: SmcState, end: _Bridge, follow_fn: "FollowFn", config: SmcConfig
) -> tuple[SmcState, SmcInfo]:
    """Reweight, resample and move in as many stages as the target ESS asks for."""
    state, temperature = start, 0.0
    target_ess = config.stage_threshold * config.num_particles
    lineage = np.arange(config.num_particles)
    ladder: list[float] = []
    acceptance, num_moves = 0.0, 0
    while temperature < 1:
        increments = follow_fn(state).increments
        resampled = _resample(rng_key, state, increments, temperature, target_ess)
        reached, rng_key = float(resampled.temperature), resampled.keys.next_stage
        if not reached > temperature:
            raise NumericalError(
                f"Expected some particles to be able to follow the change; got none beyond "
                f"temperature={temperature:g}. Use more particles, or check the reward."
            )
        stage = _move(resampled, replace(end, temperature=resampled.temperature), config)
        state, temperature = stage.state, reached
        lineage = lineage[np.asarray(stage.ancestors)]
        ladder.append(temperature)
        acceptance, num_moves = acceptance + stage.acceptance, num_moves + stage.num_moves
    return state, SmcInfo(
        math.nan,
        float(state.log_evidence) - float(start.log_evidence),
        tuple(ladder),
        acceptance / num_moves,
        num_moves,
        len(set(lineage.tolist())),
        stage.start_correlation,
    )


def _move(resampled: _Resampled, target: _Bridge, config: SmcConfig) -> _Stage:
    """Move in blocks until the copies have parted or the budget is spent."""
    keys, state = resampled.keys, resampled.state
    proposal = moves.Proposal(state.step_size, _root(state.particles, target))
    first = _interweave(keys.first, state.particles, target.path)
    walk = _walk(
        keys.move,
        moves.Start(state.particles, first, proposal),
        target,
        config.correlation_target,
        config.moves_per_block,
        config.max_blocks,
    )
    particles = _interweave(keys.last, walk.point.particles, target.path)
    moved = state._replace(particles=particles, step_size=walk.step_size)
    summary = float(walk.acceptance), int(walk.num_moves), float(walk.correlation)
    return _Stage(moved, resampled.ancestors, *summary)


@partial(jax.jit, static_argnames="shape")
def _drawn(rng_key: RngKey, step_size: Number, shape: tuple[int, int]) -> SmcState:
    return SmcState(
        jax.random.normal(rng_key, shape),
        weights.uniform(shape[0]),
        # Arrays of a firm type: a weakly typed number would make jit compile everything twice.
        jnp.zeros(()),
        jnp.asarray(step_size, dtype=float),
        jnp.zeros((), dtype=int),
    )


class _Reweighed(NamedTuple):
    """Particles that followed a change by weights alone.

    The summary has all that the host needs, in one array: the effective sample size, the increment
    of the log-evidence, and whether any particle can follow.
    """

    state: SmcState
    increments: PerParticle
    summary: Float[Array, " 3"]


FollowFn = Callable[[SmcState], _Reweighed]


@jax.jit
def _reweighed(state: SmcState, path: Path, ends: Any) -> _Reweighed:
    """Go all the way."""
    return _follow(state, path.increment(state.particles, ends))


@jax.jit
def _annealed(state: SmcState, end: _Bridge) -> _Reweighed:
    """Go all the way along a path whose log-likelihood is zero at its start."""
    return _follow(state, end.log_likelihood(state.particles)[0])


def _follow(state: SmcState, increments: PerParticle) -> _Reweighed:
    # A particle that cannot explain a reward loses all weight; finite, since 0 · ∞ is not a number.
    increments = jnp.maximum(jnp.where(jnp.isnan(increments), _HOPELESS, increments), _HOPELESS)
    after = _reweight(state, increments, jnp.ones(()))
    ess = weights.effective_sample_size(after.log_weights)
    increment = after.log_evidence - state.log_evidence
    is_possible = jnp.any(increments > _HOPELESS).astype(float)
    return _Reweighed(after, increments, jnp.stack([ess, increment, is_possible]))


@jax.jit
def _resample(
    rng_key: RngKey,
    state: SmcState,
    increments: PerParticle,
    temperature: Number,
    target_ess: Number,
) -> _Resampled:
    """Go as far in temperature as the target ESS allows, and copy particles by their weights."""
    next_key, stage_key = jax.random.split(rng_key)
    resample_key, move_key, first_key, last_key = jax.random.split(stage_key, 4)
    now = jnp.asarray(temperature, dtype=float)
    target = jnp.asarray(target_ess, dtype=float)
    reached = next_temperature(state.log_weights, increments, now, target)
    reweighted = _reweight(state, increments, reached - now)
    ancestors = systematic(resample_key, reweighted.log_weights)
    copies = reweighted._replace(
        particles=state.particles[ancestors],
        log_weights=weights.uniform(len(increments)),
        changes_since_move=jnp.zeros((), dtype=int),
    )
    return _Resampled(_Keys(next_key, move_key, first_key, last_key), copies, reached, ancestors)


@jax.jit
def _root(particles: Particles, target: _Bridge) -> Matrix | Parameters:
    return moves.information_root(target.information(particles))


@jax.jit
def _interweave(rng_key: RngKey, particles: Particles, path: Path) -> Particles:
    return path.interweave(rng_key, particles)


@partial(jax.jit, static_argnames=("moves_per_block", "max_blocks"))
def _walk(  # noqa: PLR0913, PLR0917 - one compiled function instead of three
    rng_key: RngKey,
    start: moves.Start,
    target: _Bridge,
    correlation_target: Number,
    moves_per_block: int,
    max_blocks: int,
) -> moves.Walk:
    plan = moves.Plan(moves_per_block, max_blocks, correlation_target)
    return moves.langevin(rng_key, start, target.log_likelihood, plan)


def _reweight(state: SmcState, increments: PerParticle, distance: Scalar) -> SmcState:
    """Go a distance in temperature; the mean weight is the evidence of that stretch."""
    log_weights = state.log_weights + distance * increments
    log_mean = logsumexp(log_weights)
    return state._replace(
        log_weights=log_weights - log_mean,
        log_evidence=state.log_evidence + log_mean,
        changes_since_move=state.changes_since_move + 1,
    )
