"""Names and ranges of a design: enumerations are plain text, and what cannot be used is refused."""

from enum import Enum, StrEnum

import numpy as np
import pytest

from cocobandits import Gaussian, Study
from cocobandits.checks import plain_name
from cocobandits.errors import ConfigurationError
from cocobandits.study.context import Feature, read_context
from cocobandits.study.design import StudyDesign

REWARDS = Gaussian(0.0, 4.0, noise=0.5)


class Arm(str, Enum):  # noqa: UP042 - the older kind, which prints and hashes as Arm.WALK
    WALK = "walk"
    REST = "rest"


class Sex(str, Enum):  # noqa: UP042
    F = "female"
    M = "male"


class Name(StrEnum):
    AGE = "age"
    SEX = "sex"


CONTEXT = {Name.AGE: (20, 60), Name.SEX: [Sex.F, Sex.M]}


def declare(arms=("walk", "rest"), context=None, floor=0.0) -> StudyDesign:
    return StudyDesign.declare(list(arms), context or {}, REWARDS, "uniform", floor, 0)


@pytest.mark.parametrize("name", [Arm.WALK, np.str_("walk"), "walk"])
def test_name_becomes_plain_text(name):
    assert type(plain_name(name)) is str
    assert plain_name(name) == "walk"
    assert f"{plain_name(name)}" == "walk"


@pytest.mark.parametrize("value", [None, 3, b"walk", ["walk"]])
def test_other_values_stay_as_they_are(value):
    assert plain_name(value) is value


def test_design_of_enumerations_is_that_of_plain_names():
    given = declare(Arm, CONTEXT, {Arm.REST: 0.25, "walk": 0.125})
    plain = declare(
        ("walk", "rest"),
        {"age": (20, 60), "sex": ["female", "male"]},
        {"rest": 0.25, "walk": 0.125},
    )
    assert given == plain
    assert given.floor == (0.125, 0.25)
    names = [*given.arms, *(feature.name for feature in given.features)]
    names += given.features[1].categories
    assert {type(name) for name in names} == {str}
    assert [str(name) for name in given.arms] == ["walk", "rest"]
    assert type(given.with_arm(Sex.F, 0).arms[-1]) is str


def test_study_of_enumerations_enrols_and_logs_plain_names():
    study = Study(list(Arm), CONTEXT, REWARDS, "uniform")
    study.enrol("anna", {Name.AGE: 30, Name.SEX: Sex.M})
    study.enrol("anna", {"age": 30, "sex": "male"})
    study.decide("anna")
    log = study.log()
    assert "probability.walk" in log.column_names
    assert log.column("context.sex").to_pylist() == ["male"]


def test_enumerations_in_a_context_are_looked_up_by_their_value():
    feature = Feature.declare("arm", ["rest", "walk"])
    for context in ({"arm": "walk"}, {"arm": Arm.WALK}, {np.str_("arm"): np.str_("walk")}):
        assert read_context((feature,), context).tolist() == [1.0]


def test_member_and_its_value_are_the_same_name():
    with pytest.raises(ConfigurationError, match=r"different names; got arm=\['walk'\] more than"):
        declare([Arm.WALK, Arm.REST, "walk"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"arms": ["a", "\ud800"]},
            r"got arm='\\ud800'. Give every arm a name that can be written",
        ),
        ({"arms": [["a"], ["b"]], "floor": {}}, r"1 to 256 characters; got arm=\['a'\]"),
        ({"context": {"\ud800": 3}}, r"1 to 256 characters; got feature='\\ud800'"),
        ({"context": {"sex": ["f", "\ud800"]}}, r"got category of sex='\\ud800'. Give every"),
        ({"context": {"sex": ["f", "m" * 257]}}, r"1 to 256 characters; got category of sex='m"),
    ],
)
def test_names_that_no_file_can_hold_are_refused(change, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        declare(**change)
    str(caught.value).encode()


@pytest.mark.parametrize(
    "pair",
    [(-1e308, 1e308), (0, 5e-324), (0, 1e-300), (-1e101, 0), (1.0, 1.0 + 1e-12), (1e15, 1e15 + 1)],
)
def test_ranges_that_cannot_be_computed_with_are_refused(pair):
    refused = r"at least 1e-100 wide, and 1e-09 of its distance from zero; got {}=\(.*Choose anoth"
    with pytest.raises(ConfigurationError, match=refused.format("age")):
        Feature.declare("age", pair)
    with pytest.raises(ConfigurationError, match=refused.format("age")):
        Feature("age", range=pair)
    with pytest.raises(ConfigurationError, match=refused.format("rewards")):
        Gaussian(*pair)


@pytest.mark.parametrize("pair", [(-1e100, 1e100), (0, 1e-100), (1e6, 1e6 + 1), (-1e9, 2 - 1e9)])
def test_extreme_ranges_keep_their_ends_and_their_middle(pair):
    feature, rewards = Feature.declare("age", pair), Gaussian(*pair)
    middle = pair[0] + (pair[1] - pair[0]) / 2
    for value, place in zip((pair[0], middle, pair[1]), (-1.0, 0.0, 1.0), strict=True):
        assert feature.standardise(feature.read(value)) == pytest.approx(place, abs=1e-6)
        assert rewards.standardise(value) == pytest.approx(2 * place, abs=1e-6)
    assert 0 < rewards.scale**2 < np.inf


def test_verbs_take_enumerations_and_keep_plain_text():
    """The log, the events and the ids of a study hold values, whatever the caller's type."""
    study = Study(list(Arm), CONTEXT, REWARDS, "ind-ts", seed=0)
    study.enrol(Arm.REST, {"age": 30, "sex": Sex.M})
    decision = study.decide(Arm.REST, [Arm.WALK])
    study.reward(decision.id, 1.0)
    study.observe(Arm.REST, Arm.REST, 2.0)
    study.suspend(Arm.WALK, Name.AGE)
    study.add_arm(Name.SEX)
    assert study.users == ("rest",)
    assert study.context("rest") == {"age": 30.0, "sex": "male"}
    assert study.arms == {"walk": "suspended", "rest": "active", "sex": "active"}
    table = study.log()
    assert {"probability.walk", "probability.rest", "probability.sex"} <= set(table.column_names)
    assert table["arm"].to_pylist() == ["walk"]
    plain = [str, float, int, bool, type(None), tuple]
    for event in study.events[1:]:
        for value in vars(event).values():
            assert type(value) in plain
            assert not isinstance(value, tuple) or {type(each) for each in value} <= {*plain}
