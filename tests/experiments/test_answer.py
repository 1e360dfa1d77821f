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
        ([[True]] * 8, "Yes. Of the paper's 8 claims, 8 hold (1, 2, 3, 4, 5, 6, 7, 8)."),
        ([[True]] * 4 + [[True, False]] * 3 + [[False]], "Mostly. Of the paper's 8 claims, 4 hold"),
        # Too few hold, or too few hold even in part.
        ([[True]] * 3 + [[True, False]] * 5, "In part. Of the paper's 8 claims, 3 hold"),
        ([[True]] * 5 + [[False]] * 3, "In part. Of the paper's 8 claims, 5 hold"),
        ([[False]] * 7 + [[None]], "No. Of the paper's 8 claims, 7 do not (1, 2, 3, 4, 5, 6, 7)"),
        # A part of the claims answers no question about all of them.
        ([[True]], "This run can speak to 1 of the paper's 8 claims: 1 holds (1)."),
    ],
)
def test_lead_sums_up_the_verdicts(outcomes, expected):
    found = [judgement(place, holds) for place, holds in enumerate(outcomes, start=1)]
    assert answer(found, NOTHING, is_run_small=False).startswith(expected)


def test_answer_tells_a_failed_part_from_an_open_one():
    """Claims 1 and 3 have open parts, claim 2 a part that fails, claim 4 fails."""
    outcomes = [[True, None], [True, False], [None, True], [None, False]]
    found = [judgement(place, holds, [False]) for place, holds in enumerate(outcomes, start=1)]
    text = answer(found, NOTHING, is_run_small=False)
    assert "No part of claims 1 and 3 fails; the rest is undecided there." in text
    assert "Claim 4 does not hold: part 1." in text
    assert text.endswith("Read strictly, 4 do not (1, 2, 3, 4).")


def test_small_run_agrees_disagrees_or_is_too_small():
    outcomes = [[True], [True, False], [False], [True, None], [None]]
    found = [judgement(place, holds) for place, holds in enumerate(outcomes, start=1)]
    text = answer(found, NOTHING, is_run_small=True)
    assert text.startswith(
        "This run is small, so it only indicates. It can speak to 5 of the paper's 8 claims: it "
        "agrees with 1 (1), disagrees in part with 1 (2), disagrees with 1 (3) and is too small to "
        "tell for 2 (4, 5)."
    )
    assert "Claim 3 disagrees: part 0." in text
    assert "strictly" not in text
    lines = summary(found, is_run_small=True)
    assert len(lines) == 6
    assert lines[4].startswith("  ○ 4 too small to tell  ")


def test_run_without_claims_has_no_answer():
    assert answer([], NOTHING, is_run_small=False) == ""
    assert summary([], is_run_small=True) == []
