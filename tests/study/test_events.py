"""Events are the truth: a replay rebuilds the state bit for bit, and verification sees changes."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cocobandits import Gaussian, Mixture, Study
from cocobandits.errors import CocoError, ConflictError, InputError, UnknownNameError
from cocobandits.study import events
from cocobandits.study.events import (
    Answered,
    ArmChanged,
    Closed,
    Corrected,
    Decided,
    Enrolled,
    Observed,
    Rewarded,
    Started,
    Withdrawn,
)
from support.designs import small

USERS, ARMS = ("anna", "ben", "carl"), ("a", "b", "c")
SMALL = {"population": Mixture(num_components=2), "num_particles": 20, "max_blocks": 1}


def make_study(policy="ind-ts", **changes) -> Study:
    design = {"floor": 0.05, "seed": 3} | changes
    changed = SMALL if policy == "coids" else {}
    return Study(
        ARMS, {"age": (18, 90)}, Gaussian(0, 10, noise=1.0), small(policy, **changed), **design
    )


def state_of(study):
    """List everything that follows from the events, as bits."""
    learner, state = study._learner, study._state
    leaves = jax.tree.leaves((learner.users, learner.state))
    known = [
        state.design,
        *(state.users.names, sorted(state.users.withdrawn), str(state.users.contexts)),
        *(state.arms, state.reasons, state.decisions, state.statuses, state.open),
        *(state.rewards, state.arrivals, state.requests, learner.num_updates, str(learner.health)),
    ]
    return known, [np.asarray(leaf).tobytes() for leaf in leaves]


user, arm = st.sampled_from(USERS), st.sampled_from(ARMS)
value = st.floats(0.0, 10.0).map(lambda number: round(number, 2))
decision = st.integers(0, 12).map("d{}".format)
observation = st.integers(0, 3).map("o{}".format)
request = st.none() | st.sampled_from(["r1", "r2", "r3"])
COMMANDS = st.one_of(
    st.tuples(st.just("enrol"), user, st.sampled_from([{}, {"age": 30}, {"age": 61}])),
    st.tuples(st.just("decide"), user, st.none() | st.lists(arm, min_size=1, max_size=3)),
    st.tuples(st.just("decide"), user),
    st.tuples(st.just("reward"), decision, value),
    st.tuples(st.just("serve"), user, value),
    st.tuples(st.just("observe"), user, arm, value),
    st.tuples(st.just("correct"), decision | observation, st.none() | value),
    st.tuples(st.just("close"), decision),
    st.tuples(st.just("update_context"), user, st.just({"age": 45})),
    st.tuples(st.just("withdraw"), user),
    st.tuples(st.sampled_from(["suspend", "activate"]), arm),
    st.tuples(st.just("add_arm"), st.sampled_from(["d", "e"])),
)


def follow(study, commands):
    """Call a study; a refused call must change nothing."""
    for name in USERS[:2]:
        study.enrol(name, {"age": 40})
    for (verb, *arguments), request_id in commands:
        before = study.events
        try:
            if verb == "serve":
                made = study.decide(*arguments[:1])
                study.reward(made.id, arguments[1])
            else:
                getattr(study, verb)(*arguments, request_id=request_id)
        except CocoError:
            added = study.events[len(before) :]
            assert len(added) <= (verb == "serve")


def sequences(most):
    return st.lists(st.tuples(COMMANDS, request), min_size=3, max_size=most)


# The same sequences in every run.
FIXED = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=500, **FIXED)
@given(commands=sequences(14))
def test_replay_of_random_commands_is_bit_for_bit(commands):
    study = make_study()
    follow(study, commands)
    again = Study.replay(study.events)
    assert again.events == study.events
    assert state_of(again) == state_of(study)
    assert study.verify() == ()


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["coids", "mtts", "hlinucb"])
def test_replay_of_learners_is_bit_for_bit(policy):
    @settings(max_examples=40, **FIXED)
    @given(commands=sequences(25))
    def check(commands):
        study = make_study(policy)
        follow(study, commands)
        assert state_of(Study.replay(study.events)) == state_of(study)
        assert study.verify() == ()

    check()


@pytest.fixture
def served():
    study = make_study("coids")
    for number, name in enumerate(USERS):
        study.enrol(name, {"age": 30 + 10 * number})
        for value in (2.0, 7.0):
            made = study.decide(name)
            study.reward(made.id, value + number)
    study.decide("anna")
    return study


def test_verification_finds_what_was_changed(served):
    """A probability, an arm, a draw, a reward, a first value that was corrected."""
    recorded = list(served.events)
    assert served.verify() == ()
    changes = {
        "probabilities": lambda event: (event.probabilities[0] + 1e-15, *event.probabilities[1:]),
        "arm": lambda event: next(arm for arm in ARMS if arm != event.arm),
        "draw": lambda event: event.draw / 2,
        "weights": lambda event: (event.weights[0] + 1e-15, *event.weights[1:]),
    }
    for number, event in enumerate(recorded):
        if isinstance(event, Decided):
            for name, change in changes.items():
                changed = replace(event, **{name: change(event)})
                found = Study.replay([*recorded[:number], changed, *recorded[number + 1 :]])
                assert (number, name) in {each[:2] for each in found.verify()}
        elif isinstance(event, Rewarded):
            changed = replace(event, value=event.value + 0.5)
            found = Study.replay([*recorded[:number], changed, *recorded[number + 1 :]])
            assert found.verify()


def test_events_keep_first_values_order_and_times():
    study = make_study()
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    study.enrol("anna", {"age": 30}, at=noon)
    made = study.decide("anna", at="day 1")
    study.reward(made.id, 3.0)
    study.correct(made.id, 4.0, at="day 2", request_id="call-7")
    study.correct(made.id, 4.0)
    started, enrolled, decided, rewarded, corrected = study.events
    assert isinstance(started, Started)
    assert enrolled == Enrolled("anna", (30.0,), seq=1, at="2026-01-02T12:00:00+00:00")
    assert (decided.arm, decided.at, decided.seq) == (made.arm, "day 1", 2)
    assert rewarded == Rewarded(made.id, 3.0, seq=3)
    expected = Corrected(made.id, 4.0, seq=4, at="day 2", request_id="call-7")
    assert replace(corrected, request=None) == expected
    with pytest.raises(FrozenInstanceError):
        rewarded.value = 5.0
    with pytest.raises(InputError, match=r"time with its zone, or a text; got at=datetime"):
        study.enrol("ben", at=datetime(2026, 1, 2))


def test_events_come_back_from_plain_values(served):
    served.observe("anna", "b", 4.0, at="before")
    served.correct("o0", None)
    served.suspend("a", "late")
    for event in served.events:
        assert events.from_plain(events.to_plain(event)) == event


@pytest.mark.parametrize(
    "change",
    [
        {"event": "Erased"},
        {"value": "3.0"},
        {"value": True},
        {"decision": 3},
        {"seq": 1.5},
        {"request_id": 5},
    ],
)
def test_events_of_other_types_are_refused(change):
    plain = events.to_plain(Rewarded("d0", 3.0, seq=4)) | change
    with pytest.raises((KeyError, ValueError)):
        events.from_plain(plain)


def test_a_seed_is_drawn_and_recorded():
    first, second = (make_study(seed=None) for _ in range(2))
    assert first.design.seed != second.design.seed
    assert first.events[0].design.seed == first.design.seed
    first.enrol("anna")
    assert Study.replay(first.events).decide("anna") == first.decide("anna")


def test_a_repeated_request_gets_the_first_answer():
    study = make_study()
    study.enrol("anna", request_id="e")
    first = study.decide("anna", request_id="one")
    assert study.decide("anna", request_id="two") == first
    study.reward(first.id, 3.0, request_id="three")
    other = study.decide("anna")
    assert other != first
    num_events = len(study.events)
    for name in ("one", "two"):
        assert study.decide("anna", request_id=name) == first
    study.reward(first.id, 3.0, request_id="three")
    study.enrol("anna", request_id="e")
    assert len(study.events) == num_events
    assert [study.observe("anna", "a", 2.0, request_id="o") for _ in range(2)] == ["o0", "o0"]
    with pytest.raises(ConflictError, match=r"new request id; got request_id='one'"):
        study.withdraw("anna", request_id="one")
    with pytest.raises(ConflictError, match=r"answered with other arguments"):
        study.reward(first.id, 4.0, request_id="three")
    with pytest.raises(InputError, match=r"request id of 1 to 256 characters"):
        study.decide("anna", request_id="")


def test_a_request_is_the_same_however_its_arguments_are_spelled():
    study = make_study()
    study.enrol("anna", {"age": 30}, request_id="e")
    study.enrol("anna", {"age": np.float32(30.0)}, request_id="e")
    made = study.decide("anna", {"a", "b", "c"}, request_id="d")
    assert study.decide("anna", ("c", "b", "a"), request_id="d") == made
    study.reward(made.id, 3, request_id="r")
    study.reward(made.id, 3.0, request_id="r")
    study.enrol("ben", request_id="b")
    study.enrol("ben", {"age": None}, request_id="b")
    assert len(study.events) == 5


def test_a_request_with_impossible_arguments_is_refused_as_without_an_id():
    study, circle, deep = make_study(), {}, []
    circle["age"] = circle
    for _ in range(100_000):
        deep = [deep]
    for context in ({1: 2, "age": 30}, {(1,): 2}, circle, {"age": deep}, {"age": object()}):
        for request_id in (None, "r"):
            with pytest.raises(CocoError, match="Expected"):
                study.enrol("anna", context, request_id=request_id)
    assert len(study.events) == 1


def test_a_request_that_changed_nothing_is_remembered():
    """Its late repetition must not act on what has changed since."""
    study = make_study()
    study.enrol("anna")
    made = study.decide("anna")
    study.reward(made.id, 3.0)
    study.correct(made.id, 3.0, request_id="c")
    study.suspend("a")
    study.suspend("a", request_id="s")
    study.correct(made.id, 5.0)
    study.activate("a")
    before = study.events
    study.correct(made.id, 3.0, request_id="c")
    study.suspend("a", request_id="s")
    assert study.events == before
    assert study.arms["a"] == "active"
    assert Study.replay(before).events == before


def test_an_id_is_for_one_call_with_its_arguments():
    study = make_study()
    study.enrol("anna", {}, request_id="e")
    study.decide("anna", ["a", "b"], request_id="d")
    for call in (
        lambda: study.enrol("anna", {"age": 30}, request_id="e"),
        lambda: study.enrol("ben", {}, request_id="e"),
        lambda: study.decide("anna", ["c"], request_id="d"),
        lambda: study.reward("d0", np.array([3.0, 4.0]), request_id="d"),
    ):
        with pytest.raises(ConflictError, match="answered with other arguments"):
            call()


def test_observations_are_learned_like_rewards():
    """Closed form: the beliefs are those of decisions that gave the same rewards."""
    observed, decided = make_study(), make_study()
    for study in (observed, decided):
        study.enrol("anna")
    made = decided.decide("anna")
    decided.reward(made.id, 6.0)
    observed.observe("anna", made.arm, 6.0)
    assert observed.explain("anna") == decided.explain("anna")
    assert observed.events[-1] == Observed("o0", "anna", made.arm, 6.0, seq=2)
    assert observed.num_decisions == 0
    observed.correct("o0", None)
    decided.correct(made.id, None)
    assert observed.explain("anna") == decided.explain("anna")


def test_several_users_are_served_at_once_or_none():
    study, other = make_study(), make_study()
    for copy in (study, other):
        for name in USERS:
            copy.enrol(name)
    assert study.decide_many(USERS) == [other.decide(name) for name in USERS]
    with pytest.raises(UnknownNameError, match="user='dora'"):
        other.decide_many(["anna", "dora"])
    with pytest.raises(InputError, match=r"list of users; got users='anna'"):
        study.decide_many("anna")
    with pytest.raises(UnknownNameError, match=r"user=\['anna'\]"):
        study.decide_many([["anna"]])


def test_a_correction_to_the_same_value_changes_nothing():
    study, other = make_study("coids"), make_study("coids")
    for copy in (study, other):
        copy.enrol("anna")
        copy.reward(copy.decide("anna").id, 4.0)
    study.correct("d0", 4.0)
    assert state_of(study) == state_of(other)
    assert study.events == other.events


@pytest.mark.parametrize(
    "change",
    [
        lambda past: past[1:],
        lambda past: [*past[:2], past[1], *past[2:]],
        lambda past: [past[0], *past[2:]],
        lambda past: [*past, replace(past[1], seq=len(past))],
        lambda past: [
            *past,
            Decided("d99", "anna", "a", ARMS, *[(1.0, 0.0, 0.0)] * 2, 0.1, seq=len(past)),
        ],
        lambda past: [*past, Corrected("d77", 1.0, seq=len(past))],
        lambda past: past[:0],
        lambda _: None,
        lambda past: [*past, Withdrawn("anna", seq=3), Withdrawn("anna", seq=4)],
        lambda past: [*past, Withdrawn("anna", seq=3), Rewarded("d0", 1.0, seq=4)],
        lambda past: [*past, Rewarded("d0", 1.0, seq=3), Closed("d0", seq=4)],
        lambda past: [*past, replace(past[2], decision="d1", seq=3)],
        lambda past: [*past[:2], replace(past[2], eligible=("a", "b", "z"))],
        lambda past: [*past[:2], replace(past[2], eligible=())],
        lambda past: [*past[:2], replace(past[2], weights=(math.nan, 0.5, 0.5))],
        lambda past: [*past, Enrolled("", (None,), seq=3)],
        lambda past: [*past, Enrolled(7, (None,), seq=3)],
        lambda past: [*past, Observed("d1", "anna", "a", 1.0, seq=3)],
        lambda past: [
            *past,
            ArmChanged("a", "withdrawn", "", seq=3),
            ArmChanged("a", "active", "", seq=4),
        ],
        lambda past: [
            *past,
            *(
                Enrolled(f"u{n}", (None,), seq=n, request_id="r", request='["enrol"]')
                for n in (3, 4)
            ),
        ],
        lambda past: [*past, Closed("d0", seq=3, at="\ud800")],
        lambda past: [*past, Closed("d0", seq=3, at="x" * 257)],
        lambda past: [*past, Closed("d0", seq=3, request_id="", request='["close"]')],
        lambda past: [*past, Closed("d0", seq=3, request_id="r", request="junk")],
        lambda past: [*past, Closed("d0", seq=3, request_id="r")],
        lambda past: [*past, Answered(None, seq=3)],
        lambda past: [*past, Answered("d99", seq=3, request_id="r", request='["decide"]')],
    ],
    ids=[
        *("no start", "twice", "gap", "user twice", "decision id", "no reward", "nothing", "None"),
        *("withdrawn twice", "reward of withdrawn", "closed after reward", "two open decisions"),
        *("unknown arm", "no arm", "no probabilities", "no name", "number as name"),
        *("id of an observation", "arm comes back", "request twice", "half a character"),
        *("long time", "empty request", "request that is no JSON", "request without call"),
        *("answer to nothing", "answer with no decision"),
    ],
)
def test_events_that_are_no_study_are_refused(change):
    study = make_study()
    study.enrol("anna")
    study.decide("anna")
    with pytest.raises(ConflictError, match="Expected the events of a study"):
        Study.replay(change(list(study.events)))


def test_messages_name_no_other_user():
    study = make_study()
    for number in range(3):
        study.enrol(f"secret-{number}")
    study.withdraw("secret-2")
    for name, remedy in (("dora", "Enrol the user first"), ("secret-2", "under another id")):
        for call in (study.decide, study.explain, study.withdraw, study.context):
            with pytest.raises(UnknownNameError, match=remedy) as caught:
                call(name)
            assert "secret-0" not in str(caught.value)


def test_eight_threads_lose_nothing(tmp_path):
    """Threads serve their own users while others save and ask; log and learner agree."""
    study, num_steps = make_study("coids"), 6
    study.warm_up()
    ends = threading.Event()

    def serve(name):
        study.enrol(name, {"age": 50})
        for step in range(num_steps):
            study.reward(study.decide(name).id, 5.0 + step / 10)

    def ask(number):
        while not ends.is_set():
            study.save(tmp_path / f"{number}.study")
            study.explain("first")
            study.log()
            assert len(study.events) > 1

    study.enrol("first", {"age": 20})
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, number) for number in range(2)]
        done = [pool.submit(serve, f"user-{number}") for number in range(6)]
        for each in done:
            each.result()
        ends.set()
        for each in asked:
            each.result()
    counts = np.asarray(study._learner.users.statistics.count)
    assert counts.sum() == study.num_decisions == 6 * num_steps
    assert study.describe().num_rewards == 6 * num_steps
    assert [event.seq for event in study.events] == list(range(len(study.events)))
    assert state_of(Study.replay(study.events)) == state_of(study)
    assert state_of(Study.load(tmp_path / "0.study"))[0][0] == study.design


def test_simultaneous_calls_for_one_user_make_one_decision():
    study = make_study()
    study.enrol("anna")
    barrier = threading.Barrier(8)

    def decide(_):
        barrier.wait()
        return study.decide("anna")

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(decide, range(8)))
    assert len(set(map(repr, made))) == study.num_decisions == 1


def test_every_public_method_holds_the_lock():
    for name in dir(Study):
        member = getattr(Study, name)
        if name.startswith("_") or name in ("load", "replay"):
            continue
        function = member.fget if isinstance(member, property) else member
        assert hasattr(function, "__wrapped__"), name
