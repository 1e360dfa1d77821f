"""Which logs are called good, and whether they can be trusted more than others."""

import math

import numpy as np
import pytest

from cocobandits.logs.off_policy.estimates import Clusters, inverse_propensity
from cocobandits.logs.off_policy.overlap import measure_overlap
from cocobandits.logs.off_policy.reading import LoggedDecisions

TRUTH, NUM_LOGS = 1.0, 2000


def draw_log(generator, users, probability):
    """Log two arms, of which the target always plays the first: rewards 1 ± 0.3 per user."""
    num = len(users)
    probabilities = np.stack([probability, 1 - probability], axis=1)
    chosen = (generator.random(num) > probability).astype(int)
    rewards = np.where(chosen == 0, TRUTH + 0.3 * generator.normal(size=num), 0.0)
    of_chosen = probabilities[np.arange(num), chosen]
    return LoggedDecisions(("a", "b"), users, chosen, of_chosen, probabilities, rewards, {}, 0)


def judge(logged):
    """Return the verdict, whether the interval of ips holds the truth, and ips."""
    target = np.zeros_like(logged.probabilities)
    target[:, 0] = 1.0
    weights = np.where(logged.chosen == 0, 1 / logged.probability, 0.0)
    found = inverse_propensity(weights, logged.rewards, Clusters.of(logged.users, weights))
    verdict = measure_overlap(logged, target, weights).verdict
    return verdict, found.low <= TRUTH <= found.high, found.value


def from_seldom_to_often(generator):
    """200 users, who got the target's arm with the same probability, another one in every log."""
    return draw_log(generator, np.arange(200), np.full(200, generator.uniform(0.06, 0.25)))


def few_rare_decisions(generator):
    """600 users, of which a few hardly ever got the target's arm."""
    probability = np.full(600, 0.5)
    probability[: generator.integers(1, 40)] = 10 ** generator.uniform(-3.0, -0.5)
    return draw_log(generator, np.arange(600), probability)


def users_with_several_decisions(generator):
    """100 users with four decisions each, of different probabilities."""
    level = generator.uniform(0.1, 0.5) * np.exp(0.4 * generator.normal(size=400))
    return draw_log(generator, np.repeat(np.arange(100), 4), np.clip(level, 0.02, 0.9))


@pytest.mark.parametrize(
    "draw", [from_seldom_to_often, few_rare_decisions, users_with_several_decisions]
)
def test_good_logs_are_unbiased_and_covered(draw):
    """Among the logs called good, within four standard errors."""
    generator = np.random.default_rng(5)
    verdicts, covered, values = map(
        np.array, zip(*(judge(draw(generator)) for _ in range(NUM_LOGS)), strict=True)
    )
    is_good = verdicts == "good"
    num_good = np.sum(is_good)
    coverage, value = covered[is_good].mean(), values[is_good].mean()
    assert coverage > 0.95 - 4 * math.sqrt(0.95 * 0.05 / num_good)
    assert abs(value - TRUTH) < 4 * values[is_good].std() / math.sqrt(num_good)
    assert 0.2 < num_good / NUM_LOGS < 0.95


@pytest.mark.parametrize("probability", [0.1, 0.2])
def test_verdict_does_not_depend_on_the_arms_that_were_drawn(probability):
    """At 0.1 one log in 70 holds 30 of the target's arms, where 20 are expected."""
    generator = np.random.default_rng(6)
    logs = [draw_log(generator, np.arange(200), np.full(200, probability)) for _ in range(300)]
    verdicts = {judge(log)[0] for log in logs}
    assert verdicts == {"good" if probability == 0.2 else "thin"}


def test_expected_users_match_draws_of_the_arms():
    """(Σ E w)² / Σ_users E (Σ w)², the expectations from 20,000 draws."""
    generator = np.random.default_rng(7)
    users = np.repeat(np.arange(5), 3)
    probabilities = generator.dirichlet([2.0, 2.0, 2.0], 15)
    target = generator.dirichlet([1.0, 1.0, 1.0], 15)
    drawn = generator.random((20_000, 15, 1)) > np.cumsum(probabilities, axis=1)[None, :, :2]
    chosen = drawn.sum(axis=2)
    weights = (target / probabilities)[np.arange(15), chosen]
    sums = weights.reshape(-1, 5, 3).sum(axis=2)
    squares = np.sum(sums**2, axis=1)
    first = chosen[0]
    of_chosen = probabilities[np.arange(15), first]
    given = ("a", "b", "c"), users, first, of_chosen, probabilities, np.zeros(15), {}, 0
    found = measure_overlap(LoggedDecisions(*given), target, weights[0]).expected_users
    error = squares.std() / math.sqrt(len(squares))
    assert abs(15**2 / found - squares.mean()) < 4 * error
