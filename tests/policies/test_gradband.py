"""GradBand against finite differences, double sums, and every sequence of rewards there is."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits.errors import ConfigurationError
from cocobandits.policies.base import Problem
from cocobandits.policies.baselines.gradband import (
    GradBand,
    GradBandPolicy,
    elimination,
    learn,
    log_gradient,
)
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Added
from support.sessions import Session

PROBLEM = Problem(3, (None,), (-2.0, 2.0), 0.7)
SETTINGS = GradBand(horizon=3, batch=2, step_size=0.4, softness=1.3)
KEY = jax.random.key(0)
# Users take turns; the first three finish, the second goes on beyond, and the last does not finish.
PULLS = [
    *((0, 0, 0.9), (1, 2, -0.4), (0, 1, 0.2), (2, 1, 1.4), (1, 2, 0.3), (0, 0, 1.1), (2, 0, -0.8)),
    *((1, 1, 0.7), (1, 0, 0.6), (3, 2, 0.5), (2, 1, 1.6), (3, 2, -0.1)),
]


def literal_scores(pulls, num_arms=3, top=2.0, variance=0.49):
    """Put a millionth of a reward, the best there is, before all others."""
    averages, counts = [], []
    for arm in range(num_arms):
        rewards = [reward for pulled, reward in pulls if pulled == arm]
        counts.append(len(rewards) + 1e-6)
        averages.append((sum(rewards) + 1e-6 * top) / counts[-1])
    best = max(averages)
    gaps = [best - average for average in averages]
    return -np.array(counts) * np.array(gaps) ** 2 / (2 * variance)


def literal_policy(scores, softness):
    weights = np.exp((scores - scores.max()) / softness**2)
    return weights / weights.sum()


def slope_of_log_policy(scores, softness, arm):
    """Differentiate log π by central differences."""
    step = 1e-5
    up, down = (np.log(literal_policy(scores, softness + s)[arm]) for s in (step, -step))
    return (up - down) / (2 * step)


def statistics_of(pulls, num_arms=3) -> Statistics:
    statistics = Statistics.empty(num_arms)
    for arm, reward in pulls:
        statistics = statistics.add(arm, reward)
    return statistics


def give(policy, state, pulls):
    for user, arm, reward in pulls:
        statistics = state.users.of(user)[1].add(arm, reward)
        state, _ = policy.update(KEY, state, user, statistics)
    return state


def started(policy, num_users=4):
    state = policy.init(KEY)
    for user in range(num_users):
        state = policy.enrol(state, jnp.array([0.1 * user]))
    return state


def literal_learning(pulls, settings):
    """Keep every reward, gradient and baseline, and add them up when an instance is finished."""
    softness, batch, histories, notes = settings.softness, [], {}, {}
    for user, arm, reward in pulls:
        history, note = histories.setdefault(user, []), notes.setdefault(user, [])
        others = [r for u, past in histories.items() if u != user for _, r in past]
        baseline = np.mean(others) if others else 0.0
        if len(note) < settings.horizon:
            slope = slope_of_log_policy(literal_scores(history), softness, arm)
            note.append((slope, reward - baseline))
            if len(note) == settings.horizon:
                pairs = itertools.combinations_with_replacement(range(len(note)), 2)
                batch.append(sum(note[t][0] * note[s][1] for t, s in pairs))
        history.append((arm, reward))
        if len(batch) == settings.batch:
            step = settings.step_size * softness * np.mean(batch)
            step = max(-settings.most_step, min(settings.most_step, step))
            softness = np.clip(np.exp(np.log(softness) + step), 0.1, 100.0)
            batch = []
    return softness, batch, notes


def test_scores_match_loops_and_the_published_form():
    pulls = [(0, 0.9), (1, -0.4), (0, 1.2), (1, 0.1), (1, 0.3)]
    found = elimination(statistics_of(pulls), jnp.array(2.0), jnp.array(0.49))
    np.testing.assert_allclose(found, literal_scores(pulls), rtol=1e-10, atol=1e-12)
    # Rewards on [0, 1]: -2 T gap², and an arm without rewards has the average 1.
    few = statistics_of([(0, 0.25), (2, 0.4), (2, 0.6)])
    published = elimination(few, jnp.array(1.0), jnp.array(0.25))
    np.testing.assert_allclose(published, [-2 * 0.75**2, 0.0, -4 * 0.5**2], atol=1e-5)


@pytest.mark.parametrize("softness", [0.6, 1.0, 2.7])
def test_gradient_of_log_policy_matches_finite_differences(softness):
    scores = np.array([-0.3, -1.7, 0.0, -0.9])
    expected = [slope_of_log_policy(scores, softness, arm) for arm in range(4)]
    found = log_gradient(jnp.asarray(scores), jnp.array(softness))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("most_step", "is_cut"), [(9.0, False), (0.02, True)])
def test_learning_matches_double_sums_over_kept_rewards(most_step, is_cut):
    """With steps as long as they come, and with a step that is cut."""
    settings = replace(SETTINGS, most_step=most_step)
    policy = Session(GradBandPolicy(PROBLEM, settings))
    state = started(policy)
    for number, pull in enumerate(PULLS, start=1):
        state = give(policy, state, [pull])
        softness, batch, _ = literal_learning(PULLS[:number], settings)
        np.testing.assert_allclose(state.own.softness, softness, rtol=1e-7)
        np.testing.assert_allclose(state.own.gradient, sum(batch), rtol=1e-6, atol=1e-9)
        assert int(state.own.num_finished) == len(batch)
    assert len(batch) == 1
    moved = abs(np.log(softness / SETTINGS.softness))
    assert moved == pytest.approx(0.02) if is_cut else moved > 0.03
    _, _, notes = literal_learning(PULLS, settings)
    expected = [sum(slope for slope, _ in notes[user]) for user in range(4)]
    np.testing.assert_allclose(state.own.log_gradients[:4], expected, rtol=1e-6, atol=1e-8)
    histories = {u: [(a, r) for v, a, r in PULLS if v == u] for u in range(4)}
    for user, history in histories.items():
        expected = literal_policy(literal_scores(history), softness)
        np.testing.assert_allclose(policy.probabilities(state, user), expected, rtol=1e-6)


# Two arms with two rewards each, every one with its probability.
CLOSE = (((0.3, 0.9), (0.7, -0.4)), ((0.8, 0.5), (0.2, -1.0)))
FAR = (((0.5, 1.3), (0.5, 0.9)), ((0.4, -0.6), (0.6, -1.1)))
HORIZON = 3


def sequences(arms):
    """List all that can happen to a user."""
    outcomes = [(arm, *outcome) for arm in range(2) for outcome in arms[arm]]
    return list(itertools.product(outcomes, repeat=HORIZON))


def sequence_probability(sequence, softness):
    probability, pulls = 1.0, []
    for arm, chance, reward in sequence:
        scores = literal_scores(pulls, num_arms=2)
        probability *= literal_policy(scores, softness)[arm] * chance
        pulls.append((arm, reward))
    return probability


def expected_reward(arms, softness):
    return sum(
        sequence_probability(sequence, softness) * sum(reward for *_, reward in sequence)
        for sequence in sequences(arms)
    )


def slope_of_expected_reward(arms, softness, step=1e-4):
    up, down = (expected_reward(arms, softness + s) for s in (step, -step))
    return (up - down) / (2 * step)


def two_armed(**changes):
    problem = Problem(2, (None,), (-2.0, 2.0), 0.7)
    given = {"horizon": HORIZON, "batch": 1000} | changes
    return Session(GradBandPolicy(problem, GradBand(**given)))


def sums_after(pulls):
    """Sum up two arms by hand."""
    sums = np.zeros((3, 2))
    for arm, _, reward in pulls:
        sums[:, arm] += [1.0, reward, reward**2]
    return sums


def test_expected_product_is_the_slope_of_the_expected_reward():
    """Weigh what every sequence of arms and rewards teaches by how likely it is."""
    policy, everything = two_armed(softness=0.9), sequences(CLOSE)
    state = give(policy, started(policy, 2), [(1, 0, 0.4), (1, 1, 0.8)])
    alike = (state.own, state.users.statistics)
    lessons, tables = jax.tree.map(lambda leaf: jnp.stack([leaf] * len(everything)), alike)
    teach = jax.jit(jax.vmap(learn, (0, 0, None, 0, None)))
    for number in range(1, HORIZON + 1):
        sums = np.stack([sums_after(sequence[:number]) for sequence in everything], axis=1)
        rows = Statistics(*map(jnp.asarray, sums))
        arms, _, rewards = zip(*(sequence[number - 1] for sequence in everything), strict=True)
        added = Added(jnp.array(arms), jnp.array(rewards))
        lessons = teach(lessons, tables, jnp.array(0), added, policy._constants)
        pairs = zip(tables, rows, strict=True)
        tables = Statistics(*(table.at[:, 0].set(row) for table, row in pairs))
    weights = np.array([sequence_probability(sequence, 0.9) for sequence in everything])
    np.testing.assert_allclose(weights.sum(), 1.0)
    slope = slope_of_expected_reward(CLOSE, 0.9)
    assert abs(slope) > 0.01
    np.testing.assert_allclose(weights @ np.asarray(lessons.gradient), slope, rtol=1e-5)


def serve(policy, num_users):
    """Serve one user after another, all alike, with arms that are far from each other."""
    generator, state = np.random.default_rng(3), policy.init(KEY)
    for user in range(num_users):
        state = policy.enrol(state, jnp.zeros(1))
        for _ in range(HORIZON):
            arm = int(generator.uniform() > policy.probabilities(state, user)[0])
            (chance, first), (_, second) = FAR[arm]
            reward = first if generator.uniform() < chance else second
            state = give(policy, state, [(user, arm, reward)])
    return state


def test_served_users_teach_the_slope_on_average():
    """Within four standard errors, and that far from zero. The first user has no baseline."""
    lessons = serve(two_armed(softness=2.0), 200).own
    products = np.asarray(lessons.products)[1:200]
    np.testing.assert_allclose(lessons.gradient, lessons.products.sum())
    error = products.std() / np.sqrt(len(products))
    slope = slope_of_expected_reward(FAR, 2.0)
    assert abs(products.mean() - slope) < 4 * error
    assert slope < -4 * error


def test_softness_climbs_its_own_expected_reward():
    state = serve(two_armed(batch=4, step_size=1.0, softness=2.0), 80)
    learned = float(state.own.softness)
    assert expected_reward(FAR, learned) > expected_reward(FAR, 2.0) + 0.1


def test_rewards_beyond_the_horizon_teach_nothing():
    policy = Session(GradBandPolicy(PROBLEM, SETTINGS))
    state = give(policy, started(policy), PULLS[:5])
    taught = give(policy, state, [(0, 1, 0.1)])
    assert int(taught.own.num_steps[0]) == 3
    beyond = give(policy, taught, [(0, 1, 0.1)])
    for left, right in zip(beyond.own, taught.own, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(("second", "expected"), [(1.5, 100.0), (-1.5, 0.1)])
def test_softness_stays_in_its_range(second, expected):
    """An arm that is given again in spite of its gap speaks for more softness, if it was good."""
    policy = Session(GradBandPolicy(PROBLEM, GradBand(2, 1, 1e6, 1.0, 9.0)))
    state = give(policy, started(policy, 1), [(0, 0, 1.2)])
    assert float(state.own.softness) == 1.0
    assert float(give(policy, state, [(0, 0, second)]).own.softness) == expected


def test_a_first_reward_says_nothing_of_the_softness():
    """Without rewards all arms are alike, whatever the softness."""
    policy = Session(GradBandPolicy(PROBLEM, GradBand(1, 1, 1e6, 1.0)))
    state = give(policy, started(policy, 1), [(0, 0, 1.2)])
    np.testing.assert_allclose(state.own.softness, 1.0)


def test_gaps_are_to_the_best_arm_that_can_be_chosen():
    policy = Session(GradBandPolicy(PROBLEM, SETTINGS))
    pulls = [(0, 0, 1.5), (0, 1, 0.2), (0, 2, -0.4)]
    state = give(policy, started(policy, 1), pulls)
    everything = np.asarray(policy.probabilities(state, 0))
    among = literal_scores([(0, 0.2), (1, -0.4)], num_arms=2)
    expected = literal_policy(among, float(state.own.softness))
    found = policy.probabilities(state, 0, (1, 2))
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    assert abs(found[0] - everything[1] / everything[1:].sum()) > 0.01


def test_a_new_arm_is_as_good_as_it_can_be():
    policy = Session(GradBandPolicy(PROBLEM, SETTINGS))
    state = give(policy, started(policy), PULLS)
    wider, more = policy.add_arm(KEY, state)
    history = [(arm, reward) for user, arm, reward in PULLS if user == 2]
    expected = literal_policy(literal_scores(history, 4), float(state.own.softness))
    np.testing.assert_allclose(wider.probabilities(more, 2), expected, rtol=1e-7)
    after = give(wider, more, [(3, 3, 1.9)])
    assert int(after.own.num_steps[3]) == 3


def test_sums_grow_with_the_table():
    policy = Session(GradBandPolicy(PROBLEM, SETTINGS))
    state = give(policy, started(policy), PULLS[:5])
    before = state.own
    for _ in range(253):
        state = policy.enrol(state, jnp.zeros(1))
    assert int(state.users.num_users) == 257
    assert {len(rows) for rows in state.own[3:]} == {len(state.users.contexts)}
    np.testing.assert_array_equal(state.own.products[:256], before.products)
    state = give(policy, state, [(256, 1, 0.3), (256, 1, 0.4)])
    assert int(state.own.num_steps[256]) == 2
    assert float(state.own.products[256]) != 0


def test_yes_no_rewards_have_the_deviation_of_their_range():
    problem = Problem(2, (None,), (-2.0, 2.0), None, "bernoulli")
    policy = Session(GradBandPolicy(problem, GradBand(softness=1.0)))
    pulls = [(0, 0, 2.0), (0, 1, -2.0), (0, 1, 2.0)]
    state = give(policy, started(policy, 1), pulls)
    scores = literal_scores([pull[1:] for pull in pulls], 2, variance=4.0)
    np.testing.assert_allclose(scores[1], -1.0, atol=1e-5)
    np.testing.assert_allclose(
        policy.probabilities(state, 0), literal_policy(scores, 1.0), rtol=1e-7
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("horizon", 0, "got horizon=0"),
        ("batch", -1, "got batch=-1"),
        ("step_size", -0.5, "got step_size=-0.5"),
        ("step_size", float("nan"), "got step_size=nan"),
        ("softness", 0.05, "a softness from 0.1 to 100; got softness=0.05"),
        ("softness", float("nan"), "got softness=nan"),
        ("softness", 101.0, "got softness=101"),
    ],
)
def test_settings_are_refused(name, value, message):
    with pytest.raises(ConfigurationError, match=message):
        GradBand(**{name: value})
