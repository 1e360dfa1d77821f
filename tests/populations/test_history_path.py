import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_oracles import statistics_of

from cocobandits.populations.history_path import HistoryPath
from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change, UserTable

MODEL = LogDensityModel(
    LogDensityConfig(
        2,
        context_axes=(Axis(0.0, 1.0, 3),),
        arm_axis=Axis(-0.6, 0.9, 3),
        reward_noise=0.25,
        num_modes=6,
    )
)
PATH = HistoryPath(MODEL)
# Contexts and rewards: the second user has none, and the third one is about to change.
USERS = [
    (0.1, ([0.2, 0.5], [])),
    (0.7, ([], [])),
    (0.4, ([0.6], [-0.3])),
    (0.9, ([], [0.1, 0.1, -0.4])),
]
CHANGED, NEW_REWARDS = 2, ([0.6], [-0.3, 0.8])

evidence = jax.jit(MODEL.log_evidence)
evidence_gradient = jax.jit(jax.grad(MODEL.log_evidence))
increment = jax.jit(lambda particles, change: PATH.increment(particles, PATH.ends(change)))
tempered = jax.jit(PATH.log_likelihood_and_gradient)
information = jax.jit(PATH.information)


def table_of(users):
    table = UserTable.empty(1, 2)
    for number, (context, rewards) in enumerate(users):
        table = table.append(jnp.array([context])).replace(number, statistics_of(rewards))
    return table


@functools.cache
def change():
    return Change.of(table_of(USERS), jnp.asarray(CHANGED), statistics_of(NEW_REWARDS))


def draw_particles(num_particles):
    generator = np.random.default_rng(num_particles)
    return jnp.asarray(generator.normal(size=(num_particles, 6)))


def add_over_users(function, particle, temperature):
    """Add one term per user, and two for the changed one, in plain Python."""
    total = 0.0
    for number, (context, rewards) in enumerate(USERS):
        old = np.asarray(function(particle, jnp.array([context]), statistics_of(rewards)))
        if number == CHANGED:
            new = np.asarray(function(particle, jnp.array([context]), statistics_of(NEW_REWARDS)))
            total = total + (1 - temperature) * old + temperature * new
        else:
            total = total + old
    return total


def test_table_keeps_contexts_and_rewards_of_users():
    """Read every user back as it was written; users without rewards have zeros."""
    table = table_of(USERS)
    assert int(table.num_users) == 4
    for number, (context, rewards) in enumerate(USERS):
        read_context, read = table.of(number)
        np.testing.assert_array_equal(read_context, [context])
        np.testing.assert_array_equal(np.stack(read), np.stack(statistics_of(rewards)))


def test_table_grows_when_full():
    """Fill the first table to the brim by hand; one more user must not disturb the others."""
    capacity = len(UserTable.empty(1, 2).contexts)
    generator = np.random.default_rng(1)
    contexts = jnp.asarray(generator.normal(size=(capacity, 1)))
    fields = [jnp.asarray(generator.normal(size=(capacity, 2))) for _ in range(3)]
    full = UserTable(contexts, Statistics(*fields), jnp.asarray(capacity))

    grown = full.append(jnp.array([0.25]))
    assert int(grown.num_users) == capacity + 1
    assert len(grown.contexts) > capacity
    np.testing.assert_array_equal(grown.contexts[:capacity], contexts)
    np.testing.assert_array_equal(grown.contexts[capacity], [0.25])
    for before, after in zip(fields, grown.statistics, strict=True):
        np.testing.assert_array_equal(after[:capacity], before)
        np.testing.assert_array_equal(after[capacity:], 0.0)

    again = grown.append(jnp.array([0.5])).replace(capacity, statistics_of([[0.3], []]))
    assert len(again.contexts) == len(grown.contexts)
    assert int(again.num_users) == capacity + 2
    np.testing.assert_array_equal(again.of(capacity)[1].count, [1.0, 0.0])
    np.testing.assert_array_equal(again.of(capacity + 1)[0], [0.5])


def test_replace_changes_one_user_only():
    """Compare every other row with the table before."""
    before = table_of(USERS)
    after = before.replace(1, statistics_of([[0.9], [0.8]]))
    np.testing.assert_array_equal(after.of(1)[1].total, [0.9, 0.8])
    others = np.array([row for row in range(len(before.contexts)) if row != 1])
    for old, new in zip(before.statistics, after.statistics, strict=True):
        np.testing.assert_array_equal(new[others], old[others])
    np.testing.assert_array_equal(after.contexts, before.contexts)


def test_increment_is_a_difference_of_log_evidences():
    """Evaluate the changed user's evidence after and before, particle by particle."""
    particles = draw_particles(7)
    context = jnp.array([USERS[CHANGED][0]])
    expected = [
        float(evidence(particle, context, statistics_of(NEW_REWARDS)))
        - float(evidence(particle, context, statistics_of(USERS[CHANGED][1])))
        for particle in particles
    ]
    np.testing.assert_allclose(increment(particles, change()), expected, atol=1e-12)


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("num_particles", [7, 23, 40])
def test_tempered_likelihood_matches_sum_over_users(temperature, num_particles):
    """Add evidences and jax.grad gradients user by user; the changed user counts in two parts."""
    particles = draw_particles(num_particles)
    values, gradients = tempered(particles, change(), jnp.asarray(temperature))
    assert values.shape == (num_particles,)
    for index in {0, num_particles // 2, num_particles - 1}:
        particle = particles[index]
        expected = add_over_users(evidence, particle, temperature)
        assert float(values[index]) == pytest.approx(float(expected), abs=1e-11)
        expected = add_over_users(evidence_gradient, particle, temperature)
        np.testing.assert_allclose(gradients[index], expected, atol=1e-11)


def test_ends_of_the_path_differ_by_the_increment():
    """Subtract the likelihood at temperature 0 from that at temperature 1."""
    particles = draw_particles(7)
    first, _ = tempered(particles, change(), jnp.asarray(0.0))
    last, _ = tempered(particles, change(), jnp.asarray(1.0))
    np.testing.assert_allclose(last - first, increment(particles, change()), atol=1e-12)


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("num_particles", [7, 40])
def test_information_is_the_sum_of_outer_products_of_gradients(temperature, num_particles):
    """Add jax.grad outer products user by user, and average over three particles."""
    particles = draw_particles(num_particles)

    def outer(particle, context, statistics):
        gradient = np.asarray(evidence_gradient(particle, context, statistics))
        return np.outer(gradient, gradient)

    found = information(particles, change(), jnp.asarray(temperature))
    some = particles[:: {7: 3, 40: 14}[num_particles]]
    expected = np.mean([add_over_users(outer, p, temperature) for p in some], axis=0)
    np.testing.assert_allclose(found, expected, atol=1e-11)
    assert np.linalg.eigvalsh(np.asarray(found)).min() > -1e-12


def test_interweaving_moves_each_particle_by_a_key_of_its_own():
    """A model of several descriptions of one population: copies part, and no likelihood moves."""
    config = replace(MODEL.config, basis="hilbert")
    path = HistoryPath(LogDensityModel(config))
    copies = jnp.tile(draw_particles(1)[:, :1], (5, path.model.num_parameters))
    moved = jax.jit(path.interweave)(jax.random.key(0), copies)
    assert len({tuple(row) for row in np.asarray(moved).tolist()}) == 5
    before, after = (
        jax.jit(path.log_likelihood_and_gradient)(particles, change(), jnp.asarray(0.3))[0]
        for particles in (copies, moved)
    )
    np.testing.assert_allclose(after, before, atol=1e-9)
    unmoved = PATH.interweave(jax.random.key(0), draw_particles(5))
    np.testing.assert_array_equal(unmoved, draw_particles(5))


def test_users_without_rewards_contribute_nothing():
    """Leave them out, or add more of them: the sums are the same to the last bit."""
    particles, temperature = draw_particles(7), jnp.asarray(0.3)
    values, gradients = tempered(particles, change(), temperature)
    rewarded = [user for number, user in enumerate(USERS) if number != 1]
    fewer = Change.of(table_of(rewarded), jnp.asarray(CHANGED - 1), statistics_of(NEW_REWARDS))
    more = change()._replace(table=change().table.append(jnp.array([0.2])))
    for other in (fewer, more):
        other_values, other_gradients = tempered(particles, other, temperature)
        np.testing.assert_array_equal(other_values, values)
        np.testing.assert_array_equal(other_gradients, gradients)


def test_first_and_last_reward_of_a_user():
    """A user's first reward starts from evidence one; withdrawing it returns there exactly."""
    particles, user = draw_particles(7), jnp.asarray(1)
    first = Change.of(table_of(USERS), user, statistics_of([[0.4], []]))
    table = first.table.replace(1, first.statistics)
    withdrawn = Change.of(table, user, first.statistics.remove(0, 0.4))
    context = jnp.array([USERS[1][0]])
    expected = [float(evidence(p, context, first.statistics)) for p in particles]
    np.testing.assert_allclose(increment(particles, first), expected, atol=1e-12)
    np.testing.assert_allclose(increment(particles, withdrawn), np.negative(expected), atol=1e-12)
    before, _ = tempered(particles, first, jnp.asarray(0.0))
    after, _ = tempered(particles, withdrawn, jnp.asarray(1.0))
    np.testing.assert_array_equal(after, before)


POINTS = jnp.array([[0.1], [0.5], [0.8]])


def test_first_unknown_context_gives_every_user_points():
    """What is known is the same at all points, for those before and those after."""
    table = table_of(USERS)
    assert table.fitting(jnp.array([0.3])) is table
    wider = table.append(POINTS).append(jnp.array([0.6])).append(POINTS[::-1])
    assert table.num_features == wider.num_features == 1
    assert wider.contexts.shape == (len(table.contexts), 3, 1)
    for number, (context, rewards) in enumerate(USERS):
        read_context, read = wider.of(number)
        np.testing.assert_array_equal(read_context, [[context]] * 3)
        np.testing.assert_array_equal(np.stack(read), np.stack(statistics_of(rewards)))
    np.testing.assert_array_equal(wider.of(4)[0], POINTS)
    np.testing.assert_array_equal(wider.of(5)[0], [[0.6]] * 3)
    np.testing.assert_array_equal(wider.of(6)[0], POINTS[::-1])
    assert int(wider.num_users) == 7
    assert wider.fitting(POINTS) is wider


def test_table_with_points_grows_when_full():
    capacity = len(UserTable.empty(1, 2).contexts)
    contexts = jnp.asarray(np.random.default_rng(1).normal(size=(capacity, 3, 1)))
    blank = jnp.zeros((capacity, 2))
    full = UserTable(contexts, Statistics(blank, blank, blank), jnp.asarray(capacity))
    grown = full.append(POINTS)
    assert grown.contexts.shape == (4 * capacity, 3, 1)
    np.testing.assert_array_equal(grown.contexts[:capacity], contexts)
    np.testing.assert_array_equal(grown.of(capacity)[0], POINTS)
    assert grown.statistics.count.shape == (4 * capacity, 2)


def test_replace_writes_another_context():
    """A context that has become known, and one that is still not, leave the others alone."""
    rewards = statistics_of([[0.9], [0.8]])
    plain = table_of(USERS)
    moved = plain.replace(1, rewards, jnp.array([-0.2]))
    np.testing.assert_array_equal(moved.of(1)[0], [-0.2])
    with_points = plain.fitting(POINTS).replace(1, rewards, POINTS)
    known = with_points.replace(1, rewards, jnp.array([0.25]))
    np.testing.assert_array_equal(with_points.of(1)[0], POINTS)
    np.testing.assert_array_equal(known.of(1)[0], [[0.25]] * 3)
    others = np.array([row for row in range(len(plain.contexts)) if row != 1])
    for before, after in ((plain, moved), (plain.fitting(POINTS), known)):
        np.testing.assert_array_equal(after.of(1)[1].total, [0.9, 0.8])
        np.testing.assert_array_equal(after.contexts[others], before.contexts[others])
        for old, new in zip(before.statistics, after.statistics, strict=True):
            np.testing.assert_array_equal(new[others], old[others])


def test_another_arm_has_been_given_to_nobody():
    before = table_of(USERS)
    after = before.with_arm()
    np.testing.assert_array_equal(after.contexts, before.contexts)
    assert int(after.num_users) == int(before.num_users)
    for old, new in zip(before.statistics, after.statistics, strict=True):
        assert new.shape == (len(before.contexts), 3)
        np.testing.assert_array_equal(new[:, :2], old)
        np.testing.assert_array_equal(new[:, 2], 0.0)
    given = after.replace(0, after.of(0)[1].add(2, 0.7))
    np.testing.assert_array_equal(given.of(0)[1].total, [0.7, 0.0, 0.7])


def test_applied_change_is_the_table_with_it_written_down():
    """The context stays unless another is given, which may be the first with points."""
    table, rewards = table_of(USERS), statistics_of(NEW_REWARDS)
    kept = Change.of(table, CHANGED, rewards).applied()
    np.testing.assert_array_equal(kept.contexts, table.contexts)
    np.testing.assert_array_equal(np.stack(kept.of(CHANGED)[1]), np.stack(rewards))
    moved = Change.of(table, CHANGED, rewards, POINTS).applied()
    expected = table.fitting(POINTS).replace(CHANGED, rewards, POINTS)
    for one, other in zip(jax.tree.leaves(moved), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(one, other)
    again = Change.of(moved, CHANGED, rewards, jnp.array([0.3])).applied()
    np.testing.assert_array_equal(again.of(CHANGED)[0], [[0.3]] * 3)


@pytest.mark.parametrize("now", [jnp.array([0.95]), POINTS], ids=["known", "points"])
@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0])
def test_changed_context_fades_in(now, temperature):
    """The old context counts with the old rewards, the new with the new, user by user."""
    particles, rewards = draw_particles(7), statistics_of(NEW_REWARDS)
    moved = Change.of(table_of(USERS), CHANGED, rewards, now)
    old = jnp.array([USERS[CHANGED][0]])
    old_rewards = statistics_of(USERS[CHANGED][1])
    values, gradients = tempered(particles, moved, jnp.asarray(temperature))
    steps = increment(particles, moved)
    for row, particle in enumerate(particles):
        after, before = evidence(particle, now, rewards), evidence(particle, old, old_rewards)
        assert float(steps[row]) == pytest.approx(float(after - before), abs=1e-12)
        for function, found in ((evidence, values[row]), (evidence_gradient, gradients[row])):
            unmoved = add_over_users(function, particle, 0.0)
            change_of_one = function(particle, now, rewards) - function(particle, old, old_rewards)
            expected = unmoved + temperature * np.asarray(change_of_one)
            np.testing.assert_allclose(found, expected, atol=1e-11)
    assert np.abs(np.asarray(steps - increment(particles, change()))).max() > 0.01
