"""The process that computes moves: the same particles, and an orderly end however it comes."""

import os
import pickle
import signal
import subprocess
import sys
import time
from enum import StrEnum
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits import Gaussian, Study
from cocobandits.errors import ConflictError, CrashedError, NumericalError, UnknownNameError
from cocobandits.study.learner import recipe_of
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change
from cocobandits.workers import moves
from cocobandits.workers.moves import ProcessMover
from support.designs import small

REWARDS = Gaussian(-2.0, 2.0, noise=0.1)
KEY = jax.random.key(3)
MOVER = ProcessMover()
REWARDED = Statistics.empty(2).add(0, 0.7)
MOST_SECONDS = 120


def make_study(policy="coids") -> Study:
    study = Study(["a", "b"], {"age": (18, 90)}, REWARDS, small(policy, move_every=1), seed=0)
    study.enrol("anna", {"age": 34})
    return study


def change_of(study: Study, user: int, statistics) -> Change:
    return Change.of(study._learner.users, user, statistics)


def update_there(study: Study, statistics=REWARDED, mover=MOVER, key=KEY):
    return change_there(study, change_of(study, 0, statistics), mover, key)


def change_there(study: Study, change, mover=MOVER, key=KEY):
    recipe = recipe_of(study.design)
    return mover.submit(recipe, key, study._learner.state, change).result(MOST_SECONDS)


@pytest.mark.parametrize("policy", ["coids", "gids", "mtts"])
def test_particles_are_those_of_this_process(policy):
    study = make_study(policy)
    here = study._learner.policy.update(KEY, study._learner.state, change_of(study, 0, REWARDED))
    there = update_there(study)
    assert jax.tree.structure(there) == jax.tree.structure(here)
    for one, other in zip(jax.tree.leaves(there), jax.tree.leaves(here), strict=True):
        assert type(one) is type(other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_points_of_a_context_and_added_arms_arrive():
    """There, the policy is built for two arms and given a third, as it was here."""
    study = make_study()
    study.add_arm("c")
    study.enrol("bob", {})
    points = study._learner.users.of(1)[0][::-1]
    rewarded = Statistics.empty(3).add(2, 0.7)
    change = Change.of(study._learner.users, 1, rewarded, points)
    here = study._learner.policy.update(KEY, study._learner.state, change)
    there = change_there(study, change)
    for one, other in zip(jax.tree.leaves(there), jax.tree.leaves(here), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_other_kinds_of_keys_arrive():
    study = make_study()
    key = jax.random.key(3, impl="rbg")
    [here, _] = study._learner.policy.update(
        key, study._learner.state, change_of(study, 0, REWARDED)
    )
    [there, _] = update_there(study, key=key)
    np.testing.assert_array_equal(here.particles, there.particles)


def test_studies_share_the_process():
    for policy in ("coids", "gids"):
        update_there(make_study(policy))
    pid = MOVER.pid
    update_there(make_study("npm-ts"))
    assert MOVER.pid == pid != os.getpid()


def test_error_there_is_raised_here():
    impossible = Statistics.empty(2).add(0, jnp.nan)
    study = make_study()
    for _ in range(2):
        with pytest.raises(NumericalError, match="particle"):
            update_there(study, impossible)
    update_there(study)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConflictError("Expected a; got b."), ConflictError),
        (UnknownNameError("user", "anna", [], "Enrol."), RuntimeError),
    ],
)
def test_error_that_cannot_be_sent_becomes_text(error, kind):
    arrived = pickle.loads(moves._parcel(error))
    assert type(arrived) is kind
    assert str(error) in str(arrived)


@pytest.fixture
def deadly(monkeypatch):
    """Kill so many processes, each when it has got its request and before it can answer."""
    left, ask = [0], moves._Child.ask

    def ask_and_kill(child, request):
        if left[0] > 0:
            left[0] -= 1
            child.process.kill()
        return ask(child, request)

    monkeypatch.setattr(moves._Child, "ask", ask_and_kill)
    return left


def test_killed_process_is_replaced(deadly):
    """The update is computed again, and comes to the same particles."""
    study, process = make_study(), ProcessMover()
    [here, _] = update_there(study, mover=process)
    killed, deadly[0] = process.pid, 1
    [again, _] = update_there(study, mover=process)
    assert process.pid not in (None, killed)
    np.testing.assert_array_equal(again.particles, here.particles)


def test_two_killed_processes_are_told(deadly):
    study, process = make_study(), ProcessMover()
    deadly[0] = 2
    with pytest.raises(CrashedError, match="2 that ended, the last with exit code -9"):
        update_there(study, mover=process)
    assert process.pid is None
    update_there(study, mover=process)


def test_error_while_reading_an_answer_leaves_nothing_for_the_next(monkeypatch):
    """Otherwise the next update would be given the answer to this one."""
    study, process = make_study(), ProcessMover()
    other = Statistics.empty(2).add(1, -0.4)
    expected, _ = update_there(study, other, process)
    pid = process.pid
    with monkeypatch.context() as patched:

        def fail(_):
            raise MemoryError("full")

        patched.setattr(moves.pickle, "load", fail)
        with pytest.raises(MemoryError, match="full"):
            update_there(study, mover=process)
    found, _ = update_there(study, other, process)
    assert process.pid != pid
    np.testing.assert_array_equal(found.particles, expected.particles)


class Arm(StrEnum):
    """Names of a type that only the caller knows."""

    A = "a"
    B = "b"


def test_names_stay_with_the_caller():
    """Of a design, only what a policy is built from is sent, without names."""
    study = Study(list(Arm), {}, REWARDS, small("coids", move_every=1), seed=0)
    study.enrol("anna")
    sent = pickle.dumps(tuple(recipe_of(study.design)))
    assert b"anna" not in sent
    assert b"Arm" not in sent
    update_there(study)


def test_odd_entries_of_the_path_do_no_harm(monkeypatch):
    monkeypatch.setattr(sys, "path", ["", Path("somewhere"), *sys.path])
    update_there(make_study(), mover=ProcessMover())


def test_settings_that_cannot_be_changed_any_more_are_left():
    before = jax.config.values["jax_num_cpu_devices"]
    with pytest.raises(RuntimeError, match="before backends are initialized"):
        jax.config.update("jax_num_cpu_devices", 3)
    moves._adjust({"jax_num_cpu_devices": 3, "jax_log_compiles": False})
    assert jax.config.values["jax_num_cpu_devices"] == before


def test_process_that_ended_between_two_updates_is_replaced():
    study, process = make_study(), ProcessMover()
    update_there(study, mover=process)
    process._child.process.kill()
    process._child.process.wait()
    update_there(study, mover=process)


_KILLED = """
import os, signal
from cocobandits import CoIDS, Gaussian, LogDensity, Study
from cocobandits.workers.moves import ProcessMover
policy = CoIDS(LogDensity(nodes_per_arm=6, num_modes=20), num_particles=40)
mover = ProcessMover()
study = Study(["a", "b"], {}, Gaussian(-2, 2, noise=0.1), policy, seed=0, moves=mover)
while mover.pid is None:
    study.enrol(str(study.num_decisions))
    study.reward(study.decide(str(study.num_decisions)).id, 1.7)
print(mover.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up in /proc")
def test_process_ends_after_the_one_that_started_it_was_killed():
    command = [sys.executable, "-c", _KILLED]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == -signal.SIGKILL
    deadline = time.monotonic() + MOST_SECONDS
    while is_running(done.stdout.strip()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not is_running(done.stdout.strip())


def is_running(pid: str) -> bool:
    """Look a process up; one that has ended but was not waited for does not count."""
    try:
        state = (Path("/proc") / pid / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
