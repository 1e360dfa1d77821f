"""The entry point of `coco`: Ctrl-C ends it quietly from the start, since imports take seconds.

Outside of the package, whose own imports come before any code in it.
"""

import os
import signal
from typing import Any

# What shells report for a command that Ctrl-C ended.
STOPPED = 130
_SHOW_CURSOR = b"\x1b[?25h"


def leave(*_: Any) -> None:
    """End this process at once; nothing it does needs to be undone."""
    os.write(2, (_SHOW_CURSOR if os.isatty(2) else b"") + b"Stopped.\n")
    os._exit(STOPPED)


_requests: list[int] = []


def note(number: int, *_: Any) -> None:
    """Note a request to stop, for `check_requests`; `leave` is the answer to any further one.

    An exception raised here could be dropped: a signal may arrive in a callback of the garbage
    collector.
    """
    _requests.append(number)
    on_stop(leave)


def check_requests() -> None:
    """End what is going on after a request to stop.

    Raises:
        KeyboardInterrupt: there was one.
    """
    if _requests:
        raise KeyboardInterrupt


def on_stop(handler: Any) -> None:
    """Handle Ctrl-C and polite requests to end, also where a shell made background jobs deaf."""
    for request in (signal.SIGINT, signal.SIGTERM):
        signal.signal(request, handler)


def main() -> None:
    """Run the command."""
    on_stop(leave)
    from cocobandits.cli.main import main as run  # noqa: PLC0415 - slow

    run()
