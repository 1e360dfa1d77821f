import pytest
from synthetic_run import ENVIRONMENTS, STRESS, Curve, Scenario, write_run

from cocobandits.experiments.claims import FAILS, HOLDS, MIXED, OPEN
from cocobandits.experiments.measures import measure
from cocobandits.experiments.reading import load_run
from cocobandits.experiments.targets import assess_targets


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


def judge(folder, made):
    """Map the number of every target to the target."""
    return {
        each.number: each for each in assess_targets(measure(load_run(write_run(folder, made))))
    }


def test_all_targets_hold_where_they_should(tmp_path):
    targets = judge(tmp_path, scenario())
    assert list(targets) == [1, 2, 3, 4, 5]
    assert {target.verdict for target in targets.values()} == {HOLDS}


@pytest.mark.parametrize(
    ("number", "environment", "changes", "expected"),
    [
        # The oracle loses 10.15; coids loses 100 · floor + 3 + 0.15.
        (1, "mixture", {"floor": 0.0755}, [False, True, True]),
        (1, "mixture", {"floor": 0.075}, [True, True, True]),
        (1, "partial", {"floor": 0.045}, [True, False, True]),
        (1, "lmm-misspecified", {"floor": 0.076}, [True, True, False]),
        # In the second half the oracle loses 5.075.
        (2, "partial", {"floor": 0.1}, [True, False, True]),
        # A quarter of 50.45; on seed 3 alone, half of 50.9.
        (3, "lmm", {"floor": 0.095}, [False, True]),
        (3, "lmm", {"floor": 0.0, "drift": 0.08}, [False, False]),
        (4, "lmm", {"floor": 0.061}, [True, True, False, True, True, True, True, True]),
        (5, "stress-ring", {"floor": 0.221}, [True, True, False, True]),
    ],
)
def test_worse_curve_changes_the_part_about_it(tmp_path, number, environment, changes, expected):
    target = judge(tmp_path, scenario().with_curve(environment, "coids", **changes))[number]
    assert [part.holds for part in target.parts] == expected
    verdict = HOLDS if all(expected) else MIXED if any(expected) else FAILS
    assert target.verdict == verdict


def test_single_bad_seed_is_named(tmp_path):
    """Seed 3 loses 3 + 30 of 50.9."""
    made = scenario().with_curve("lmm", "coids", floor=0.0, drift=0.1)
    target = judge(tmp_path, made)[3]
    assert "lmm: on its worst seed, 3, 0.65, 33.0 of 50.9" in target.measured


def test_numbers_are_ratios_of_means_with_their_intervals(tmp_path):
    """Coids loses 7.15 and the oracle 10.15, both with 0.1 more per seed."""
    told = judge(tmp_path, scenario())[1].measured
    assert (
        "mixture: CoIDS over OraclePrior-TS is 0.70 [0.70, 0.71], 7.1 ± 0.1 of 10.2 ± 0.1" in told
    )


def test_mean_decides_where_the_interval_does_not(tmp_path):
    """Paired with gids, seeds differ by more than the mean; the rule says what decides."""
    made = scenario().with_curve("lmm", "coids", floor=0.049, drift=0.007)
    target = judge(tmp_path, made)[4]
    [told] = [part for part in target.parts if part.told.startswith("lmm: ")]
    assert told.told == "lmm: CoIDS minus GIDS is −0.2 [−1.4, 1.0]"
    assert told.holds
    assert "Decided by the mean over the seeds" in target.rule


def test_one_seed_decides_nothing(tmp_path):
    made = Scenario(scenario().curves, seeds=(0,), has_densities=False)
    assert {target.verdict for target in judge(tmp_path, made).values()} == {OPEN}


def test_what_was_not_run_is_left_out(tmp_path):
    """No gids and no stress; then no coids."""
    policies = ("coids", "ind-ts", "oracle-ts")
    targets = judge(tmp_path / "some", scenario().only(ENVIRONMENTS, policies))
    assert list(targets) == [1, 2, 3]
    without = judge(tmp_path / "others", scenario().only(STRESS, ("ind-ts", "oracle-ts")))
    assert without == {}


def test_missing_yardstick_is_told(tmp_path):
    targets = judge(tmp_path, scenario().only(("mixture", "lmm"), ("coids", "oracle-ts")))
    assert "Ind-TS not run in lmm (not decided)" in targets[3].measured
    assert "partial not in this run (not decided)" in targets[1].measured
