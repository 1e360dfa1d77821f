from dataclasses import FrozenInstanceError, replace

import pytest
from synthetic_run import STRESS, TURNING, Scenario, falling, level

from cocobandits.experiments.claims import CLAIMS, TARGETS, judge

LATE_TURN = (*falling(4, 1)[:-1], 3.0)


def judged(scenario, claims=CLAIMS):
    """Map the number of every claim to its judgement."""
    return {each.claim.number: each for each in judge(claims, scenario.results())}


def large(scenario):
    """Let the same curves be those of a run that is large enough to decide claims."""
    return replace(scenario, seeds=(0, 1, 2, 3, 4), info={"is_quick": False})


def outcomes(reading):
    return [finding.holds for finding in reading.findings]


def texts(reading):
    return "; ".join(finding.text for finding in reading.findings)


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
    assert all(claim.rules for claim in CLAIMS)


def test_all_claims_hold_where_they_should():
    """Curves that were made to agree with the paper, by either reading."""
    for scenario, expected in ((Scenario(), "agrees"), (large(Scenario()), "holds")):
        found = judged(scenario)
        assert list(found) == list(range(1, 9))
        assert {each.plain.verdict for each in found.values()} == {expected}
        assert {each.strict.verdict for each in found.values()} == {expected}


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
def test_changed_curve_changes_its_part(number, key, changes, expected):
    """Change one curve; the other parts of the claim stay as they were."""
    reading = judged(changed(key, changes))[number].plain
    assert outcomes(reading) == expected
    assert reading.verdict == ("disagrees in part" if any(expected) else "disagrees")


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
def test_strict_reading_fails_where_the_ordinary_one_holds(number, key, changes, expected):
    found = judged(changed(key, changes))[number]
    assert found.plain.verdict == "agrees"
    assert outcomes(found.strict) == expected


def test_noise_between_seeds_leaves_a_difference_open():
    """GIDS is worse on average, but by less than seeds differ: that decides nothing."""
    scenario = Scenario().with_curve("mixture", "gids", drift=0.02)
    totals = [
        sum(scenario.curves["mixture", name].regrets(seed).sum() for seed in range(4)) / 4
        for name in ("gids", "npm-ts")
    ]
    assert totals[0] > totals[1]
    found = judged(scenario)[2].plain
    assert found.verdict == "too small to tell"
    assert f": {totals[0] - totals[1]:.1f} [" in texts(found)


def test_measured_numbers_are_those_of_the_curves():
    """Exponent of claim 6, gap of claim 1, distance of claim 4, steps of claim 3, by hand."""
    found = {number: texts(each.plain) for number, each in judged(Scenario()).items()}
    assert "MTTS's multi-task regret grows like step^1.00 [1.00, 1.00]" in found[6]
    # Of a gap of 3, 0.1 is left in the last round, and 0.105 on average over the last fifth.
    assert "NPM-TS closes 97 % [97, 97] of its gap" in found[1]
    # In the first fifth of 20 steps NPM-TS plays the best arm twice, GIDS never.
    assert "not best in 100 % of the steps, NPM-TS in 90 %: 10.0 points [10.0, 10.0]" in found[3]
    # NPM-TS loses 1 more, 0.1 less per seed: 0.85 of 40.3 and of 15.15.
    expected = "GIDS is 2 % [2, 3] of the distance from Ind-TS to the oracle below NPM-TS, which is"
    assert f"{expected} 6 %" in found[4]


def test_single_seed_gives_numbers_and_no_verdict():
    found = judged(Scenario(seeds=(5,)))
    assert {each.plain.verdict for each in found.values()} == {"too small to tell"}
    assert "grows like step^1.00 [–]" in texts(found[6].plain)


@pytest.mark.parametrize(
    ("environments", "policies", "expected"),
    [
        # Without MTTS and two environments; without the oracle; without GIDS.
        (("mixture", "lmm"), ("npm-ts", "gids", "ind-ts", "oracle-ts"), [1, 2, 3]),
        (("mixture", "partial"), ("npm-ts", "gids", "ind-ts"), [2, 3]),
        (("mixture", "lmm-misspecified"), ("npm-ts", "mtts", "ind-ts", "oracle-ts"), [6, 7]),
        (("lmm",), ("ind-ts", "oracle-ts"), []),
    ],
)
def test_results_list_only_the_claims_they_can_speak_to(environments, policies, expected):
    assert list(judged(Scenario().only(environments, policies))) == expected


@pytest.mark.parametrize(
    ("part", "expected"),
    [("evaluations", [2, 3, 6]), ("regrets", [2, 4, 5, 7]), ("arms", [1, 2, 4, 5, 6, 7, 8])],
)
def test_claims_that_need_what_was_not_kept_are_left_out(part, expected):
    """Totals are known of summaries too; curves, arms and evaluations are not."""
    results = replace(Scenario().results(), **{part: {}})
    assert [each.claim.number for each in judge(CLAIMS, results)] == expected


@pytest.mark.parametrize(
    ("number", "environment", "changes", "expected"),
    [
        # The oracle loses 10.15; coids loses 100 · floor + 3 + 0.15.
        (1, "mixture", {}, [True, True]),
        (1, "mixture", {"floor": 0.0755}, [False, True]),
        (1, "mixture", {"floor": 0.075}, [True, True]),
        (1, "lmm-misspecified", {"floor": 0.076}, [True, False]),
        (2, "partial", {"floor": 0.045}, [False]),
        # In the second half the oracle loses 5.075.
        (3, "partial", {"floor": 0.1}, [True, False, True]),
        # A quarter of 50.45; on seed 3 alone, half of 50.9.
        (4, "lmm", {"floor": 0.095}, [False, True]),
        (4, "lmm", {"floor": 0.0, "drift": 0.08}, [False, False]),
        (5, "lmm", {"floor": 0.061}, [True, True, False, True]),
        (6, "stress-ring", {"floor": 0.221}, [True, True, False, True]),
    ],
)
def test_worse_curve_misses_its_target(number, environment, changes, expected):
    scenario = Scenario.of_coids().with_curve(environment, "coids", **changes)
    assert outcomes(judged(scenario, TARGETS)[number].plain) == expected


def test_numbers_of_targets_are_those_of_the_curves():
    """Coids loses 7.15 and the oracle 10.15, both with 0.1 more per seed."""
    first = judged(Scenario.of_coids(), TARGETS)[1].plain.findings[0].text
    expected = "CoIDS over OraclePrior-TS is 0.70 [0.70, 0.71], 7.1 ± 0.1 of 10.2 ± 0.1"
    assert first == f"mixture: {expected}"
    # Seed 3 loses 3 + 30 of 50.9.
    scenario = Scenario.of_coids().with_curve("lmm", "coids", floor=0.0, drift=0.1)
    found = judged(scenario, TARGETS)[4].plain
    assert "on its worst seed, 3, 0.65, 33.0 of 50.9" in texts(found)


def test_mean_decides_targets_where_the_interval_does_not():
    """Paired with gids, seeds differ by more than the mean; the rule says what decides."""
    scenario = Scenario.of_coids().with_curve("lmm", "coids", floor=0.049, drift=0.007)
    found = judged(scenario, TARGETS)[5].plain
    assert found.findings[2] == ("lmm: CoIDS minus GIDS is −0.2 [−1.4, 1.0]", True)
    assert "Decided by the mean over the seeds" in found.words


def test_targets_that_were_not_run_are_left_out():
    """No gids and no stress; then no coids; then one environment of several."""
    policies, own = ("coids", "ind-ts", "oracle-ts"), Scenario.of_coids()
    assert list(judged(own.only(policies=policies), TARGETS)) == [1, 2, 3, 4]
    assert judged(own.only(STRESS, policies[1:]), TARGETS) == {}
    assert list(judged(own.only(("lmm",), policies), TARGETS)) == [4]
