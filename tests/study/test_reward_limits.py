"""Rewards far outside the range: refused as typing errors, or taken in good order."""

import math

import jax
import numpy as np
import pytest

from cocobandits import Gaussian, Study
from cocobandits.errors import ConfigurationError, InputError
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from support.designs import small

# Two kinds of users, in standardised units and without context.
PRIOR = ConditionalMixture.from_arrays(
    [[0.3], [0.0]],
    [[[0.5], [-0.4], [0.1]], [[-0.7], [0.6], [0.2]]],
    [[[[0.3]], [[-0.2]], [[0.1]]], [[[0.2]], [[0.2]], [[0.4]]]],
)
NOISE = 0.05
# Forty deviations beyond either end of the range, and a little more.
FAR = 40 * NOISE
LIMITS = (-1.0 - 1.2 * FAR, 1.0 + 1.2 * FAR)


def make_study(policy="ind-ts", limits=None) -> Study:
    rewards = Gaussian(-1.0, 1.0, NOISE, limits)
    return Study(["a", "b", "c"], {}, rewards, small(policy, PRIOR), seed=2)


def test_default_limits_are_ten_deviations_beyond_the_range():
    study = Study(["a", "b", "c"], {}, Gaussian(2.0, 5.0, noise=0.25), "ind-ts", seed=0)
    np.testing.assert_allclose(study.design.rewards.bounds, (-0.5, 7.5), rtol=1e-15)
    study.enrol("anna")
    decision = study.decide("anna")
    for value in (-0.51, 7.51):
        with pytest.raises(InputError, match=f"from -0.5 to 7.5 .the limits.*got reward={value}"):
            study.reward(decision.id, value)
    study.reward(decision.id, 7.5)


def test_given_limits_replace_the_default_on_both_sides():
    study = make_study(limits=(-1.0, 90.0))
    study.enrol("anna")
    decision = study.decide("anna")
    for value in (-1.01, 90.5):
        with pytest.raises(InputError, match=f"from -1 to 90 .*got reward={value}"):
            study.reward(decision.id, value)
    study.reward(decision.id, 89.0)
    with pytest.raises(InputError, match="got reward=91"):
        study.correct(decision.id, 91)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ((-0.5, 3.0), r"limits around the range \(-1.0, 1.0\); got limits=\(-0.5, 3.0\)"),
        ((-3.0, 0.5), r"limits around the range.*Widen them"),
        ((3.0, -3.0), r"smaller first; got limits=\(3.0, -3.0\)"),
        ((-math.inf, 3.0), r"finite numbers.*got limits=\(-inf, 3.0\)"),
        ((-3.0, math.nan), r"got limits"),
        (7, r"got limits=7"),
        ((-3.0, 3.0, 4.0), r"got limits=\(-3.0, 3.0, 4.0\)"),
    ],
)
def test_limits_are_refused(limits, message):
    with pytest.raises(ConfigurationError, match=message):
        make_study(limits=limits)


def test_limits_are_saved(tmp_path):
    study = make_study(limits=[-4, 6])
    assert study.design.rewards.bounds == (-4.0, 6.0)
    study.save(tmp_path / "one.study")
    assert Study.load(tmp_path / "one.study").design == study.design


@pytest.mark.parametrize("policy", ["coids", "npm-ts", "gids", "ind-ts", "mtts", "oracle-ts"])
def test_rewards_forty_deviations_outside_leave_everything_finite(policy):
    """Users above, below, on both sides, and within the range, in turn."""
    study = make_study(policy, limits=LIMITS)
    high, low = 1.0 + FAR, -1.0 - FAR
    users = {"above": [high] * 3, "below": [low] * 3, "both": [high, low, high], "in": [0.2, 0.4]}
    for user, rewards in users.items():
        study.enrol(user)
        for reward in rewards:
            decision = study.decide(user)
            probabilities = np.array(list(decision.probabilities.values()))
            assert np.all(np.isfinite(probabilities))
            assert probabilities.sum() == pytest.approx(1.0, abs=1e-9)
            study.reward(decision.id, reward)
    for leaf in jax.tree.leaves((study._learner.users, study._learner.state)):
        assert np.all(np.isfinite(np.asarray(leaf)))
    for user in users:
        for explained in study.explain(user).arms.values():
            assert np.all(
                np.isfinite([explained.mean, *explained.interval, *explained.uncertainty])
            )
            assert explained.interval[0] <= explained.interval[1]
    newcomer = np.asarray(study.prior().best_probability())
    assert np.all(newcomer >= 0)
    assert newcomer.sum() == pytest.approx(1.0, abs=1e-9)


def test_far_rewards_move_the_belief_to_the_end_of_the_range():
    """The flat prior ends at the range: three rewards beyond it leave the arm at its end."""
    study = make_study("ind-ts", limits=LIMITS)
    study.enrol("anna")
    decision = study.decide("anna")
    study.reward(decision.id, 1.0 + FAR)
    explained = study.explain("anna").arms[decision.arm]
    assert explained.mean == pytest.approx(1.0, abs=0.01)
    assert explained.best_probability > 0.98
