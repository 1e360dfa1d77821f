"""Arms that come and go: who can be chosen, with what probability, and what stays."""

import math

import numpy as np
import pytest

from cocobandits import MTTS, Gaussian, Study
from cocobandits.errors import (
    ConfigurationError,
    ConflictError,
    InputError,
    UnknownNameError,
    UnsupportedError,
)
from cocobandits.study.events import ArmAdded, ArmChanged
from cocobandits.study.rules import raise_to_floors
from support.designs import small_by_default

ARMS = ["a", "b", "c"]


def make_study(policy="ind-ts", **changes) -> Study:
    settings = small_by_default(policy) if isinstance(policy, str) else policy
    study = Study(ARMS, {}, Gaussian(-2, 2, noise=0.1), settings, seed=4, **changes)
    study.enrol("anna")
    return study


def serve(study, value=0.5, user="anna", eligible=None):
    decision = study.decide(user, eligible)
    study.reward(decision.id, value if decision.arm == "a" else -value)
    return decision


def test_floors_by_hand():
    """Compute p = f + (1 - Σf) w over the arms that can be chosen."""
    weights, floors = np.array([0.5, 0.0, 0.5, 0.0]), (0.1, 0.05, 0.0, 0.2)
    everyone = np.array([True] * 4)
    found = raise_to_floors(weights, floors, everyone)
    np.testing.assert_allclose(found, [0.1 + 0.65 / 2, 0.05, 0.65 / 2, 0.2], rtol=1e-15)
    found = raise_to_floors(weights, floors, np.array([True, False, True, False]))
    np.testing.assert_allclose(found, [0.1 + 0.9 / 2, 0.0, 0.9 / 2, 0.0], rtol=1e-15)
    alone = raise_to_floors(np.array([0.0, 1.0]), (0.3, 0.3), np.array([False, True]))
    np.testing.assert_array_equal(alone, [0.0, 1.0])
    without = raise_to_floors(weights, (0.0,) * 4, everyone)
    assert without.tobytes() == weights.tobytes()


def test_decision_carries_weights_before_and_probabilities_after_floors():
    """The draw falls on the probabilities after floors."""
    study = make_study(floor={"b": 0.3, "c": 0.2})
    for _ in range(20):
        decision = serve(study)
        weights = np.array(list(decision.weights.values()))
        expected = np.array([0.0, 0.3, 0.2]) + 0.5 * weights
        found = np.array(list(decision.probabilities.values()))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert weights.sum() == pytest.approx(1.0)
        number = ARMS.index(decision.arm)
        assert np.cumsum(found)[number] > decision.draw
        assert number == 0 or np.cumsum(found)[number - 1] <= decision.draw
        assert decision.eligible == ("a", "b", "c")
    assert study.decide("anna").weights["a"] > 0.9
    assert study.decide("anna").probabilities["b"] >= 0.3


def test_without_floors_nothing_changes():
    plain, zero = make_study(), make_study(floor=0)
    for _ in range(3):
        assert serve(plain) == serve(zero)
    decision = plain.decide("anna")
    assert decision.weights == decision.probabilities


@pytest.mark.parametrize(
    ("floor", "error", "message"),
    [
        (0.34, ConfigurationError, r"less than 1; got a sum of 1.02 over 3 arms. Lower them"),
        ({"a": 0.5, "b": 0.5}, ConfigurationError, r"got a sum of 1 over 3 arms"),
        (-0.1, ConfigurationError, r"at least 0 and below 1; got floor=-0.1 for arm='a'"),
        ({"b": 1.0}, ConfigurationError, r"got floor=1.0 for arm='b'"),
        ({"b": math.nan}, ConfigurationError, r"got floor=nan for arm='b'"),
        ({"b": "0.1"}, ConfigurationError, r"got floor='0.1' for arm='b'"),
        ({"d": 0.1}, UnknownNameError, r"arm='d'. Known: a, b, c. Give floors"),
        ("low", ConfigurationError, r"a number, or a mapping from arm to number; got floor='low'"),
        (None, ConfigurationError, r"got floor=None"),
        ((0.1, 0.1, 0.1), ConfigurationError, r"got floor=\(0.1, 0.1, 0.1\)"),
        (True, ConfigurationError, r"got floor=True"),
    ],
)
def test_floors_are_refused(floor, error, message):
    with pytest.raises(error, match=message):
        make_study("uniform", floor=floor)


@pytest.mark.parametrize("policy", ["ind-ts", "mtts", "uniform", "npm-ts", "coids"])
def test_choice_among_some_is_the_policys_own(policy):
    """The policy is asked about the eligible arms alone; the others have nothing."""
    study = make_study(policy, floor=0.1)
    for _ in range(3):
        serve(study)
    users = study._learner.users
    expected = np.asarray(
        study._learner.policy.probabilities(study._learner.state, users, 0, (0, 2))
    )
    decision = study.decide("anna", ["c", "a"])
    assert decision.eligible == ("a", "c")
    assert list(decision.weights) == list(decision.probabilities) == ARMS
    np.testing.assert_allclose([decision.weights["a"], decision.weights["c"]], expected, rtol=1e-12)
    assert decision.weights["b"] == decision.probabilities["b"] == 0.0
    assert decision.probabilities["a"] == pytest.approx(0.1 + 0.8 * decision.weights["a"])
    assert decision.arm in ("a", "c")


def test_single_arm_is_chosen_without_asking(monkeypatch):
    study = make_study(floor=0.05)

    def refuse(*_):
        raise AssertionError("asked")

    monkeypatch.setattr(study._learner.policy, "probabilities", refuse)
    decision = study.decide("anna", ["b"])
    assert decision.probabilities == decision.weights == {"a": 0.0, "b": 1.0, "c": 0.0}
    assert (decision.arm, decision.eligible) == ("b", ("b",))


def test_open_decision_is_returned_whatever_else_is_eligible():
    study = make_study()
    first = study.decide("anna")
    others = [arm for arm in ARMS if arm != first.arm]
    assert study.decide("anna", [first.arm]) == first
    assert study.decide("anna", (first.arm, others[0])) == first
    with pytest.raises(
        ConflictError, match=rf"got arm='{first.arm}' of decision='d0'.*close\('d0'"
    ):
        study.decide("anna", others)
    assert study.num_decisions == 1
    study.close(first.id)
    assert study.decide("anna", others).arm in others


def test_suspended_arm_is_not_chosen_and_its_open_decision_stays():
    study = make_study()
    first = study.decide("anna", ["b"])
    study.suspend("b", "side effects")
    assert study.arms == {"a": "active", "b": "suspended", "c": "active"}
    assert study.decide("anna") == first
    assert study.decide("anna", ["b", "c"]) == first
    study.reward(first.id, 1.5)
    assert study.explain("anna").arms["b"].mean > 1.0
    study.correct(first.id, -1.5)
    assert study.explain("anna").arms["b"].mean < -1.0
    for _ in range(20):
        decision = serve(study)
        assert decision.arm != "b"
        assert decision.probabilities["b"] == 0.0
        assert decision.eligible == ("a", "c")
    study.activate("b")
    assert study.decide("anna").eligible == ("a", "b", "c")


def test_withdrawn_arm_does_not_come_back():
    study = make_study()
    study.withdraw_arm("c")
    study.withdraw_arm("c", "again is harmless")
    for call in (study.suspend, study.activate):
        with pytest.raises(
            ConflictError, match=r"arm='c', which was withdrawn for good. Add an arm"
        ):
            call("c")
    study.suspend("b")
    study.withdraw_arm("b")
    assert study.arms == {"a": "active", "b": "withdrawn", "c": "withdrawn"}
    assert study.decide("anna").arm == "a"


def test_a_study_can_be_stopped():
    """Without an active arm nobody is served; another one, or the same again, goes on."""
    study = make_study()
    for arm in ("a", "b", "c"):
        study.suspend(arm, "harm is suspected")
    with pytest.raises(ConflictError, match="all are suspended or withdrawn"):
        study.decide("anna")
    assert set(study.explain("anna").arms) == {"a", "b", "c"}
    study.withdraw_arm("a")
    study.add_arm("d")
    assert study.decide("anna").arm == "d"


CALL_ERRORS = [
    (lambda s: s.suspend("z"), UnknownNameError, r"arm='z'. Known: a, b, c"),
    (lambda s: s.activate(3), UnknownNameError, r"arm=3"),
    (lambda s: s.withdraw_arm(["a"]), UnknownNameError, r"arm=\['a'\]"),
    (lambda s: s.suspend("a", 7), InputError, r"text in UTF-8 of at most 2,000 .*; got reason=7"),
    (lambda s: s.decide("anna", ["a", "z"]), UnknownNameError, r"arm='z'"),
    (lambda s: s.decide("anna", "a"), InputError, r"list of arms; got eligible='a'"),
    (lambda s: s.decide("anna", 3), InputError, r"list of arms; got eligible=3"),
    (lambda s: s.decide("anna", [["a"]]), UnknownNameError, r"arm=\['a'\]"),
    (
        lambda s: s.decide("anna", []),
        InputError,
        r"eligible arm that is active; got eligible=\[\], while \['a', 'b'\] are active. Make",
    ),
    (lambda s: s.decide("anna", ["c"]), InputError, r"got eligible=\['c'\].*activate an eligible"),
    (lambda s: s.add_arm(""), InputError, r"1 to 256 characters; got name=''"),
    (lambda s: s.add_arm(4), InputError, r"got name=4"),
    (lambda s: s.add_arm("a"), ConflictError, r"a new arm; got name='a', which is active"),
    (lambda s: s.add_arm("c"), ConflictError, r"name='c', which is suspended.*activate it"),
]


@pytest.mark.parametrize(("call", "error", "message"), CALL_ERRORS)
def test_call_is_refused_and_changes_nothing(call, error, message):
    study = make_study("uniform")
    study.suspend("c")
    before = study.arms
    with pytest.raises(error, match=message):
        call(study)
    assert study.arms == before
    assert study.num_decisions == 0
    assert study.design.arms == ("a", "b", "c")


@pytest.mark.parametrize("policy", ["ind-ts", "mtts", "uniform", "npm-ts", "coids"])
def test_added_arm_is_chosen_from_then_on(policy):
    study = make_study(policy)
    early = [serve(study) for _ in range(3)]
    late = study.decide("anna")
    study.add_arm("d")
    assert study.arms == dict.fromkeys("abcd", "active")
    assert study.design.arms == ("a", "b", "c", "d")
    assert study.design.added == (4,)
    assert study.decide("anna") == late  # it stays open, and as it was
    assert [study.decision(made.id) for made in early] == early
    study.reward(late.id, 0.5)
    decision = study.decide("anna")
    assert set(decision.probabilities) == set("abcd")
    assert sum(decision.probabilities.values()) == pytest.approx(1.0)
    study.close(decision.id)
    chosen = study.decide("anna", ["d"])
    study.reward(chosen.id, 1.9)
    assert float(study._learner.users.of(0)[1].count.sum()) == 5
    if policy != "uniform":
        explained = study.explain("anna").arms
        assert explained["d"].mean > 0.5
        assert explained["d"].best_probability > explained[early[-1].arm].best_probability


def test_what_is_known_of_the_others_stays():
    """Every user alone: a new arm changes nothing in what is believed of the others."""
    study = make_study()
    for _ in range(4):
        serve(study)
    before = study.explain("anna").arms
    study.add_arm("d")
    after = study.explain("anna").arms
    for arm in ARMS:
        assert after[arm].mean == pytest.approx(before[arm].mean, abs=1e-9)
        assert after[arm].best_probability < before[arm].best_probability + 1e-12
    assert after["d"].mean == pytest.approx(0.0, abs=1e-9)


def test_floor_of_an_added_arm():
    """The number for all, or none; floors of withdrawn arms are free again."""
    study = make_study(floor=0.24)
    study.add_arm("d")
    assert study.design.floors == (0.24,) * 4
    decision = study.decide("anna")
    assert min(decision.probabilities.values()) >= 0.24
    with pytest.raises(ConfigurationError, match=r"a sum of 1.2 over 5 arms"):
        study.add_arm("e")
    assert study.design.arms == ("a", "b", "c", "d")
    study.suspend("a")
    with pytest.raises(ConfigurationError, match=r"a sum of 1.2 over 5 arms"):
        study.add_arm("e")
    study.withdraw_arm("a")
    study.add_arm("e")
    given = make_study(floor={"a": 0.6})
    given.add_arm("d")
    assert given.design.floors == (0.6, 0.0, 0.0, 0.0)


def test_policy_that_was_told_of_its_arms_takes_no_other():
    rows = [[[1.0], [0.0]], [[0.0], [1.0]], [[1.0], [1.0]]]
    study = make_study(MTTS(rows))
    with pytest.raises(UnsupportedError, match="MTTS without a design; got design for 3 arms"):
        study.add_arm("d")
    assert study.arms == dict.fromkeys(ARMS, "active")
    assert study.design.added == ()
    serve(study)


def test_explanation_says_what_active_arms_are_for():
    """Probabilities of the rationales are those of a decision without floors."""
    study = make_study("coids")
    serve(study)
    study.suspend("b")
    explained = study.explain("anna")
    assert explained.arms["b"].rationale is None
    assert sum(arm.best_probability for arm in explained.arms.values()) == pytest.approx(1.0)
    decision = study.decide("anna")
    for arm in ("a", "c"):
        rationale = explained.arms[arm].rationale
        assert rationale.probability == pytest.approx(decision.weights[arm], abs=1e-6)
    assert [line.split()[0] for line in str(explained).splitlines()[-2:]] == ["a", "c"]
    study.suspend("c")
    assert all(arm.rationale is None for arm in study.explain("anna").arms.values())


def test_changes_are_kept_with_their_reasons():
    study = make_study()
    study.suspend("a", "too loud")
    study.suspend("a", "harmless")
    study.activate("a")
    study.withdraw_arm("b", "useless")
    study.add_arm("d")
    changes = [event for event in study.events if isinstance(event, ArmChanged | ArmAdded)]
    assert changes == [
        ArmChanged("a", "suspended", "too loud", seq=2),
        ArmChanged("a", "active", "", seq=3),
        ArmChanged("b", "withdrawn", "useless", seq=4),
        ArmAdded("d", seq=5),
    ]
    assert study.arms == {"a": "active", "b": "withdrawn", "c": "active", "d": "active"}
    assert [arm.reason for arm in study.describe().arms] == ["", "useless", "", ""]
