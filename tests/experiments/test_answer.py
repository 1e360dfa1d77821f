"""The answer of a report, from findings that are made here."""

from dataclasses import replace

import pytest

from cocobandits.experiments.answer import answer, summary
from cocobandits.experiments.claims import CLAIMS, Judgement
from cocobandits.experiments.measures import Measures
from cocobandits.experiments.rules import Finding

NOTHING = Measures((), (), (), {}, {}, {})


def judgement(number, holds, strict=(True,)):
    """Make a judgement with one finding per outcome."""
    return Judgement(
        replace(CLAIMS[0], number=number),
        tuple(Finding(f"part {place}", each) for place, each in enumerate(holds)),
        tuple(Finding("strict", each) for each in strict),
    )


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([[True], [True]], "Yes. Of the paper's 2 claims, 2 hold (1, 2)."),
        ([[True], [True, False]], "Mostly. Of the paper's 2 claims, 1 holds (1) and 1 holds in"),
        ([[True], [False], [False]], "In part. Of the paper's 3 claims, 1 holds (1) and 2 do not"),
        ([[False], [None]], "No. Of the paper's 2 claims, 1 does not (1) and 1 is not decided (2)"),
    ],
)
def test_lead_sums_up_the_verdicts(outcomes, expected):
    found = [judgement(place, holds) for place, holds in enumerate(outcomes, start=1)]
    assert answer(found, NOTHING, is_run_small=False).startswith(expected)


def test_answer_tells_a_failed_part_from_an_open_one():
    """Claims 1 and 3 have open parts, claim 2 a part that fails, claim 4 fails."""
    outcomes = [[True, None], [True, False], [None, True], [False]]
    found = [judgement(place, holds, [False]) for place, holds in enumerate(outcomes, start=1)]
    text = answer(found, NOTHING, is_run_small=False)
    assert "No part of claims 1 and 3 fails; the rest is undecided there." in text
    assert "Claim 4 does not hold: part 0." in text
    assert text.endswith("Read strictly, 4 do not (1, 2, 3, 4).")


def test_small_run_agrees_disagrees_or_is_too_small():
    outcomes = [[True], [True, False], [False], [True, None], [None]]
    found = [judgement(place, holds) for place, holds in enumerate(outcomes, start=1)]
    text = answer(found, NOTHING, is_run_small=True)
    assert (
        "Of the paper's 5 claims, it agrees with 1 (1), disagrees in part with 1 (2), disagrees "
        "with 1 (3) and is too small to tell for 2 (4, 5)." in text
    )
    assert "Claim 3 disagrees: part 0." in text
    assert "strictly" not in text
    lines = summary(found, is_run_small=True)
    assert len(lines) == 6
    assert lines[4].startswith("  ○ 4 too small to tell  ")


def test_run_without_claims_has_no_answer():
    assert answer([], NOTHING, is_run_small=False) == ""
    assert summary([], is_run_small=True) == []
