"""The log of a study as a table: from calls to columns, to disk, and to estimates."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from cocobandits import Gaussian, Study
from cocobandits.errors import InputError, UnknownNameError


def make_study(policy="uniform", maximise=True) -> Study:
    rewards = Gaussian(0, 10, noise=0.5, maximise=maximise)
    study = Study(["a", "b"], {"age": (18, 90), "smoker": bool}, rewards, policy, 0.1, seed=5)
    study.enrol("anna", {"age": 34.1})
    study.enrol("bob", {"smoker": False})
    return study


def test_table_is_what_was_done():
    """Write every column of four decisions out: closed, taken back, eligible, an arm that came."""
    study = make_study()
    first = study.decide("anna")
    study.close(first.id)
    second = study.decide("anna", ["b"])
    study.reward(second.id, 4.5)
    third = study.decide("bob")
    study.reward(third.id, 2.0)
    study.correct(third.id, None)
    study.add_arm("c")
    study.suspend("a")
    fourth = study.decide("bob")
    study.update_context("anna", {"smoker": True})
    study.withdraw("bob")
    table = study.log().to_pydict()
    assert table["decision"] == ["d0", "d1", "d2", "d3"]
    assert table["user"] == ["anna", "anna", "bob", "bob"]
    assert table["user_step"] == [0, 1, 0, 1]
    made = [study.decision(f"d{number}") for number in range(4)]
    assert made == [first, second, third, fourth]
    assert table["arm"] == [decision.arm for decision in made]
    assert table["probability"] == [decision.probabilities[decision.arm] for decision in made]
    assert table["draw"] == [decision.draw for decision in made]
    assert table["reward"] == [None, 4.5, None, None]
    assert table["status"] == ["closed", "rewarded", "retracted", "open"]
    assert table["is_withdrawn"] == [False, False, True, True]
    assert table["probability.a"] == [0.5, 0.0, 0.5, 0.0]
    assert table["probability.b"] == [0.5, 1.0, 0.5, 0.5]
    assert table["probability.c"] == [0.0, 0.0, 0.0, 0.5]
    assert table["weight.c"] == [0.0, 0.0, 0.0, 0.5]
    assert table["eligible.a"] == [True, False, True, False]
    assert table["eligible.b"] == [True] * 4
    assert table["eligible.c"] == [False, False, False, True]
    assert table["context.age"] == [34.1, 34.1, None, None]
    assert table["context.smoker"] == [True, True, False, False]


def test_metadata_say_what_the_numbers_mean():
    metadata = make_study(maximise=False).log().schema.metadata
    assert metadata[b"better"] == b"lower"
    assert metadata[b"reward_range"] == b"0.0 to 10.0"
    assert (metadata[b"policy"], metadata[b"seed"], metadata[b"rewards"]) == (
        b"uniform",
        b"5",
        b"gaussian",
    )


@pytest.mark.parametrize("ending", ["parquet", "csv", "feather"])
def test_log_is_exported(ending, tmp_path):
    study = make_study()
    study.reward(study.decide("anna").id, 3.0)
    path = tmp_path / f"log.{ending}"
    study.export(path)
    assert path.is_file()
    if ending == "parquet":
        assert pq.read_table(path).equals(study.log(), check_metadata=True)
    with pytest.raises(InputError, match=r"log\.txt"):
        study.export(tmp_path / "log.txt")


def test_log_evaluates_other_choices():
    """Rewards of b are higher by two; half of the decisions were b."""
    study = make_study()
    rng = np.random.default_rng(0)
    for number in range(60):
        study.enrol(str(number), {"age": 20 + number})
        for _ in range(3):
            decision = study.decide(str(number))
            study.reward(decision.id, 4.0 + 2 * (decision.arm == "b") + 0.5 * rng.normal())
    always, never = study.evaluate("b"), study.evaluate({"a": 1.0})
    for report, truth in ((always, 6.0), (never, 4.0)):
        for estimate in (report.ips, report.snips, report.dr):
            assert abs(estimate.value - truth) < 4 * estimate.standard_error + 1e-9
    aimed = study.evaluate(lambda context: "b" if context["age"] > 50 else "a", seed=3)
    assert never.dr.value < aimed.dr.value < always.dr.value
    assert study.evaluate("b", seed=1) == study.evaluate("b", seed=1)
    with pytest.raises(UnknownNameError, match="arm='z'"):
        study.evaluate("z")


def test_rewards_are_in_the_users_own_units():
    study = make_study(maximise=False, policy="ind-ts")
    study.reward(study.decide("anna").id, 7.25)
    assert study.log().to_pydict()["reward"] == [7.25]


def test_open_bandit_feedback_is_that_of_the_log():
    study = make_study()
    with pytest.raises(InputError, match="reward"):
        study.open_bandit()
    for user, reward in (("anna", 4.0), ("bob", 2.0), ("anna", 5.0)):
        study.reward(study.decide(user).id, reward)
    feedback = study.open_bandit()
    arms = [study.decision(f"d{number}").arm for number in range(3)]
    np.testing.assert_array_equal(feedback["action"], ["ab".index(arm) for arm in arms])
    np.testing.assert_array_equal(feedback["reward"], [4.0, 2.0, 5.0])
    np.testing.assert_array_equal(feedback["pi_b"][:, :, 0], np.full((3, 2), 0.5))
