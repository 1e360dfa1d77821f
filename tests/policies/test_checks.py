"""What counts as a number, a whole number, a choice or a path."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from cocobandits.checks import check_choice, check_numbers, check_whole, read_path
from cocobandits.errors import ConfigurationError, InputError


@dataclass
class Given:
    value: object


@pytest.mark.parametrize(
    ("kind", "allowed", "refused"),
    [
        ("finite", [-2, 0.0, 3.5], [float("inf"), 10**400, None, True, "1", Fraction(1, 2)]),
        ("finite", [np.int8(3), np.float32(0.5)], [np.timedelta64(5), np.timedelta64(5, "s")]),
        ("finite", [np.uint64(2**63)], [np.datetime64(5, "s"), np.datetime64("NaT"), np.bool_(1)]),
        ("positive", [1e-300, 2], [0, -1.0, float("nan")]),
        ("not negative", [0, 0.0, 7], [-1e-300, float("inf")]),
        ("fraction", [1e-9, 0.999], [0, 1, 1.5]),
        ("share", [1, 0.2], [0.0, 1.0001]),
    ],
)
def test_kinds_of_numbers(kind, allowed, refused):
    for value in allowed:
        check_numbers(Given(value), kind, "value")
    for value in refused:
        with pytest.raises(ConfigurationError, match=r"got value=.*Twice"):
            check_numbers(Given(value), kind, "value", remedy="Twice.")


def test_whole_numbers_have_limits():
    for value in (2, 5):
        check_whole(Given(value), "value", least=2, most=5, remedy="")
    for value in (1, 6, 3.0, True, None):
        with pytest.raises(ConfigurationError, match="from 2 to 5; got value="):
            check_whole(Given(value), "value", least=2, most=5, remedy="")
    check_whole(Given(10**9), "value", remedy="")
    for value in (0, 10**9 + 1):
        with pytest.raises(ConfigurationError, match=f"from 1 to 1,000,000,000; got value={value}"):
            check_whole(Given(value), "value", remedy="")


def test_choices_are_texts_of_a_list():
    check_choice(Given("double"), "value", ("single", "double"))
    for value in ("half", "", None, 1, ["single"], {}):
        message = r"value in \('single', 'double'\); got value=.*Choose one of these"
        with pytest.raises(ConfigurationError, match=message):
            check_choice(Given(value), "value", ("single", "double"))


@pytest.mark.parametrize("given", ["runs/one.study", PurePosixPath("runs/one.study")])
def test_paths_are_texts_or_path_like(given):
    assert read_path("path", given) == Path("runs/one.study")


class Bytes:
    """A path that is no text."""

    def __fspath__(self) -> bytes:
        return b"runs"


@pytest.mark.parametrize("given", [None, 3, b"runs", Bytes(), "a\0b", Path("a\0b"), "\ud800"])
def test_other_paths_are_refused(given):
    with pytest.raises(InputError, match=r"pathlib.Path; got folder=.*Write for") as caught:
        read_path("folder", given)
    str(caught.value).encode()
