"""What every belief says of some of its arms, and what several beliefs say when they are mixed."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_examples import CONTEXT, HIGH, KINDS, LOG_WEIGHTS, LOW, example

from cocobandits.populations.base import FAR_BELOW
from support.draws import draw_means

SUBSETS = ((0, 1), (0, 2), (1, 2))
VALUES = jnp.array([-0.9, -0.35, 0.15, 0.4, 0.7, 1.2])
NEXT_REWARDS = jnp.array([LOW, 0.2, HIGH])
NUM_DRAWS = 200_000

_among = jax.jit(lambda belief, is_eligible: belief.among(is_eligible))


def among(belief, arms):
    return _among(belief, np.isin(np.arange(3), arms))


blend = jax.jit(lambda beliefs, log_shares: beliefs.blended(log_shares))
next_reward_and_best = jax.jit(lambda belief: belief.best_and_reward(NEXT_REWARDS))
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
        some = ask(among(belief, arms))
        (other,) = {0, 1, 2} - {*arms}
        assert some["best"][other] == 0.0
        found = np.asarray(some["best"])[list(arms)]
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
    every, some = ask(belief), ask(among(belief, arms))
    chosen, both = np.array(arms), np.ix_(arms, arms)
    for name in ("mean", "cumulative", "predictive"):
        np.testing.assert_allclose(
            some[name][chosen], every[name][chosen], atol=1e-12, err_msg=name
        )
    np.testing.assert_allclose(some["after"][both], every["after"][both], atol=1e-10)
    (other,) = {0, 1, 2} - {*arms}
    assert float(some["mean"][other]) == pytest.approx(FAR_BELOW)
    np.testing.assert_array_equal(some["predictive"][other], 0.0)
    joint = next_reward_and_best(among(belief, arms))
    assert float(jnp.max(joint[other])) == float(jnp.max(joint[:, other])) == 0.0
    np.testing.assert_allclose(
        jnp.sum(joint, axis=0)[chosen], some["predictive"][chosen], rtol=2e-3, atol=1e-9
    )


@pytest.mark.parametrize("kind", KINDS)
def test_some_arms_learn_from_their_rewards_as_they_do_among_all(kind):
    """Condition first or choose first, on rewards of the chosen arms."""
    late = example(kind).late
    arms, belief = (0, 1), belief_of(kind)
    assert float(late.count[2]) == 0.0
    first = ask(among(learn(belief, late), arms))
    last = ask(learn(among(belief, arms), late))
    for name in ("mean", "best", "cumulative", "predictive"):
        np.testing.assert_allclose(last[name][:2], first[name][:2], atol=1e-10, err_msg=name)
    np.testing.assert_allclose(last["expected_best"], first["expected_best"], atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_all_arms_are_the_belief_itself(kind):
    belief = belief_of(kind)
    before, after = ask(belief), ask(among(belief, (0, 1, 2)))
    for name in before:
        np.testing.assert_allclose(after[name], before[name], atol=1e-12, err_msg=name)


def stacked(kind):
    beliefs = [belief_of(kind, number) for number in range(len(LOG_WEIGHTS))]
    return beliefs, jax.tree.map(lambda *leaves: jnp.stack(leaves), *beliefs)


# Light components of a mixture, a millionth of its weight, are left out where the best arm is read.
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
