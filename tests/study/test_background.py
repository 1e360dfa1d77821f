"""Moves in the background: nothing waits for them, and nothing is lost by it."""

import gc
import itertools
import subprocess
import sys
import threading
import time
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits import Gaussian, LogDensity, Study
from cocobandits.errors import ConfigurationError, ConflictError, NumericalError
from cocobandits.models.base import Statistics
from cocobandits.models.histories import Change
from support.designs import small

MOST_SECONDS = 120


def make_study(moves="background", policy="npm-ts", **changes) -> Study:
    settings, rewards = small(policy, **changes), Gaussian(-2.0, 2.0, noise=0.1)
    return Study(["plan-1", "plan-2"], {"age": (18, 90)}, rewards, settings, seed=2, moves=moves)


class Gate:
    """Hold back the moves of a study; `let(n)` lets so many updates pass."""

    def __init__(self, study: Study) -> None:
        self._passes = threading.Semaphore(0)
        self._move = study._learner.background._move
        study._learner.background._move = self._hold

    def _hold(self, *arguments):
        assert self._passes.acquire(timeout=MOST_SECONDS)
        return self._move(*arguments)

    def let(self, num_updates: int = 1000) -> None:
        for _ in range(num_updates):
            self._passes.release()


def moving_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("moves-of")]


def wait_for_threads() -> None:
    for thread in moving_threads():
        thread.join(MOST_SECONDS)
        assert not thread.is_alive()


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    wait_for_threads()


def leaves_of(study: Study) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(study._learner.remember()[:2])]


def assert_same_bits(left: Study, right: Study) -> None:
    for one, other in zip(leaves_of(left), leaves_of(right), strict=True):
        assert one.tobytes() == other.tobytes()


def serve(study: Study, user: str, value: float):
    decision = study.decide(user)
    study.reward(decision.id, value if decision.arm == "plan-1" else -value / 2)
    return decision


def start_moves(study: Study) -> None:
    """Enrol users and reward them until moves are under way."""
    for number in itertools.count():
        study.enrol(f"first-{number}", {"age": 20 + number})
        serve(study, f"first-{number}", 1.7)
        if study._learner.background._job is not None:
            return


def go_on(study: Study, num_users: int = 4) -> list:
    """Reward, correct, withdraw and enrol; return all decisions."""
    made = []
    for number in range(num_users):
        user = f"later-{number}"
        study.enrol(user, {"age": 80 - 9 * number})
        made += [serve(study, user, value) for value in (0.4, -0.9 + number / 5)]
    study.correct(made[0].id, 0.1)
    study.correct(made[3].id, None)
    study.withdraw("later-2")
    made.append(serve(study, "later-1", 0.3))
    return made


def choose_blindly(study: Study) -> Study:
    """Let arms depend on nothing but the seed, so that two modes meet the same rewards."""
    study._policy.probabilities = lambda *_: jnp.full(2, 0.5)
    return study


def test_nothing_waits_for_moves():
    study = make_study()
    gate = Gate(study)
    start_moves(study)
    [thread] = moving_threads()
    made = go_on(study)
    assert thread.is_alive()
    assert study.adoptions == ()
    assert len(made) == 9
    assert not study.health.is_rejuvenated
    gate.let()
    study.catch_up()
    assert study.adoptions
    assert not moving_threads()


def test_caught_up_particles_are_those_of_the_foreground():
    """The same rewards, corrections and withdrawals, however the moves are held up."""
    waiting, study = (
        choose_blindly(make_study(mode, policy="coids")) for mode in ("foreground", "background")
    )
    gate = Gate(study)
    start_moves(study)
    num_users = len(study.users)
    for number in range(num_users):
        waiting.enrol(f"first-{number}", {"age": 20 + number})
        serve(waiting, f"first-{number}", 1.7)
    go_on(waiting)
    gate.let(1)
    go_on(study)
    assert any(
        one.tobytes() != other.tobytes()
        for one, other in zip(leaves_of(study), leaves_of(waiting), strict=True)
    )
    gate.let()
    study.catch_up()
    assert len(study.adoptions) > 2
    assert_same_bits(study, waiting)
    assert study.users == waiting.users
    assert study.log_evidence == waiting.log_evidence


def test_catching_up_after_every_reward_is_the_foreground():
    foreground, study = make_study("foreground"), make_study()
    for number in range(6):
        decisions = []
        for copy in (foreground, study):
            copy.enrol(f"user-{number}", {"age": 20 + 10 * number})
            decisions.append(serve(copy, f"user-{number}", 1.1 - number / 3))
            copy.catch_up()
        assert decisions[0] == decisions[1]
        assert_same_bits(foreground, study)
        assert str(foreground.health) == str(study.health)
    assert foreground.adoptions == ()
    assert [adoption.update for adoption in study.adoptions] == [
        adoption.num_updates - 1 for adoption in study.adoptions
    ]


def test_adopted_weights_are_the_evidence_of_what_came_meanwhile():
    """Moves leave equal weights; each changed user multiplies them by a ratio of evidences."""
    study = make_study()
    gate = Gate(study)
    start_moves(study)
    before = study._learner.users
    for number, value in enumerate((0.4, 0.2)):
        study.enrol(f"later-{number}", {"age": 50 + number})
        serve(study, f"later-{number}", value)
    after = study._learner.users
    live_log_weights = study._state.log_weights
    gate.let(1)
    wait_for_threads()
    study.explain("later-0")  # adopts
    assert len(study.adoptions) == 1
    evidence = jax.vmap(study._policy.model.log_evidence, in_axes=(0, None, None))
    particles = study._state.particles
    ratios = jnp.zeros(len(particles))
    for user in range(int(after.num_users)):
        context, statistics = after.of(user)
        ratios += evidence(particles, context, statistics)
        ratios -= evidence(particles, context, before.of(user)[1])
    expected = ratios - jax.scipy.special.logsumexp(ratios)
    found = study._state.log_weights
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert not np.allclose(found, live_log_weights)
    assert study.health.is_rejuvenated
    for one, other in zip(
        jax.tree.leaves(study._learner.users), jax.tree.leaves(after), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    gate.let()
    study.catch_up()


def test_replay_is_bit_for_bit():
    """Adoptions fell where threads happened to end; the record tells where."""
    study = make_study(policy="coids")
    gate = Gate(study)
    start_moves(study)
    num_users = len(study.users)
    made = go_on(study)
    gate.let(2)
    wait_for_threads()
    study.enrol("last", {"age": 33})
    made += [serve(study, "last", value) for value in (1.1, 0.7, -0.2)]
    gate.let()
    made += [serve(study, "last", value) for value in (0.1, 0.3)]
    study.catch_up()
    made.append(study.decide("last"))
    assert len({adoption.num_updates for adoption in study.adoptions}) > 1

    again = make_study(study.adoptions, policy="coids")
    for number in range(num_users):
        again.enrol(f"first-{number}", {"age": 20 + number})
        serve(again, f"first-{number}", 1.7)
    repeated = go_on(again)
    again.enrol("last", {"age": 33})
    repeated += [serve(again, "last", value) for value in (1.1, 0.7, -0.2, 0.1, 0.3)]
    repeated.append(again.decide("last"))
    assert repeated == made
    assert again.adoptions == study.adoptions
    assert_same_bits(again, study)


def test_replay_refuses_other_calls():
    study = make_study([(0, 1, 1)])
    study.enrol("anna", {"age": 34})
    serve(study, "anna", 0.01)
    with pytest.raises(ConflictError, match=r"num_updates=1.*\(2, 1\) updates and decisions"):
        study._learner.background.adopt(2, 1, is_waiting=False)


def test_replay_refuses_to_adopt_early():
    """Waiting for moves that the record adopts later would decide on other particles."""
    study = make_study([(1, 9, 9)])
    start_moves(study)
    with pytest.raises(ConflictError, match="to be adopted later, as the record says"):
        study.catch_up()


def test_withdrawn_user_is_gone_from_the_moves_too():
    study = make_study()
    gate = Gate(study)
    start_moves(study)
    study.withdraw("first-0")
    gate.let()
    study.catch_up()
    statistics = study._learner.users.of(0)[1]
    np.testing.assert_array_equal(statistics.count, 0.0)
    assert "first-0" not in study.users


@pytest.mark.parametrize(
    ("error", "expected", "told"),
    [
        (
            NumericalError("Expected a; got b."),
            NumericalError,
            r"update=\d+, which failed: Expected a; got b\. .*repeat it",
        ),
        (MemoryError("full"), MemoryError, "full"),
    ],
)
def test_error_of_the_moves_is_raised_once(error, expected, told):
    study = make_study()
    move = study._learner.background._move

    def fail(*_):
        raise error

    study._learner.background._move = fail
    start_moves(study)
    study._learner.background._move = move
    wait_for_threads()
    decision = study.decide("first-0")
    before = leaves_of(study)
    with pytest.raises(expected, match=told):
        study.reward(decision.id, 0.2)
    assert all(np.array_equal(*pair) for pair in zip(before, leaves_of(study), strict=True))
    assert len(study.adoptions) == 1
    study.reward(decision.id, 0.2)
    assert study.decide("first-0").id != decision.id


@pytest.mark.parametrize("call", ["catch_up", "save"])
def test_error_of_the_moves_is_raised_by_whoever_waits(call, tmp_path):
    study = make_study()

    def fail(*_):
        raise NumericalError("Expected a; got b.")

    study._learner.background._move = fail
    start_moves(study)
    arguments = [tmp_path / "one.study"] if call == "save" else []
    with pytest.raises(NumericalError, match=r"Expected a; got b"):
        getattr(study, call)(*arguments)
    getattr(study, call)(*arguments)


def test_saving_waits_for_the_moves(tmp_path):
    path = tmp_path / "one.study"
    study = make_study()
    gate = Gate(study)
    start_moves(study)
    serve(study, "first-0", 0.3)
    gate.let()
    study.save(path)
    assert study.adoptions
    assert study._learner.background._job is None
    for mode in ("foreground", "background"):
        loaded = Study.load(path, moves=mode)
        assert loaded.adoptions == study.adoptions
        assert_same_bits(loaded, study)
        assert (loaded._learner.background is None) == (mode == "foreground")
    go_on(loaded)
    loaded.catch_up()
    assert loaded.adoptions[: len(study.adoptions)] == study.adoptions
    again = Study.load(path, moves=loaded.adoptions)
    assert go_on(again) == [
        loaded.decision(f"d{number}") for number in range(study.num_decisions, loaded.num_decisions)
    ]


@pytest.mark.parametrize("policy", ["mtts", "ind-ts", "uniform"])
def test_policy_without_particles_has_nothing_to_move(policy):
    foreground, study = make_study("foreground", policy), make_study("background", policy)
    assert go_on(foreground) == go_on(study)
    assert study.adoptions == ()
    assert not moving_threads()


@pytest.mark.parametrize("mode", ["later", "", None, 3, [(1, 2)], [(1, 2, "3")]])
def test_other_modes_are_refused(mode, tmp_path):
    told = r"Expected moves in \('foreground', 'background'\).*got moves="
    with pytest.raises(ConfigurationError, match=told):
        make_study(mode)
    with pytest.raises(ConfigurationError, match=told):
        Study.load(tmp_path / "none.study", moves=mode)


def test_thread_does_not_hold_on_to_the_study():
    study = make_study()
    gate = Gate(study)
    start_moves(study)
    alive = weakref.ref(study)
    del study
    gc.collect()
    assert alive() is None
    gate.let()
    wait_for_threads()
    assert not moving_threads()


_ENDING = """
from cocobandits import CoIDS, Gaussian, LogDensity, Study
policy = CoIDS(LogDensity(nodes_per_arm=6, num_modes=20), num_particles=40)
study = Study(["a", "b"], {}, Gaussian(-2, 2, noise=0.1), policy, moves="background")
while study._learner.background._job is None:
    study.enrol(str(study.num_decisions))
    study.reward(study.decide(str(study.num_decisions)).id, 1.7)
print("ends while particles move")
"""


def test_interpreter_ends_in_order():
    command = [sys.executable, "-c", _ENDING]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "ends while particles move\n"
    assert done.stderr == ""


LONG = {
    "population": LogDensity(nodes_per_arm=8, num_modes=40),
    "max_blocks": 30,
    "correlation_target": 1e-9,
}


def test_calls_are_much_shorter_than_moves():
    """Measure decisions and rewards while real moves, compiled or not, take their time."""
    study = make_study(policy="coids", **LONG)
    study.enrol("anna", {"age": 34})
    empty = Statistics.empty(2)
    study._policy.reweigh(
        jax.random.key(0), study._state, Change.of(study._learner.users, 0, empty)
    )  # compiles
    study.decide("anna")
    start_moves(study)
    [thread] = moving_threads()
    start, seconds = time.perf_counter(), []
    while thread.is_alive() and len(seconds) < 200:
        before = time.perf_counter()
        serve(study, "anna", 0.2)
        seconds.append(time.perf_counter() - before)
        time.sleep(0.02)
    thread.join()
    duration = time.perf_counter() - start
    study.catch_up()
    print(f"{len(seconds)} calls, 95 % {np.quantile(seconds, 0.95):.4f} s, moves {duration:.2f} s")
    assert len(seconds) >= 5
    assert np.quantile(seconds, 0.95) < duration / 10
