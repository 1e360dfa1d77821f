"""A known population that is a Gaussian mixture given the context: its terms, units, refusals."""

import json
import math
from dataclasses import asdict

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_oracles import statistics_of

from cocobandits.errors import ConfigurationError
from cocobandits.populations.features import feature_vector, num_terms
from cocobandits.populations.gaussian_belief import GaussianBelief, condition
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture, GaussianMixtureModel

KINDS = (None, 3)  # five terms: one, x, and three categories
NOISE = 0.3
GENERATOR = np.random.default_rng(11)
LOGITS = GENERATOR.normal(size=(2, 5))
MEANS = GENERATOR.normal(size=(2, 3, 5))
FACTORS = 0.4 * GENERATOR.normal(size=(2, 3, 2, 5))
MIXTURE = ConditionalMixture.from_arrays(LOGITS, MEANS, FACTORS)
MODEL = GaussianMixtureModel(MIXTURE, KINDS, (-2.0, 2.0), NOISE)
REWARDS = ([0.2, 0.5], [], [-0.4])

posterior = jax.jit(lambda model, *user: model.posterior(jnp.zeros(0), *user), static_argnums=0)
evidence = jax.jit(lambda model, *user: model.log_evidence(jnp.zeros(0), *user), static_argnums=0)


@pytest.mark.parametrize(
    ("kinds", "context", "expected"),
    [
        ((), [], [1.0]),
        ((None, None), [0.3, -0.7], [1.0, 0.3, -0.7]),
        ((2, None, 3), [1.0, 0.4, 0.0], [1.0, 0.0, 1.0, 0.4, 1.0, 0.0, 0.0]),
    ],
)
def test_terms_of_a_context(kinds, context, expected):
    terms = feature_vector(kinds, jnp.array(context, dtype=float))
    np.testing.assert_array_equal(terms, expected)
    assert num_terms(kinds) == len(expected)


@pytest.mark.parametrize("context", [(0.6, 0.0), (-0.3, 2.0)])
def test_population_is_linear_in_the_terms(context):
    """Add up by hand: the constant, x times its coefficient, and the category's own."""
    x, category = context
    column = 2 + int(category)
    logits, means, factors = (
        part[..., 0] + x * part[..., 1] + part[..., column] for part in (LOGITS, MEANS, FACTORS)
    )
    shares = np.exp(logits) / np.exp(logits).sum()
    nothing = statistics_of(([], [], []))
    prior = MODEL.average(jnp.zeros((1, 0)), jnp.zeros(1), jnp.array(context), nothing)
    np.testing.assert_allclose(jnp.exp(prior.log_weights), shares, rtol=1e-12)
    np.testing.assert_allclose(prior.means, means, atol=1e-14)
    np.testing.assert_allclose(prior.covariances, factors @ factors.transpose(0, 2, 1), atol=1e-14)
    by_hand = GaussianBelief(
        jnp.log(shares), jnp.asarray(means), jnp.asarray(prior.covariances), NOISE
    )
    expected, log_density = condition(by_hand, statistics_of(REWARDS))
    actual = posterior(MODEL, jnp.array(context), statistics_of(REWARDS))
    for one, two in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)
    assert float(evidence(MODEL, jnp.array(context), statistics_of(REWARDS))) == pytest.approx(
        float(log_density), rel=1e-12
    )


def test_rescaled_population_is_the_same_in_other_units():
    """Rewards (r - 0.7)·1.6: the same best arms, and densities that are 1.6 times lower each."""
    centre, scale, context = 0.7, 1.6, jnp.array([0.25, 1.0])
    moved = GaussianMixtureModel(MIXTURE.rescaled(centre, scale), KINDS, (-2.0, 2.0), scale * NOISE)
    rewards = [[(reward - centre) * scale for reward in arm] for arm in REWARDS]
    natural = posterior(MODEL, context, statistics_of(REWARDS))
    standard = posterior(moved, context, statistics_of(rewards))
    np.testing.assert_allclose(standard.mean(), (natural.mean() - centre) * scale, atol=1e-12)
    np.testing.assert_allclose(standard.variance(), natural.variance() * scale**2, atol=1e-12)
    np.testing.assert_allclose(standard.log_weights, natural.log_weights, atol=1e-12)
    assert float(evidence(moved, context, statistics_of(rewards))) == pytest.approx(
        float(evidence(MODEL, context, statistics_of(REWARDS))) - 3 * math.log(scale), rel=1e-12
    )
    # The slope in x and the categories' own means are not shifted.
    np.testing.assert_allclose(np.array(moved.mixture.means)[..., 1:], scale * MEANS[..., 1:])


def test_large_logits_do_not_overflow():
    mixture = ConditionalMixture.from_arrays(
        [[2000.0, 0.0], [-2000.0, 0.0]], MEANS[:, :, :2], FACTORS[..., :2]
    )
    model = GaussianMixtureModel(mixture, (None,), (-2.0, 2.0), NOISE)
    belief = posterior(model, jnp.array([0.1]), statistics_of(REWARDS))
    assert np.all(np.isfinite(belief.mean()))
    np.testing.assert_allclose(jnp.exp(belief.log_weights), [1.0, 0.0], atol=1e-12)


def test_mixture_survives_json_and_can_be_hashed():
    text = json.dumps(asdict(MIXTURE))
    assert ConditionalMixture(**json.loads(text)) == MIXTURE
    assert hash(ConditionalMixture.from_arrays(**json.loads(text))) == hash(MIXTURE)
    other = ConditionalMixture.from_arrays(LOGITS, MEANS + 1.0, FACTORS)
    assert other != MIXTURE
    assert (MIXTURE.num_arms, MIXTURE.num_terms) == (3, 5)


def broken(array, value):
    changed = array.copy()
    changed.flat[-1] = value
    return changed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logits": LOGITS[0]}, r"2 axes; got logits of shape \(5,\)"),
        ({"means": MEANS[..., None]}, r"3 axes; got means of shape \(2, 3, 5, 1\)"),
        ({"factors": FACTORS[0]}, r"4 axes; got factors of shape \(3, 2, 5\)"),
        ({"logits": broken(LOGITS, np.nan)}, r"finite numbers with 2 axes; got logits"),
        ({"means": broken(MEANS, np.inf)}, r"finite numbers with 3 axes; got means"),
        ({"factors": broken(FACTORS, -np.inf)}, r"finite numbers with 4 axes; got factors"),
        ({"logits": [[0.0, 1.0], [0.0]]}, r"rows of equal length; got logits="),
        ({"logits": [["a"] * 5] * 2}, r"Expected numbers in rows of equal length; got logits="),
        ({"logits": LOGITS[:1]}, r"same components, arms and terms.*got logits \(1, 5\)"),
        ({"means": MEANS[:, :2]}, r"same components.*means \(2, 2, 5\)"),
        ({"factors": FACTORS[..., :4]}, r"same components.*factors \(2, 3, 2, 4\). Align"),
    ],
)
def test_mixture_is_refused(change, message):
    parts = {"logits": LOGITS, "means": MEANS, "factors": FACTORS}
    with pytest.raises(ConfigurationError, match=message):
        ConditionalMixture.from_arrays(**(parts | change))


def test_mixture_that_does_not_fit_the_features_is_refused():
    with pytest.raises(ConfigurationError, match=r"Expected 2 terms.*got num_terms=5. Give one"):
        GaussianMixtureModel(MIXTURE, (None,), (-2.0, 2.0), NOISE)
