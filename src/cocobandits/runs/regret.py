"""The sums of regret over steps, defined once for cells, results and the demo."""

from typing import Any

import numpy as np

Values = np.ndarray[Any, np.dtype[np.float64]]


def total(regrets: Values) -> Values:
    """Sum regret over the last axis, the steps."""
    return np.asarray(np.sum(regrets, axis=-1))


def second_half(regrets: Values) -> Values:
    """Sum regret over the later half of the last axis, the steps."""
    return total(regrets[..., regrets.shape[-1] // 2 :])
