"""A request to stop ends a run, wherever the signal arrives."""

import signal

import pytest

import cocobandits_command
from cocobandits_command import check_requests, leave, note, on_stop


@pytest.fixture
def _handlers(monkeypatch):
    before = {request: signal.getsignal(request) for request in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(cocobandits_command, "_requests", [])
    yield
    for request, handler in before.items():
        signal.signal(request, handler)


class Finalized:
    """An object in whose finalizer a signal arrives; Python drops exceptions there."""

    def __del__(self):
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.usefixtures("_handlers")
def test_a_request_in_a_finalizer_is_not_lost():
    on_stop(note)
    check_requests()
    finalized = Finalized()
    del finalized
    with pytest.raises(KeyboardInterrupt):
        check_requests()
    assert signal.getsignal(signal.SIGINT) is signal.getsignal(signal.SIGTERM) is leave
