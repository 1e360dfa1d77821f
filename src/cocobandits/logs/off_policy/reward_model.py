"""Contexts as a matrix, and a reward model on it that never predicts those it was fitted on.

The model is a ridge regression per arm. It only has to help: the doubly robust estimate corrects
it by the logged probabilities wherever it is wrong.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from cocobandits.errors import InputError
from cocobandits.logs.off_policy.reading import Array, LoggedDecisions, PerArm, PerDecision
from cocobandits.logs.table import kind_of

NUM_FOLDS = 5
# As much evidence that a feature does nothing as one decision gives per unit of variance: it
# decides nothing once an arm has tens of rewards, and keeps an arm with few from extrapolating.
RIDGE = 1.0

Design = Float[Array, "decision term"]


def encode_contexts(contexts: Mapping[str, Sequence[Any]], num_decisions: int) -> Design:
    """Write contexts as numbers, feature by feature.

    Numbers are standardised; texts and truth values have a column of zeros and ones per value, in
    alphabetical order. Where something is missing a number is the mean, all columns of values are
    zero, and one more column is one; it exists only for features that are missing somewhere.

    Raises:
        InputError: a feature mixes kinds of values, or is infinite.
    """
    blocks = [_encode(name, values) for name, values in contexts.items()]
    return np.concatenate([np.zeros((num_decisions, 0)), *blocks], axis=1)


def predict_rewards(logged: LoggedDecisions, design: Design, seed: int) -> PerArm:
    """Predict every arm at every decision from the rewards of users in other folds.

    The seed deals users, in the order of their names, to folds.
    """
    dealt = np.random.default_rng(seed).permutation(logged.num_users) % NUM_FOLDS
    folds = dealt[logged.users]
    predicted = np.zeros(logged.probabilities.shape)
    for fold in np.unique(folds):
        is_predicted = folds == fold
        for arm in range(len(logged.arms)):
            # An arm without rewards in other folds is taken to be as good as the others.
            is_same = ~is_predicted & (logged.chosen == arm)
            is_fitted = is_same if np.any(is_same) else ~is_predicted
            predicted[is_predicted, arm] = _ridge(
                design[is_fitted], logged.rewards[is_fitted], design[is_predicted]
            )
    return predicted


def _ridge(design: Design, rewards: PerDecision, elsewhere: Design) -> PerDecision:
    """Solve (XᵀX + λ) β = Xᵀy about the means, so that the intercept is not penalised."""
    middle, mean = design.mean(axis=0), rewards.mean()
    centred = design - middle
    penalised = centred.T @ centred + RIDGE * np.eye(design.shape[1])
    coefficients = np.linalg.solve(penalised, centred.T @ (rewards - mean))
    return mean + (elsewhere - middle) @ coefficients


def _encode(name: str, values: Sequence[Any]) -> Design:
    kind = kind_of(name, values)
    is_missing = np.array([value is None for value in values])
    indicator = is_missing[:, None].astype(float)[:, : int(is_missing.any())]
    if kind is None:
        return indicator
    if kind == "number":
        return np.concatenate([_standardise(name, values, is_missing), indicator], axis=1)
    known = sorted({value for value in values if value is not None})
    one_hot = [[float(value == category) for category in known] for value in values]
    return np.concatenate([np.array(one_hot), indicator], axis=1)


def _standardise(name: str, values: Sequence[Any], is_missing: Bool[Array, " decision"]) -> Design:
    numbers = np.array([0.0 if value is None else float(value) for value in values])
    present = numbers[~is_missing]
    if not np.all(np.isfinite(present)):
        raise InputError(
            f"Expected finite numbers; got feature={name!r} with infinite values. "
            "Leave out what is not known."
        )
    deviation = present.std()
    # A feature that is the same for everybody says nothing.
    scaled = (numbers - present.mean()) / deviation if deviation > 0 else np.zeros(len(numbers))
    return np.where(is_missing, 0.0, scaled)[:, None]
