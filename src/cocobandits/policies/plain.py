"""Settings as plain values, for files: a mapping with the kind and the fields, and back."""

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from cocobandits import rewards
from cocobandits.checks import freeze
from cocobandits.errors import UnknownNameError
from cocobandits.models.chances import ChanceMixture
from cocobandits.models.gaussian_mixture import ConditionalMixture
from cocobandits.policies.coco.populations import POPULATIONS
from cocobandits.policies.description import PolicySettings
from cocobandits.policies.registry import POLICIES

_KIND = "kind"
_TRUTHS = {"conditional-mixture": ConditionalMixture, "chance-mixture": ChanceMixture}
_CLASSES: dict[str, type] = {**rewards.KINDS, **POLICIES, **POPULATIONS, **_TRUTHS}


def to_plain(settings: Any) -> dict[str, Any]:
    """Write settings as values that JSON can hold."""
    kinds = {kind: name for name, kind in _CLASSES.items()}
    kind = kinds.get(type(settings)) or settings.name
    values = {each.name: getattr(settings, each.name) for each in fields(settings)}
    return {_KIND: kind} | {
        name: to_plain(value) if is_dataclass(value) else value for name, value in values.items()
    }


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
        raise UnknownNameError("policy", kind, classes, remedy)
    return classes[kind](
        **{
            name: from_plain(value) if isinstance(value, dict) else freeze(value)
            for name, value in values.items()
        }
    )
