from dataclasses import FrozenInstanceError

import pytest
from synthetic_run import SEEDS, TURNING, Scenario, falling, level, write_run

from cocobandits.experiments.claims import (
    AGREES,
    CLAIMS,
    DISAGREES,
    DISAGREES_IN_PART,
    FAILS,
    HOLDS,
    IN_PART,
    OPEN,
    TOO_SMALL,
    agreement,
    judge,
    verdict,
)
from cocobandits.experiments.measures import measure
from cocobandits.experiments.reading import load_run
from cocobandits.experiments.rules import Finding

LATE_TURN = (*falling(4, 1)[:-1], 3.0)


def judged(folder, scenario):
    """Map the number of every claim to its judgement."""
    found = judge(CLAIMS, measure(load_run(write_run(folder, scenario))))
    return {each.claim.number: each for each in found}


def outcomes(findings):
    return [finding.holds for finding in findings]


def measured(judgement):
    return "; ".join(finding.text for finding in judgement.findings)


def changed(key, changes):
    """Change one curve; if it has fewer rounds, so have the other curves of its environment."""
    num_rounds = len(changes.get("evaluation", TURNING))
    scenario = Scenario().with_curve(*key, **changes)
    if num_rounds != len(TURNING):
        for other in ("npm-ts", "gids", "ind-ts", "oracle-ts"):
            scenario = scenario.with_curve(key[0], other, evaluation=level(1.0, num_rounds))
    return scenario


def test_claims_are_data():
    """Eight numbered literals that nobody can change."""
    assert [claim.number for claim in CLAIMS] == list(range(1, 9))
    with pytest.raises(FrozenInstanceError, match="cannot assign"):
        CLAIMS[0].number = 9
    for claim in CLAIMS:
        assert claim.rules
        assert claim.strict


def test_all_claims_hold_where_they_should(tmp_path):
    """Curves that were made to agree with the paper, by either reading."""
    found = judged(tmp_path, Scenario())
    assert list(found) == list(range(1, 9))
    assert {each.verdict for each in found.values()} == {HOLDS}
    assert {each.strict_verdict for each in found.values()} == {HOLDS}


@pytest.mark.parametrize(
    ("number", "key", "changes", "expected"),
    [
        # 1: the regret of NPM-TS grows faster and faster; then its evaluation stays where it was.
        (1, ("mixture", "npm-ts"), {"decay": 1.01}, [False, True, True, True]),
        (1, ("mixture", "npm-ts"), {"evaluation": level(4.0)}, [True, True, False, True]),
        # 1: of a gap of 3, 1.8 is left: 40 % closed.
        (1, ("mixture", "gids"), {"evaluation": falling(4, 2.8)}, [True, True, True, False]),
        # 2: GIDS loses more than NPM-TS.
        (2, ("mixture", "gids"), {"start": 0.9, "drift": 0.001}, [False]),
        # 3: GIDS plays the best arm more often than NPM-TS at the start.
        (3, ("mixture", "gids"), {"early_best": 5}, [False]),
        # 4: GIDS does not learn; NPM-TS loses 20 more than GIDS, of 40 from Ind-TS to the oracle.
        (4, ("partial", "gids"), {"evaluation": level(4.0)}, [True, False, True]),
        (4, ("partial", "npm-ts"), {"floor": 0.3}, [True, True, False]),
        (4, ("partial", "gids"), {"floor": 0.3}, [True, True, False]),
        # 5: MTTS behind both; NPM-TS no better than Ind-TS; GIDS closes a third of its gap.
        (5, ("lmm", "mtts"), {"floor": 0.3}, [False, False, True, True, True, True]),
        (5, ("lmm", "npm-ts"), {"floor": 0.6}, [True, True, False, True, True, True]),
        (5, ("lmm", "gids"), {"evaluation": falling(4, 3)}, [True, True, True, True, True, False]),
        # 6: the regret of MTTS flattens, below that of Ind-TS.
        (6, ("lmm-misspecified", "mtts"), {"floor": 0.1, "start": 1, "decay": 0.9}, [False, False]),
        # 6: it flattens, and is above that of Ind-TS all the same.
        (6, ("lmm-misspecified", "mtts"), {"floor": 0.3, "start": 4, "decay": 0.9}, [False, True]),
        # 7: only rises; only falls; rises in the last round alone.
        (7, ("lmm-misspecified", "mtts"), {"evaluation": TURNING[3:]}, [False, True]),
        (7, ("lmm-misspecified", "mtts"), {"evaluation": falling(4, 1)}, [True, False]),
        (7, ("lmm-misspecified", "mtts"), {"evaluation": LATE_TURN}, [True, False]),
        # 8: GIDS loses more and more.
        (8, ("lmm-misspecified", "gids"), {"decay": 1.01}, [True, False, True, True]),
    ],
)
def test_changed_curve_changes_its_part(tmp_path, number, key, changes, expected):
    """Change one curve; the other parts of the claim stay as they were."""
    found = judged(tmp_path, changed(key, changes))[number]
    assert outcomes(found.findings) == expected
    assert found.verdict == (IN_PART if any(expected) else FAILS)
    assert found.agreement == (DISAGREES_IN_PART if any(expected) else DISAGREES)


@pytest.mark.parametrize(
    ("number", "key", "changes", "expected"),
    [
        # 1: regret rises half as fast at the end; 78 % of the gap is closed.
        (1, ("mixture", "npm-ts"), {"decay": 0.99}, [False, True, True, True]),
        (1, ("mixture", "gids"), {"evaluation": falling(4, 1.66)}, [True, True, True, False]),
        # 3: the third arm is played more often late than early; more often by NPM-TS.
        (3, ("mixture", "gids"), {"late_third": 9}, [False, True]),
        (3, ("mixture", "npm-ts"), {"early_third": 9}, [True, False]),
        # 4: NPM-TS loses 3 more than GIDS, of 14: close on the scale of Ind-TS alone.
        (4, ("partial", "npm-ts"), {"floor": 0.13}, [True, True, False]),
        # 6: MTTS loses 0.8 per step before the half and 1.0 after it: worse than linear.
        (6, ("lmm-misspecified", "mtts"), {"start": 0.1, "decay": 1.02}, [False, True]),
    ],
)
def test_strict_reading_fails_where_the_ordinary_one_holds(
    tmp_path, number, key, changes, expected
):
    found = judged(tmp_path, changed(key, changes))[number]
    assert found.verdict == HOLDS
    assert outcomes(found.strict_findings) == expected
    assert found.strict_verdict == IN_PART


def test_noise_between_seeds_leaves_a_difference_open(tmp_path):
    """GIDS is worse on average, but by less than seeds differ: that decides nothing."""
    scenario = Scenario().with_curve("mixture", "gids", drift=0.02)
    found = judged(tmp_path, scenario)[2]
    runs = {
        name: [scenario.curves["mixture", name].regrets(seed).sum() for seed in SEEDS]
        for name in ("gids", "npm-ts")
    }
    gap = sum(runs["gids"]) / 4 - sum(runs["npm-ts"]) / 4
    assert gap > 0
    assert found.verdict == OPEN
    assert found.agreement == TOO_SMALL
    assert f": {gap:.1f} [" in measured(found)


def test_measured_numbers_are_those_of_the_curves(tmp_path):
    """Exponent of claim 6, gap of claim 1, distance of claim 4, steps of claim 3, by hand."""
    found = judged(tmp_path, Scenario())
    assert "MTTS's multi-task regret grows like step^1.00 [1.00, 1.00]" in measured(found[6])
    # Of a gap of 3, 0.1 is left in the last round, and 0.105 on average over the last fifth.
    assert "NPM-TS closes 97 % [97, 97] of its gap" in measured(found[1])
    # In the first fifth of 20 steps NPM-TS plays the best arm twice, GIDS never.
    expected = "not best in 100 % of the steps, NPM-TS in 90 %: 10.0 points [10.0, 10.0]"
    assert expected in measured(found[3])
    # NPM-TS loses 1 more, 0.1 less per seed: 0.85 of 40.3 and of 15.15.
    expected = (
        "GIDS is 2 % [2, 3] of the distance from Ind-TS to the oracle below NPM-TS, which is 6 %"
    )
    assert expected in measured(found[4])


def test_single_seed_gives_numbers_and_no_verdict(tmp_path):
    found = judged(tmp_path, Scenario(seeds=(5,)))
    assert {each.verdict for each in found.values()} == {OPEN}
    assert {each.agreement for each in found.values()} == {TOO_SMALL}
    assert "grows like step^1.00 [–]" in measured(found[6])


@pytest.mark.parametrize(
    ("environments", "policies", "expected"),
    [
        # Without MTTS and two environments; without the oracle; without GIDS.
        (("mixture", "lmm"), ("npm-ts", "gids", "ind-ts", "oracle-ts"), [1, 2, 3]),
        (("mixture", "partial"), ("npm-ts", "gids", "ind-ts"), [2, 3]),
        (
            ("mixture", "lmm-misspecified"),
            ("npm-ts", "mtts", "ind-ts", "oracle-ts"),
            [6, 7],
        ),
        (("lmm",), ("ind-ts", "oracle-ts"), []),
    ],
)
def test_run_lists_only_the_claims_it_can_speak_to(tmp_path, environments, policies, expected):
    assert list(judged(tmp_path, Scenario().only(environments, policies))) == expected


@pytest.mark.parametrize(
    ("parts", "expected", "expected_small"),
    [
        ([True, True], HOLDS, AGREES),
        ([True, False], IN_PART, DISAGREES_IN_PART),
        ([False, False], FAILS, DISAGREES),
        ([True, None], IN_PART, TOO_SMALL),
        ([False, None], FAILS, DISAGREES),
        ([None, None], OPEN, TOO_SMALL),
        ([True, False, None], IN_PART, DISAGREES_IN_PART),
    ],
)
def test_verdict_combines_findings(parts, expected, expected_small):
    """All, some, none, unknown; in a small run an undecided part decides nothing."""
    findings = tuple(Finding("text", holds) for holds in parts)
    assert verdict(findings) == expected
    assert agreement(findings) == expected_small
