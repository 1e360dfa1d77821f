"""Rules against closed forms, on curves that are made here."""

import numpy as np
import pytest
from scipy import stats
from synthetic_run import Curve, Scenario, info_of

from cocobandits.experiments.claims import CLAIMS, TARGETS
from cocobandits.experiments.rules import Approaches, ApproachesStrictly, Flattens, Linear, ShareOf
from cocobandits.runs.results import CellKey, Results

STEPS = np.arange(1.0, 201.0)
ENVIRONMENT = "somewhere"


def measures_of(cumulative, evaluations=None):
    """Make results from cumulative regret, seed × step, by policy."""
    regrets = {
        (ENVIRONMENT, name): np.diff(np.atleast_2d(curves), prepend=0.0, axis=1)
        for name, curves in cumulative.items()
    }
    keys = [(*key, seed) for key, curves in regrets.items() for seed in range(len(curves))]
    return Results(
        environments=(ENVIRONMENT,),
        policies=tuple(cumulative),
        seeds=tuple(sorted({seed for *_, seed in keys})),
        cells={
            CellKey(*key): info_of(CellKey(*key), Curve(0.0))._replace(
                total_regret=regrets[key[:2]][key[2]].sum()
            )
            for key in keys
        },
        regrets=regrets,
        evaluations={(ENVIRONMENT, name): curves for name, curves in (evaluations or {}).items()},
        **{name: {} for name in ("arms", "health", "hyperparameters", "tables")},
    )


def scaled(curve, factors):
    return np.outer(factors, curve)


@pytest.mark.parametrize("exponent", [0.4, 0.9, 1.0, 1.5])
def test_exponent_of_a_power_law_is_found(exponent):
    """A power of the step, times a factor that differs between seeds."""
    oracle = scaled(STEPS, [0.1, 0.2, 0.1])
    mine = oracle + scaled(STEPS**exponent, [1.0, 2.0, 4.0])
    finding = Linear("mtts").find(measures_of({"mtts": mine, "oracle-ts": oracle}), ENVIRONMENT)
    assert f"step^{exponent:.2f} [{exponent:.2f}, {exponent:.2f}]" in finding.text
    assert finding.holds is (exponent >= 0.9)


def test_jackknife_interval_by_hand():
    """Three seeds with exponents of their own: leave each out, and fit the mean of the rest."""
    curves = np.stack([STEPS**0.7, STEPS, STEPS**1.4])
    half = slice(100, 200)

    def fit(kept):
        mean = curves[kept].mean(axis=0)
        return stats.linregress(np.log(STEPS[half]), np.log(mean[half])).slope

    left_out = np.array([fit([1, 2]), fit([0, 2]), fit([0, 1])])
    error = np.sqrt(2 / 3 * np.sum((left_out - left_out.mean()) ** 2))
    reach = stats.t.ppf(0.975, 2) * error
    expected = (fit([0, 1, 2]) - reach, fit([0, 1, 2]) + reach)
    run = measures_of({"mtts": curves, "oracle-ts": 0.0 * curves})
    text = Linear("mtts").find(run, ENVIRONMENT).text
    assert text.endswith("[{:.2f}, {:.2f}]".format(*expected).replace("-", "−"))


@pytest.mark.parametrize(
    ("exponents", "holds"),
    [
        # Far apart: the interval reaches below one half. Close together: it does not.
        ([0.3, 1.0, 2.0], None),
        ([0.93, 1.0, 1.02], True),
        ([0.5, 0.51, 0.52], False),
    ],
)
def test_interval_of_the_exponent_has_to_exclude_one_half(exponents, holds):
    curves = np.stack([STEPS**exponent / 200**exponent for exponent in exponents])
    run = measures_of({"mtts": curves, "oracle-ts": 0.0 * curves})
    assert Linear("mtts").find(run, ENVIRONMENT).holds is holds


def test_regret_that_is_not_positive_has_no_exponent():
    curves = scaled(-STEPS, [1.0, 2.0])
    run = measures_of({"mtts": curves, "oracle-ts": 0.0 * curves})
    finding = Linear("mtts").find(run, ENVIRONMENT)
    assert finding.holds is None
    assert "step^– [–]" in finding.text


def test_flattening_is_relative_to_independent_learning():
    """Both curves flatten alike, so the share does not; then only the policy's does."""
    flattening = np.sqrt(STEPS)
    oracle = scaled(0.0 * STEPS, [1.0, 1.0, 1.0])
    alone = scaled(flattening, [4.0, 5.0, 6.0])
    both = {"oracle-ts": oracle, "ind-ts": alone}
    alike = measures_of({"gids": 0.5 * alone, **both})
    finding = Flattens("gids").find(alike, ENVIRONMENT)
    assert "is 50 % of Ind-TS's in the first fifth and 50 % in the last: 0 points" in finding.text
    assert not finding.holds
    faster = measures_of({"gids": scaled(1 - 0.9**STEPS, [4.0, 5.1, 6.2]), **both})
    assert Flattens("gids").find(faster, ENVIRONMENT).holds


def test_share_of_an_excess_that_is_not_there_decides_nothing():
    """Ind-TS starts below the oracle."""
    oracle, alone = 1.0 * STEPS, np.where(STEPS < 50, 0.5 * STEPS, 2.0 * STEPS)
    run = measures_of(
        {
            "gids": scaled(1.5 * STEPS, [1.0, 1.1]),
            "ind-ts": scaled(alone, [1.0, 1.1]),
            "oracle-ts": scaled(oracle, [1.0, 1.1]),
        }
    )
    assert Flattens("gids").find(run, ENVIRONMENT).holds is None


def test_policy_that_starts_no_worse_than_the_oracle_has_no_gap_to_close():
    evaluations = {
        "gids": scaled(np.array([1.0, 0.9, 0.8]), [1.0, 1.1]),
        "oracle-ts": scaled(np.array([1.0, 1.0, 1.0]), [1.0, 1.1]),
    }
    curves = scaled(STEPS, [1.0, 1.0])
    run = measures_of({"gids": curves, "oracle-ts": curves}, evaluations)
    assert Approaches("gids").find(run, ENVIRONMENT).holds is None


@pytest.mark.parametrize(("relation", "holds"), [("at most", True), ("below", False)])
def test_share_that_equals_its_limit(relation, holds):
    """Half of the yardstick's regret, where a half is allowed."""
    run = measures_of({"coids": scaled(0.5 * STEPS, [1, 1]), "ind-ts": scaled(STEPS, [1, 1])})
    rule = ShareOf("coids", "ind-ts", 0.5, relation=relation)
    assert rule.find(run, ENVIRONMENT).holds is holds


def test_error_of_the_change_of_shares_is_that_of_resampled_seeds():
    """The linearised error of two ratios, against a bootstrap of 400 seeds."""
    rng = np.random.default_rng(3)
    num_seeds = 400
    first, last = rng.gamma(8.0, 0.05, (2, num_seeds))
    alone = rng.gamma(20.0, 0.05, num_seeds)
    rise = np.array([first, last])
    mine = np.concatenate([np.repeat(part[:, None], 5, axis=1) for part in rise], axis=1)
    mine = np.cumsum(
        np.concatenate([mine[:, :5], mine[:, :5], mine[:, 5:], mine[:, 5:]], axis=1), 1
    )
    theirs = np.cumsum(np.repeat(alone[:, None], 20, axis=1), 1)
    text = (
        Flattens("gids")
        .find(measures_of({"gids": mine, "ind-ts": theirs, "oracle-ts": 0.0 * theirs}), ENVIRONMENT)
        .text
    )
    drawn = rng.integers(num_seeds, size=(4000, num_seeds))
    changes = (last[drawn].sum(1) - first[drawn].sum(1)) / alone[drawn].sum(1)
    low, high = (float(part.replace("−", "-")) for part in text[:-1].split("[")[1].split(", "))
    np.testing.assert_allclose((low, high), 100 * np.quantile(changes, [0.025, 0.975]), atol=1.0)


def test_gap_is_closed_over_the_last_fifth_of_the_rounds():
    """Gaps of 4 that end at 1 after ten rounds; the last round alone is an outlier."""
    gaps = np.array([4.0, *[2.0] * 7, 1.0, 1.0, 1.0, 3.0])
    evaluations = {
        "gids": scaled(1 + gaps, [1.0, 1.1, 1.2]),
        "oracle-ts": scaled(1 + 0 * gaps, [1, 1.1, 1.2]),
    }
    curves = scaled(STEPS, [1.0, 1.0, 1.0])
    run = measures_of({"gids": curves, "oracle-ts": curves}, evaluations)
    # Of 12 rounds the last fifth has three: gaps of 1, 1 and 3.
    finding = Approaches("gids").find(run, ENVIRONMENT)
    assert finding == ("GIDS closes 58 % [58, 58] of its gap in evaluation regret", True)
    strict = ApproachesStrictly("gids").find(run, ENVIRONMENT)
    assert strict == ("GIDS closes 25 % [25, 25] of its gap in evaluation regret", False)


def test_every_rule_says_its_criterion_in_sentences():
    """No brace is left; labels are those of the results."""
    results = Scenario.of_coids().results()
    for rule in (rule for claim in (*CLAIMS, *TARGETS) for rule in (*claim.rules, *claim.strict)):
        words = rule.words(results)
        assert words[0].isupper()
        assert words.endswith(".")
        assert not {"{", "}"} & set(words)
        assert rule.other not in words.split() or rule.other in ("", "survey")
