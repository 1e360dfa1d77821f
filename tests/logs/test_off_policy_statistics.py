"""Estimates from the log of a policy that learns, against a known truth."""

import math
from functools import cache

import numpy as np
import pytest
from logged_worlds import (
    EDGE,
    NAMES,
    World,
    bent,
    linear,
    simulate_log,
    split,
    truth_of,
    values_of,
    wavy,
)

from cocobandits.logs.off_policy import evaluate_log
from cocobandits.logs.off_policy.estimates import Estimate
from cocobandits.logs.off_policy.reading import read_decisions
from cocobandits.logs.off_policy.reward_model import encode_contexts, predict_rewards

NUM_LOGS = 250


@cache
def long_log(response):
    return simulate_log(3, num_users=1000, num_steps=3, response=response)


@cache
def many_reports(response, target):
    """Evaluate a few hundred small logs, once for all tests."""
    logs = World(response=response).simulate(np.random.default_rng(11), NUM_LOGS)
    return [evaluate_log(log, target) for log in logs]


@pytest.mark.parametrize("response", [linear, wavy, bent])
@pytest.mark.parametrize("target", ["a", "c", split])
def test_long_adaptive_log_finds_the_truth(response, target):
    report = evaluate_log(long_log(response), target)
    assert report.overlap.verdict == "good"
    assert report.warning is None
    for name in NAMES:
        found: Estimate = getattr(report, name)
        assert abs(found.value - truth_of(target, response)) < 4 * found.standard_error, name


@pytest.mark.parametrize(("response", "target"), [(linear, "b"), (linear, split), (wavy, split)])
def test_intervals_cover_the_truth(response, target):
    """Within 4 standard errors of 0.95, that is from 0.895 on, over 250 logs of 60 users.

    Standard errors are right within 20 %, four times the error of a spread from 250 values.
    """
    truth = truth_of(target, response)
    for name in NAMES:
        found = [getattr(report, name) for report in many_reports(response, target)]
        coverage = np.mean([one.low <= truth <= one.high for one in found])
        assert abs(coverage - 0.95) < 4 * math.sqrt(0.95 * 0.05 / NUM_LOGS), (name, coverage)
        spread = np.std([one.value for one in found])
        claimed = np.mean([one.standard_error for one in found])
        assert 0.8 < claimed / spread < 1.2, (name, claimed / spread)


def test_intervals_are_too_short_where_a_policy_spares_few_users():
    """Large weights on rare, extreme rewards; 1500 logs covered 0.925 (ips), 0.879, 0.878 (dr)."""
    truth = truth_of("b", bent)
    found = [report.dr for report in many_reports(bent, "b")]
    coverage = np.mean([one.low <= truth <= one.high for one in found])
    assert abs(coverage - 0.88) < 4 * math.sqrt(0.88 * 0.12 / NUM_LOGS)
    assert coverage < 0.95


@pytest.mark.parametrize(
    ("response", "target"), [(linear, "b"), (linear, split), (wavy, split), (bent, "b")]
)
def test_no_estimate_is_biased(response, target):
    """Also the doubly robust one where no line fits the rewards."""
    values = np.array([values_of(report) for report in many_reports(response, target)])
    errors = values.std(axis=0) / math.sqrt(NUM_LOGS)
    assert np.all(np.abs(values.mean(axis=0) - truth_of(target, response)) < 4 * errors)


@pytest.mark.parametrize("target", ["b", split])
def test_right_reward_model_takes_variance_away(target):
    values = np.array([values_of(report) for report in many_reports(linear, target)])
    ips, _, dr = values.var(axis=0)
    assert dr < 0.9 * ips


def test_wrong_reward_model_alone_would_be_biased():
    """Otherwise nothing would show that the doubly robust estimate corrects it."""
    log = long_log(wavy)
    logged = read_decisions(log)
    predicted = predict_rewards(logged, encode_contexts(logged.contexts, len(logged.rewards)), 0)
    is_above = log["context.x"] > EDGE
    direct = np.mean(np.where(is_above, predicted[:, :2] @ [0.8, 0.2], predicted[:, 1]))
    found, truth = evaluate_log(log, split).dr, truth_of(split, wavy)
    assert abs(direct - truth) > 4 * found.standard_error
    assert abs(found.value - truth) < 4 * found.standard_error


def test_dependent_decisions_widen_the_interval():
    """Two decisions per user that hardly differ are worth little more than one."""
    log = simulate_log(6, num_users=400, num_steps=2, user_deviation=2.0, is_adaptive=False)
    alone = log | {"user": [f"u{number}" for number in range(800)]}
    clustered, naive = evaluate_log(log, "a"), evaluate_log(alone, "a")
    np.testing.assert_allclose(values_of(clustered)[:2], values_of(naive)[:2])
    for name in ("snips", "dr"):
        one, other = getattr(clustered, name), getattr(naive, name)
        assert one.standard_error > 1.15 * other.standard_error, name
        assert one.high - one.low > 1.15 * (other.high - other.low), name
