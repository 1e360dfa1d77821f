"""What policies in closed form answer, to 1e-9, against `values.json`.

After an intended change `make golden-values` writes the file again.
"""

import json

import numpy as np
import pytest

from cocobandits.policies.registry import policy_names
from golden.record import VALUES, answers, recorded_scenarios
from golden.scenarios import POLICIES

EXPECTED = json.loads(VALUES.read_text(encoding="utf-8"))
SCENARIOS = {scenario.id: scenario for scenario in recorded_scenarios()}


def test_every_policy_has_scenarios():
    assert sorted(POLICIES) == sorted(policy_names())


def test_values_are_those_of_the_scenarios():
    assert list(EXPECTED) == list(SCENARIOS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_answers_are_the_recorded_ones(name):
    found = answers(SCENARIOS[name])
    assert len(found) == len(EXPECTED[name])
    for number, (row, expected) in enumerate(zip(found, EXPECTED[name], strict=True)):
        where = f"answer {number}, {expected[0]}"
        assert [part for part in row if isinstance(part, str)] == [
            part for part in expected if isinstance(part, str)
        ], where
        if not isinstance(expected[-1], str):
            np.testing.assert_allclose(row[-1], expected[-1], rtol=0, atol=1e-9, err_msg=where)
