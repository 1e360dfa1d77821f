"""The planner against brute force, and against what has to be true of somebody who looks ahead."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from cocobandits import OraclePlan, simulate
from cocobandits.environments.recruitment import Recruitment
from cocobandits.environments.registry import find_environment
from cocobandits.errors import ConfigurationError
from cocobandits.policies.base import Problem
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.simulation.loop import open_study
from cocobandits.simulation.world import draw_world
from cocobandits.users.statistics import Statistics
from support.sessions import Session

PROBLEM = Problem(3, (None,), (-2.0, 2.0), 0.1)
CONTEXT = jnp.array([0.3])
# Two kinds of users. Arm 3 distinguishes them and is bad for both; arm 1 is safe and says little.
KINDS = ConditionalMixture.from_arrays(
    logits=[[0.2, 0.5], [0.0, 0.0]],
    means=[[[0.5, 0.0], [0.9, 0.1], [-0.1, 0.2]], [[0.5, 0.0], [-0.6, 0.1], [-0.5, 0.2]]],
    factors=[[[[0.01, 0.0]], [[0.3, 0.1]], [[0.05, 0.0]]]] * 2,
)
# One user per context, without any variety.
KNOWN = ConditionalMixture.from_arrays(
    logits=[[0.0, 0.0]],
    means=[[[0.1, 0.9], [0.3, -0.4], [0.2, 0.3]]],
    factors=np.zeros((1, 3, 1, 2)),
)
HISTORIES = [[], [(0, 0.52)], [(2, -0.05)], [(2, -0.1), (1, 0.6)], [(1, 0.3)], [(1, 0.45)]]


def planner(prior, steps_per_user):
    return Session(OraclePlan(prior, steps_per_user).build(PROBLEM))


def probabilities_of(policy, history, context=CONTEXT):
    state = policy.enrol(policy.init(jax.random.key(0)), context)
    statistics = Statistics.empty(3)
    for arm, reward in history:
        statistics = statistics.add(arm, reward)
    state, _ = policy.update(jax.random.key(0), state, 0, statistics)
    return np.asarray(policy.probabilities(state, 0))


def posterior(mixture, history, context=0.3):
    """Condition every component on one reward after the other, by hand."""
    terms = np.array([1.0, context])
    weights = np.exp(np.array(mixture.logits) @ terms)
    means = np.array(mixture.means) @ terms
    factors = np.array(mixture.factors) @ terms
    covariances = factors @ factors.transpose(0, 2, 1)
    for arm, reward in history:
        variances = covariances[:, arm, arm] + PROBLEM.reward_noise**2
        weights = weights * norm.pdf(reward, means[:, arm], np.sqrt(variances))
        gains = covariances[:, :, arm] / variances[:, None]
        means = means + gains * (reward - means[:, arm])[:, None]
        covariances = covariances - gains[:, :, None] * covariances[:, None, arm]
    return weights / weights.sum(), means, covariances


def look_ahead(mixture, history):
    """Add up the best means after each reward of each arm."""
    rewards = np.linspace(-2.5, 2.5, 401)
    weights, means, covariances = posterior(mixture, history)
    ahead = []
    for arm in range(3):
        deviations = np.sqrt(covariances[:, arm, arm] + PROBLEM.reward_noise**2)
        density = norm.pdf(rewards[:, None], means[:, arm], deviations) @ weights
        after = [posterior(mixture, [*history, (arm, reward)])[:2] for reward in rewards]
        best = [np.max(weights @ means) for weights, means in after]
        ahead.append(np.trapezoid(density * best, rewards))
    return weights @ means, np.array(ahead)


@pytest.mark.parametrize("history", HISTORIES)
def test_decisions_match_brute_force(history):
    mean, ahead = look_ahead(KINDS, history)
    for steps_per_user in (2, 3, 5, 12):
        steps_after = max(steps_per_user - len(history), 1) - 1
        values = mean + steps_after * ahead
        assert np.diff(np.sort(values))[-1] > 2e-3 * steps_after, "too close to call"
        chosen = probabilities_of(planner(KINDS, steps_per_user), history)
        np.testing.assert_array_equal(chosen, np.eye(3)[values.argmax()])


def test_the_more_steps_are_left_the_more_is_paid_for_knowing():
    """Arm 1 has the best mean; arm 2 reveals who the user is, and is often better."""
    chosen = [int(probabilities_of(planner(KINDS, steps), []).argmax()) for steps in (1, 2, 12)]
    assert chosen == [0, 1, 1]


@pytest.mark.parametrize("history", HISTORIES)
def test_last_step_and_any_beyond_it_play_the_best_mean(history):
    weights, means, _ = posterior(KINDS, history)
    for steps_per_user in range(1, len(history) + 2):
        chosen = probabilities_of(planner(KINDS, steps_per_user), history)
        np.testing.assert_array_equal(chosen, np.eye(3)[(weights @ means).argmax()])


def test_known_arm_means_leave_no_room_for_error():
    """Whatever the rewards and however many steps, the truth stays the truth."""
    policy = planner(KNOWN, 50)
    for x in np.linspace(-1.0, 1.0, 9):
        truth = np.array(KNOWN.means)[0] @ [1.0, x]
        for history in ([], [(int(truth.argmax()), -1.5), (int(truth.argmin()), 1.9)]):
            chosen = probabilities_of(policy, history, jnp.array([x]))
            np.testing.assert_array_equal(chosen, np.eye(3)[truth.argmax()])


def test_ties_go_to_the_lowest_arm():
    """Arms 2 and 3 are each other's mirror: only the order of summation distinguishes them."""
    mirrored = ConditionalMixture.from_arrays(
        logits=np.zeros((2, 2)),
        means=[[[-1.0, 0.0], [0.7, 0.0], [0.1, 0.0]], [[-1.0, 0.0], [0.1, 0.0], [0.7, 0.0]]],
        factors=[[[[0.0, 0.0]] * 2, [[0.3, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.3, 0.0]]]] * 2,
    )
    for steps in range(1, 8):
        np.testing.assert_array_equal(probabilities_of(planner(mirrored, steps), []), [0, 1, 0])


def test_planner_loses_less_than_thompson_sampling():
    """Two hidden kinds, five steps each: 40 users on each of two seeds."""
    environment = find_environment("mixture").recruiting(Recruitment.batches(8, 5, 5))
    totals = dict.fromkeys(("oracle-plan", "oracle-ts"), 0.0)
    for seed in (0, 1):
        for policy in totals:
            totals[policy] += sum(record.regret for record in simulate(policy, environment, seed))
    assert totals["oracle-plan"] < 0.95 * totals["oracle-ts"]


def test_planner_is_told_how_often_users_are_served():
    environment = find_environment("diet").recruiting(Recruitment.all_at_once(2, 7))
    study = open_study("oracle-plan", environment, draw_world(environment, 0), 0)
    assert study.design.policy.steps_per_user == 7


FITTING = OraclePlan(KINDS, steps_per_user=5)
STEPS = r"whole number from 1 to 1,000,000,000; got steps_per_user={}. Give"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"steps_per_user": None},
            r"number of steps; got steps_per_user=None. Give oracle",
        ),
        ({"steps_per_user": 0}, STEPS.format("0")),
        ({"steps_per_user": -3}, STEPS.format("-3")),
        ({"steps_per_user": 2**70}, STEPS.format(2**70)),
        ({"population": None}, r"true population; got population=None. Give oracle-plan a Cond"),
    ],
)
def test_planner_is_refused(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        replace(FITTING, **changes).build(PROBLEM)
