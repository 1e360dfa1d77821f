"""CoIDS with a known number of steps: its plan against loops, its limits, and its explanation."""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from cocobandits import CoIDS, Gaussian, LogDensity, Study
from cocobandits.numerics.reward_grid import RewardGrid
from cocobandits.policies.base import Problem
from cocobandits.policies.coco.acquisition import UserReadings, best_mixture
from cocobandits.policies.coco.coids import (
    CoInformationDirectedSampling,
    Outlook,
    PlannedInformationDirectedSampling,
    PlannedReading,
    sum_of_largest,
)
from cocobandits.populations.gaussian_belief import GaussianBelief
from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel
from cocobandits.populations.mixture import MixtureConfig, MixtureModel
from cocobandits.users.statistics import Statistics
from support.designs import small
from support.draws import one_of
from support.sessions import Session

NUM_PARTICLES, NUM_ARMS, NUM_VALUES, STEPS = 4, 3, 6, 5
RULE = PlannedInformationDirectedSampling(RewardGrid.even(0.0, 1.0, NUM_VALUES), STEPS, 0.7)
decide = jax.jit(RULE.combine)
motivate = jax.jit(RULE.rationales)


class Table(NamedTuple):
    """Of every particle: regret, the law of (best arm, reward) by pulled arm, means, and after."""

    regret: np.ndarray
    joint: np.ndarray
    mean: np.ndarray
    after: np.ndarray


def random_case(seed):
    """Draw a table of (particle, best arm, arm, reward), and means for each of its rewards."""
    generator = np.random.default_rng(seed)
    joint = generator.gamma(0.4, size=(NUM_PARTICLES, NUM_ARMS, NUM_ARMS, NUM_VALUES)) + 1e-6
    joint /= joint.sum(axis=(1, 3), keepdims=True)
    reward = joint.sum(axis=1)
    means = generator.normal(size=(NUM_PARTICLES, NUM_ARMS, NUM_ARMS, NUM_VALUES))
    # What an arm is expected to give must not depend on which arm is looked at.
    mean = generator.normal(size=(NUM_PARTICLES, NUM_ARMS))
    means += (mean[:, :, None] - np.einsum("pbav,pav->pba", means, reward))[..., None]
    regret = generator.exponential(size=(NUM_PARTICLES, NUM_ARMS))
    table = Table(regret, joint, mean, means * reward[:, None])
    return jnp.asarray(generator.normal(size=NUM_PARTICLES)), table


def evidence_of(log_weights, table, num_rewards=0.0):
    """Return given readings of every particle, and of the mixture of them."""
    weights = share_of(log_weights)
    reading = PlannedReading(
        *(jnp.asarray(part) for part in (table.joint.sum(axis=1), table.mean, table.after))
    )
    outlook = Outlook(
        jnp.asarray(weights @ table.regret), jnp.asarray(np.tensordot(weights, table.joint, 1))
    )
    return UserReadings(jnp.asarray(log_weights), reading, outlook, jnp.asarray(float(num_rewards)))


def rationales_of(log_weights, table, num_rewards=0.0):
    return motivate(evidence_of(log_weights, table, num_rewards))


def combine(log_weights, table, num_rewards=0.0):
    return decide(evidence_of(log_weights, table, num_rewards))


def share_of(log_weights):
    weights = np.exp(np.asarray(log_weights) - np.max(log_weights))
    return weights / weights.sum()


def plan_value(mean, after, steps_after):
    """Add up the best mean after each reward, arm by arm."""
    value = []
    for arm in range(NUM_ARMS):
        best = sum(
            max(after[other, arm, v] for other in range(NUM_ARMS)) for v in range(NUM_VALUES)
        )
        value.append(mean[arm] + steps_after * best)
    return np.array(value)


def plan_by_hand(log_weights, table, steps_after):
    weights = share_of(log_weights)
    mean, after = table.mean, table.after
    value = plan_value(weights @ mean, np.tensordot(weights, after, 1), steps_after)
    knowing = sum(
        weight * plan_value(mean[p], after[p], steps_after).max()
        for p, weight in enumerate(weights)
    )
    return value, knowing - value.max()


@pytest.mark.parametrize("num_rewards", [0, 2, 4, 5, 9])
@pytest.mark.parametrize("seed", range(4))
def test_choice_matches_loops(seed, num_rewards):
    log_weights, table = random_case(seed)
    value, worth = plan_by_hand(log_weights, table, max(STEPS - num_rewards, 1) - 1)
    assert worth > 0.01
    found = rationales_of(log_weights, table, num_rewards)
    expected = best_mixture(
        jnp.asarray(0.7 * worth + value.max() - value), jnp.asarray(found.about_population)
    )
    chosen = combine(log_weights, table, num_rewards)
    np.testing.assert_allclose(chosen, expected, atol=1e-9)
    plan = np.eye(NUM_ARMS)[value.argmax()]
    np.testing.assert_allclose(found.for_reward + found.for_person, plan, atol=1e-12)
    total = found.for_reward + found.for_person + found.for_population
    np.testing.assert_allclose(total, chosen, atol=1e-12)
    np.testing.assert_allclose(found.for_reward, np.eye(NUM_ARMS)[np.argmin(found.regret)])


@pytest.mark.parametrize("seed", range(3))
def test_informations_are_those_of_coids(seed):
    log_weights, table = random_case(seed)
    plain = CoInformationDirectedSampling(RULE.rewards, 0.7)
    evidence = evidence_of(log_weights, table)
    expected = plain.rationales(evidence._replace(each=evidence.each.predictions))
    found = rationales_of(log_weights, table)
    for name in ("regret", "about_person", "about_population"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_particle_held_twice_at_half_the_weight_changes_nothing(seed):
    log_weights, table = random_case(seed)
    log_weights = log_weights - jax.scipy.special.logsumexp(log_weights)
    order = np.array([0, 1, 2, 3, 1])
    split = log_weights[order] - math.log(2) * jnp.array([0.0, 1.0, 0.0, 0.0, 1.0])
    doubled = Table(*(part[order] for part in table))
    before = rationales_of(log_weights, table, 1)
    after = rationales_of(split, doubled, 1)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_known_population_leaves_the_plan(seed):
    """One particle: nothing to learn about it, and nothing is chosen for it."""
    log_weights, table = random_case(seed)
    alone = Table(*(part[:1] for part in table))
    value, worth = plan_by_hand(log_weights[:1], alone, STEPS - 1)
    assert worth == pytest.approx(0.0, abs=1e-12)
    chosen = combine(log_weights[:1], alone)
    np.testing.assert_allclose(chosen, np.eye(NUM_ARMS)[value.argmax()], atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_weight_zero_plans_for_this_user_alone(seed):
    log_weights, table = random_case(seed)
    rule = PlannedInformationDirectedSampling(RULE.rewards, STEPS, 0.0)
    value, _ = plan_by_hand(log_weights, table, STEPS - 1)
    chosen = rule.combine(evidence_of(log_weights, table))
    np.testing.assert_allclose(chosen, np.eye(NUM_ARMS)[value.argmax()], atol=1e-9)


def test_readings_match_the_closed_form_of_the_planner():
    """Expected best mean after one reward, for a belief that oracle-plan has it for."""
    generator = np.random.default_rng(4)
    roots = 0.3 * generator.normal(size=(2, 3, 3))
    belief = GaussianBelief(
        jnp.log(jnp.array([0.7, 0.3])),
        jnp.asarray(0.4 * generator.normal(size=(2, 3))),
        jnp.asarray(roots @ roots.transpose(0, 2, 1)),
        0.25,
    )
    rule = PlannedInformationDirectedSampling(RewardGrid.even(-5.0, 5.0, 801), STEPS)
    after = np.asarray(jax.jit(rule.read)(belief, rule.rewards.values()).after)
    expected = np.asarray(belief.expected_best_mean_after_one())
    print(f"\nbest mean after one reward {after.max(axis=0).sum(axis=1)}, closed form {expected}")
    np.testing.assert_allclose(after.max(axis=0).sum(axis=1), expected, atol=1e-4)


MODEL = LogDensityModel(LogDensityConfig(2, (), Axis(-1.0, 1.5, 4), reward_noise=0.4, num_modes=9))


def test_worth_of_the_population_is_never_negative_on_the_grid():
    """Who knows the particle plans better, whatever the user has said."""
    rule = PlannedInformationDirectedSampling(MODEL.reward_grid, 4, 1.0)
    particles = 2 * jax.random.normal(jax.random.key(3), (5, 9))
    log_weights = jnp.log(jnp.array([0.3, 0.3, 0.2, 0.1, 0.1]))
    read = jax.jit(
        jax.vmap(
            lambda p, statistics: rule.read(
                MODEL.posterior(p, jnp.zeros(0), statistics), rule.rewards.values()
            ),
            (0, None),
        )
    )
    for statistics in (
        Statistics.empty(2),
        Statistics.empty(2).add(0, 0.9),
        Statistics.empty(2).add(1, -0.8).add(0, 0.3),
    ):
        readings = read(particles, statistics)
        mean, after = np.asarray(readings.mean), np.asarray(readings.after)
        # Means after a reward average to the means before it.
        np.testing.assert_allclose(after.sum(axis=3), np.stack([mean, mean], axis=2), atol=2e-3)
        evidence = UserReadings(log_weights, readings, None, jnp.sum(statistics.count))
        loss, worth = rule._plan(evidence)
        assert float(worth) > 1e-4
        assert float(jnp.min(loss)) == 0.0


@pytest.mark.parametrize("steps", [None, 3])
def test_steps_per_user_choose_the_rule(steps):
    problem = Problem(2, (), (-2.0, 2.0), 0.2)
    built = Session(CoIDS(LogDensity(num_modes=5), steps_per_user=steps).build(problem))
    planned = PlannedInformationDirectedSampling
    assert isinstance(built.acquisition, planned) == (steps is not None)
    if steps is not None:
        assert built.acquisition.steps_per_user == steps


def test_the_last_step_earns_and_is_explained():
    """With one step per user and no weight on others, the best mean is chosen for reward."""
    grid = LogDensity(nodes_per_arm=5, num_modes=12)
    settings = small(
        "coids", population=grid, num_particles=20, steps_per_user=1, population_weight=0.0
    )
    study = Study(["a", "b", "c"], {"x": (0, 1)}, Gaussian(0.0, 40.0, noise=1.0), settings, seed=0)
    enrol = partial(study.enrol, context={"x": 0.4})
    enrol("anna")
    study.reward(study.decide("anna").id, 25.0)
    enrol("bob")
    explained = study.explain("bob").arms
    best = max(explained, key=lambda arm: explained[arm].mean)
    assert study.decide("bob").arm == best
    assert explained[best].rationale.for_reward == 1.0
    assert explained[best].rationale.for_person == explained[best].rationale.for_population == 0.0


MIXTURE = MixtureModel(MixtureConfig(3, (None,), rank=1, reward_noise=0.1))
SHARES = np.full(20, 1 / 20)
HISTORIES = {
    "nothing": [],
    "one reward": [(0, 0.4)],
    "three rewards": [(0, 0.4), (1, -0.3), (0, 0.5)],
}


def dense_plan(belief, rewards, steps_after):
    """Q of every arm under one particle, by sums over a fine grid of rewards, in double."""
    shares = np.exp(np.asarray(belief.log_weights, dtype=float))
    arms = belief.arms
    location, spread, loadings, noise = (
        np.asarray(part, dtype=float)
        for part in (arms.arms.location, arms.arms.spread, arms.loadings, arms.arms.noise)
    )
    covariance = spread[:, :, None] * np.eye(3) + loadings @ loadings.transpose(0, 2, 1)
    mean, joint = shares @ location, np.zeros((3, 3, len(rewards)))
    for share, m, v, sigma in zip(shares, location, covariance, noise, strict=True):
        for arm in range(3):
            variance = v[arm, arm] + sigma**2
            density = share * stats.norm.pdf(rewards, m[arm], math.sqrt(variance))
            for other in range(3):
                after = m[other] + v[other, arm] / variance * (rewards - m[arm])
                joint[other, arm] += density * after
    return mean, joint * (rewards[1] - rewards[0]), steps_after


@pytest.mark.parametrize("pulls", HISTORIES.values(), ids=HISTORIES)
def test_plan_is_that_of_a_fine_integral_over_all_rewards(pulls):
    """Rewards beyond the declared range count: components of a mixture reach there."""
    rule = PlannedInformationDirectedSampling(MIXTURE.reward_grid, 5, 1.0)
    particles = jax.random.normal(jax.random.key(5), (20, MIXTURE.num_parameters))
    statistics = Statistics.empty(3)
    for arm, reward in pulls:
        statistics = statistics.add(arm, reward)
    context, weights = jnp.array([0.3]), jnp.log(jnp.asarray(SHARES))

    @jax.jit
    def plan(particles, rewards=None):
        if rewards is None:
            rewards = rule.next_rewards(MIXTURE.average(particles, weights, context, statistics))
        each = jax.vmap(lambda p: rule.read(MIXTURE.posterior(p, context, statistics), rewards))
        readings = UserReadings(weights, each(particles), None, jnp.sum(statistics.count))
        return rule._plan(readings), readings.each

    (loss, worth), each = plan(particles)
    steps_after = 4 - len(pulls)
    beliefs = jax.vmap(MIXTURE.posterior, (0, None, None))(particles, context, statistics)
    fine = np.linspace(-30, 30, 60_001)
    dense = [dense_plan(one_of(beliefs, number), fine, steps_after) for number in range(20)]

    def value(mean, joint):
        return mean + steps_after * joint.max(axis=0).sum(axis=1)

    means, joints = (SHARES @ np.array([d[k] for d in dense]).reshape(20, -1) for k in (0, 1))
    together = value(means, joints.reshape(3, 3, -1))
    knowing = SHARES @ [value(mean, joint).max() for mean, joint, _ in dense]
    print(f"\nW = {float(worth):.5f}, exactly {knowing - together.max():.5f}; loss {loss}")
    assert knowing - together.max() > 0.05
    assert float(worth) == pytest.approx(knowing - together.max(), abs=7e-3)
    np.testing.assert_allclose(loss, together.max() - together, atol=7e-3)
    # Rewards of the declared range alone are not enough.
    (_, short), _ = plan(particles, jnp.linspace(-2.5, 2.5, 61))
    assert pulls or abs(float(short) - worth) > 0.1
    # Who looks ahead never plans worse than who plays the best mean to the end.
    for mean, after in zip(*map(np.asarray, (each.mean, each.after)), strict=True):
        found = np.asarray(rule._value(*map(jnp.asarray, (mean, after)), jnp.asarray(4.0)))
        assert np.all(found >= mean + 4.0 * mean.max() - 1e-6)


def test_the_largest_of_smooth_curves_is_integrated_to_third_order():
    """Two and three normal densities that cross, against a fine sum, at thirty steps."""
    for centres in ([0.0, 0.7], [-0.45, 0.3, 0.95]):

        def curves(points, centres=centres):
            return np.stack([stats.norm.pdf(points, c, 0.5 + 0.1 * c) for c in centres])[:, None]

        rough, fine = np.linspace(-5, 5, 61), np.linspace(-5, 5, 200_001)
        expected = curves(fine).max(axis=0).sum() * (fine[1] - fine[0])
        step = rough[1] - rough[0]
        found = float(sum_of_largest(jnp.asarray(curves(rough)))[0]) * step
        plain = curves(rough).max(axis=0).sum() * step
        print(f"\n{found - expected:.1e}, without kinks {plain - expected:.1e}")
        assert abs(found - expected) < 2e-4
        assert abs(found - expected) < 0.2 * abs(plain - expected)
