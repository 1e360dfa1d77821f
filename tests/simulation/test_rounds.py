"""Recruitment in rounds, and the same chance for every policy."""

import numpy as np

from cocobandits import simulate
from cocobandits.environments.recruitment import Recruitment
from cocobandits.environments.registry import find_environment
from cocobandits.simulation.world import draw_world


def test_rounds_by_hand():
    """Two batches of two users for two steps: a pair, both pairs, the second pair."""
    assert list(Recruitment.batches(2, 2, 2).rounds()) == [
        [(0, 0), (1, 0)],
        [(0, 1), (1, 1), (2, 0), (3, 0)],
        [(2, 1), (3, 1)],
    ]


def test_all_at_once_is_one_batch():
    assert Recruitment.all_at_once(3, 2) == Recruitment.batches(1, 3, 2)
    served = list(Recruitment.all_at_once(3, 2).rounds())
    assert served == [[(0, 0), (1, 0), (2, 0)], [(0, 1), (1, 1), (2, 1)]]


def test_policies_meet_the_same_users_and_noise():
    """Where two policies pull the same arm in the same step, the reward is the same."""
    runs = {}
    for policy in ("uniform", "ind-ts"):
        run = simulate(policy, "mixture", 3)
        runs[policy] = [next(run) for _ in range(120)]
    pairs = list(zip(runs["uniform"], runs["ind-ts"], strict=True))
    same = [(left, right) for left, right in pairs if left.arm == right.arm]
    assert len(same) > 20
    assert all(left.reward == right.reward for left, right in same)
    assert all(left.user == right.user for left, right in pairs)


def test_regret_is_on_means():
    environment = find_environment("diet")
    world = draw_world(environment, 0)
    for record in simulate("uniform", environment, 0):
        means = world.cohort.arm_means[record.user]
        assert record.regret == means.max() - means[record.arm]
        np.testing.assert_allclose(record.probability, 1 / 3)
