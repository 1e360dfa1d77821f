"""The evidence of a linear mixed model against one dense Gaussian of all single rewards."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from cocobandits.models.base import Statistics
from cocobandits.models.histories import UserTable
from cocobandits.models.linear_mixed import LinearMixedModel, mixed_model_log_evidence

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
TENSOR = np.random.default_rng(6).normal(size=(3, 4, 5))
MODELS = {
    "narrow users": LinearMixedModel(jnp.asarray(TENSOR), 0.4, 0.5, 0.1, 0.2, FEATURES),
    "broad users": LinearMixedModel(jnp.asarray(TENSOR), -0.3, 0.8, 0.7, 0.1, FEATURES),
    "far from the prior": LinearMixedModel(jnp.asarray(TENSOR), 9.0, 0.2, 0.3, 0.2, FEATURES),
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
    is_same = (users[:, None] == users) & (arms[:, None] == arms)
    covariance = model.coefficient_deviation**2 * rows @ rows.T
    covariance += model.user_deviation**2 * is_same + model.reward_noise**2 * np.eye(len(rows))
    return multivariate_normal.logpdf(rewards, model.coefficient_mean * rows.sum(1), covariance)


@pytest.mark.parametrize("name", MODELS)
def test_evidence_matches_the_dense_gaussian(name):
    expected = dense_log_evidence(MODELS[name], CONTEXTS, HISTORIES)
    actual = mixed_model_log_evidence(MODELS[name], table_of(CONTEXTS, HISTORIES))
    np.testing.assert_allclose(actual, expected, rtol=1e-9)


def test_evidence_matches_for_many_users_and_little_noise():
    """Three hundred rewards at a noise where differences of large squares would lose digits."""
    generator = np.random.default_rng(2)
    contexts = np.column_stack([generator.uniform(-1, 1, 40), generator.integers(0, 3, 40)])
    histories = [
        [(int(arm), float(arm - 1 + 0.3 * generator.normal())) for arm in row]
        for row in generator.integers(0, 3, (40, 8))
    ]
    model = replace(MODELS["narrow users"], reward_noise=0.004)
    expected = dense_log_evidence(model, contexts, histories)
    actual = mixed_model_log_evidence(model, table_of(contexts, histories))
    np.testing.assert_allclose(actual, expected, rtol=1e-9)


def test_padding_and_users_without_rewards_add_nothing():
    model = MODELS["narrow users"]
    table = table_of(CONTEXTS, HISTORIES)
    kept = [0, 1, 3]
    fewer = table_of(CONTEXTS[kept], [HISTORIES[user] for user in kept])
    expected = float(mixed_model_log_evidence(model, fewer))
    for same in (table, table._grow(1024), table.append(jnp.array([0.3, 1.0]))):
        np.testing.assert_allclose(mixed_model_log_evidence(model, same), expected, rtol=1e-12)
    assert mixed_model_log_evidence(model, UserTable.empty(2, 3)) == 0.0
