"""Changes of users: the weights of rows along the path, and which changes remove something."""

import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change, UserTable

OWN = Statistics.empty(2).add(0, 0.4).add(1, -0.7).add(1, 0.2)
HERE, ELSEWHERE = jnp.array([0.3]), jnp.array([-0.8])
CHANGES = {
    "one more": (OWN.add(0, 0.9), None, False),
    "one more at another context": (OWN.add(0, 0.9), ELSEWHERE, False),
    "another value": (OWN.remove(0, 0.4).add(0, 0.5), None, True),
    "one less": (OWN.remove(1, 0.2), None, True),
    "moved to another arm": (OWN.remove(1, 0.2).add(0, 0.2), None, True),
    "none": (Statistics.empty(2), None, True),
    "another context": (OWN, ELSEWHERE, True),
    "the same": (OWN, HERE, False),
}


def table_of(*users) -> UserTable:
    table = UserTable.empty(1, 2)
    for number, statistics in enumerate(users):
        table = table.append(HERE).replace(number, statistics)
    return table


@pytest.mark.parametrize("name", CHANGES)
def test_removals_are_what_is_no_addition(name):
    statistics, context, expected = CHANGES[name]
    table = table_of(Statistics.empty(2).add(0, 1.0), OWN)
    assert Change.of(table, 1, statistics, context).is_removal is expected


def test_nothing_is_removed_from_a_user_without_rewards():
    table = table_of(Statistics.empty(2))
    assert not Change.of(table, 0, Statistics.empty(2), ELSEWHERE).is_removal
    assert not Change.of(table, 0, OWN).is_removal


def test_an_added_reward_is_no_removal():
    change = Change.adding(table_of(OWN), 0, 1, 0.2, ELSEWHERE)
    assert not change.is_removal


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0])
def test_all_users_come_from_nothing_together(temperature):
    """Each user has the temperature as weight, once, and with the present rewards."""
    table = table_of(OWN, OWN.add(0, 0.9), Statistics.empty(2))
    rows = Change.from_nothing(table).rows(jnp.asarray(temperature))
    sums = np.asarray(rows.weights) @ np.asarray(rows.statistics.total)
    expected = temperature * np.asarray(table.statistics.total).sum(axis=0)
    np.testing.assert_allclose(sums, expected, atol=1e-12)
    assert float(rows.weights.sum()) == pytest.approx(3 * temperature)
