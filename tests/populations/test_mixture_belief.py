"""A belief that is a mixture of independent arms: dense algebra, integrals and draws."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mixture_oracles import (
    ByHand,
    best_and_reward_by_hand,
    laws_of,
    mutual_information,
    reordered,
)
from model_oracles import statistics_of
from scipy.integrate import quad
from scipy.stats import beta as beta_law

from cocobandits.populations.base import Belief
from cocobandits.populations.mixture.arms import GaussianArms
from cocobandits.populations.mixture.belief import MixtureBelief
from cocobandits.populations.mixture.beta_arms import BetaArms
from cocobandits.users.statistics import Statistics
from support.draws import draw_means

NOISE = 0.3
RANGE = (-1.5, 2.0)
OUTCOMES = jnp.array(RANGE)
# Fine enough to integrate densities as narrow as the noise to nine digits.
REWARDS = jnp.linspace(-6.0, 6.0, 241)
STEP = float(REWARDS[1] - REWARDS[0])


@functools.cache
def by_hand(num_arms, num_components=3, unevenness=0.4):
    """Draw lopsided components; deviations around 0.4, give or take a factor."""
    generator = np.random.default_rng(10 * num_arms + num_components)
    shape = (num_components, num_arms)
    return ByHand(
        generator.dirichlet(np.full(num_components, 2.0)),
        0.5 * generator.normal(size=shape),
        0.4 * np.exp(unevenness * generator.normal(size=shape)),
        np.zeros((*shape, 0)),
        NOISE,
    )


def belief_of(hand):
    noise = jnp.full(len(hand.weights), float(hand.noise))
    arms = GaussianArms(jnp.asarray(hand.means), jnp.asarray(hand.spreads**2), noise)
    return MixtureBelief(jnp.log(hand.weights), arms)


@functools.cache
def chances(num_arms, num_components=2):
    """Draw components of chances worth some ten earlier pulls."""
    generator = np.random.default_rng(num_arms)
    alpha, failures = generator.gamma(2.0, 3.0, size=(2, num_components, num_arms)) + 0.6
    weights = jnp.log(generator.dirichlet(np.full(num_components, 2.0)))
    return MixtureBelief(weights, BetaArms(jnp.asarray(alpha), jnp.asarray(failures), RANGE))


VALUES = jnp.linspace(-1.4, 1.9, 7)
GIVEN = ([0.2, 0.9, -0.4], [], [0.6])


@jax.jit
def ask(belief):
    return laws_of(belief, VALUES) | {
        "pair": belief.pair_probability(2, 0, VALUES),
        "after": belief.mean_and_reward(VALUES),
    }


ask_best = jax.jit(lambda belief: (belief.best_probability(), belief.expected_best()))
best_and_reward = jax.jit(lambda belief, rewards: belief.best_and_reward(rewards))


@pytest.mark.parametrize("rewards", [([], [], []), GIVEN], ids=["newcomer", "known"])
def test_answers_are_those_of_dense_covariances(rewards):
    """The belief of `GaussianBelief` with diagonal covariances, component by component."""
    hand, statistics = by_hand(3), statistics_of(rewards)
    sparse, dense = (each.condition(statistics) for each in (belief_of(hand), hand.belief()))
    np.testing.assert_allclose(sparse.log_weights, dense.log_weights, atol=1e-10)
    np.testing.assert_allclose(sparse.arms.location, dense.means, atol=1e-10)
    found, expected = ask(sparse), ask(dense)
    for name in found:
        # Bins of two arms are a sum of twenty terms there.
        atol = 1e-8 if name == "pair" else 1e-10
        np.testing.assert_allclose(found[name], expected[name], atol=atol, err_msg=name)
    for one, other in zip(ask_best(sparse), ask_best(dense), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert float(sparse.reward_noise) == pytest.approx(NOISE)


def test_order_of_rewards_does_not_matter_and_withdrawn_ones_leave_no_trace():
    belief = belief_of(by_hand(3))
    pulls = [(0, 0.2), (2, 0.6), (0, 0.9), (1, -0.8), (0, -0.4)]
    together = ask(belief.condition(statistics_of(([0.2, 0.9, -0.4], [-0.8], [0.6]))))
    for order in itertools.islice(itertools.permutations(pulls), 0, 120, 37):
        step_by_step = belief
        for arm, reward in order:
            step_by_step = step_by_step.condition(Statistics.empty(3).add(arm, reward))
        found = ask(step_by_step)
        for name in together:
            np.testing.assert_allclose(found[name], together[name], atol=1e-11, err_msg=name)
    withdrawn = statistics_of(([0.2, 0.9, -0.4], [-0.8], [0.6])).remove(1, -0.8)
    never = ask(belief.condition(statistics_of(GIVEN)))
    found = ask(belief.condition(withdrawn))
    for name in never:
        np.testing.assert_allclose(found[name], never[name], atol=1e-12, err_msg=name)
    assert np.abs(np.asarray(together["mean"] - never["mean"])).max() > 0.05


def test_belief_has_the_law_of_draws():
    """Types first, then arms: 200,000 draws of means, squares, products and who is best."""
    for belief in (belief_of(by_hand(3)), chances(3)):
        draws = draw_means(belief, 2, 200_000)
        best, expected_best = ask_best(belief)
        is_best = draws == draws.max(axis=1, keepdims=True)
        pair = np.asarray(belief.pair_probability(0, 1, jnp.array([-9.0, 0.1, 9.0])))
        for values, expected in (
            (draws, belief.mean()),
            (draws**2, belief.variance() + belief.mean() ** 2),
            (draws.max(axis=1), expected_best),
            (is_best.astype(float), best),
            (((draws[:, 0] <= 0.1) & (draws[:, 1] > 0.1)).astype(float), pair[0, 1]),
        ):
            errors = values.std(axis=0) / math.sqrt(len(values))
            assert np.all(np.abs(values.mean(axis=0) - np.asarray(expected)) < 4 * errors)


@pytest.mark.parametrize(
    ("num_arms", "num_components", "unevenness", "share", "nats"),
    [
        # Mixtures as particles make them: rewards tell components apart.
        (3, 40, 0.4, 0.015, 0.002),
        (5, 40, 0.4, 0.015, 0.002),
        (5, 40, 0.8, 0.015, 0.003),
        # A few components, and one alone, within which the joint law is not exact.
        (3, 3, 0.4, 0.03, 0.005),
        (10, 3, 0.4, 0.03, 0.005),
        (10, 1, 0.4, 0.1, 0.02),
    ],
)
def test_information_about_the_best_arm_is_that_of_an_integral(
    num_arms, num_components, unevenness, share, nats
):
    """I(A*; r_a), within a share of it or so many nats."""
    hand = by_hand(num_arms, num_components, unevenness)
    # The widest arm, at four deviations and the noise.
    reach = 4.5 * float(hand.spreads.max()) + 3
    rewards = np.linspace(-reach, reach, 121)
    exact = mutual_information(best_and_reward_by_hand(hand, rewards))
    found = mutual_information(np.asarray(best_and_reward(belief_of(hand), jnp.asarray(rewards))))
    off = np.abs(found - exact)
    print(
        f"\n{num_arms} arms, {num_components} components, unevenness {unevenness}: off by "
        f"{off.max():.4f} nats, {np.max(off / np.maximum(exact, 0.02)):.1%} of at least 0.02"
    )
    assert np.all(off < np.maximum(share * exact, nats))
    assert exact.max() > 0.05


@pytest.mark.parametrize(
    ("spreads", "noise", "nats"), [((1.5, 0.3, 0.3), 0.1, 0.561), ((0.3, 0.02, 0.02), 0.02, 0.595)]
)
def test_information_of_an_untested_arm_among_tested_ones(spreads, noise, nats):
    """One component, one wide arm: what the best rival varies by decides, not the best of all."""
    means, spreads = np.array([[0.1, 0.0, 0.2]]), np.array([spreads])
    hand = ByHand(np.ones(1), means, spreads, np.zeros((1, 3, 0)), noise)
    rewards = np.linspace(-8 * spreads.max(), 8 * spreads.max(), 2401)
    exact = mutual_information(best_and_reward_by_hand(hand, rewards))
    found = mutual_information(np.asarray(best_and_reward(belief_of(hand), jnp.asarray(rewards))))
    print(f"\nI(A*; r) = {found}, exactly {exact}")
    assert exact[0] == pytest.approx(nats, abs=1e-3)
    np.testing.assert_allclose(found, exact, atol=0.035)
    assert found[0] == pytest.approx(exact[0], abs=5e-3)


@pytest.mark.parametrize("decay", [0.9, 0.99, 0.9999])
def test_light_types_do_not_matter(decay):
    """Weights that fall off fast, slowly and not at all, in no order, against the plain sum."""
    arms = belief_of(by_hand(3, 400)).arms
    weights = np.random.default_rng(1).permutation(decay ** np.arange(400))
    weights /= weights.sum()
    belief, contest = MixtureBelief(jnp.log(weights), arms), arms.contest()
    expected = weights @ np.asarray(contest.best_probability)
    found = jax.jit(lambda b: (b.best_probability(), b.expected_best(), b.best_outlook(REWARDS)))
    wins, best, (same_best, joint) = found(belief)
    np.testing.assert_allclose(wins, expected, atol=1e-6)
    assert float(best) == pytest.approx(float(weights @ contest.mean), abs=1e-6)
    assert float(same_best) == float(best)
    np.testing.assert_allclose(jnp.sum(joint, axis=2)[:, 0] * STEP, expected, atol=1e-3)


@pytest.mark.parametrize("kind", ["normal", "chances"])
def test_a_belief_in_single_precision_stays_in_it(kind):
    belief = belief_of(by_hand(3)) if kind == "normal" else chances(3)
    lighter = jax.tree.map(lambda part: part.astype(jnp.float32), belief)
    after = lighter.condition(statistics_of(GIVEN))
    assert {part.dtype for part in jax.tree.leaves(after)} == {np.dtype("float32")}


@pytest.mark.parametrize("num_arms", [2, 3, 5, 10])
def test_margins_of_the_joint(num_arms):
    """Sums over who is best are the predictive, sums over rewards who is best."""
    belief = belief_of(by_hand(num_arms))
    joint = np.asarray(best_and_reward(belief, REWARDS))
    assert joint.min() >= 0
    np.testing.assert_allclose(joint.sum(axis=0), belief.predictive(REWARDS), atol=1e-12)
    best = np.asarray(belief.best_probability())
    totals = joint.sum(axis=2) * STEP
    print(f"\n{num_arms} arms: best arm's margin off by {np.abs(totals - best[:, None]).max():.1e}")
    np.testing.assert_allclose(totals, np.tile(best[:, None], num_arms), atol=2e-3)


def test_an_arm_that_surely_wins_or_loses_leaves_no_nonsense():
    """In single precision, spreads from 0.003 to 30: nothing negative, infinite or lost."""
    generator = np.random.default_rng(5)
    means, spreads = (
        generator.normal(size=(80, 6)),
        0.3 * np.exp(2 * generator.normal(size=(80, 6))),
    )
    arms = GaussianArms(*map(jnp.float32, (means, spreads**2, np.full(80, 0.2))))
    belief = MixtureBelief(jnp.full(80, -math.log(80), dtype=jnp.float32), arms)
    joint = np.asarray(best_and_reward(belief, REWARDS))
    assert joint.min() >= 0
    np.testing.assert_allclose(joint.sum(axis=0), belief.predictive(REWARDS), atol=1e-6)
    double = jax.tree.map(lambda part: part.astype(float), belief)
    np.testing.assert_allclose(joint, best_and_reward(double, REWARDS), atol=1e-4)


def success_by_hand(belief, best, pulled):
    """Integrate E[chance of the pulled arm; another is best] over the best one's chance."""
    alpha, failures = (np.asarray(part) for part in (belief.arms.successes, belief.arms.failures))
    total = 0.0
    for weight, a, b in zip(np.exp(belief.log_weights), alpha, failures, strict=True):
        others = [o for o in range(len(a)) if o not in (best, pulled)]

        def inner(p, a=a, b=b, others=others):
            below = math.prod(beta_law.cdf(p, a[o], b[o]) for o in others)
            if best == pulled:
                return p * beta_law.pdf(p, a[best], b[best]) * below
            # E[chance; it is below p] = mean · P(Beta(α + 1, β) below p).
            held = a[pulled] / (a[pulled] + b[pulled])
            held *= beta_law.cdf(p, a[pulled] + 1, b[pulled])
            return beta_law.pdf(p, a[best], b[best]) * below * held

        total += weight * quad(inner, 0, 1, points=[a[best] / (a[best] + b[best])], limit=200)[0]
    return total


@pytest.mark.parametrize("num_arms", [2, 3])
def test_joint_of_chances_matches_quadrature(num_arms):
    """Whether the pulled arm succeeds, together with who is best, to two digits."""
    belief = chances(num_arms)
    joint = np.asarray(best_and_reward(belief, OUTCOMES))
    for best, pulled in itertools.product(range(num_arms), repeat=2):
        expected = success_by_hand(belief, best, pulled)
        assert joint[best, pulled, 1] == pytest.approx(expected, abs=6e-3)
    np.testing.assert_allclose(joint.sum(axis=0), belief.predictive(OUTCOMES), atol=1e-9)
    best = np.asarray(belief.best_probability())
    np.testing.assert_allclose(joint.sum(axis=2), np.tile(best[:, None], num_arms), atol=6e-3)


@pytest.mark.parametrize("kind", ["normal", "chances"])
def test_quantiles_can_be_read_off_the_values(kind):
    """The ends of 90 % intervals, interpolated, against 400,000 draws; in both precisions."""
    belief = belief_of(by_hand(3)) if kind == "normal" else chances(3)
    draws = draw_means(belief, 5, 400_000)
    expected = np.quantile(draws, [0.05, 0.95], axis=0).T
    for each in (belief, jax.tree.map(lambda part: part.astype(jnp.float32), belief)):
        values = np.asarray(each.values())
        assert np.all(np.diff(values) >= 0)
        cumulative = np.asarray(jax.jit(lambda b, v: b.cumulative(v))(each, jnp.asarray(values)))
        found = np.array([np.interp([0.05, 0.95], row, values) for row in cumulative])
        assert np.abs(found - expected).max() < 0.03 * draws.std(axis=0).max()


@pytest.mark.parametrize("kind", ["normal", "chances"])
def test_single_precision_is_enough_for_the_outlook(kind):
    belief = belief_of(by_hand(4)) if kind == "normal" else chances(4)
    rewards = REWARDS if kind == "normal" else OUTCOMES
    lighter = jax.tree.map(lambda part: part.astype(jnp.float32), belief)
    assert float(jnp.sum(lighter.best_probability())) == pytest.approx(1.0, abs=1e-12)
    outlook = jax.jit(lambda b: b.best_outlook(rewards))
    for found, exact in zip(outlook(lighter), outlook(belief), strict=True):
        np.testing.assert_allclose(found, exact, atol=1e-4)


@pytest.mark.parametrize("kind", ["normal", "chances"])
def test_means_after_a_reward_are_those_of_conditioning(kind):
    """The slow way of the base class: learn from every reward of every arm in turn."""
    belief = belief_of(by_hand(4)) if kind == "normal" else chances(4)
    rewards = REWARDS[::20] if kind == "normal" else OUTCOMES
    found = jax.jit(lambda b: b.mean_and_reward(rewards))(belief)
    expected = jax.jit(lambda b: Belief.mean_and_reward(b, rewards))(belief)
    np.testing.assert_allclose(found, expected, atol=1e-8 if kind == "chances" else 1e-11)


def test_components_can_be_merged_and_permuted():
    """A component held twice at half the weight, and arms under other numbers."""
    belief, order = belief_of(by_hand(4)), np.array([2, 0, 3, 1])
    again = jax.tree.map(lambda part: jnp.concatenate([part, part]), belief)
    twice = MixtureBelief(again.log_weights - math.log(2), again.arms)
    permuted = MixtureBelief(belief.log_weights, reordered(belief.arms, order))
    joint = np.asarray(best_and_reward(belief, REWARDS))
    np.testing.assert_allclose(best_and_reward(twice, REWARDS), joint, atol=1e-12)
    expected = joint[np.ix_(order, order)]
    np.testing.assert_allclose(best_and_reward(permuted, REWARDS), expected, atol=1e-12)
    np.testing.assert_allclose(
        permuted.best_probability(), np.asarray(belief.best_probability())[order], atol=1e-12
    )
