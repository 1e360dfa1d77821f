"""What another policy would have earned: by hand, by invariants, and from files."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from logged_worlds import (
    SMALL,
    errors_of,
    make_log,
    make_row,
    simulate_log,
    split,
    values_of,
)
from pyarrow import csv
from scipy.stats import t

from cocobandits.logs.off_policy import evaluate_log, to_open_bandit
from cocobandits.logs.off_policy.estimates import student_point
from cocobandits.logs.off_policy.reading import read_decisions
from cocobandits.logs.off_policy.reward_model import (
    NUM_FOLDS,
    RIDGE,
    encode_contexts,
    predict_rewards,
)
from cocobandits.logs.table import build_log, write_log


@pytest.fixture(scope="module")
def log():
    return simulate_log(5)


def test_small_case_by_hand():
    """Weights of "always a" are 2, 0, 5/4, 0, 5/2: by user 2, 5/4, 5/2, in all 23/4."""
    report = evaluate_log(make_log(), "a")
    ips = Fraction(2 * 1 + 5, 5) + Fraction(15, 4) / 5
    snips = (2 + Fraction(15, 4) + 5) / Fraction(23, 4)
    assert report.ips.value == pytest.approx(float(ips), rel=1e-12)
    assert report.snips.value == pytest.approx(float(snips), rel=1e-12)
    weights = [Fraction(2), Fraction(5, 4), Fraction(5, 2)]
    kept = [1 - weight / Fraction(23, 4) for weight in weights]
    influences = [2 - 2 * ips, Fraction(15, 4) - 2 * ips, 5 - ips]
    error = math.sqrt(sum((i / k) ** 2 for i, k in zip(influences, kept, strict=True))) / 5
    assert report.ips.standard_error == pytest.approx(error, rel=1e-12)
    effective = Fraction(23, 4) ** 2 / sum(weight**2 for weight in weights)
    assert report.overlap.effective_users == pytest.approx(float(effective), rel=1e-12)
    margin = t.ppf(0.975, float(effective) - 1) * error
    np.testing.assert_allclose(
        [report.ips.low, report.ips.high], [float(ips) - margin, float(ips) + margin], rtol=1e-5
    )


def test_error_of_snips_is_what_leaving_users_out_changes():
    report = evaluate_log(make_log(), "a")
    changes = []
    for left in ("u1", "u2", "u3"):
        rest = [decision for decision in SMALL if decision[0] != left]
        weights = [(d[1] == "a") / d[2][0] for d in rest]
        changes.append(np.average([d[3] for d in rest], weights=weights) - report.snips.value)
    assert report.snips.standard_error == pytest.approx(np.linalg.norm(changes), rel=1e-12)


def test_doubly_robust_without_context_by_enumeration():
    """Every user is a fold of its own: the model is the mean of an arm over all others."""
    decisions = [*SMALL, ("u4", "b", (0.3, 0.7), 5.0), ("u5", "a", (0.5, 0.5), 0.5)]
    target = {"a": 0.3, "b": 0.7}
    found = []
    for user, arm, probabilities, reward in decisions:
        model = {
            name: np.mean([d[3] for d in decisions if d[0] != user and d[1] == name])
            for name in "ab"
        }
        weight = target[arm] / probabilities["ab".index(arm)]
        found.append(0.3 * model["a"] + 0.7 * model["b"] + weight * (reward - model[arm]))
    report = evaluate_log(make_log(decisions), target)
    assert report.dr.value == pytest.approx(np.mean(found), rel=1e-12)


def test_reward_model_is_ridge_on_other_users(log):
    """Solve the penalised problem as least squares with additional rows."""
    logged = read_decisions(log)
    design = encode_contexts(logged.contexts, len(logged.rewards))
    predicted = predict_rewards(logged, design, seed=3)
    folds = (np.random.default_rng(3).permutation(60) % NUM_FOLDS)[logged.users]
    row = 17
    for arm in range(3):
        fitted = (folds != folds[row]) & (logged.chosen == arm)
        left = np.column_stack([np.ones(fitted.sum()), design[fitted]])
        left = np.vstack([left, [0.0, math.sqrt(RIDGE)]])
        coefficients = np.linalg.lstsq(left, np.append(logged.rewards[fitted], 0.0))[0]
        expected = coefficients @ [1.0, design[row, 0]]
        assert predicted[row, arm] == pytest.approx(expected, rel=1e-9)


def test_no_user_is_predicted_from_own_rewards(log):
    logged = read_decisions(log)
    design = encode_contexts(logged.contexts, len(logged.rewards))
    before = predict_rewards(logged, design, 0)
    own = logged.users == 7
    changed = logged._replace(rewards=np.where(own, 1e6, logged.rewards))
    after = predict_rewards(changed, design, 0)
    np.testing.assert_array_equal(after[own], before[own])
    assert np.any(after[~own] != before[~own])


def test_arm_that_nobody_else_had_is_predicted_as_the_others():
    decisions = [("u1", "a", (0.5, 0.5), 9.0), *(d for d in SMALL if d[0] != "u1")]
    decisions = [d for d in decisions if d[1] == "b" or d[0] == "u1"] + [
        ("u4", "b", (0.5, 0.5), 6.0)
    ]
    logged = read_decisions(make_log(decisions))
    predicted = predict_rewards(logged, np.zeros((len(decisions), 0)), 0)
    np.testing.assert_allclose(predicted[0], [5.0, 5.0])


def test_contexts_become_numbers():
    contexts = {
        "age": [10.0, None, 30.0, 20.0],
        "sex": ["m", "f", None, "m"],
        "new": [True, False, True, True],
        "same": [2.0, 2.0, 2.0, 2.0],
        "lost": [None] * 4,
    }
    high = math.sqrt(1.5)
    expected = [
        [-high, 0, 0, 1, 0, 0, 1, 0, 1],
        [0, 1, 1, 0, 0, 1, 0, 0, 1],
        [high, 0, 0, 0, 1, 0, 1, 0, 1],
        [0, 0, 0, 1, 0, 0, 1, 0, 1],
    ]
    np.testing.assert_allclose(encode_contexts(contexts, 4), expected, atol=1e-12)
    assert encode_contexts({}, 4).shape == (4, 0)


def test_overlap_by_hand():
    """The target plays a and b; b was impossible in the second of four decisions."""
    decisions = [
        ("u1", "a", (0.5, 0.5), 1.0),
        ("u1", "a", (1.0, 0.0), 1.0),
        ("u2", "b", (0.8, 0.2), 1.0),
        ("u3", "b", (0.6, 0.4), 1.0),
    ]
    overlap = evaluate_log(make_log(decisions), {"a": 0.5, "b": 0.5}).overlap
    weights = [1.0, 0.5, 2.5, 1.25]
    np.testing.assert_allclose(
        [overlap.effective_decisions, overlap.effective_users],
        [sum(weights) ** 2 / (1 + 0.25 + 6.25 + 1.5625), 5.25**2 / (2.25 + 6.25 + 1.5625)],
    )
    assert overlap.largest_weight == 2.5
    assert overlap.top_share == pytest.approx(2.5 / 5.25)
    assert overlap.unsupported_share == pytest.approx(0.5 / 4)
    assert overlap.smallest_probability == 0.0


@pytest.mark.parametrize("freedom", [1, 1.7, 4, 29, 600.5, 1e6])
def test_student_point_is_that_of_scipy(freedom):
    assert student_point(freedom) == pytest.approx(t.ppf(0.975, freedom), rel=1e-5)


def test_target_that_is_the_logging_policy_gives_the_plain_mean():
    decisions = [(f"u{n % 7}", "ab"[n % 3 == 0], (0.7, 0.3), n**0.5) for n in range(40)]
    report = evaluate_log(make_log(decisions), {"a": 0.7, "b": 0.3})
    mean = np.mean([decision[3] for decision in decisions])
    np.testing.assert_allclose([report.ips.value, report.snips.value], mean, rtol=1e-12)
    assert report.logged_mean == pytest.approx(mean, rel=1e-12)
    assert report.overlap.effective_decisions == pytest.approx(40)


def test_function_of_context_that_is_the_logging_policy_gives_the_plain_mean():
    decisions = [
        (f"u{n}", "ab"[n % 2], (0.2, 0.8) if n % 5 else (0.6, 0.4), 1.0 + n, {"x": float(n % 5)})
        for n in range(30)
    ]
    asked = []

    def target(context):
        asked.append(context)
        return {"a": 0.2, "b": 0.8} if context["x"] else {"a": 0.6, "b": 0.4}

    report = evaluate_log(make_log(decisions, ["x"]), target)
    np.testing.assert_allclose([report.ips.value, report.snips.value], 15.5, rtol=1e-12)
    assert asked == [{"x": float(n)} for n in range(5)]


@pytest.mark.parametrize("target", ["a", {"a": 1.0}, {"a": 1, "b": 0.0}, lambda _: "a"])
def test_constant_target_can_be_written_in_many_ways(log, target):
    assert evaluate_log(log, target) == evaluate_log(log, "a")


def test_order_of_rows_changes_nothing(log):
    table = pa.table(log)
    shuffled = table.take(np.random.default_rng(2).permutation(len(table)))
    one, other = evaluate_log(table, split), evaluate_log(shuffled, split)
    np.testing.assert_allclose(values_of(other), values_of(one), rtol=1e-10)
    np.testing.assert_allclose(errors_of(other), errors_of(one), rtol=1e-10)
    assert other.overlap.unsupported_share == one.overlap.unsupported_share == 0.0


def test_seed_moves_only_the_reward_model(log):
    one, same, other = (evaluate_log(log, "b", seed=seed) for seed in (1, 1, 2))
    assert same == one
    assert (other.ips, other.snips, other.overlap) == (one.ips, one.snips, one.overlap)
    assert other.dr != one.dr
    assert abs(other.dr.value - one.dr.value) < one.dr.standard_error / 4


def test_units_of_reward_do_not_matter(log):
    """All estimates follow a scale; those that normalise follow a shift too."""
    one = evaluate_log(log, split)
    scaled = evaluate_log(log | {"reward": 64.0 * log["reward"]}, split)
    np.testing.assert_allclose(values_of(scaled), 64 * np.array(values_of(one)), rtol=1e-10)
    np.testing.assert_allclose(errors_of(scaled), 64 * np.array(errors_of(one)), rtol=1e-10)
    shifted = evaluate_log(log | {"reward": 9.0 + log["reward"]}, split)
    np.testing.assert_allclose(values_of(shifted)[1:], 9 + np.array(values_of(one)[1:]), rtol=1e-9)
    np.testing.assert_allclose(errors_of(shifted)[1:], errors_of(one)[1:], rtol=1e-9)


def test_units_of_context_do_not_matter(log):
    moved = evaluate_log(log | {"context.x": 5 - 100 * log["context.x"]}, "b")
    assert moved.dr.value == pytest.approx(evaluate_log(log, "b").dr.value, rel=1e-9)


def test_equal_rewards_leave_nothing_to_estimate(log):
    report = evaluate_log(log | {"reward": np.full(240, 2.5)}, split)
    np.testing.assert_allclose([report.snips.value, report.dr.value], 2.5, rtol=1e-12)
    np.testing.assert_allclose(errors_of(report)[1:], 0.0, atol=1e-12)


def test_decisions_without_reward_or_of_withdrawn_users_are_left_out():
    extra = [
        make_row("u1", "a", (0.5, 0.5), None, status="open"),
        make_row("u2", "a", (0.5, 0.5), None, status="closed"),
        make_row("u2", "b", (0.5, 0.5), None, status="retracted"),
        make_row("u9", "b", (0.5, 0.5), 50.0, is_withdrawn=True),
    ]
    rows = [make_row(*decision) for decision in SMALL]
    report = evaluate_log(build_log(["a", "b"], [], [*extra, *rows], {}), "a")
    expected = evaluate_log(make_log(), "a")
    assert values_of(report) == values_of(expected)
    assert (report.num_decisions, report.num_users, report.num_left_out) == (5, 3, 4)
    assert expected.num_left_out == 0


def test_copies_of_all_decisions_add_nothing(log):
    """Doubling the log of every user leaves standard errors as they are."""
    doubled = pa.concat_tables([pa.table(log)] * 2)
    one, two = evaluate_log(log, "b"), evaluate_log(doubled, "b")
    np.testing.assert_allclose(errors_of(two)[:2], errors_of(one)[:2], rtol=1e-10)
    assert two.overlap.effective_users == pytest.approx(one.overlap.effective_users)


def test_log_read_back_gives_the_same_report(tmp_path):
    rng = np.random.default_rng(8)
    decisions = [
        (
            f"{number // 2:03}",
            "ab"[int(rng.random() < 0.3)],
            (0.7, 0.3),
            rng.normal(),
            {"x": None if number % 7 == 0 else rng.normal(), "s": "NA" if number % 3 else "y"},
        )
        for number in range(80)
    ]
    table = make_log(decisions, ["x", "s"])
    write_log(table, tmp_path / "log.parquet")
    report = evaluate_log(table, "b")
    assert report.num_users == 40
    assert evaluate_log(pq.read_table(tmp_path / "log.parquet"), "b") == report


def test_data_frame_gives_the_same_report(tmp_path, log):
    pandas = pytest.importorskip("pandas", reason="pandas is missing: pip install pandas")
    frame = pandas.DataFrame(log)
    frame.to_csv(tmp_path / "log.csv", index=False)
    expected = evaluate_log(log, split)
    assert evaluate_log(frame, split) == expected
    again = evaluate_log(pandas.read_csv(tmp_path / "log.csv"), split)
    np.testing.assert_allclose(values_of(again), values_of(expected), rtol=1e-10)


def test_exported_csv_with_an_arm_like_a_formula_gives_the_same_estimates(tmp_path):
    """The column "arm" has an apostrophe that the names of columns do not have."""
    table = make_log()
    names = [name.replace(".a", ".-1") for name in table.column_names]
    arms = ["-1" if arm == "a" else arm for arm in table.column("arm").to_pylist()]
    table = table.rename_columns(names).set_column(names.index("arm"), "arm", [arms])
    write_log(table, tmp_path / "log.csv")
    again = evaluate_log(csv.read_csv(tmp_path / "log.csv"), "-1")
    assert values_of(again) == values_of(evaluate_log(make_log(), "a"))


def test_open_bandit_feedback_has_its_keys_and_shapes(log):
    """Compare with the keys of obp's SyntheticBanditDataset.obtain_batch_bandit_feedback."""
    feedback = to_open_bandit(log)
    assert list(feedback) == [
        "n_rounds",
        "n_actions",
        "context",
        "action_context",
        "action",
        "position",
        "reward",
        "expected_reward",
        "pi_b",
        "pscore",
    ]
    assert (feedback["n_rounds"], feedback["n_actions"]) == (240, 3)
    assert feedback["context"].shape == (240, 1)
    assert feedback["pi_b"].shape == (240, 3, 1)
    assert np.issubdtype(feedback["action"].dtype, np.integer)
    assert feedback["position"] is None
    assert feedback["expected_reward"] is None
    np.testing.assert_array_equal(feedback["action_context"], np.eye(3))
    rows = np.arange(240)
    np.testing.assert_array_equal(feedback["pi_b"][rows, feedback["action"], 0], feedback["pscore"])
    weights = (feedback["action"] == 1) / feedback["pscore"]
    ips = np.mean(weights * feedback["reward"])
    assert evaluate_log(log, "b").ips.value == pytest.approx(ips, rel=1e-12)
