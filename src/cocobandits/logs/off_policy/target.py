"""The policy to be evaluated: one arm, one distribution over arms, or a function of the context."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cocobandits.checks import is_number
from cocobandits.errors import InputError, UnknownNameError
from cocobandits.logs.off_policy.reading import ROUNDING, LoggedDecisions, PerArm
from cocobandits.logs.table import ContextValue

Mix = str | Mapping[str, float]
Target = Mix | Callable[[dict[str, ContextValue]], Mix]


def target_probabilities(target: Target, logged: LoggedDecisions) -> PerArm:
    """Ask the target for its probabilities at every decision; a function once per context.

    Raises:
        InputError: the target is not one of the three kinds, or no distribution.
        UnknownNameError: it plays an arm that is not in the log.
    """
    if not callable(target):
        return np.tile(_vector(target, logged.arms), (len(logged.chosen), 1))
    features = tuple(logged.contexts)
    columns = logged.contexts.values()
    rows = list(zip(*columns, strict=True)) if columns else [()] * len(logged.chosen)
    answers = {
        row: _vector(_ask(target, dict(zip(features, row, strict=True))), logged.arms)
        for row in dict.fromkeys(rows)
    }
    return np.stack([answers[row] for row in rows])


def _ask(target: Callable[[dict[str, ContextValue]], Mix], context: dict[str, ContextValue]) -> Mix:
    try:
        return target(context)
    except Exception as error:
        raise InputError(
            f"Expected a target that answers for every context; got {type(error).__name__} "
            f"({error}) for context={context!r}. A missing feature is None."
        ) from error


def _vector(mix: Any, arms: tuple[str, ...]) -> list[float]:
    given = {mix: 1.0} if isinstance(mix, str) else mix
    if not isinstance(given, Mapping):
        raise InputError(
            "Expected an arm, a mapping from arm to probability, or a function of the context "
            f"that returns one of these; got target={mix!r}. Write for example "
            f"{{{arms[0]!r}: 1.0}}."
        )
    for arm, share in given.items():
        if arm not in arms:
            raise UnknownNameError("arm", arm, arms, "Use an arm of the log.")
        if not is_number(share) or not 0 <= share <= 1 + ROUNDING:
            raise InputError(
                f"Expected a probability from 0 to 1; got {share!r} for arm={arm!r}. "
                "Give every arm its share."
            )
    total = math.fsum(given.values())
    if abs(total - 1) > ROUNDING:
        raise InputError(
            f"Expected probabilities that sum to one; got a sum of {total:g} in target={mix!r}. "
            "Divide them by their sum."
        )
    return [float(given.get(arm, 0.0)) for arm in arms]
