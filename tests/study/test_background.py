"""Moves in the background: nothing waits for them, and nothing is lost by it."""

import gc
import itertools
import os
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import Future
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits import Gaussian, LogDensity, Study
from cocobandits.errors import ConfigurationError, NumericalError
from cocobandits.study.events import MovesAdopted
from cocobandits.study.learner import Learner
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change
from cocobandits.workers.moves import ProcessMover
from support.designs import GRID, small

MOST_SECONDS = 120
# One process for all studies of this module.
MOVER = ProcessMover()


def make_study(moves=MOVER, policy="npm-ts", **changes) -> Study:
    settings, rewards = small(policy, **changes), Gaussian(-2.0, 2.0, noise=0.1)
    return Study(["plan-1", "plan-2"], {"age": (18, 90)}, rewards, settings, seed=2, moves=moves)


class Gate:
    """A mover that holds every update back; `let(n)` lets this many pass."""

    def __init__(self) -> None:
        self._passes = threading.Semaphore(0)

    def submit(self, *arguments):
        future = MOVER._queue.submit(self._hold)
        del future
        return MOVER.submit(*arguments)

    def _hold(self):
        assert self._passes.acquire(timeout=MOST_SECONDS)

    def let(self, num_updates: int = 1000) -> None:
        for _ in range(num_updates):
            self._passes.release()


class Failing:
    """A mover whose every update fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def submit(self, *_):
        future = Future()
        future.set_exception(self.error)
        return future


def adoptions(study: Study) -> list[MovesAdopted]:
    return [event for event in study.events if isinstance(event, MovesAdopted)]


def wait_for_moves(study: Study) -> None:
    study._moving.result.exception(MOST_SECONDS)


def leaves_of(study: Study) -> list[np.ndarray]:
    return [
        np.asarray(leaf) for leaf in jax.tree.leaves((study._learner.users, study._learner.state))
    ]


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
        if study.is_moving or adoptions(study):
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


def go_further(study: Study) -> None:
    """Reward users as no one was before, so that moves are due several times."""
    for number, value in enumerate((-1.8, 1.2, -1.8, 1.9, -1.9, 1.6, -0.3, 1.9)):
        study.enrol(f"last-{number}", {"age": 25 + 8 * number})
        serve(study, f"last-{number}", value)


def blind_weights(_, __, ___):
    """Let arms depend on nothing but the seed, so that two modes meet the same rewards."""
    return np.full(2, 0.5)


def test_nothing_waits_for_moves():
    gate = Gate()
    study = make_study(gate)
    start_moves(study)
    made = go_on(study)
    assert study.is_moving
    assert adoptions(study) == []
    assert len(made) == 9
    assert not study.health.is_rejuvenated
    gate.let()
    study.catch_up()
    assert adoptions(study)
    assert not study.is_moving


def test_caught_up_particles_are_those_of_the_foreground(monkeypatch):
    """The same rewards, corrections and withdrawals, however the moves are held up."""
    monkeypatch.setattr(Learner, "weights", blind_weights)
    gate = Gate()
    waiting, study = make_study("foreground", "coids"), make_study(gate, "coids")
    start_moves(study)
    num_users = len(study.users)
    for number in range(num_users):
        waiting.enrol(f"first-{number}", {"age": 20 + number})
        serve(waiting, f"first-{number}", 1.7)
    go_on(waiting)
    go_further(waiting)
    gate.let(1)
    go_on(study)
    go_further(study)
    assert any(
        one.tobytes() != other.tobytes()
        for one, other in zip(leaves_of(study), leaves_of(waiting), strict=True)
    )
    gate.let()
    study.catch_up()
    assert len(adoptions(study)) > 2
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
    assert adoptions(foreground) == []
    assert adoptions(study)


def test_adopted_weights_are_the_evidence_of_what_came_meanwhile():
    """Moves leave equal weights; each changed user multiplies them by a ratio of evidences."""
    gate = Gate()
    # In double precision, since what is compiled together rounds otherwise.
    study = make_study(gate, population=replace(GRID, precision="double"))
    start_moves(study)
    before = study._learner.users
    for number, value in enumerate((0.4, 0.2)):
        study.enrol(f"later-{number}", {"age": 50 + number})
        serve(study, f"later-{number}", value)
    after = study._learner.users
    live_log_weights = study._learner.state.log_weights
    gate.let(1)
    wait_for_moves(study)
    study.explain("later-0")  # changes nothing
    assert adoptions(study) == []
    study.decide("later-0")
    assert len(adoptions(study)) == 1
    evidence = jax.vmap(study._learner.policy.model.log_evidence, in_axes=(0, None, None))
    particles = study._learner.state.particles
    ratios = jnp.zeros(len(particles))
    for user in range(int(after.num_users)):
        context, statistics = after.of(user)
        ratios += evidence(particles, context, statistics)
        ratios -= evidence(particles, context, before.of(user)[1])
    expected = ratios - jax.scipy.special.logsumexp(ratios)
    found = study._learner.state.log_weights
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert not np.allclose(found, live_log_weights)
    assert study.health.is_rejuvenated
    for one, other in zip(
        jax.tree.leaves(study._learner.users), jax.tree.leaves(after), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    gate.let()
    study.catch_up()


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(lambda study: study.explain("first-0"), id="explain"),
        pytest.param(lambda study: study.population({"age": 40}), id="population"),
        pytest.param(lambda study: study.diagnose(), id="diagnose"),
        pytest.param(
            lambda study: (study.describe(), study.log(), study.hyperparameters(), study.health),
            id="describe, log, hyperparameters, health",
        ),
    ],
)
def test_queries_change_no_later_decision(query):
    """Ask before every command while moves come and go: decisions are the same."""
    gate = Gate()
    studies = [make_study(gate), make_study(gate)]
    for study in studies:
        start_moves(study)
    for number, is_let in enumerate((False, True, False, True)):
        if is_let:
            gate.let(2)
            for study in studies:
                wait_for_moves(study)
        user, made = f"later-{number}", ([], [])
        commands = (
            lambda study, _, user=user: study.enrol(user, {"age": 50}),
            lambda study, made, user=user: made.append(study.decide(user)),
            lambda study, made: study.reward(
                made[-1].id, 0.4 if made[-1].arm == "plan-1" else -0.2
            ),
        )
        for command in commands:
            before = leaves_of(studies[1])
            query(studies[1])
            assert all(map(np.array_equal, before, leaves_of(studies[1])))
            for each in zip(studies, made, strict=True):
                command(*each)
        assert made[0] == made[1]
        assert len(adoptions(studies[0])) == len(adoptions(studies[1]))
    gate.let()
    for study in studies:
        study.catch_up()
    assert_same_bits(*studies)


def test_replay_is_bit_for_bit():
    """Adoptions fell where moves happened to end; events say where."""
    study = make_study(policy="coids")
    start_moves(study)
    go_on(study)
    study.enrol("last", {"age": 33})
    for value in (1.1, 0.7, -0.2, 0.1, 0.3):
        serve(study, "last", value)
    study.catch_up()
    study.decide("last")
    assert adoptions(study)
    again = Study.replay(study.events)
    assert_same_bits(again, study)
    assert study.verify() == ()
    assert again.decide("last") == study.decide("last")


def test_withdrawn_user_is_gone_from_the_moves_too():
    gate = Gate()
    study = make_study(gate)
    start_moves(study)
    study.withdraw("first-0")
    gate.let()
    study.catch_up()
    statistics = study._learner.users.of(0)[1]
    np.testing.assert_array_equal(statistics.count, 0.0)
    assert "first-0" not in study.users


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (
            NumericalError("Expected a; got b."),
            NumericalError,
            r"update=\d+, which failed: Expected a; got b\. .*repeat it",
        ),
        (MemoryError("full"), MemoryError, "full"),
    ],
)
def test_error_of_the_moves_is_raised_once(error, expected, message):
    study = make_study(Failing(error))
    start_moves(study)
    study._mover = MOVER
    decision = study.decide("first-0")
    before = leaves_of(study)
    with pytest.raises(expected, match=message):
        study.reward(decision.id, 0.2)
    assert all(np.array_equal(*pair) for pair in zip(before, leaves_of(study), strict=True))
    assert [event.is_failed for event in adoptions(study)] == [True]
    study.reward(decision.id, 0.2)
    assert study.decide("first-0").id != decision.id
    study.catch_up()
    assert_same_bits(Study.replay(study.events), study)


class Interrupted(Future):
    """A result that is not there when it is first waited for."""

    is_new = True

    def exception(self, timeout=None):
        if self.is_new:
            self.is_new = False
            raise KeyboardInterrupt
        return super().exception(timeout)


class Interrupting:
    """A mover whose results are interrupted once."""

    def submit(self, *arguments):
        future = Interrupted()
        future.set_result(MOVER.submit(*arguments).result(MOST_SECONDS))
        return future


def test_an_interrupted_wait_loses_no_moves(tmp_path):
    study = make_study(Interrupting())
    start_moves(study)
    for _ in range(10):
        try:
            study.catch_up()
        except KeyboardInterrupt:
            assert study.is_moving
        else:
            break
    assert not study.is_moving
    assert adoptions(study)
    assert not any(event.is_failed for event in adoptions(study))
    study.add_arm("plan-3")
    study.save(tmp_path / "one.study")
    assert_same_bits(Study.replay(study.events), study)


class Refusing:
    """A mover that cannot be given anything."""

    def submit(self, *_):
        raise OSError("no more threads")


def test_a_mover_that_refuses_work_fails_like_moves():
    """The call that made moves due was recorded, so it must not raise."""
    study = make_study(Refusing())
    start_moves(study)
    num_rewards = study.describe().num_rewards
    study.enrol("later", {"age": 40})
    assert study.users[-1] == "later"
    decision = study.decide("later")
    with pytest.raises(OSError, match="no more threads"):
        study.reward(decision.id, 0.5)
    assert study.describe().num_rewards == num_rewards
    study.reward(decision.id, 0.5)
    assert_same_bits(Study.replay(study.events, moves=MOVER), study)


@pytest.mark.parametrize("call", ["catch_up", "save"])
def test_error_of_the_moves_is_raised_by_whoever_waits(call, tmp_path):
    study = make_study(Failing(NumericalError("Expected a; got b.")))
    start_moves(study)
    arguments = [tmp_path / "one.study"] if call == "save" else []
    with pytest.raises(NumericalError, match=r"Expected a; got b"):
        getattr(study, call)(*arguments)
    getattr(study, call)(*arguments)


def test_saving_waits_for_the_moves(tmp_path):
    path, gate = tmp_path / "one.study", Gate()
    study = make_study(gate)
    start_moves(study)
    serve(study, "first-0", 0.3)
    gate.let()
    study.save(path)
    assert adoptions(study)
    assert not study.is_moving
    for moves in ("foreground", MOVER):
        loaded = Study.load(path, moves=moves)
        assert adoptions(loaded) == adoptions(study)
        assert str(loaded.health) == str(study.health)
        assert_same_bits(loaded, study)
    go_on(loaded)
    loaded.catch_up()
    assert_same_bits(Study.replay(loaded.events), loaded)


@pytest.mark.parametrize("policy", ["mtts", "ind-ts", "uniform"])
def test_policy_without_particles_has_nothing_to_move(policy):
    foreground, study = make_study("foreground", policy), make_study(policy=policy)
    assert go_on(foreground) == go_on(study)
    assert adoptions(study) == []


@pytest.mark.parametrize("mode", ["later", "", None, 3, [(1, 2)], ProcessMover])
def test_other_modes_are_refused(mode, tmp_path):
    message = r"Expected moves in \('foreground', 'background'\).*got moves="
    with pytest.raises(ConfigurationError, match=message):
        make_study(mode)
    with pytest.raises(ConfigurationError, match=message):
        Study.load(tmp_path / "none.study", moves=mode)


def test_moves_do_not_hold_on_to_the_study():
    gate = Gate()
    study = make_study(gate)
    start_moves(study)
    alive = weakref.ref(study)
    del study
    gc.collect()
    assert alive() is None
    gate.let()


_ENDING = """
from cocobandits import CoIDS, Gaussian, LogDensity, Study
policy = CoIDS(LogDensity(nodes_per_arm=6, num_modes=20), num_particles=40)
study = Study(["a", "b"], {}, Gaussian(-2, 2, noise=0.1), policy, seed=0, moves="background")
while not study.is_moving:
    study.enrol(str(study.num_decisions))
    study.reward(study.decide(str(study.num_decisions)).id, 1.7)
print("ends while particles move")
"""


def test_interpreter_ends_in_order():
    command = [sys.executable, "-c", _ENDING]
    # The notice of compilation depends on the cache.
    quiet = os.environ | {"COCOBANDITS_QUIET": "1"}
    done = subprocess.run(
        command, env=quiet, capture_output=True, text=True, check=True, timeout=300
    )
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
    study._learner.policy.reweigh(
        jax.random.key(0), study._learner.state, Change.of(study._learner.users, 0, empty)
    )  # compiles
    study.decide("anna")
    start_moves(study)
    result = study._moving.result
    start, seconds = time.perf_counter(), []
    while not result.done() and len(seconds) < 200:
        before = time.perf_counter()
        serve(study, "anna", 0.2)
        seconds.append(time.perf_counter() - before)
        time.sleep(0.02)
    result.exception(MOST_SECONDS)
    duration = time.perf_counter() - start
    study.catch_up()
    print(f"{len(seconds)} calls, 95 % {np.quantile(seconds, 0.95):.4f} s, moves {duration:.2f} s")
    assert len(seconds) >= 5
    assert np.quantile(seconds, 0.95) < duration / 10


class Counting:
    """A mover that answers when it is asked to, and counts what it was given."""

    def __init__(self) -> None:
        self.given, self.futures = [], []

    def submit(self, *arguments):
        self.given.append(arguments)
        self.futures.append(Future())
        return self.futures[-1]

    def answer(self, number: int) -> None:
        if self.futures[number].set_running_or_notify_cancel():
            result = MOVER.submit(*self.given[number]).result(MOST_SECONDS)
            self.futures[number].set_result(result)


def learned_study(mover) -> tuple[Study, list[str]]:
    study = make_study(mover)
    study.enrol("first", {"age": 30})
    study.enrol("second", {"age": 70})
    sources = []
    for user, arm, value in (
        ("first", "plan-1", 0.4),
        ("second", "plan-2", -0.3),
        ("first", "plan-2", 0.5),
    ):
        sources.append(study.observe(user, arm, value))
        study.catch_up()
    return study, sources


def test_the_newest_removal_supersedes_those_before():
    """Three corrections in a row: decisions go on, and one set of particles is adopted."""
    study, sources = learned_study(MOVER)
    earlier, mover = len(adoptions(study)), Counting()
    study._mover = mover
    for value in (0.1, 0.2, 0.3):
        study.correct(sources[0], value)
        study.close(study.decide("second").id)
    newest = study._learner.num_updates - 1
    assert study.is_moving
    assert [future.cancelled() for future in mover.futures] == [True, True, False]
    study.enrol("third", {"age": 50})
    study.observe("third", "plan-1", 0.6)
    mover.answer(2)
    study.decide("third")
    assert [event.update for event in adoptions(study)[earlier:]] == [newest]
    study._mover = MOVER
    study.catch_up()
    plain = make_study("foreground")
    for event in study.events[1:]:
        if not isinstance(event, MovesAdopted):
            plain._record(replace(event, seq=-1))
    assert_same_bits(plain, study)
    assert_same_bits(Study.replay(study.events, moves=MOVER), study)
    assert study.verify() == ()


def test_a_removal_supersedes_moves_that_are_computed_already():
    """What the process computes then is not adopted, whether it fails or not."""
    study, sources = learned_study(MOVER)
    earlier, mover = len(adoptions(study)), Counting()
    study._mover = mover
    study.correct(sources[0], 0.1)
    assert mover.futures[0].set_running_or_notify_cancel()
    study.withdraw("second")
    mover.futures[0].set_exception(MemoryError("full"))
    mover.answer(1)
    study._mover = MOVER
    study.catch_up()
    assert [event.is_failed for event in adoptions(study)[earlier:]] == [False]
    assert_same_bits(Study.replay(study.events, moves=MOVER), study)


def test_a_mistyped_reward_is_forgotten():
    """It drowns the evidence of all others, until the particles learned again are adopted."""
    rewards = Gaussian(-2.0, 2.0, noise=0.1, limits=(-1e10, 1e10))
    study = Study(["plan-1", "plan-2"], {}, rewards, small("npm-ts"), seed=2, moves=Counting())
    plain = Study(["plan-1", "plan-2"], {}, rewards, small("npm-ts"), seed=2)
    for each, first in ((study, 1e9), (plain, 0.4)):
        each.enrol("anna")
        each.observe("anna", "plan-1", first)
        each.observe("anna", "plan-1", 0.5)
    study.correct("o0", 0.4)
    study._mover.answer(-1)
    study._mover = MOVER
    study.catch_up()
    # Two estimates of one number, each with a deviation of a fifth.
    assert abs(study.log_evidence - plain.log_evidence) < 1.0
    found, expected = study.diagnose(), plain.diagnose()
    for candidate in ("gaussian", "no-sharing"):
        assert found.log_evidences[candidate] == expected.log_evidences[candidate]
