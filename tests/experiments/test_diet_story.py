"""What `coco demo` says about plan 1, from numbers of an age group."""

import numpy as np
import pytest

from cocobandits.experiments.diet import AgeStory, conclude

BEST = np.array([0.0, 0.55, 0.45])
AFTER = {1.0: np.array([0.0, 0.9, 0.1]), 2.0: np.array([0.0, 0.2, 0.8])}


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ((0.5, 0.7, 0.8), "loses 0.70 on average; plan 1 loses only 0.50, and shows who this is"),
        ((0.9, 0.7, 0.8), "loses 0.70 on average where plan 1 loses 0.90. Plan 1 was given first"),
        ((1.0 - 1e-9, 1.0, 1.0), "loses 1.00 on average where plan 1 loses 1.00. Plan 1"),
    ],
    ids=["less", "more", "a tie"],
)
def test_plan_1_is_praised_only_where_it_loses_less(loss, expected):
    story = AgeStory(np.array([0.3, 0.3, 0.4]), BEST, np.array(loss), AFTER)
    assert expected in conclude("young", story)
