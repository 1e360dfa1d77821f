"""Both policies of the paper learn: far less regret than serving every user alone.

Environment `mixture` with the paper's constants: 150 users, five decisions each. All policies meet
the same users and the same noise. The quick version has eight nodes per arm, the slow one is the
paper's settings.
"""

from functools import cache

import pytest

from cocobandits import GIDS, IndTS, NpmTS, PaperLogDensity, simulate
from cocobandits.policies.description import PolicySettings

COARSE = PaperLogDensity(nodes_per_arm=8)


@cache
def total_regret(policy: PolicySettings, seed: int) -> float:
    """Simulate a whole study."""
    return sum(record.regret for record in simulate(policy, "mixture", seed))


def check(policy: PolicySettings, seed: int) -> None:
    """Compare with independent Thompson sampling on the same users."""
    ours, alone = (total_regret(each, seed) for each in (policy, IndTS()))
    print(
        f"\nmixture, seed {seed}, {policy.population}: "
        f"{policy.name} {ours:.1f}, ind-ts {alone:.1f}, ratio {ours / alone:.2f}"
    )
    assert ours < 0.4 * alone


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("policy", [NpmTS(COARSE), GIDS(COARSE)], ids=["npm-ts", "gids"])
def test_regret_is_below_two_fifths_of_independent_thompson_sampling(policy, seed):
    check(policy, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("policy", [NpmTS(), GIDS()], ids=["npm-ts", "gids"])
def test_regret_of_the_papers_settings_is_below_two_fifths(policy, seed):
    check(policy, seed)
