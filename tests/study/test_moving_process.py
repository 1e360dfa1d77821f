"""The process that computes moves: the same particles, and an orderly end however it comes."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits import CocoSettings, SmcConfig, Study
from cocobandits.errors import ConflictError, CrashedError, NumericalError, UnknownNameError
from cocobandits.models.base import Statistics
from cocobandits.study import moving_process
from cocobandits.study.moving_process import MOVING_PROCESS, MovingProcess

SMALL = CocoSettings(
    nodes_per_arm=6,
    nodes_per_feature=4,
    num_modes=20,
    inference=SmcConfig(num_particles=40, move_every=1),
)
KEY = jax.random.key(3)
REWARDED = Statistics.empty(2).add(0, 0.7)
MOST_SECONDS = 120


def make_study(policy="coids") -> Study:
    study = Study(["a", "b"], {"age": (18, 90)}, (-2.0, 2.0), 0.1, policy, settings=SMALL)
    study.enrol("anna", {"age": 34})
    return study


def update_there(study: Study, statistics=REWARDED, process=MOVING_PROCESS):
    return process.update(study.design, KEY, study._state, 0, statistics)


@pytest.mark.parametrize("policy", ["coids", "gids", "mtts"])
def test_particles_are_those_of_this_process(policy):
    study = make_study(policy)
    here = study._policy.update(KEY, study._state, 0, REWARDED)
    there = update_there(study)
    assert jax.tree.structure(there) == jax.tree.structure(here)
    for one, other in zip(jax.tree.leaves(there), jax.tree.leaves(here), strict=True):
        assert type(one) is type(other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_other_kinds_of_keys_arrive():
    study = make_study()
    key = jax.random.key(3, impl="rbg")
    [here, _] = study._policy.update(key, study._state, 0, REWARDED)
    [there, _] = MOVING_PROCESS.update(study.design, key, study._state, 0, REWARDED)
    np.testing.assert_array_equal(here.posterior.particles, there.posterior.particles)


def test_studies_share_the_process():
    for policy in ("coids", "gids"):
        update_there(make_study(policy))
    pid = MOVING_PROCESS.pid
    update_there(make_study("npm-ts"))
    assert MOVING_PROCESS.pid == pid != os.getpid()


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
    arrived = moving_process.pickle.loads(moving_process._parcel(error))
    assert type(arrived) is kind
    assert str(error) in str(arrived)


def test_killed_process_is_told_and_replaced():
    study, process, errors = make_study(), MovingProcess(), []
    assert process.pid is None
    update_there(study, process=process)
    killed = process.pid
    os.kill(killed, signal.SIGSTOP)  # so that it cannot answer first

    def wait_for_it() -> None:
        with pytest.raises(CrashedError, match="exit code -9") as told:
            update_there(study, process=process)
        errors.append(told.value)

    thread = threading.Thread(target=wait_for_it)
    thread.start()
    os.kill(killed, signal.SIGKILL)
    thread.join(MOST_SECONDS)
    assert len(errors) == 1
    update_there(study, process=process)
    assert process.pid not in (None, killed)


def test_process_that_ended_between_two_updates_is_replaced():
    study, process = make_study(), MovingProcess()
    update_there(study, process=process)
    process._child.kill()
    process._child.wait()
    update_there(study, process=process)


_KILLED = """
import os, signal
from cocobandits import CocoSettings, SmcConfig, Study
from cocobandits.study.moving_process import MOVING_PROCESS
settings = CocoSettings(nodes_per_arm=6, num_modes=20, inference=SmcConfig(num_particles=40))
study = Study(["a", "b"], {}, (-2, 2), 0.1, settings=settings, rejuvenate="background")
while MOVING_PROCESS.pid is None:
    study.enrol(str(study.num_decisions))
    study.reward(study.decide(str(study.num_decisions)).id, 1.7)
print(MOVING_PROCESS.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up in /proc")
def test_process_ends_after_the_one_that_started_it_was_killed():
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir}
    command = [sys.executable, "-c", _KILLED]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == -signal.SIGKILL
    left = Path("/proc") / done.stdout.strip()
    deadline = time.monotonic() + MOST_SECONDS
    while left.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left.exists()
