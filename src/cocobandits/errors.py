"""Every error that users of the package can meet.

CocoError
├── ConfigurationError (ValueError)   a study, model or policy that cannot be built
│   └── GridTooLargeError             a tensor grid that does not fit in memory
├── InputError (ValueError)           a context, reward or argument that is refused
│   └── ConflictError                 contradicts what was recorded before
├── UnknownNameError (KeyError)       a user, arm, decision, policy or feature that is not known
├── UnsupportedError (TypeError)      the policy cannot answer this question
├── StorageError (ValueError)         a file or folder that is damaged or not what it should be
├── NumericalError (ArithmeticError)  the particles lost all their weight or became NaN
├── CrashedError                      a process that works for this one ended too early
└── StoppedError                      a run was stopped from outside; what was finished is kept

Each message says what was expected, what was given, and what to do.
"""

import reprlib
from collections.abc import Iterable

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 80


class CocoError(Exception):
    """The root of all errors of this package."""


class ConfigurationError(CocoError, ValueError):
    """A study, model or policy cannot be built as described."""


class GridTooLargeError(ConfigurationError):
    """A tensor grid does not fit in memory."""


class InputError(CocoError, ValueError):
    """A value is refused; nothing was changed."""


class ConflictError(InputError):
    """A value contradicts what was recorded before; nothing was changed."""


class UnknownNameError(CocoError, KeyError):
    """A name was never declared."""

    def __init__(self, kind: str, name: object, known: Iterable[str] | None, remedy: str) -> None:
        """Say what was not found; `known` is None where names are personal data."""
        shown = "" if known is None else f" Known: {_shorten([str(item) for item in known])}."
        super().__init__(f"Expected a known {kind}; got {kind}={brief(name)}.{shown} {remedy}")

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which would put the message in quotes.
        return str(self.args[0])


class UnsupportedError(CocoError, TypeError):
    """The policy in use cannot answer this question."""


class StorageError(CocoError, ValueError):
    """A file or folder is damaged, cannot be written, or is not what it should be."""


class NumericalError(CocoError, ArithmeticError):
    """The particle approximation broke down; the update was not applied."""


class CrashedError(CocoError):
    """A process that works for this one ended before its work was done."""


class StoppedError(CocoError):
    """A run was stopped from outside; what was finished is kept."""


def brief(value: object) -> str:
    """Write a value for a message; long ones lose their middle, and deep ones what is inside."""
    try:
        return _REPR.repr(value)
    except Exception:  # of the value's own `repr`, whatever it is
        return f"<{type(value).__name__}>"


def _shorten(names: list[str], most: int = 8) -> str:
    if not names:
        return "none yet"
    listed = ", ".join(names[:most])
    return f"{listed}, ... ({len(names)} in all)" if len(names) > most else listed
