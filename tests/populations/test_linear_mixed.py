"""The evidence of a linear mixed model against one dense Gaussian of all single rewards."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from cocobandits.populations.hierarchy.gaussian_hierarchy import prior_sums, replaced, user_belief
from cocobandits.populations.hierarchy.linear_mixed import (
    LinearMixedModel,
    mixed_model_log_evidence,
)
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import UserTable

# One continuous feature and one of three categories: five terms.
FEATURES = (None, 3)
CONTEXTS = np.array([[0.4, 0.0], [-0.7, 2.0], [0.9, 1.0], [0.1, 2.0]])
# Unequal histories: all arms, one arm often, nothing, two arms.
HISTORIES = [
    [(0, 0.9), (1, -0.2), (2, 0.3), (0, 1.1)],
    [(2, 0.5), (2, 0.7), (2, 0.4), (2, 0.6), (2, 0.55)],
    [],
    [(1, -1.0), (0, 0.2), (1, -0.6)],
]
COVARIANCE = jnp.array([[0.30, 0.21, -0.09], [0.21, 0.25, 0.02], [-0.09, 0.02, 0.11]])
TENSOR = np.random.default_rng(6).normal(size=(3, 4, 5))
NARROW = LinearMixedModel(jnp.asarray(TENSOR), 0.4, 0.5, 0.1, 0.2, FEATURES)
MODELS = {
    "narrow users": NARROW,
    "broad users": LinearMixedModel(jnp.asarray(TENSOR), -0.3, 0.8, 0.7, 0.1, FEATURES),
    "far from the prior": LinearMixedModel(jnp.asarray(TENSOR), 9.0, 0.2, 0.3, 0.2, FEATURES),
    "tied arms": replace(NARROW, user_covariance=COVARIANCE),
    # One source moves all arms of a user: a covariance of rank one.
    "one source": replace(NARROW, user_covariance=jnp.outer(*2 * [jnp.array([0.5, -0.3, 0.2])])),
}


def table_of(contexts, histories) -> UserTable:
    table = UserTable.empty(2, 3)
    for user, (context, history) in enumerate(zip(contexts, histories, strict=True)):
        statistics = Statistics.empty(3)
        for arm, reward in history:
            statistics = statistics.add(arm, reward)
        table = table.append(jnp.asarray(context)).replace(user, statistics)
    return table


def dense_log_evidence(model, contexts, histories) -> float:
    """Row by row: who, which arm, which reward; the covariance from what two rows share."""
    seen = [(u, a, r) for u, history in enumerate(histories) for a, r in history]
    users, arms, rewards = (np.array(column) for column in zip(*seen, strict=True))
    terms = [[1.0, x, *(kind == np.arange(3))] for x, kind in np.asarray(contexts)[users]]
    rows = np.einsum("rct,rt->rc", np.asarray(model.tensor)[arms], np.array(terms))
    deviations = model.user_covariance
    if deviations is None:
        deviations = model.user_deviation**2 * np.eye(3)
    shared = (users[:, None] == users) * np.asarray(deviations)[arms[:, None], arms[None, :]]
    covariance = model.coefficient_deviation**2 * rows @ rows.T
    covariance += shared + model.reward_noise**2 * np.eye(len(rows))
    return multivariate_normal.logpdf(rewards, model.coefficient_mean * rows.sum(1), covariance)


@pytest.mark.parametrize("name", MODELS)
def test_evidence_matches_the_dense_gaussian(name):
    expected = dense_log_evidence(MODELS[name], CONTEXTS, HISTORIES)
    actual = mixed_model_log_evidence(MODELS[name], table_of(CONTEXTS, HISTORIES))
    np.testing.assert_allclose(actual, expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["narrow users", "tied arms"])
def test_evidence_matches_for_many_users_and_little_noise(name):
    """Three hundred rewards at a noise where differences of large squares would lose digits."""
    generator = np.random.default_rng(2)
    contexts = np.column_stack([generator.uniform(-1, 1, 40), generator.integers(0, 3, 40)])
    histories = [
        [(int(arm), float(arm - 1 + 0.3 * generator.normal())) for arm in row]
        for row in generator.integers(0, 3, (40, 8))
    ]
    model = replace(MODELS[name], reward_noise=0.004)
    expected = dense_log_evidence(model, contexts, histories)
    actual = mixed_model_log_evidence(model, table_of(contexts, histories))
    np.testing.assert_allclose(actual, expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["narrow users", "tied arms", "one source"])
def test_evidence_is_the_product_of_predictions(name):
    """The density that the learned belief gave every reward before it came."""
    model, sums, expected = MODELS[name], prior_sums(MODELS[name]), 0.0
    table = table_of(CONTEXTS, [[]] * 4)
    for user, history in enumerate(HISTORIES):
        for arm, reward in history:
            context, statistics = table.of(user)
            belief = user_belief(model, sums, context, statistics, model.reward_noise)
            expected += np.log(belief.predictive(jnp.array([reward]))[arm, 0])
            more = statistics.add(arm, reward)
            sums = replaced(model, sums, (context, statistics), (context, more))
            table = table.replace(user, more)
    np.testing.assert_allclose(mixed_model_log_evidence(model, table), expected, rtol=1e-9)


@pytest.mark.parametrize("counts", [(3.0, 0.0, 7.0), (0.0, 0.0, 0.0), (1.0, 2.0, 1e5)])
def test_whitening_is_the_inverse_covariance_of_averages(counts):
    """On the arms with rewards by inverting what they have, elsewhere zero; and both paper forms.

    W = G - G (Σ⁻¹ + G)⁻¹ G, and the same with Σ⁻¹ on both sides: Σ⁻¹ - Σ⁻¹ (Σ⁻¹ + G)⁻¹ Σ⁻¹.
    """
    model, counts = MODELS["tied arms"], np.array(counts)
    statistics = Statistics(jnp.asarray(counts), jnp.zeros(3), jnp.zeros(3))
    whitening, log_volume = model.whitening(statistics)
    pulled = np.flatnonzero(counts)
    block = np.asarray(COVARIANCE)[np.ix_(pulled, pulled)] + np.diag(0.04 / counts[pulled])
    expected = np.zeros((3, 3))
    expected[np.ix_(pulled, pulled)] = np.linalg.inv(block)
    np.testing.assert_allclose(whitening.T @ whitening, expected, rtol=1e-9, atol=1e-10)
    data, inverse = np.diag(counts / 0.04), np.linalg.inv(COVARIANCE)
    within = np.linalg.inv(inverse + data)
    np.testing.assert_allclose(expected, inverse - inverse @ within @ inverse, atol=1e-8)
    np.testing.assert_allclose(expected, data - data @ within @ data, atol=1e-8 * data.max() + 1e-9)
    volume = np.linalg.slogdet(np.eye(3) + data @ COVARIANCE)[1] / 2
    np.testing.assert_allclose(log_volume, volume, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["narrow users", "tied arms"])
def test_padding_and_users_without_rewards_add_nothing(name):
    model = MODELS[name]
    table = table_of(CONTEXTS, HISTORIES)
    kept = [0, 1, 3]
    fewer = table_of(CONTEXTS[kept], [HISTORIES[user] for user in kept])
    expected = float(mixed_model_log_evidence(model, fewer))
    for same in (table, table._grow(1024), table.append(jnp.array([0.3, 1.0]))):
        np.testing.assert_allclose(mixed_model_log_evidence(model, same), expected, rtol=1e-12)
    assert mixed_model_log_evidence(model, UserTable.empty(2, 3)) == 0.0
