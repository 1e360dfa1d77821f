"""A policy that knows the truth decides as the population conditioned by hand would."""

import numpy as np
import pytest
from scipy.stats import norm

from cocobandits import (
    GIDS,
    MTTS,
    CoIDS,
    Gaussian,
    GradBand,
    OraclePlan,
    OracleTS,
    RobustAgg,
    Study,
    simulate,
)
from cocobandits.environments.diet import AGE_GROUPS
from cocobandits.environments.recruitment import Recruitment
from cocobandits.environments.registry import find_environment
from cocobandits.errors import ConfigurationError
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.simulation.loop import open_study
from cocobandits.simulation.world import draw_world

# The diet in its own units, from the words of the paper: low metabolism first.
KIND_MEANS = np.array([[1.0, 2.5, 0.0], [2.0, 0.0, 2.5]])
SPREADS = np.array([0.1, 0.15, 0.15])
HIGH_SHARES = {"young": 0.9, "middle-aged": 0.5, "old": 0.1}
NOISE = 0.2
STANDARD = np.linspace(-9.0, 9.0, 8001)
ZEROS = ConditionalMixture.from_arrays(
    np.zeros((1, 4)), np.zeros((1, 2, 4)), np.zeros((1, 2, 1, 4))
)
PLAIN = ConditionalMixture.from_arrays(
    np.zeros((1, 2)), np.zeros((1, 3, 2)), np.zeros((1, 3, 1, 2))
)
DESIGN = tuple(((0.0, slope),) for slope in (1.0, 0.5, -1.0))


def best_by_hand(age, rewards):
    """Condition two kinds of independent arms on rewards in reward units, and count wins."""
    total, wins = 0.0, np.zeros(3)
    for share, centres in zip((1 - HIGH_SHARES[age], HIGH_SHARES[age]), KIND_MEANS, strict=True):
        mean, variance, evidence = centres.copy(), SPREADS**2, share
        for arm, reward in rewards:
            evidence *= norm.pdf(reward, mean[arm], np.sqrt(variance[arm] + NOISE**2))
            kept = 1 / (1 / variance[arm] + 1 / NOISE**2)
            mean[arm] = kept * (mean[arm] / variance[arm] + reward / NOISE**2)
            variance = np.where(np.arange(3) == arm, kept, variance)
        total += evidence
        wins += evidence * independent_best(mean, np.sqrt(variance))
    return wins / total


def independent_best(mean, deviations):
    step = STANDARD[1] - STANDARD[0]
    shares = []
    for arm in range(3):
        value = mean[arm] + deviations[arm] * STANDARD
        rivals = [b for b in range(3) if b != arm]
        below = [norm.cdf((value - mean[b]) / deviations[b]) for b in rivals]
        shares.append(step * np.sum(norm.pdf(STANDARD) * np.prod(below, axis=0)))
    return np.array(shares)


def test_oracle_conditions_the_population_in_reward_units():
    """Units run from -0.5 to 3.5; every decision of three users, one per age group."""
    environment = find_environment("diet")
    world = draw_world(environment, 0)
    study = open_study("oracle-ts", environment, world, 5)
    generator = np.random.default_rng(8)
    largest = 0.0
    for age in AGE_GROUPS:
        study.enrol(age, {"age": age})
        rewards = []
        for _ in range(5):
            decision = study.decide(age)
            expected = best_by_hand(age, rewards)
            actual = np.array([decision.probabilities[arm] for arm in environment.arms])
            np.testing.assert_allclose(actual, expected, atol=1e-8)
            largest = max(largest, np.abs(actual - best_by_hand(age, [])).max())
            reward = float(generator.uniform(0.3, 2.6))
            study.reward(decision.id, reward)
            rewards.append((environment.arms.index(decision.arm), reward))
    assert largest > 0.1


def informed(policy, environment, seed=0):
    return open_study(policy, environment, draw_world(environment, seed), 0).design.policy


def test_informed_policies_keep_their_other_settings():
    environment = find_environment("diet")
    assert informed(CoIDS(num_particles=7), environment) == CoIDS(
        num_particles=7, steps_per_user=environment.recruitment.steps_per_user
    )
    assert informed(CoIDS(steps_per_user=2), environment) == CoIDS(steps_per_user=2)
    assert informed(GIDS(num_particles=7), environment) == GIDS(num_particles=7)
    oracle = informed("oracle-ts", environment)
    # (r - 1.5) · 1 for a range of width four; the low metabolism likes plan 2 best.
    np.testing.assert_allclose(np.array(oracle.population.means)[0, :, 0], [-0.5, 1.0, -1.5])


@pytest.mark.parametrize(
    "given",
    [
        CoIDS(steps_per_user=2),
        GradBand(horizon=3),
        RobustAgg(horizon=40, dissimilarity=0.0),
        OraclePlan(PLAIN, steps_per_user=2),
        MTTS(coefficient_mean=0.3, coefficient_deviation=2.0, user_deviation=0.2, design=DESIGN),
    ],
)
def test_settings_that_were_given_stay(given):
    assert informed(given, find_environment("lmm")) == given


def test_settings_that_are_none_come_from_the_simulation():
    environment = find_environment("lmm")
    plan = environment.recruitment
    assert informed("gradband", environment).horizon == plan.steps_per_user
    assert informed("robustagg", environment).horizon == plan.num_steps
    half = informed(MTTS(user_deviation=0.2), environment)
    assert (half.user_deviation, half.design) == (0.2, environment.mixed_model["design"])


@pytest.mark.parametrize(
    ("none", "defaults"),
    [
        (GradBand(), GradBand(horizon=5)),
        (RobustAgg(), RobustAgg(horizon=1000)),
        (MTTS(), MTTS(coefficient_mean=0.0, coefficient_deviation=1.0, user_deviation=0.5)),
    ],
)
def test_outside_of_a_simulation_none_stands_for_the_documented_defaults(none, defaults):
    chosen = []
    for policy in (none, defaults):
        study = Study(["a", "b", "c"], {}, Gaussian(0, 10, noise=1.0), policy, seed=3)
        study.enrol("ann")
        for reward in (4.0, 6.0, 1.0, 8.0, 5.0, 3.0):
            decision = study.decide("ann")
            chosen.append(decision.probabilities)
            study.reward(decision.id, reward)
    assert chosen[:6] == chosen[6:]


def test_mixed_model_is_known_in_standardised_units():
    """Rewards of the environment span 6, and standardised ones 4."""
    environment = find_environment("lmm")
    mtts, truth = informed(MTTS(prior_users=3.0), environment), environment.mixed_model
    assert (mtts.design, mtts.prior_users) == (truth["design"], 3.0)
    for name in ("coefficient_mean", "coefficient_deviation", "user_deviation"):
        assert getattr(mtts, name) == pytest.approx(truth[name] * 4 / 6, rel=1e-12)
    assert informed("mtts", find_environment("diet")) == MTTS()


def test_population_is_in_the_units_of_the_range_in_use():
    """The same decisions in reward units, on the declared range and on one twice as wide."""
    environment = find_environment("diet")
    world = draw_world(environment, 0)
    decisions = []
    for rewards in (None, Gaussian(-3.0, 5.0, noise=NOISE)):
        study = open_study("oracle-ts", environment, world, 0, rewards)
        study.enrol("ann", {"age": "old"})
        study.reward(study.decide("ann").id, 1.2)
        decisions.append(study.decide("ann"))
    assert study.design.rewards.range == (-3.0, 5.0)
    np.testing.assert_allclose(
        *(list(decision.probabilities.values()) for decision in decisions), atol=1e-6
    )


def test_oracle_serves_two_runs_of_the_mixed_model_differently():
    """The coefficients differ between seeds, and so does what the oracle knows."""
    environment = find_environment("lmm")
    priors = [informed("oracle-ts", environment, seed).population for seed in (0, 0, 1)]
    assert priors[0] == priors[1] != priors[2]


def test_oracle_loses_little_on_its_own_population():
    """Twenty newcomers of the mixture, three decisions each: far less regret than chance."""
    totals = {}
    for policy in ("oracle-ts", "uniform"):
        run = simulate(policy, "mixture", 2)
        totals[policy] = sum(next(run).regret for _ in range(60))
    assert totals["oracle-ts"] < 0.35 * totals["uniform"]


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (None, r"the true population; got population=None. Give oracle-ts a Conditional"),
        (ZEROS, r"a population of 3 arms; got num_arms=2. Give a mean for every arm"),
        (PLAIN, r"Expected 4 terms for these features; got num_terms=2"),
    ],
)
def test_unfitting_population_is_refused(prior, message):
    diet = find_environment("diet")
    with pytest.raises(ConfigurationError, match=message):
        Study(diet.arms, diet.context, diet.rewards, OracleTS(prior), seed=0)


def test_features_on_another_range_are_refused():
    """Coefficients of a population are per standardised feature."""
    environment = find_environment("mixture").recruiting(Recruitment.all_at_once(2, 1))
    world = draw_world(environment, 0)
    environment.context = {"x": (0.0, 5.0)}
    with pytest.raises(ConfigurationError, match=r"continuous features on \(-1.0, 1.0\).*x=\(0.0"):
        open_study("oracle-ts", environment, world, 0)
