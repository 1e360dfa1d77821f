"""Settings as plain values, for files: a mapping with the kind and the fields, and back."""

from collections.abc import Iterable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np

from cocobandits import rewards
from cocobandits.checks import freeze
from cocobandits.errors import ConfigurationError, UnknownNameError, brief
from cocobandits.policies.coco.populations import POPULATIONS
from cocobandits.policies.description import PolicySettings
from cocobandits.policies.registry import POLICIES
from cocobandits.populations.known.beta_mixture import BetaMixture
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture

_KIND = "kind"
_TRUTHS = {"conditional-mixture": ConditionalMixture, "chance-mixture": BetaMixture}
_CLASSES: dict[str, type] = {**rewards.KINDS, **POLICIES, **POPULATIONS, **_TRUTHS}


def to_plain(settings: Any) -> dict[str, Any]:
    """Write settings as values that JSON can hold.

    Raises:
        ConfigurationError: they are not of a class that can be stored.
    """
    kinds = {kind: name for name, kind in _CLASSES.items()}
    kind = kinds.get(type(settings)) or getattr(settings, "name", None)
    if kind is None or not is_dataclass(settings):
        raise ConfigurationError(
            f"Expected settings that can be stored; got {type(settings).__name__}. Make the class "
            "a frozen dataclass that derives from PolicySettings."
        )
    values = {each.name: getattr(settings, each.name) for each in fields(settings)}
    return {_KIND: kind} | {
        name: to_plain(value) if is_dataclass(value) else _as_python(value)
        for name, value in values.items()
    }


def check_classes(policies: Any) -> None:
    """Refuse anything but classes of settings.

    Raises:
        ConfigurationError: it is something else.
    """
    if not isinstance(policies, list | tuple) or not all(
        isinstance(each, type) and issubclass(each, PolicySettings) for each in policies
    ):
        raise ConfigurationError(
            f"Expected a list of classes of policies; got policies={brief(policies)}. Write for "
            "example policies=[Mine]."
        )


def _as_python(value: Any) -> Any:
    """Turn a number of NumPy into Python's."""
    return value.item() if isinstance(value, np.generic) else value


def with_defaults(item: Any) -> Any:
    """Add the fields that settings got after `to_plain` wrote them, with their defaults."""
    if not isinstance(item, dict):
        return item
    kind = _CLASSES.get(item.get(_KIND, ""))
    added = {
        each.name: _as_python(each.default)
        for each in (fields(kind) if kind else ())
        if each.name not in item and each.default is not MISSING
    }
    return added | {name: with_defaults(value) for name, value in item.items()}


def from_plain(item: dict[str, Any], further: Iterable[type[PolicySettings]] = ()) -> Any:
    """Build settings from what `to_plain` wrote.

    Args:
        item: the mapping.
        further: classes of policies from outside the package.

    Raises:
        UnknownNameError: the kind is not known.
        ConfigurationError: a value is refused.
    """
    classes = _CLASSES | {each.name: each for each in further}
    values = dict(item)
    kind = values.pop(_KIND)
    if kind not in classes:
        remedy = "Pass its class: Study.load(path, policies=[...])."
        known = (*POLICIES, *(each.name for each in further))
        raise UnknownNameError("policy", kind, known, remedy)
    return classes[kind](
        **{
            name: from_plain(value) if isinstance(value, dict) else freeze(value)
            for name, value in values.items()
        }
    )
