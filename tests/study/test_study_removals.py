"""Corrections and withdrawals in a study: what is left is as if it had always been all there is."""

import math
from functools import cache

import jax
import numpy as np
import pytest

from cocobandits import Gaussian, Study
from cocobandits.study.diagnosis import diagnose, learn_log_evidence
from support.designs import MIXTURE, small

ARMS = ("a", "b")
REWARDS = (("anna", "a", 1.3), ("anna", "a", 1.1), ("bob", "b", -0.4), ("bob", "a", 0.6))
EXTREMES = (("carl", "a", -1.9), ("carl", "b", 1.9), ("carl", "a", -1.8))
NUM_FITS = 40


def make_study(rewards=REWARDS, seed=2) -> Study:
    """Observe rewards, most of users who come back."""
    study = Study(
        ARMS,
        {"x": (0.0, 1.0)},
        Gaussian(-2.0, 2.0, noise=0.2, limits=(-1e10, 1e10)),
        small("coids", population=MIXTURE),
        seed=seed,
    )
    for user, x in (("anna", 0.2), ("bob", 0.9), ("carl", 0.6)):
        study.enrol(user, {"x": x})
    for user, arm, value in rewards:
        study.observe(user, arm, value)
    return study


@cache
def fresh_fits() -> np.ndarray:
    """Learn the rewards that are left under many keys."""
    learner = make_study()._learner
    model, config = learner.policy.model, learner.policy.inference
    keys = map(jax.random.key, range(NUM_FITS))
    return np.array([learn_log_evidence(key, model, learner.users, config) for key in keys])


def assert_fresh(log_evidences) -> None:
    """Compare mean evidences, in units of both their standard errors."""
    shift = fresh_fits().mean()
    found, fresh = np.exp(np.array(log_evidences) - shift), np.exp(fresh_fits() - shift)
    error = math.hypot(*(each.std(ddof=1) / math.sqrt(len(each)) for each in (found, fresh)))
    print(f"{found.mean():.3f} against {fresh.mean():.3f} +- {error:.3f}")
    assert abs(found.mean() - fresh.mean()) < 4 * error
    assert 4 * error < 0.6 * fresh.mean()


def mistyped(seed=2) -> Study:
    (user, arm, right), *others = REWARDS
    study = make_study([(user, arm, 1e3), *others], seed)
    study.correct("o0", right)
    return study


def withdrawn(seed=2) -> Study:
    study = make_study([*REWARDS[:2], *EXTREMES, *REWARDS[2:]], seed)
    study.withdraw("carl")
    return study


def taken_back(seed=2) -> Study:
    study = make_study([*REWARDS, ("anna", "b", -1.9), ("bob", "b", 1.9)], seed)
    study.correct("o4", None)
    study.correct("o5", None)
    return study


REMOVALS = [mistyped, withdrawn, taken_back]


@pytest.mark.parametrize("removed", REMOVALS)
def test_evidence_is_that_of_a_fresh_fit(removed):
    assert_fresh([removed(seed).log_evidence for seed in range(12)])


@pytest.mark.parametrize("removed", REMOVALS)
def test_diagnosis_is_that_of_what_is_left(removed):
    """Closed forms agree to the last bit, since sums are made of the rewards that are left."""
    study, plain = removed(), make_study()
    found, expected = study.diagnose(), plain.diagnose()
    for candidate in ("gaussian", "no-sharing"):
        assert found.log_evidences[candidate] == expected.log_evidences[candidate]
    assert (found.num_users, found.num_rewards) == (expected.num_users, expected.num_rewards)
    spread = fresh_fits().std(ddof=1)
    assert abs(found.log_evidences["nonparametric"] - fresh_fits().mean()) < 4 * spread
    assert found.best == diagnose(jax.random.key(0), plain.design, plain._learner.users, None).best


def test_removals_are_repeated_bit_for_bit():
    study = withdrawn()
    study.observe("anna", "b", 0.3)
    study.decide("bob")
    again = Study.replay(study.events)
    for one, other in zip(again._learner.state, study._learner.state, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    assert study.verify() == ()


def test_nobody_is_left():
    study = make_study()
    made = study.decide("anna")
    study.reward(made.id, 0.5)
    for user in ("anna", "bob", "carl"):
        study.withdraw(user)
    assert study.log_evidence == 0.0
    assert set(study.diagnose().log_evidences.values()) == {0.0}
    assert study.health.ess == study.design.policy.num_particles


def test_a_user_without_rewards_leaves_without_a_trace():
    """There is nothing to unlearn, so nothing is learned again."""
    study = make_study()
    before = study._learner.state
    study.withdraw("carl")
    np.testing.assert_array_equal(study._learner.state.particles, before.particles)
    np.testing.assert_allclose(study._learner.state.log_weights, before.log_weights, atol=1e-12)
