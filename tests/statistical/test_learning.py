"""Both policies of the paper learn: far less regret than serving every user alone.

Environment `mixture` with the paper's constants: 150 users, five decisions each. All policies meet
the same users and the same noise. The quick version has eight nodes per arm, the slow one is the
paper's preset.
"""

from dataclasses import replace
from functools import cache

import pytest

from cocobandits import CocoSettings
from cocobandits.environments.registry import build_environment
from cocobandits.policies.settings import PRESETS
from cocobandits.simulation.loop import open_study, simulate
from cocobandits.simulation.world import draw_world

PRESET = PRESETS["paper"]
COARSE = replace(PRESET, nodes_per_arm=8)


@cache
def total_regret(policy: str, seed: int, settings: CocoSettings) -> float:
    """Simulate a whole study."""
    environment = build_environment("mixture")
    study = open_study(environment, policy, seed, settings)
    world = draw_world(environment, seed)
    return sum(record.regret for record in simulate(study, environment, world))


def check(policy: str, seed: int, settings: CocoSettings) -> None:
    """Compare with independent Thompson sampling on the same users."""
    ours, alone = (total_regret(name, seed, settings) for name in (policy, "ind-ts"))
    print(
        f"\nmixture, seed {seed}, {settings.nodes_per_arm} nodes: "
        f"{policy} {ours:.1f}, ind-ts {alone:.1f}, ratio {ours / alone:.2f}"
    )
    assert ours < 0.4 * alone


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("policy", ["npm-ts", "gids"])
def test_regret_is_below_two_fifths_of_independent_thompson_sampling(policy, seed):
    check(policy, seed, COARSE)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("policy", ["npm-ts", "gids"])
def test_regret_of_the_preset_is_below_two_fifths(policy, seed):
    check(policy, seed, PRESET)
