"""When a process says that it compiles, and when it is silent."""

import threading
import time

import jax
import pytest

from cocobandits import notice

PATIENCE = 0.4


@pytest.fixture
def watched(monkeypatch):
    """A notice that is due after less than a second, and that hears nothing of JAX afterwards."""
    monkeypatch.delenv(notice.QUIET, raising=False)
    monkeypatch.setattr(notice, "_PATIENCE_SECONDS", PATIENCE)
    made = notice.Notice()
    made.watch("a while")
    yield made
    if made._expected is not None:
        jax.monitoring.unregister_scalar_listener(made._begin)
        jax.monitoring.unregister_event_listener(made._load)
        jax.monitoring.unregister_event_duration_listener(made._end)


def compile_for(watched, seconds, is_loaded=False):
    """Report a compilation as JAX does."""
    watched._begin(notice._COMPILING, time.time(), fun_name="f")
    time.sleep(seconds)
    if is_loaded:
        watched._load(notice._LOADED)
    watched._end(notice._COMPILING, seconds, fun_name="f")


def settle(watched):
    while (timer := watched._timer) is not None:
        timer.join()


def test_long_compilation_is_announced_while_it_goes_on(watched, capsys):
    watched._begin(notice._COMPILING, time.time(), fun_name="f")
    settle(watched)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "takes a while" in captured.err
    compile_for(watched, 2 * PATIENCE)
    assert capsys.readouterr().err == ""


def test_short_compilations_add_up(watched, capsys):
    for _ in range(4):
        compile_for(watched, PATIENCE / 2)
    settle(watched)
    assert capsys.readouterr().err.count("\n") == 1


def test_functions_loaded_from_disk_do_not_count(watched, capsys):
    for _ in range(25):
        compile_for(watched, PATIENCE / 20, is_loaded=True)
    settle(watched)
    assert capsys.readouterr().err == ""


def test_threads_are_told_apart(watched, capsys):
    """One thread loads while another compiles."""
    thread = threading.Thread(target=compile_for, args=(watched, 3 * PATIENCE))
    thread.start()
    compile_for(watched, PATIENCE / 20, is_loaded=True)
    thread.join()
    assert capsys.readouterr().err.count("\n") == 1


def test_jax_reports_compilations_under_these_names(watched, monkeypatch):
    """Compile something new for real; JAX promises no names."""
    monkeypatch.setattr(notice, "_PATIENCE_SECONDS", 1e3)
    number = time.time_ns()
    jax.jit(lambda x: x + number)(1)
    assert watched._spent > 0
    assert not watched._begun
    watched._timer.cancel()


@pytest.mark.parametrize("value", ["1", "yes"])
def test_line_can_be_hidden(monkeypatch, value):
    monkeypatch.setenv(notice.QUIET, value)
    made = notice.Notice()
    made.watch("a while")
    assert made._expected is None


def test_workers_are_silent(monkeypatch):
    """Their progress is shown by the process that started them."""
    monkeypatch.setattr(notice.multiprocessing, "parent_process", object)
    made = notice.Notice()
    made.watch("a while")
    assert made._expected is None


@pytest.mark.parametrize(("folder", "words"), [("/x", "load them from /x"), (None, "is off")])
def test_line_says_what_later_starts_do(watched, capsys, folder, words):
    name = "jax_compilation_cache_dir"
    before = jax.config.values[name]
    jax.config.update(name, folder)
    try:
        watched._write()
    finally:
        jax.config.update(name, before)
    assert words in capsys.readouterr().err
