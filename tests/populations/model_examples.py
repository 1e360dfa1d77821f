"""One small, lopsided model of every kind, with three arms and one feature, and users' rewards."""

import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from model_oracles import statistics_of

from cocobandits.populations.base import PopulationModel
from cocobandits.populations.known.flat import FlatModel
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture, GaussianMixtureModel
from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel
from cocobandits.populations.mixture import MixtureConfig, MixtureModel
from cocobandits.users.statistics import Statistics

NOISE = 0.25
LOW, HIGH = -0.85, 1.15
CONTEXT = jnp.array([0.3])
POINTS = jnp.array([[0.3], [0.9], [0.05], [0.7]])
LOG_WEIGHTS = jnp.log(jnp.array([0.45, 0.05, 0.3, 0.2]))
NUM_PARTICLES = 4

MIXTURES = ("gaussian", "factor", "bernoulli")
KINDS = ("cell", "flat", "given", *MIXTURES)


class Example(NamedTuple):
    """A model, particles of it, and what a user has given earlier and gives later."""

    model: PopulationModel
    particles: jnp.ndarray
    early: Statistics
    late: Statistics


@functools.cache
def example(kind: str) -> Example:
    """Make the model of a kind."""
    model = _MODELS[kind]()
    generator = np.random.default_rng(18 if kind in MIXTURES else 12)
    # Arms of a mixture are far apart if particles are drawn from all of its prior.
    scale = 0.4 if kind in MIXTURES else 1.0
    particles = scale * jnp.asarray(generator.normal(size=(NUM_PARTICLES, model.num_parameters)))
    if kind == "bernoulli":
        early, late = ([HIGH, LOW, HIGH], [], [LOW]), ([HIGH], [HIGH, LOW, LOW], [])
    else:
        early, late = ([0.21, 0.35], [], [0.6]), ([0.1], [0.3, -0.2], [])
    return Example(model, particles, statistics_of(early), statistics_of(late))


def _grid() -> LogDensityModel:
    return LogDensityModel(
        LogDensityConfig(
            3,
            context_axes=(Axis(0.0, 1.0, 3),),
            arm_axis=Axis(-0.6, 0.9, 4),
            reward_noise=NOISE,
            num_modes=9,
        )
    )


def _given() -> GaussianMixtureModel:
    generator = np.random.default_rng(11)
    mixture = ConditionalMixture.from_arrays(
        generator.normal(size=(2, 2)),
        0.5 * generator.normal(size=(2, 3, 2)),
        0.3 * generator.normal(size=(2, 3, 2, 2)),
    )
    return GaussianMixtureModel(mixture, (None,), (LOW, HIGH), NOISE)


def _mixture(rewards: str, rank: int = 0) -> MixtureModel:
    return MixtureModel(
        MixtureConfig(
            3,
            (None,),
            num_components=2,
            rank=rank,
            rewards=rewards,
            mean_range=(LOW, HIGH),
            reward_noise=NOISE,
            precision="double",
        )
    )


_MODELS = {
    "cell": _grid,
    "flat": lambda: FlatModel(3, LOW, HIGH, NOISE),
    "given": _given,
    "gaussian": lambda: _mixture("gaussian"),
    "factor": lambda: _mixture("gaussian", rank=1),
    "bernoulli": lambda: _mixture("bernoulli"),
}
