"""Compiled functions on disk: where, how much, and that nothing depends on them."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import pytest

from cocobandits import disk_cache

NAMES = (disk_cache._ENABLED, disk_cache._DIRECTORY, *disk_cache._STORE_ALL)

# A small study whose particles move, and how many functions it loaded from disk.
STUDY = """
import jax
import cocobandits
from cocobandits import Gaussian, LogDensity, NpmTS, Study

loaded = []
jax.monitoring.register_event_listener(
    lambda event, **_: event.endswith("compilation_cache/cache_hits") and loaded.append(event)
)
grid = LogDensity(nodes_per_arm=5, num_modes=12)
policy = NpmTS(grid, num_particles=20, moves_per_block=5, max_blocks=6)
study = Study(["left", "right"], {}, Gaussian(-2.0, 2.0, noise=0.2), policy, seed=3)
moved = 0
for user in range(6):
    study.enrol(f"user-{user}")
    decision = study.decide(f"user-{user}")
    study.reward(decision.id, 1.4 if decision.arm == "left" else -0.6)
    moved += study.health.is_rejuvenated
    print(decision.arm, [p.hex() for p in decision.probabilities.values()], study.health)
assert moved
print(study.log_evidence.hex())
print(len(loaded) > 20)
"""

# Compiles ten functions under a limit for files that are written, if one is given.
FUNCTIONS = """
import resource
import sys
import cocobandits
import jax
if len(sys.argv) > 1:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
for number in range(10):
    print(jax.jit(lambda x: x * number + 0.25)(1.5))
"""


def environment(home):
    """Leave out what decides about the cache of the tests, and set the user's directory."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JAX_", "COCOBANDITS_"))
    }
    return kept | {"XDG_CACHE_HOME": str(home), "HOME": str(home)}


def start(program, home, *arguments):
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program, *map(str, arguments)],
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return output, errors


def entries(home):
    return [path for path in home.rglob("*-cache") if path.is_file()]


@pytest.fixture(scope="module")
def cold_and_warm(tmp_path_factory):
    """Run the study in a process that compiles, and in one that loads."""
    home = tmp_path_factory.mktemp("home")
    return home, *(finish(start(STUDY, home)) for _ in range(2))


def test_loaded_functions_give_the_same_bits(cold_and_warm):
    _, (cold, _), (warm, _) = cold_and_warm
    *cold_lines, has_cold_loaded = cold.splitlines()
    *warm_lines, has_warm_loaded = warm.splitlines()
    assert cold_lines == warm_lines
    assert (has_cold_loaded, has_warm_loaded) == ("False", "True")


def test_only_the_process_that_compiles_says_so(cold_and_warm):
    """One line on standard error, which names the directory; nothing from a warm process."""
    home, (_, cold), (_, warm) = cold_and_warm
    [line] = cold.splitlines()
    assert line.startswith("cocobandits: compiling the functions of this study takes 10 to 40 s.")
    assert str(home) in line
    assert warm == ""


@pytest.mark.skipif(os.name == "nt", reason="limits of a process are those of Unix")
def test_full_disk_costs_a_compilation_and_leaves_nothing(tmp_path):
    """Forbid every write, with warnings as errors; the next process writes whole entries."""
    expected, errors = finish(start(FUNCTIONS, tmp_path, 0))
    assert errors == ""
    assert all(path.stat().st_size == 0 for path in entries(tmp_path))
    assert finish(start(FUNCTIONS, tmp_path)) == (expected, "")
    assert entries(tmp_path)
    assert all(path.stat().st_size > 0 for path in entries(tmp_path))


def test_damaged_entries_cost_a_compilation_and_nothing_else(tmp_path):
    """Cut every entry short; warnings are errors."""
    expected = finish(start(FUNCTIONS, tmp_path))
    assert entries(tmp_path)
    for path in entries(tmp_path):
        assert path.stat().st_size > 100
        path.write_bytes(path.read_bytes()[:100])
    assert finish(start(FUNCTIONS, tmp_path)) == expected


def test_processes_share_a_directory_at_the_same_time(tmp_path):
    processes = [start(FUNCTIONS, tmp_path) for _ in range(2)]
    outputs = [finish(process) for process in processes]
    assert outputs[0] == outputs[1]
    assert outputs[0][1] == ""
    assert entries(tmp_path)


@pytest.fixture
def home(monkeypatch, tmp_path):
    """An empty home, and JAX as if nobody had configured its cache; restored afterwards."""
    for name in list(os.environ):
        if name.startswith(("JAX_", "COCOBANDITS_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = {name: jax.config.values[name] for name in NAMES}
    defaults = {name: default for name, (default, _) in disk_cache._STORE_ALL.items()}
    defaults |= {disk_cache._ENABLED: True, disk_cache._DIRECTORY: None}
    for name, value in defaults.items():
        jax.config.update(name, value)
    with warnings.catch_warnings():
        yield tmp_path
    for name, value in before.items():
        jax.config.update(name, value)


def configured():
    disk_cache.configure_cache()
    return tuple(jax.config.values[name] for name in NAMES[1:])


@pytest.mark.skipif(sys.platform != "linux", reason="platforms have directories of their own")
def test_everything_is_stored_in_the_cache_directory_of_the_user(home):
    folder, seconds, size = configured()
    assert Path(folder).is_relative_to(home / "cocobandits" / "compiled")
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    assert (seconds, size) == (0.0, -1)


@pytest.mark.skipif(sys.platform != "linux", reason="platforms have directories of their own")
def test_size_limit_holds_when_a_process_starts(home, monkeypatch):
    """Two entries of 0.8 MB each, of which one fits; a stray file is no hindrance."""
    del home
    folder = Path(configured()[0])
    for number in range(2):
        (folder / f"entry-{number}").write_bytes(b"x" * 800_000)
    (folder.parent / "stray").touch()
    os.utime(folder / ".trimmed", (0, 0))
    jax.config.update(disk_cache._DIRECTORY, None)
    monkeypatch.setenv(disk_cache.LIMIT, "1")
    configured()
    assert len(list(folder.glob("entry-*"))) == 1
    assert (folder.parent / "stray").exists()


def test_directory_given_to_jax_is_used_and_not_trimmed(home):
    jax.config.update(disk_cache._DIRECTORY, str(home / "mine"))
    assert configured() == (str(home / "mine"), 0.0, -1)
    assert not list(home.iterdir())


def test_thresholds_given_to_jax_stay(home, monkeypatch):
    del home
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "1")
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 7)
    assert configured()[1:] == (1.0, 7)


@pytest.mark.parametrize("value", ["off", "OFF", "0", "false"])
def test_cache_can_be_switched_off(home, monkeypatch, value):
    monkeypatch.setenv(disk_cache.SWITCH, value)
    assert configured() == (None, 1.0, 0)
    assert not list(home.iterdir())


def test_cache_that_jax_switched_off_stays_off(home):
    jax.config.update(disk_cache._ENABLED, False)
    assert configured() == (None, 1.0, 0)
    assert not list(home.iterdir())


def test_home_that_cannot_be_written_is_no_error(home, monkeypatch):
    (home / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "file"))
    assert configured() == (None, 1.0, 0)


def test_no_home_is_no_error(home, monkeypatch):
    """Without one, `~` stays as it is: nothing of that name is created here."""
    monkeypatch.chdir(home)
    monkeypatch.setattr(disk_cache.platformdirs, "user_cache_path", lambda *_, **__: Path("~/.c"))
    assert configured() == (None, 1.0, 0)
    assert not list(home.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="permissions are those of Unix")
def test_directory_that_others_can_write_to_is_refused(home):
    """Entries are executed."""
    folder = Path(configured()[0])
    folder.chmod(0o777)
    jax.config.update(disk_cache._DIRECTORY, None)
    assert configured()[0] is None
    assert list(home.iterdir())


def test_another_processor_has_another_directory(home, monkeypatch):
    """Only the first core is read, and not its clock rate."""
    names = []
    for flags, clock in (("fma avx2", 1), ("fma avx2", 2), ("fma avx2 avx512f", 1)):
        text = (
            f"processor\t: 0\nmodel name\t: X\ncpu MHz\t: {clock}\nflags\t: {flags}\n\nflags: ?\n"
        )
        (home / "cpuinfo").write_text(text, encoding="utf-8")
        monkeypatch.setattr(disk_cache, "_CPU_INFO", home / "cpuinfo")
        names.append(disk_cache._machine())
    assert names[0] == names[1] != names[2]
    monkeypatch.setattr(disk_cache, "_CPU_INFO", home / "absent")
    assert disk_cache._machine() not in names


def test_least_recently_used_entries_are_deleted(tmp_path):
    """The limit holds for the directories of all machines together."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for age, path in enumerate((ours / "a", theirs / "b", ours / "c", theirs / "d")):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 40)
        os.utime(path, (1e9 - age, 1e9 - age))
    disk_cache.trim(ours, 100)
    left = {path.name for folder in (ours, theirs) for path in folder.iterdir()}
    assert left == {"a", "b", disk_cache._MARKER}


def test_nothing_is_counted_while_nothing_was_added(tmp_path):
    folder = tmp_path / "ours"
    folder.mkdir()
    disk_cache.trim(folder, 100)
    (folder / "a").write_bytes(b"x" * 140)
    now = (folder / disk_cache._MARKER).stat().st_mtime_ns
    os.utime(folder, ns=(now, now))
    disk_cache.trim(folder, 100)
    assert (folder / "a").exists()
    os.utime(folder, ns=(now + 1, now + 1))
    disk_cache.trim(folder, 100)
    assert not (folder / "a").exists()


@pytest.mark.parametrize(("given", "megabytes"), [("7", 7), ("", 1000), ("0", 1000), ("2GB", 1000)])
def test_limit_is_read_in_megabytes(monkeypatch, given, megabytes):
    monkeypatch.setenv(disk_cache.LIMIT, given)
    assert disk_cache.limit_bytes() == megabytes * 10**6
