"""Both policies of the paper learn: far less regret than serving every user alone.

Environment `mixture`, the paper's constants and preset on twelve nodes per arm instead of twenty,
which is five times faster. All policies meet the same users and the same noise.
"""

from functools import cache

import pytest

from cocobandits import CocoSettings
from cocobandits.environments.registry import build_environment
from cocobandits.simulation.loop import draw_world, open_study, simulate

SETTINGS = CocoSettings(nodes_per_arm=12)


@cache
def total_regret(policy: str, seed: int) -> float:
    """Simulate 150 users with five decisions each."""
    environment = build_environment("mixture")
    study = open_study(environment, policy, seed, SETTINGS)
    world = draw_world(environment, seed)
    return sum(record.regret for record in simulate(study, environment, world))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("policy", ["npm-ts", "gids"])
def test_regret_is_below_two_fifths_of_independent_thompson_sampling(policy, seed):
    ours, alone = total_regret(policy, seed), total_regret("ind-ts", seed)
    print(
        f"\nmixture, seed {seed}: {policy} {ours:.1f}, ind-ts {alone:.1f}, ratio {ours / alone:.2f}"
    )
    assert ours < 0.4 * alone
