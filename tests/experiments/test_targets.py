import pytest
from synthetic_run import ENVIRONMENTS, STRESS, Curve, Scenario, write_run

from cocobandits.experiments.claims import FAILS, HOLDS, IN_PART, OPEN, judge
from cocobandits.experiments.measures import measure
from cocobandits.experiments.reading import load_run
from cocobandits.experiments.targets import TARGETS


def scenario():
    """Add to the run of coids a policy that does a little worse everywhere."""
    whole = Scenario.of_coids()
    gids = {
        (name, "gids"): Curve(
            0.06, 0.3, 0.9, 0.001, evaluation=whole.curves[name, "coids"].evaluation
        )
        for name in whole.environments
    }
    return Scenario(whole.curves | gids, has_densities=False)


def judged(folder, made):
    """Map the number of every target to its judgement."""
    found = judge(TARGETS, measure(load_run(write_run(folder, made))))
    return {each.claim.number: each for each in found}


def test_all_targets_hold_where_they_should(tmp_path):
    targets = judged(tmp_path, scenario())
    assert list(targets) == [1, 2, 3, 4, 5, 6]
    assert {target.verdict for target in targets.values()} == {HOLDS}


@pytest.mark.parametrize(
    ("number", "environment", "changes", "expected"),
    [
        # The oracle loses 10.15; coids loses 100 · floor + 3 + 0.15.
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
def test_worse_curve_changes_its_part(tmp_path, number, environment, changes, expected):
    target = judged(tmp_path, scenario().with_curve(environment, "coids", **changes))[number]
    assert [finding.holds for finding in target.findings] == expected
    assert target.verdict == (HOLDS if all(expected) else IN_PART if any(expected) else FAILS)


def test_single_bad_seed_is_named(tmp_path):
    """Seed 3 loses 3 + 30 of 50.9."""
    made = scenario().with_curve("lmm", "coids", floor=0.0, drift=0.1)
    texts = [finding.text for finding in judged(tmp_path, made)[4].findings]
    assert "on its worst seed, 3, 0.65, 33.0 of 50.9" in texts


def test_numbers_are_ratios_of_means_with_their_intervals(tmp_path):
    """Coids loses 7.15 and the oracle 10.15, both with 0.1 more per seed."""
    [first, _] = judged(tmp_path, scenario())[1].findings
    assert (
        first.text
        == "mixture: CoIDS over OraclePrior-TS is 0.70 [0.70, 0.71], 7.1 ± 0.1 of 10.2 ± 0.1"
    )


def test_mean_decides_where_the_interval_does_not(tmp_path):
    """Paired with gids, seeds differ by more than the mean; the rule says what decides."""
    made = scenario().with_curve("lmm", "coids", floor=0.049, drift=0.007)
    target = judged(tmp_path, made)[5]
    [found] = [finding for finding in target.findings if finding.text.startswith("lmm: ")]
    assert found.text == "lmm: CoIDS minus GIDS is −0.2 [−1.4, 1.0]"
    assert found.holds
    assert "Decided by the mean over the seeds" in target.rule


def test_one_seed_decides_nothing(tmp_path):
    made = Scenario(scenario().curves, seeds=(0,), has_densities=False)
    assert {target.verdict for target in judged(tmp_path, made).values()} == {OPEN}


def test_targets_that_were_not_run_are_left_out(tmp_path):
    """No gids and no stress; then no coids; then one environment of several."""
    policies = ("coids", "ind-ts", "oracle-ts")
    assert list(judged(tmp_path / "some", scenario().only(ENVIRONMENTS, policies))) == [1, 2, 3, 4]
    assert judged(tmp_path / "others", scenario().only(STRESS, ("ind-ts", "oracle-ts"))) == {}
    assert list(judged(tmp_path / "one", scenario().only(("lmm",), policies))) == [4]
