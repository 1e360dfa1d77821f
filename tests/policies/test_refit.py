"""Policies whose state depends on the order of rewards: after a change they are refitted exactly.

The oracle is a study in which the change was never needed: the right value from the start, no
withdrawn user's rewards, all of the context known, all arms there.
"""

import numpy as np
import pytest

from cocobandits import Gaussian, RoME, Study
from cocobandits.policies.base import SequentialPolicy
from cocobandits.policies.description import build
from cocobandits.policies.registry import POLICIES

ARMS = ("a", "b", "c")
# (user, arm, reward), in the order the rewards come in; users enrol when they are first served.
REWARDS = [
    *[(0, 1, 6.0), (0, 0, 3.0), (1, 1, 5.5), (0, 2, 4.0), (2, 0, 2.0), (1, 0, 7.5)],
    *[(2, 2, 6.5), (1, 2, 1.0), (3, 1, 8.0), (0, 1, 5.0), (3, 0, 4.5), (2, 1, 3.5)],
]
SEQUENTIAL = ("hlinucb", "hlinucb-t", "gradband", "meta-ts", "ada-ts", "rome")


def test_sequential_policies_are_these():
    problem = Study(ARMS, {}, Gaussian(0, 10, noise=0.5), "uniform", seed=0).design.problem()
    buildable = (name for name in POLICIES if not name.startswith("oracle"))
    built = {name: build(POLICIES[name](), problem) for name in buildable}
    assert (
        tuple(name for name, policy in built.items() if isinstance(policy, SequentialPolicy))
        == SEQUENTIAL
    )


def serve(policy, rewards=REWARDS, arms=ARMS, gap=None, **options):
    """Give rewards in their order; return the study and the ids of its decisions."""
    study = Study(arms, {"x": (0, 4)}, Gaussian(0, 10, noise=0.5), policy, seed=3, **options)
    ids = []
    for user, arm, reward in rewards:
        if f"user-{user}" not in study.users:
            study.enrol(f"user-{user}", {} if user == gap else {"x": user})
        decision = study.decide(f"user-{user}", [ARMS[arm]])
        ids.append(decision.id)
        if reward is not None:
            study.reward(decision.id, reward)
        else:
            study.close(decision.id)
    return study, ids


def probabilities(study):
    """Compute the probabilities of every user's next decision, and those of a newcomer."""
    study.enrol("newcomer", {"x": 1.5})
    return np.array([list(study.decide(user).probabilities.values()) for user in study.users])


@pytest.mark.parametrize("name", SEQUENTIAL)
@pytest.mark.parametrize("number", [0, 5, 11])
def test_a_corrected_reward_leaves_no_trace(name, number):
    study, ids = serve(
        name, [*REWARDS[:number], (*REWARDS[number][:2], 9.5), *REWARDS[number + 1 :]]
    )
    study.correct(ids[number], REWARDS[number][2])
    np.testing.assert_array_equal(probabilities(study), probabilities(serve(name)[0]))


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_a_retracted_reward_was_never_there(name):
    # RoME draws the bags of a reward by the number of its update, so here all are in every bag.
    policy = RoME(bag_share=1.0) if name == "rome" else name
    study, ids = serve(policy)
    study.correct(ids[4], None)
    never = [(*each[:2], None) if number == 4 else each for number, each in enumerate(REWARDS)]
    np.testing.assert_allclose(
        probabilities(study), probabilities(serve(policy, never)[0]), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_a_withdrawn_users_rewards_are_forgotten(name):
    study, ids = serve(name)
    study.withdraw("user-1")
    other, ids = serve(name)
    for number, (user, *_) in enumerate(REWARDS):
        if user == 1:
            other.correct(ids[number], None)
    other.withdraw("user-1")
    np.testing.assert_array_equal(probabilities(study), probabilities(other))


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_a_late_context_counts_from_the_start(name):
    study, _ = serve(name, gap=2)
    study.update_context("user-2", {"x": 2})
    np.testing.assert_allclose(
        probabilities(study), probabilities(serve(name)[0]), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_a_new_arm_could_have_been_there_from_the_start(name):
    study, _ = serve(name)
    study.add_arm("d")
    always, _ = serve(name, arms=(*ARMS, "d"))
    np.testing.assert_array_equal(probabilities(study), probabilities(always))


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_a_loaded_study_can_be_corrected(name, tmp_path):
    """The order of rewards is stored."""
    study, ids = serve(name)
    study.save(tmp_path / "one.study")
    loaded = Study.load(tmp_path / "one.study")
    for each in (study, loaded):
        each.correct(ids[3], 0.5)
    np.testing.assert_array_equal(probabilities(study), probabilities(loaded))


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_a_study_in_the_background_is_corrected_alike(name):
    """There are no particles to move, so nothing is put off."""
    studies = []
    for moves in ("foreground", "background"):
        study, ids = serve(name, moves=moves)
        study.correct(ids[3], 0.5)
        studies.append(study)
    np.testing.assert_array_equal(*map(probabilities, studies))
