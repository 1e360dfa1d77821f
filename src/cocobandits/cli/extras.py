"""Tells who installed the lean package what a verb needs beyond it."""

from importlib.util import find_spec

from cocobandits.errors import ConfigurationError

_NEEDED = ("jinja2", "matplotlib", "pyarrow")


def needs_experiments() -> None:
    """Check that the packages for experiments and figures are there.

    Raises:
        ConfigurationError: one is missing.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"Expected the packages for experiments; got none of the name {', '.join(missing)}. "
            "Install them with: pip install 'cocobandits[experiments]'"
        )
