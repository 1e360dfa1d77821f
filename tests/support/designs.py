"""Designs that tests share: of equal shapes and constants, so that compiled functions are shared.

A model is a static argument of compiled functions. Two studies share them if they have as many
arms, the same features, the same noise on the scale from -2 to 2, and these settings.
"""

from dataclasses import fields

from cocobandits import LogDensity, Mixture
from cocobandits.policies.coco.descriptions import Learner, PaperLearner
from cocobandits.policies.fixed import OracleTS
from cocobandits.policies.registry import POLICIES

GRID = LogDensity(nodes_per_arm=6, num_modes=20)
MIXTURE = Mixture(num_components=3, rank=0, precision="double")
PARTICLES = {"num_particles": 40, "ess_threshold": 0.5, "moves_per_block": 5, "max_blocks": 6}


def small(policy, prior=None, **changes):
    """Build the settings of a policy by name, with those of the changes that its class has.

    A policy that learns the population has few particles on a small grid; `prior` is the population
    that oracles know.
    """
    kind = POLICIES[policy]
    if issubclass(kind, Learner):
        return _with(kind, {"population": GRID, **PARTICLES, **changes})
    return _with(kind, changes | ({"population": prior} if issubclass(kind, OracleTS) else {}))


def small_by_default(policy, prior=None, **changes):
    """Build such settings that name no population.

    It is the small mixture, or with the paper's policies the small grid where that fits.
    """
    kind = POLICIES[policy]
    if not issubclass(kind, Learner):
        return small(policy, prior, **changes)
    population = GRID if issubclass(kind, PaperLearner) else MIXTURE
    chooser = type(kind.__name__, (kind,), {"name": policy, "default_population": population})
    return _with(chooser, PARTICLES | changes)


def _with(kind, values):
    names = {each.name for each in fields(kind)}
    return kind(**{name: value for name, value in values.items() if name in names})
