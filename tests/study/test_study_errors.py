"""Bad input gets one clear error that names the value and the remedy, and changes nothing."""

import math

import jax
import numpy as np
import pytest

from cocobandits import CocoError, Gaussian, LogDensity, NpmTS, PaperLogDensity, Study
from cocobandits.errors import (
    ConfigurationError,
    ConflictError,
    GridTooLargeError,
    InputError,
    NumericalError,
    StorageError,
    UnknownNameError,
    UnsupportedError,
)
from support.designs import small

GRID = LogDensity(nodes_per_arm=4, num_modes=6)
DESIGN = {
    "seed": 0,
    "arms": ["a", "b"],
    "context": {"age": (18, 90), "sex": ["f", "m"]},
    "rewards": Gaussian(0.0, 1.0, noise=0.05),
    "policy": small("npm-ts", population=GRID, num_particles=10),
}
GOOD = {"age": 34, "sex": "f"}


@pytest.fixture
def study():
    made = Study(**DESIGN)
    made.enrol("anna", GOOD)
    made.enrol("gone", GOOD)
    made.reward(made.decide("anna").id, 0.5)
    made.withdraw("gone")
    made.decide("anna")
    return made


def _fingerprint(study: Study) -> list:
    arrays = [
        np.asarray(leaf).tobytes()
        for leaf in jax.tree.leaves((study._learner.users, study._learner.state))
    ]
    return [arrays, study.events, study.describe()]


DESIGN_ERRORS = [
    ({"arms": ["a"]}, ConfigurationError, r"at least two arms; got arms=\['a'\]. Add"),
    ({"arms": ["a", ""]}, ConfigurationError, r"name of 1 to 256 characters; got arm=''"),
    ({"arms": ["a", "b", "a"]}, ConfigurationError, r"different names; got arm=\['a'\]"),
    ({"arms": ["a", 3]}, ConfigurationError, r"got arm=3"),
    ({"context": {"age": (90, 18)}}, ConfigurationError, r"smaller first; got age=\(90, 18\)"),
    (
        {"context": {"age": [18, 90]}},
        ConfigurationError,
        r"range \(low, high\), a list.*\(18, 90\)",
    ),
    ({"context": {"sex": ["f", "f"]}}, ConfigurationError, r"names; got category of sex=\['f'\]"),
    ({"context": {"": (0, 1)}}, ConfigurationError, r"got feature=''"),
    (
        {"policy": "best"},
        UnknownNameError,
        r"policy='best'.*coids, npm-ts, gids, mtts, hierts, .*17 in all",
    ),
    ({"seed": -1}, ConfigurationError, r"whole number from zero to 2\^63 - 1; got seed=-1"),
    ({"seed": 1.5}, ConfigurationError, r"got seed=1.5"),
    ({"seed": np.timedelta64(5)}, ConfigurationError, r"got seed=np.timedelta64\(5\)"),
    ({"seed": 2**63}, ConfigurationError, r"zero to 2\^63 - 1; got seed=9223372036854775808"),
    ({"arms": "ab"}, ConfigurationError, r"list of arm names; got arms='ab'"),
    ({"arms": 5}, ConfigurationError, r"list of arm names; got arms=5"),
    ({"context": None}, ConfigurationError, r"mapping from feature.*got context=None"),
    ({"policy": {}}, ConfigurationError, r"name of a policy, or its settings; got policy=\{\}"),
    ({"policy": NpmTS}, ConfigurationError, r"its settings; got policy=<class .*CoIDS\(steps"),
    ({"rewards": (0, 1)}, ConfigurationError, r"or Bernoulli\(\); got rewards=\(0, 1\). Write"),
    ({"context": {"sex": ["f", ""]}}, ConfigurationError, r"characters; got category of sex=''"),
    (
        {"arms": list("abcdef"), "policy": NpmTS(population=PaperLogDensity())},
        GridTooLargeError,
        r"20\^6 = 64,000,000 cells x 200 particles = 307,200,000,000 bytes. Lower the nodes",
    ),
    (
        {"policy": NpmTS(population=PaperLogDensity(num_modes=10_000, nodes_per_arm=3))},
        ConfigurationError,
        r"at most .* modes on this grid; got num_modes=10000",
    ),
]


@pytest.mark.parametrize(("change", "error", "message"), DESIGN_ERRORS)
def test_design_is_refused(change, error, message):
    with pytest.raises(error, match=message) as caught:
        Study(**(DESIGN | change))
    assert isinstance(caught.value, CocoError)


CALL_ERRORS = [
    (lambda s: s.decide("nobody"), UnknownNameError, r"user='nobody'\. Enrol the user first\.$"),
    (lambda s: s.decide("gone"), UnknownNameError, r"user='gone'. This .* has withdrawn: enrol"),
    (lambda s: s.explain("nobody"), UnknownNameError, r"user='nobody'"),
    (lambda s: s.withdraw("nobody"), UnknownNameError, r"user='nobody'"),
    (lambda s: s.withdraw("gone"), UnknownNameError, r"user='gone'"),
    (lambda s: s.enrol("", GOOD), InputError, r"id of 1 to 256 characters; got user=''"),
    (lambda s: s.enrol("u\ud800", GOOD), InputError, r"characters; got user="),
    (
        lambda s: s.enrol("u" * 257, GOOD),
        InputError,
        r"1 to 256 characters; got user='u+\.\.\.u+'\.",
    ),
    (lambda s: s.enrol(7, GOOD), InputError, r"got user=7"),
    (lambda s: s.enrol("anna", GOOD | {"age": 35}), ConflictError, r"user='anna'.*another id"),
    (lambda s: s.enrol("gone", GOOD), ConflictError, r"user='gone', who has withdrawn"),
    (lambda s: s.enrol("bob", GOOD | {"age": 17}), InputError, r"18 to 90; got age=17"),
    (lambda s: s.enrol("bob", GOOD | {"age": float("nan")}), InputError, r"got age=nan"),
    (lambda s: s.enrol("bob", GOOD | {"age": "34"}), InputError, r"a number; got age='34'"),
    (lambda s: s.enrol("bob", GOOD | {"age": np.timedelta64(34)}), InputError, r"got age=np.time"),
    (lambda s: s.enrol("bob", GOOD | {"age": True}), InputError, r"a number; got age=True"),
    (lambda s: s.enrol("bob", GOOD | {"sex": "x"}), InputError, r"\['f', 'm'\]; got sex='x'"),
    (lambda s: s.enrol("bob", GOOD | {"sex": 1}), InputError, r"got sex=1"),
    (lambda s: s.enrol("bob", GOOD | {"height": 1}), UnknownNameError, r"feature='height'"),
    (lambda s: s.enrol("bob", [34, "f"]), InputError, r"mapping from feature to value"),
    (lambda s: s.population({"height": 34}), UnknownNameError, r"feature='height'"),
    (lambda s: s.reward("d9", 0.5), UnknownNameError, r"decision='d9'.*the last is shown"),
    (lambda s: s.reward("x", 0.5), UnknownNameError, r"decision='x'"),
    (lambda s: s.reward(2, 0.5), UnknownNameError, r"decision=2"),
    (lambda s: s.reward("d01", 0.5), UnknownNameError, r"decision='d01'"),
    (lambda s: s.reward("d" + "1" * 5000, 0.5), UnknownNameError, r"decision='d111"),
    (lambda s: s.reward("d1", 10**400), InputError, r"finite number; got reward=1000"),
    (lambda s: s.decide(["anna"]), UnknownNameError, r"user=\['anna'\]"),
    (lambda s: s.reward("d1", float("nan")), InputError, r"finite number; got reward=nan"),
    (lambda s: s.reward("d1", float("inf")), InputError, r"finite number; got reward=inf"),
    (lambda s: s.reward("d1", None), InputError, r"finite number; got reward=None"),
    (lambda s: s.reward("d1", "0.5"), InputError, r"finite number; got reward='0.5'"),
    (lambda s: s.reward("d1", 1.51), InputError, r"from -0.5 to 1.5 .*got reward=1.51. Check"),
    (lambda s: s.reward("d1", -0.51), InputError, r"got reward=-0.51"),
    (lambda s: s.reward("d0", 0.6), ConflictError, r"has reward 0.5. Use correct\('d0', 0.6\)"),
    (lambda s: s.correct("d1", 0.6), ConflictError, r"which is open. Use reward\('d1', value\)"),
    (lambda s: s.correct("d0", 7.0), InputError, r"got reward=7.0"),
    (lambda s: s.close("d0"), ConflictError, r"open decision; got decision='d0', which has reward"),
]


def test_long_names_are_not_repeated_in_full(study):
    long = "u" * 1_000_000
    for call in (study.enrol, study.decide, study.add_arm, study.reward):
        arguments = (0.5,) if call == study.reward else ()
        with pytest.raises(CocoError, match=r"uuu\.\.\.uuu") as caught:
            call(long, *arguments)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize(("call", "error", "message"), CALL_ERRORS)
def test_call_is_refused_and_changes_nothing(study, call, error, message):
    before = _fingerprint(study)
    with pytest.raises(error, match=message) as caught:
        call(study)
    assert isinstance(caught.value, CocoError)
    assert _fingerprint(study) == before


def test_rewards_of_a_withdrawn_user_are_refused():
    study = Study(**DESIGN)
    study.enrol("anna", GOOD)
    decision = study.decide("anna")
    study.withdraw("anna")
    for call in (lambda: study.reward(decision.id, 0.5), lambda: study.close(decision.id)):
        with pytest.raises(ConflictError, match="'d0', whose user has withdrawn"):
            call()


def test_policy_without_beliefs_says_so():
    study = Study(**(DESIGN | {"policy": "uniform"}))
    study.enrol("anna", GOOD)
    with pytest.raises(UnsupportedError, match=r"holds beliefs; got policy='uniform'.*coids"):
        study.explain("anna")


def test_save_to_a_folder_is_refused(study, tmp_path):
    with pytest.raises(StorageError, match="place that can be written"):
        study.save(tmp_path)


def test_numpy_numbers_can_be_saved(tmp_path):
    rewards = Gaussian(np.int64(0), np.int64(1), noise=np.float32(0.05))
    study = Study(**(DESIGN | {"rewards": rewards, "seed": np.int64(3)}))
    study.save(tmp_path / "one.study")
    assert Study.load(tmp_path / "one.study").design == study.design


def test_probabilities_that_are_not_a_distribution_are_refused(study, monkeypatch):
    broken = jax.numpy.array([math.nan, 0.5])
    monkeypatch.setattr(study._learner.policy, "probabilities", lambda *_: broken)
    study.close("d1")
    before = _fingerprint(study)
    with pytest.raises(NumericalError, match=r"sum to one; got \[nan, 0.5\] from policy='npm-ts'"):
        study.decide("anna")
    assert _fingerprint(study) == before
