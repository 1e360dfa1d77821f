"""What every belief says of some of its arms, and what several beliefs say when they are mixed."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_examples import CONTEXT, HIGH, KINDS, LOG_WEIGHTS, LOW, example

from cocobandits.users.statistics import Statistics
from support.draws import draw_means

SUBSETS = ((0, 1), (0, 2), (1, 2))
VALUES = jnp.array([-0.9, -0.35, 0.15, 0.4, 0.7, 1.2])
NEXT_REWARDS = jnp.array([LOW, 0.2, HIGH])
NUM_DRAWS = 200_000

among = jax.jit(lambda belief, arms: belief.among(arms))
blend = jax.jit(lambda beliefs, log_shares: beliefs.blended(log_shares))
learn = jax.jit(lambda belief, statistics: belief.condition(statistics))


@functools.cache
def belief_of(kind, number=0):
    model, particles, early, _ = example(kind)
    return jax.jit(model.posterior)(particles[number], CONTEXT, early)


@jax.jit
def ask(belief):
    """Ask for what is linear in the belief."""
    return {
        "mean": belief.mean(),
        "best": belief.best_probability(),
        "expected_best": belief.expected_best(),
        "cumulative": belief.cumulative(VALUES),
        "predictive": belief.predictive(NEXT_REWARDS),
        "after": belief.mean_and_reward(NEXT_REWARDS),
        "pair": belief.pair_probability(0, 1, VALUES),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_best_among_some_arms_is_counted_among_draws(kind):
    """Leave the other arms out of 200,000 draws; that is not to share out their chances."""
    belief = belief_of(kind)
    draws = draw_means(belief, 7, NUM_DRAWS)
    best, distances = np.asarray(belief.best_probability()), []
    for arms in SUBSETS:
        some = ask(among(belief, jnp.asarray(arms)))
        found = np.asarray(some["best"])
        assert found.shape == (2,)
        wins = np.argmax(draws[:, arms], axis=1)
        share = np.mean(wins == 0)
        error = math.sqrt(share * (1 - share) / NUM_DRAWS)
        assert abs(found[0] - share) < 4 * error
        assert found.sum() == pytest.approx(1.0, abs=1e-12)
        highest = draws[:, arms].max(axis=1)
        error = highest.std() / math.sqrt(NUM_DRAWS)
        assert abs(float(some["expected_best"]) - highest.mean()) < 4 * error
        masked = best[list(arms)] / best[list(arms)].sum()
        distances.append(np.abs(found - masked).max())
    assert max(distances) > 0.02


@pytest.mark.parametrize("arms", SUBSETS)
@pytest.mark.parametrize("kind", KINDS)
def test_some_arms_have_the_law_they_have_among_all(kind, arms):
    belief = belief_of(kind)
    every, some = ask(belief), ask(among(belief, jnp.asarray(arms)))
    chosen = np.array(arms)
    for name in ("mean", "cumulative", "predictive"):
        np.testing.assert_allclose(some[name], every[name][chosen], atol=1e-12, err_msg=name)
    np.testing.assert_allclose(some["after"], every["after"][np.ix_(chosen, chosen)], atol=1e-10)
    pair = jax.jit(lambda each: each.pair_probability(*arms, VALUES))(belief)
    np.testing.assert_allclose(some["pair"], pair, atol=1e-12)
    assert some["mean"].shape == (2,)


@pytest.mark.parametrize("kind", KINDS)
def test_some_arms_learn_from_their_rewards_as_they_do_among_all(kind):
    """Condition first or choose first, on rewards of the chosen arms."""
    late = example(kind).late
    arms, belief = (0, 1), belief_of(kind)
    assert float(late.count[2]) == 0.0
    first = among(learn(belief, late), jnp.asarray(arms))
    chosen = Statistics(*(part[:2] for part in late))
    last = learn(among(belief, jnp.asarray(arms)), chosen)
    first, last = ask(first), ask(last)
    for name in first:
        np.testing.assert_allclose(last[name], first[name], atol=1e-10, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_all_arms_are_the_belief_itself(kind):
    belief = belief_of(kind)
    before, after = ask(belief), ask(among(belief, jnp.array([0, 1, 2])))
    for name in before:
        np.testing.assert_allclose(after[name], before[name], atol=1e-12, err_msg=name)


def stacked(kind):
    beliefs = [belief_of(kind, number) for number in range(len(LOG_WEIGHTS))]
    return beliefs, jax.tree.map(lambda *leaves: jnp.stack(leaves), *beliefs)


# Light types of a mixture, a millionth of its weight, are left out where the best arm is read.
LIGHT, BEST = 2e-6, ("best", "expected_best")


@pytest.mark.parametrize("kind", KINDS)
def test_blended_beliefs_answer_with_the_average(kind):
    """Everything linear in the belief is averaged; variances add what lies between the means."""
    beliefs, together = stacked(kind)
    shares = np.exp(LOG_WEIGHTS)
    mixture = blend(together, LOG_WEIGHTS)
    actual, each = ask(mixture), [ask(belief) for belief in beliefs]
    for name in actual:
        expected = sum(s * np.asarray(one[name]) for s, one in zip(shares, each, strict=True))
        atol = LIGHT if name in BEST else 1e-12
        np.testing.assert_allclose(actual[name], expected, atol=atol, err_msg=name)
    squares = [np.asarray(belief.variance() + belief.mean() ** 2) for belief in beliefs]
    expected = shares @ np.array(squares) - np.asarray(actual["mean"]) ** 2
    np.testing.assert_allclose(mixture.variance(), expected, atol=1e-12)
    if kind not in ("flat", "given"):  # of which all particles are the same
        means = np.array([one["mean"] for one in each])
        assert np.ptp(means, axis=0).max() > 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_blended_beliefs_learn_by_how_well_each_explains(kind):
    """Σ_s w_s p(rewards | s) P_s / Σ_s w_s p(rewards | s), an identity."""
    model, particles, early, late = example(kind)
    beliefs, together = stacked(kind)
    evidence = jax.jit(model.log_evidence)
    gains = [
        float(evidence(p, CONTEXT, early.plus(late)) - evidence(p, CONTEXT, early))
        for p in particles
    ]
    shares = np.exp(np.asarray(LOG_WEIGHTS) + gains)
    shares /= shares.sum()
    actual = ask(learn(blend(together, LOG_WEIGHTS), late))
    each = [ask(learn(belief, late)) for belief in beliefs]
    for name in actual:
        expected = sum(s * np.asarray(one[name]) for s, one in zip(shares, each, strict=True))
        # Evidence is exact, and beliefs of arms that share a factor are sums over its places.
        exact = LIGHT if name in BEST else 1e-10
        atol = 1e-5 if kind == "factor" else exact
        np.testing.assert_allclose(actual[name], expected, atol=atol, err_msg=name)
