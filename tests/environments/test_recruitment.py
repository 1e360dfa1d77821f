"""Who comes when: batches, everybody at once, and arbitrary schedules with gaps."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocobandits.environments.recruitment import Recruitment
from cocobandits.errors import ConfigurationError


def test_schedule_with_a_gap_by_hand():
    """Users 0 and 1 in round 0, user 2 in round 4: rounds 2 and 3 serve nobody."""
    plan = Recruitment.schedule([4, 0, 0], 2)
    assert plan.arrivals == (0, 0, 4)
    assert list(plan.rounds()) == [
        [(0, 0), (1, 0)],
        [(0, 1), (1, 1)],
        [],
        [],
        [(2, 0)],
        [(2, 1)],
    ]
    assert (plan.num_users, plan.num_steps, plan.num_rounds) == (3, 6, 6)


def test_late_start_begins_with_empty_rounds():
    assert list(Recruitment.schedule([2], 1).rounds()) == [[], [], [(0, 0)]]


def test_batches_arrive_one_per_round():
    """User u of batch u // 3 is active in rounds u // 3 to u // 3 + 1."""
    plan = Recruitment.batches(num_batches=4, batch_size=3, steps_per_user=2)
    expected = [
        [(user, number - user // 3) for user in range(12) if 0 <= number - user // 3 < 2]
        for number in range(5)
    ]
    assert list(plan.rounds()) == expected
    assert plan.num_rounds == 5


@given(st.lists(st.integers(0, 30), min_size=1, max_size=25), st.integers(1, 7))
@settings(deadline=None, max_examples=150)
def test_everybody_is_served_in_consecutive_rounds(arrivals, steps):
    plan = Recruitment.schedule(arrivals, steps)
    served = list(plan.rounds())
    assert len(served) == plan.num_rounds
    assert served[-1]
    times = {user: [] for user in range(len(arrivals))}
    for number, active in enumerate(served):
        users = [user for user, _ in active]
        assert users == sorted(set(users))
        for user, step in active:
            times[user].append((number, step))
    for user, arrival in enumerate(sorted(arrivals)):
        assert times[user] == [(arrival + step, step) for step in range(steps)]
    assert sum(map(len, served)) == plan.num_steps == steps * len(arrivals)


@pytest.mark.parametrize("arrivals", [(), (-1, 0), (1, 0), (0, 1.5), (0, True), (0, "1")], ids=repr)
def test_arrivals_are_refused(arrivals):
    with pytest.raises(ConfigurationError, match=r"whole numbers from zero in rising order"):
        Recruitment(arrivals, 3)


def test_refusal_of_many_arrivals_is_short():
    with pytest.raises(ConfigurationError, match=r"got arrivals=\(9, 8, 7, .* and more\. Give"):
        Recruitment(tuple(range(9, -1, -1)), 3)


@pytest.mark.parametrize("plan", [Recruitment.batches, Recruitment.all_at_once])
def test_nobody_is_refused(plan):
    counts = (0, 5) if plan == Recruitment.batches else (0,)
    with pytest.raises(ConfigurationError, match=r"at least one arrival.*got arrivals=\(\)"):
        plan(*counts, 3)


@pytest.mark.parametrize("steps", [0, -2, 2.5])
def test_steps_are_refused(steps):
    with pytest.raises(ConfigurationError, match=f"got steps_per_user={steps}"):
        Recruitment((0, 1), steps)
