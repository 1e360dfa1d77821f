"""What a reward is: its kind is part of the design, and every reward is held to it."""

import math

import numpy as np
import pytest
from scipy.stats import beta

from cocobandits import Bernoulli, Bounded, Gaussian, OracleTS, Study
from cocobandits.errors import ConfigurationError, InputError
from cocobandits.populations.known.beta_mixture import BetaMixture
from support.designs import small

REWARDS = Gaussian(0.0, 10.0, noise=0.25)


def make_study(policy="ind-ts", rewards=REWARDS) -> Study:
    return Study(["a", "b", "c"], {}, rewards, small(policy), seed=1)


def yes_no(policy="ind-ts") -> Study:
    return Study(["a", "b"], {}, Bernoulli(), small(policy, population=None), seed=0)


DESIGN_ERRORS = [
    (lambda: make_study(rewards="poisson"), r"Bernoulli\(\); got rewards='poisson'. Write"),
    (lambda: make_study(rewards=None), r"Gaussian\(\.\.\.\).*got rewards=None"),
    (lambda: make_study(rewards=["gaussian"]), r"got rewards=\['gaussian'\]"),
    (lambda: make_study(rewards=Gaussian), r"got rewards=<class"),
    (lambda: Gaussian(0, 1, maximise=0), r"True or False; got maximise=0. Use False if lower"),
    (lambda: Bernoulli(maximise="low"), r"got maximise='low'"),
]


@pytest.mark.parametrize(("call", "message"), DESIGN_ERRORS)
def test_design_is_refused(call, message):
    with pytest.raises(ConfigurationError, match=message):
        call()


REFUSED = [
    (lambda: Gaussian(0, 1e-300), r"at least 1e-100 wide, .*; got rewards=\(0.0, 1e-300\). Choose"),
    (lambda: Gaussian(-1e308, 1e308), r"between -1e\+100 and 1e\+100"),
    (lambda: Bounded(0, 1e101), r"between -1e\+100 and 1e\+100"),
    (lambda: Gaussian(1.0, 0.0), r"smaller first; got rewards=\(1.0, 0.0\)"),
    (lambda: Bounded(1, 1), r"smaller first; got rewards=\(1.0, 1.0\)"),
    (lambda: Gaussian(0.0, math.inf), r"two finite numbers.*inf"),
    (lambda: Gaussian(math.nan, 1.0), r"two finite numbers.*nan"),
    (lambda: Gaussian(0, 10**400), r"two finite numbers"),
    (lambda: Gaussian("0", 1), r"got rewards=\('0', 1.0\). Give for example"),
    (lambda: Bounded(True, 2), r"got rewards=\(True, 2.0\)"),
    (lambda: Gaussian(0, 1, noise=-0.1), r"positive, finite noise; got noise=-0.1. Give"),
    (lambda: Gaussian(0, 1, noise=0), r"got noise=0\.0\."),
    (lambda: Bounded(0, 1, noise=math.nan), r"got noise=nan.*None to learn it"),
    (lambda: Gaussian(0, 1, noise="0.5"), r"got noise='0.5'"),
    (lambda: Gaussian(0, 1, noise=1e-5), r"0.0001 to 10000 times the width.*Check the units"),
    (lambda: Gaussian(0, 1, noise=1e200), r"got noise=1e\+200 for a width of 1"),
    (lambda: Gaussian(0, 10, limits=(1, 11)), r"limits around the range \(0.0, 10.0\).*Widen"),
    (lambda: Gaussian(0, 1, limits=(-1e300, 1e300)), r"at most 1e\+100 times.*Narrow them"),
    (lambda: Bounded(0, 1, maximise="no"), r"True or False; got maximise='no'"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_rewards_are_refused_when_they_are_declared(call, message):
    with pytest.raises(ConfigurationError, match=message):
        call()


@pytest.mark.parametrize("kind", [Gaussian, Bounded])
def test_numbers_of_other_types_become_plain_floats(kind):
    rewards = kind(np.int64(0), np.float64(10), noise=np.float32(0.25))
    assert rewards == kind(0.0, 10.0, noise=0.25)
    assert {type(value) for value in (rewards.low, rewards.high, rewards.noise)} == {float}
    limits = Gaussian(0, 10, limits=[np.float64(-1), 11]).limits
    assert limits == (-1.0, 11.0)
    assert {type(value) for value in limits} == {float}


def test_the_widest_limits_leave_numbers_finite():
    study = make_study(rewards=Gaussian(0, 10, noise=0.25, limits=(-4e100, 4e100)))
    study.enrol("anna")
    study.reward(study.decide("anna").id, 4e100)
    assert sum(study.decide("anna").probabilities.values()) == pytest.approx(1.0)


def test_bounded_rewards_end_with_the_range():
    """No margin, whether the noise is known or learned; the policy gets Gaussian noise."""
    for noise in (0.5, None):
        study = make_study("uniform", Bounded(0.0, 10.0, noise=noise))
        assert study.design.rewards.bounds == (0.0, 10.0)
        assert study.design.problem().rewards == "gaussian"
        assert study.design.problem().reward_noise == (None if noise is None else 0.2)
        study.enrol("anna")
        for value in (0, 10.0, 3):
            study.reward(study.decide("anna").id, value)
        decision = study.decide("anna")
        for value in (-0.01, 10.01):
            message = (
                f"from 0 to 10 .the range of this study's rewards.*got reward={value}. .*wider"
            )
            with pytest.raises(InputError, match=message):
                study.reward(decision.id, value)


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, True, False, np.bool_(1), np.int8(0), np.True_])
def test_yes_and_no_are_taken_as_they_come(value):
    study = yes_no("uniform")
    assert study.design.problem().rewards == "bernoulli"
    assert study.design.problem().reward_noise is None
    assert study.design.rewards.range == study.design.rewards.bounds == (0.0, 1.0)
    study.enrol("anna")
    decision = study.decide("anna")
    study.reward(decision.id, value)
    study.reward(decision.id, float(value))  # the same again is harmless
    statistics = study._learner.users.of(0)[1]
    arm = study.design.arms.index(decision.arm)
    assert float(statistics.count[arm]) == 1.0
    assert float(statistics.total[arm]) == (2.0 if value else -2.0)


@pytest.mark.parametrize("value", [0.5, 2, -1, math.nan, "1", None, 1 + 1e-12, [1], np.array([1])])
def test_everything_between_yes_and_no_is_refused(value):
    study = yes_no("uniform")
    study.enrol("anna")
    decision = study.decide("anna")
    with pytest.raises(InputError, match=r"a reward of 0 or 1 .*bernoulli.*Give 1 for a success"):
        study.reward(decision.id, value)
    study.reward(decision.id, 1)
    if value is not None:
        with pytest.raises(InputError, match="a reward of 0 or 1"):
            study.correct(decision.id, value)


def test_truth_values_are_no_gaussian_rewards():
    study = make_study()
    study.enrol("anna")
    for value in (True, np.True_):
        with pytest.raises(InputError, match="finite number; got reward="):
            study.reward(study.decide("anna").id, value)


def test_beliefs_about_chances_are_beta_distributions():
    """Every user alone starts from a flat prior: α = 1 + successes, β = 1 + failures."""
    study = yes_no()
    study.enrol("anna")
    heard = {"a": [0, 0], "b": [0, 0]}
    for value in (1, 0, 1, 1, 0, 1):
        decision = study.decide("anna")
        study.reward(decision.id, value)
        heard[decision.arm][1 - value] += 1
    explained = study.explain("anna").arms
    for arm, (successes, failures) in heard.items():
        law = beta(1 + successes, 1 + failures)
        assert explained[arm].mean == pytest.approx(law.mean(), abs=1e-9)
        np.testing.assert_allclose(explained[arm].interval, law.interval(0.9), atol=0.01)
        assert explained[arm].uncertainty.person == pytest.approx(law.var(), abs=1e-9)
        # A reward of 0 or 1 with mean m has variance m (1 - m), whatever is known of it.
        mean = law.mean()
        assert explained[arm].uncertainty.total == pytest.approx(mean * (1 - mean), abs=1e-9)


@pytest.mark.parametrize("policy", ["coids", "ind-ts"])
def test_yes_no_study_runs_and_survives_the_disk(policy, tmp_path):
    study = yes_no(policy)
    for number in range(4):
        study.enrol(f"user-{number}")
        for _ in range(2):
            decision = study.decide(f"user-{number}")
            study.reward(decision.id, int(decision.arm == "b"))
    explained = study.explain("user-3").arms
    assert 0 <= explained["a"].mean < explained["b"].mean <= 1
    population = study.population()
    assert (population.edges[0], population.edges[-1]) == (0.0, 1.0)
    study.save(tmp_path / "one.study")
    loaded = Study.load(tmp_path / "one.study")
    assert loaded.design == study.design
    assert loaded.explain("user-3") == study.explain("user-3")
    assert loaded.decide("user-3") == study.decide("user-3")


def test_true_chances_survive_the_disk(tmp_path):
    prior = BetaMixture([[0.0], [0.5]], [[2, 1], [1, 4]], [[1, 3], [2, 2]])
    study = Study(["a", "b"], {}, Bernoulli(), OracleTS(prior), seed=0)
    study.save(tmp_path / "one.study")
    assert Study.load(tmp_path / "one.study").design == study.design


def test_diagnosis_of_yes_and_no_counts_chances():
    """Nobody shares: a product of s! f! / (n + 1)! over users and arms; no Gaussian is taken."""
    study = yes_no()
    counts = {}
    for number, values in enumerate([(1, 1, 0), (0, 1), (1,)]):
        study.enrol(f"user-{number}")
        for value in values:
            decision = study.decide(f"user-{number}")
            study.reward(decision.id, value)
            counts.setdefault((number, decision.arm), [0, 0])[value] += 1
    expected = sum(
        math.lgamma(s + 1) + math.lgamma(f + 1) - math.lgamma(s + f + 2) for f, s in counts.values()
    )
    found = study.diagnose()
    assert set(found.log_evidences) == {"nonparametric", "no-sharing"}
    assert found.log_evidences["no-sharing"] == pytest.approx(expected, rel=1e-12)
    assert found.log_evidences["nonparametric"] < 0
    assert (found.in_use, found.num_rewards) == ("no-sharing", 6)


def mirrored(policy):
    """Make a study, and one whose rewards are its negatives, of which lower ones are better."""
    up = make_study(policy, Gaussian(0.0, 10.0, noise=0.25))
    down = make_study(policy, Gaussian(-10.0, 0.0, noise=0.25, maximise=False))
    for study, sign in ((up, 1), (down, -1)):
        for user in ("anna", "bob"):
            study.enrol(user)
            for value in (7.0, 4.5, 8.25):
                decision = study.decide(user)
                study.reward(decision.id, sign * (value if decision.arm == "a" else value / 4))
    return up, down


@pytest.mark.parametrize("policy", ["coids", "ind-ts", "mtts"])
def test_lower_is_better_is_the_mirror_image(policy):
    """Decisions are the same, and explanations are mirrored."""
    up, down = mirrored(policy)
    for number in range(up.num_decisions):
        assert up.decision(f"d{number}") == down.decision(f"d{number}")
    assert down.explain("bob").arms.keys() == up.explain("bob").arms.keys()
    for arm, one in up.explain("bob").arms.items():
        other = down.explain("bob").arms[arm]
        assert other.mean == pytest.approx(-one.mean, abs=1e-9)
        np.testing.assert_allclose(other.interval, [-end for end in one.interval[::-1]], atol=1e-9)
        assert other.interval[0] < other.interval[1]
        assert other.best_probability == one.best_probability
        assert other.uncertainty == pytest.approx(one.uncertainty, rel=1e-9)
        if one.rationale is not None:
            assert other.rationale == pytest.approx(one.rationale, rel=1e-9)
            assert other.rationale.regret >= 0
    assert down.hyperparameters() == up.hyperparameters()
    found, mirror = up.population(), down.population()
    np.testing.assert_allclose(mirror.edges, -found.edges[::-1], atol=1e-12)
    assert np.all(np.diff(mirror.edges) > 0)
    for arm, density in found.marginal.items():
        np.testing.assert_allclose(mirror.marginal[arm], density[::-1], rtol=1e-9)
    for pair, density in found.pairwise.items():
        np.testing.assert_allclose(mirror.pairwise[pair], density[::-1, ::-1], rtol=1e-9)


def test_best_is_the_lowest_where_lower_is_better():
    study = make_study(rewards=Gaussian(0.0, 10.0, noise=0.1, maximise=False))
    study.enrol("anna")
    for _ in range(30):
        decision = study.decide("anna")
        study.reward(decision.id, {"a": 6.0, "b": 2.0, "c": 9.0}[decision.arm])
    explained = study.explain("anna").arms
    assert explained["b"].best_probability > 0.95
    assert explained["b"].mean == pytest.approx(2.0, abs=0.1)
    assert study.decide("anna").probabilities["b"] > 0.95


def test_direction_and_kind_survive_the_disk(tmp_path):
    study = make_study(rewards=Bounded(0, 10, noise=0.25, maximise=False))
    study.enrol("anna")
    study.reward(study.decide("anna").id, 3.0)
    study.save(tmp_path / "one.study")
    loaded = Study.load(tmp_path / "one.study")
    assert loaded.design == study.design
    assert loaded.explain("anna") == study.explain("anna")
