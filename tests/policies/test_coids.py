"""CoIDS: its two informations against enumeration, their invariants, and its explanation."""

import itertools
import math
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cocobandits import CoIDS, Gaussian, LogDensity, Study
from cocobandits.errors import ConfigurationError
from cocobandits.numerics.reward_grid import RewardGrid
from cocobandits.policies.base import Problem
from cocobandits.policies.coco.acquisition import UserReadings, best_mixture
from cocobandits.policies.coco.coids import CoInformationDirectedSampling, Outlook, greedy
from cocobandits.policies.coco.policy import CocoPolicy
from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel
from cocobandits.users.statistics import Statistics
from support.designs import small
from support.draws import draw_means

RULE = CoInformationDirectedSampling(RewardGrid.even(0.0, 1.0, 5), 0.7)
# How many rewards a user has given does not matter here.
NONE_YET = jnp.zeros(())
NUM_PARTICLES, NUM_ARMS, NUM_VALUES = 4, 3, 5
decide = jax.jit(RULE.combine)
motivate = jax.jit(RULE.rationales)


class Table(NamedTuple):
    """Regret (particle, arm), and the law of (best arm, reward) by particle and pulled arm."""

    regret: np.ndarray
    joint: np.ndarray


def table_from(regret, joint):
    """Make the joint a distribution for every particle and arm."""
    joint = np.asarray(joint, dtype=float)
    return Table(np.asarray(regret), joint / joint.sum(axis=(1, 3), keepdims=True))


def evidence_of(log_weights, table):
    """Sum over the best arm for each particle, and over particles for all of them together."""
    weights = share_of(log_weights)
    outlook = Outlook(
        jnp.asarray(weights @ table.regret), jnp.asarray(np.tensordot(weights, table.joint, 1))
    )
    each = jnp.asarray(table.joint.sum(axis=1))
    return UserReadings(jnp.asarray(log_weights), each, outlook, NONE_YET)


def rationales_of(log_weights, table):
    return motivate(evidence_of(log_weights, table))


def combine(log_weights, table):
    return decide(evidence_of(log_weights, table))


def random_case(seed):
    generator = np.random.default_rng(seed)
    joint = generator.gamma(0.4, size=(NUM_PARTICLES, NUM_ARMS, NUM_ARMS, NUM_VALUES)) + 1e-6
    regret = generator.exponential(size=(NUM_PARTICLES, NUM_ARMS))
    return jnp.asarray(generator.normal(size=NUM_PARTICLES)), table_from(regret, joint)


def share_of(log_weights):
    weights = np.exp(np.asarray(log_weights) - np.max(log_weights))
    return weights / weights.sum()


def enumerate_information(log_weights, table):
    """Compute I(A*; r_a) and I(f; r_a) from the table of (particle, best arm, reward), by loops."""
    weights, joint = share_of(log_weights), table.joint
    about_person, about_population = np.zeros(NUM_ARMS), np.zeros(NUM_ARMS)
    for arm in range(NUM_ARMS):
        triples = weights[:, None, None] * joint[:, :, arm, :]
        for first, information in ((1, about_person), (0, about_population)):
            # Entropies of the two parts, less that of the pair.
            pair = triples.sum(axis=1 - first)
            entropy = [
                -sum(p * math.log(p) for p in part.ravel() if p > 0)
                for part in (pair.sum(axis=1), pair.sum(axis=0), pair)
            ]
            information[arm] = entropy[0] + entropy[1] - entropy[2]
    return about_person, about_population


@pytest.mark.parametrize("seed", range(5))
def test_informations_match_enumeration(seed):
    """Four particles, three arms, five rewards: all terms of both mutual informations."""
    log_weights, table = random_case(seed)
    found = rationales_of(log_weights, table)
    about_person, about_population = enumerate_information(log_weights, table)
    np.testing.assert_allclose(found.about_person, about_person, atol=1e-12)
    np.testing.assert_allclose(found.about_population, about_population, atol=1e-12)
    np.testing.assert_allclose(found.regret, share_of(log_weights) @ table.regret, rtol=1e-12)
    assert min(about_person.min(), about_population.min()) > 0.01


def test_arms_that_tie_share_the_probability_of_a_greedy_choice():
    np.testing.assert_allclose(greedy(jnp.array([0.3, 0.1, 0.1])), [0, 0.5, 0.5])
    np.testing.assert_allclose(greedy(jnp.zeros(4)), np.full(4, 0.25))
    np.testing.assert_allclose(greedy(jnp.array([0.2, 0.1, 0.1 + 1e-9])), [0, 1, 0])


# Many zeros, so that impossible rewards and arms that are never best are common.
numbers = st.one_of(st.just(0.0), st.floats(1e-8, 1.0))


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    hnp.arrays(float, NUM_PARTICLES, elements=st.floats(-40, 40)),
    hnp.arrays(float, (NUM_PARTICLES, NUM_ARMS, NUM_ARMS, NUM_VALUES), elements=numbers),
)
def test_informations_are_never_negative_and_bounded(log_weights, joint):
    """Nobody learns more than there is to know: the entropy of A*, and that of the weights."""
    joint[..., 0] += 1e-9
    table = table_from(np.zeros((NUM_PARTICLES, NUM_ARMS)), joint)
    found = rationales_of(log_weights, table)
    assert np.all(np.asarray(found.about_person) >= 0)
    assert np.all(np.asarray(found.about_population) >= 0)
    assert np.all(np.asarray(found.about_person) <= math.log(NUM_ARMS) + 1e-9)
    weights = share_of(log_weights)
    entropy = -sum(w * math.log(w) for w in weights if w > 0)
    assert np.all(np.asarray(found.about_population) <= entropy + 1e-9)
    about_person, about_population = enumerate_information(log_weights, table)
    np.testing.assert_allclose(found.about_person, about_person, atol=1e-9)
    np.testing.assert_allclose(found.about_population, about_population, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_particle_held_twice_at_half_the_weight_changes_nothing(seed):
    """So nothing depends on copies that resampling leaves, nor on the order of particles."""
    log_weights, table = random_case(seed)
    log_weights = log_weights - jax.scipy.special.logsumexp(log_weights)
    order = np.array([0, 1, 2, 3, 1])
    split = log_weights[order] - math.log(2) * jnp.array([0.0, 1.0, 0.0, 0.0, 1.0])
    doubled = Table(*(part[order] for part in table))
    before, after = rationales_of(log_weights, table), rationales_of(split, doubled)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-12)


def test_nothing_is_learned_where_all_agree():
    """The same law under every particle, and rewards that do not depend on who is best."""
    best, reward = np.array([0.2, 0.5, 0.3]), np.array([0.1, 0.4, 0.2, 0.2, 0.1])
    joint = np.tile(np.multiply.outer(best, reward)[:, None, :], (NUM_PARTICLES, 1, NUM_ARMS, 1))
    found = rationales_of(jnp.arange(4.0), table_from(np.ones((NUM_PARTICLES, NUM_ARMS)), joint))
    np.testing.assert_allclose(found.about_person, 0.0, atol=1e-14)
    np.testing.assert_allclose(found.about_population, 0.0, atol=1e-14)


def test_a_single_particle_has_nothing_to_learn_about_the_population():
    log_weights, table = random_case(2)
    alone = Table(*(part[:1] for part in table))
    found = rationales_of(log_weights[:1], alone)
    np.testing.assert_allclose(found.about_population, 0.0, atol=1e-14)
    np.testing.assert_allclose(found.for_population, 0.0, atol=1e-9)
    assert np.all(np.asarray(found.about_person) > 0.01)


@pytest.mark.parametrize("seed", range(8))
def test_probabilities_are_the_best_of_a_fine_search(seed):
    """Search all mixtures of three arms on a grid of 1/200."""
    log_weights, table = random_case(seed)
    found = rationales_of(log_weights, table)
    gain = np.asarray(found.about_person) + 0.7 * np.asarray(found.about_population)
    regret = np.asarray(found.regret)
    steps = itertools.product(range(201), repeat=3)
    simplex = np.array([point for point in steps if sum(point) == 200]) / 200
    ratios = (simplex @ regret) ** 2 / (simplex @ gain)
    probabilities = combine(log_weights, table)
    chosen = np.asarray(probabilities)
    ratio = (chosen @ regret) ** 2 / (chosen @ gain)
    assert ratio <= ratios.min() + 1e-10
    assert ratio >= ratios.min() - 0.01 * (1 + ratios.min())
    assert np.count_nonzero(np.asarray(probabilities)) <= 2


@pytest.mark.parametrize("seed", range(8))
def test_rationales_sum_to_the_probabilities(seed):
    log_weights, table = random_case(seed)
    found = rationales_of(log_weights, table)
    total = found.for_reward + found.for_person + found.for_population
    np.testing.assert_allclose(total, combine(log_weights, table), atol=1e-12)
    # Reward alone would choose the arm of least regret, and nothing is moved on balance.
    assert int(np.argmax(found.for_reward)) == int(np.argmin(found.regret))
    np.testing.assert_allclose(found.for_reward.sum(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.for_person.sum(), 0.0, atol=1e-12)
    np.testing.assert_allclose(found.for_population.sum(), 0.0, atol=1e-12)


MODEL = LogDensityModel(LogDensityConfig(2, (), Axis(-1.0, 1.5, 4), reward_noise=0.4, num_modes=9))


def read_all(rule, particles, log_weights, statistics):
    """Read every particle, and the mixture of them all."""
    rewards = rule.rewards.values()

    @jax.jit
    def read(particles, log_weights):
        each = jax.vmap(lambda p: rule.read(MODEL.posterior(p, jnp.zeros(0), statistics), rewards))
        belief = MODEL.average(particles, log_weights, jnp.zeros(0), statistics)
        return each(particles), rule.read_together(belief, rewards)

    num_rewards = jnp.sum(statistics.count)
    return UserReadings(log_weights, *read(particles, log_weights), num_rewards)


def test_without_the_population_it_is_ids_on_the_mixture():
    """Ask the particles one by one, average with numpy, and run ordinary IDS on that."""
    rule = CoInformationDirectedSampling(MODEL.reward_grid, 0.0)
    particles = 2 * jax.random.normal(jax.random.key(3), (4, 9))
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    statistics = Statistics.empty(2).add(0, 0.2)
    evidence = read_all(rule, particles, jnp.log(weights), statistics)

    @jax.jit
    def ask(parameters):
        belief = MODEL.posterior(parameters, jnp.zeros(0), statistics)
        regret = belief.expected_best() - belief.mean()
        return belief.best_and_reward(rule.rewards.values()), regret

    joints, regrets = zip(*map(ask, particles), strict=True)
    regret = weights @ np.array(regrets)
    joint = np.tensordot(weights, np.array(joints), 1)
    joint = joint / joint.sum(axis=(0, 2), keepdims=True)
    best, reward = joint.sum(axis=2), joint.sum(axis=0)
    gain = (joint * np.log(joint / (best[:, :, None] * reward[None]))).sum(axis=(0, 2))
    found = jax.jit(rule.rationales)(evidence)
    np.testing.assert_allclose(found.regret, regret, atol=1e-12)
    np.testing.assert_allclose(found.about_person, gain, atol=1e-8)
    expected = best_mixture(jnp.asarray(regret), jnp.asarray(gain))
    np.testing.assert_allclose(rule.combine(evidence), expected, atol=1e-6)
    np.testing.assert_allclose(found.for_population, 0.0, atol=1e-15)
    # The population would have counted.
    assert np.all(np.asarray(found.about_population) > 1e-3)


def test_informations_match_monte_carlo():
    """Draw particles, arm means and rewards; estimate both informations from counts in 12 bins.

    Bins can only lose information, and 12 of them lose little where noise is wide.
    """
    rule = CoInformationDirectedSampling(MODEL.reward_grid, 1.0)
    particles = 2 * jax.random.normal(jax.random.key(3), (4, 9))
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    statistics = Statistics.empty(2).add(0, 0.2)
    evidence = read_all(rule, particles, jnp.log(weights), statistics)
    found = jax.jit(rule.rationales)(evidence)
    posterior = jax.jit(lambda p: MODEL.posterior(p, jnp.zeros(0), statistics))
    generator = np.random.default_rng(0)
    bins = np.linspace(-2.6, 3.1, 13)
    tables = np.zeros((2, 4, 2, 12))
    for number, weight in enumerate(weights):
        means = draw_means(posterior(particles[number]), number, 200_000)
        best = np.argmax(means, axis=1)
        shown = means + 0.4 * generator.normal(size=means.shape)
        for arm, winner in itertools.product(range(2), range(2)):
            counts, _ = np.histogram(shown[best == winner, arm], bins=bins)
            tables[arm, number, winner] = weight * counts / len(means)

    def information(pair):
        independent = np.multiply.outer(pair.sum(axis=1), pair.sum(axis=0))
        return np.sum(pair * np.log(np.maximum(pair, 1e-300) / np.maximum(independent, 1e-300)))

    person = np.array([information(table.sum(axis=0)) for table in tables])
    population = np.array([information(table.sum(axis=1)) for table in tables])
    print(f"\nnats about the user {found.about_person} against {person} in bins")
    print(f"nats about the population {found.about_population} against {population} in bins")
    for actual, binned in ((found.about_person, person), (found.about_population, population)):
        ratio = binned / np.asarray(actual)
        assert np.all((ratio > 0.9) & (ratio < 1.005))


GRID = LogDensity(nodes_per_arm=5, num_modes=12)


def served_study(policy="coids", grid=GRID) -> Study:
    settings = small(policy, population=grid, num_particles=20)
    study = Study(["a", "b", "c"], {"x": (0, 1)}, Gaussian(0.0, 40.0, noise=1.0), settings, seed=0)
    for user, x in (("anna", 0.2), ("bob", 0.9)):
        study.enrol(user, {"x": x})
    study.reward(study.decide("anna").id, 25.0)
    study.reward(study.decide("bob").id, 12.0)
    return study


def test_explanation_prints_what_is_believed_and_why_it_is_chosen():
    # In 64 bits, since regret comes from the mixture of particles and means from each of them.
    study = served_study(grid=replace(GRID, precision="double"))
    explained = study.explain("anna")
    lines = str(explained).splitlines()
    assert len(lines) == 1 + 3 + 3 + 3
    assert words_of(lines[0]) >= {"mean", "P(best)", "noise", "person", "population", "total"}
    assert "information (nats)" in lines[5]
    assert words_of(lines[6]) >= {"loss", "user", "population", "reward", "later"}
    assert [line.split()[0] for line in lines[7:]] == ["a", "b", "c"]
    probabilities = study.decide("anna").probabilities
    for arm, row in zip(explained.arms, lines[7:], strict=True):
        rationale = explained.arms[arm].rationale
        assert rationale.probability == pytest.approx(probabilities[arm], abs=1e-9)
        assert float(row.split()[4]) == pytest.approx(probabilities[arm], abs=6e-4)
        assert min(rationale.regret, rationale.about_person, rationale.about_population) >= 0
    # Regret is in units of reward: the arm of the best mean has the smallest.
    means = {arm: explained.arms[arm].mean for arm in explained.arms}
    regrets = {arm: explained.arms[arm].rationale.regret for arm in explained.arms}
    best, worst = max(means, key=means.get), min(means, key=means.get)
    assert regrets[worst] - regrets[best] == pytest.approx(means[best] - means[worst], rel=1e-9)


def words_of(line):
    return set(line.split())


def test_policies_that_weigh_no_information_give_no_rationale():
    explained = served_study(policy="npm-ts").explain("anna")
    assert all(arm.rationale is None for arm in explained.arms.values())
    assert len(str(explained).splitlines()) == 4


@pytest.mark.parametrize("weight", [-0.1, math.nan, math.inf])
def test_weight_of_the_population_is_validated(weight):
    with pytest.raises(ConfigurationError, match=r"number of at least 0; got population_weight="):
        CoIDS(population_weight=weight)


def test_weight_of_the_population_reaches_the_acquisition():
    problem = Problem(2, (), (-2.0, 2.0), 0.2)
    for weight in (0.0, 0.25, 3.0):
        built = CoIDS(LogDensity(num_modes=5), population_weight=weight).build(problem)
        assert isinstance(built, CocoPolicy)
        assert built.acquisition.population_weight == weight
