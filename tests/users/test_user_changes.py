"""What a change of one user knows: the user as they were, and as they will be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change, UserTable

KNOWN, POINTS = jnp.array([0.25]), jnp.array([[0.5], [-0.5]])


def table_of_two():
    """Enrol two users; the second has two rewards of the first arm."""
    statistics = Statistics.empty(2).add(0, 0.5).add(0, 0.75)
    return UserTable.empty(1, 2).append(jnp.array([0.1])).append(KNOWN).replace(1, statistics)


@pytest.mark.parametrize(
    ("context", "before", "after"),
    [
        (None, KNOWN, KNOWN),
        (jnp.array([0.75]), KNOWN, jnp.array([0.75])),
        (POINTS, jnp.array([[0.25], [0.25]]), POINTS),
    ],
    ids=["kept", "another", "points"],
)
def test_an_added_reward_knows_what_was_before(context, before, after):
    """Sums by hand; a known context stands at every point, once there are points."""
    change = Change.adding(table_of_two(), 1, 1, -1.25, context)
    np.testing.assert_array_equal(change.before[0], before)
    np.testing.assert_array_equal(np.stack(change.before[1]), [[2, 0], [1.25, 0], [0.8125, 0]])
    np.testing.assert_array_equal(change.context, after)
    np.testing.assert_array_equal(
        np.stack(change.statistics), [[2, 1], [1.25, -1.25], [0.8125, 1.5625]]
    )
    assert (int(change.user), int(change.added.arm), float(change.added.reward)) == (1, 1, -1.25)
    same = Change.of(table_of_two(), 1, change.statistics, context)
    for found, expected in zip(
        jax.tree.leaves(same.before), jax.tree.leaves(change.before), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    assert int(same.added.arm) == -1
