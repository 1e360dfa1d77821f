"""What a report says of overlap, and which logs and targets are refused."""

import math
import re
import sys

import numpy as np
import pytest
from logged_worlds import NAMES, SMALL, make_log

from cocobandits.errors import ConfigurationError, InputError, UnknownNameError
from cocobandits.logs.off_policy import evaluate_log
from cocobandits.logs.off_policy.overlap import GOOD_USERS, Overlap


def test_target_that_was_never_possible_is_unknown():
    decisions = [(f"u{n}", "a", (1.0, 0.0), float(n)) for n in range(50)]
    report = evaluate_log(make_log(decisions), "b")
    assert report.overlap.verdict == "none"
    assert report.overlap.unsupported_share == 1.0
    for name in NAMES:
        found = getattr(report, name)
        assert math.isnan(found.value)
        assert (found.low, found.high, found.standard_error) == (-math.inf, math.inf, math.inf)
    assert "The log says nothing of this target: 100 % of what" in report.warning


def test_partly_unsupported_target_carries_a_warning():
    decisions = [(f"u{n}", "a", (1.0, 0.0), 1.0) for n in range(5)]
    decisions += [(f"v{n}", "ab"[n % 2], (0.5, 0.5), 1.0) for n in range(95)]
    report = evaluate_log(make_log(decisions), {"a": 0.5, "b": 0.5})
    assert report.overlap.verdict == "thin"
    assert report.overlap.unsupported_share == pytest.approx(0.025)
    assert report.ips.value == pytest.approx(1 - 0.025)
    assert report.snips.value == pytest.approx(1.0)
    assert "2.5 % of what the target plays had probability zero (ips counts it" in report.warning
    assert report.warning in str(report)


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({}, "good", None),
        ({"expected_users": GOOD_USERS - 1}, "thin", "effectively 29.0 users can be expected"),
        ({"effective_users": GOOD_USERS - 1}, "good", None),
        ({"effective_users": 1.9}, "none", "The log says nothing.*effectively 1.9 users"),
        ({"rare_share": 0.4}, "thin", "rare weights make up 40 % of the expected squares"),
        ({"top_share": 0.4}, "good", None),
        ({"mean_weight": 0.06}, "good", "weights average 0.06, where 1 is expected"),
        ({"unsupported_share": 0.005}, "good", "0.5 % of what.*ips counts it"),
        ({"unsupported_share": 0.02}, "thin", "2 % of what.*ips counts.*Wait for"),
        (
            {"unsupported_share": 0.6},
            "none",
            "The log says nothing.*60 % of what the target plays had probability zero. Wait",
        ),
    ],
)
def test_verdicts(changes, verdict, words):
    numbers = {
        "effective_decisions": 90.0,
        "effective_users": 40.0,
        "mean_weight": 1.1,
        "largest_weight": 3.0,
        "top_share": 0.05,
        "unsupported_share": 0.0,
        "smallest_probability": 0.1,
        "expected_users": 40.0,
        "rare_share": 0.05,
    }
    overlap = Overlap(**(numbers | changes))
    assert overlap.verdict == verdict
    if words is None:
        assert overlap.warning is None
    else:
        assert re.search(words, overlap.warning)


def test_report_prints_as_a_table():
    report = evaluate_log(make_log(), "a")
    assert str(report).splitlines()[:7] == [
        "estimate        value  95 % from         to       s.e.",
        "ips              2.15     -3.793      8.093      1.239",
        "snips            1.87    -0.8604        4.6      0.569",
        "dr              1.775     -1.051      4.601      0.589",
        "as logged         2.4",
        "overlap: thin; effectively 2.8 of 5 decisions, 2.8 of 3 users",
        "left out: 0 decisions without reward or of users who withdrew",
    ]


def test_unknown_estimates_print_as_dashes():
    decisions = [(f"u{n}", "a", (1.0, 0.0), float(n)) for n in range(9)]
    lines = str(evaluate_log(make_log(decisions), "b")).splitlines()
    assert lines[1] == f"{'ips':<10}" + f"{'-':>11}" * 4
    assert lines[-1].startswith("The log says nothing")


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("z", UnknownNameError, r"known arm; got arm='z'. Known: a, b. Use an arm of the log"),
        ({"a": 0.5, "z": 0.5}, UnknownNameError, r"got arm='z'"),
        ({"a": 0.5, "b": 0.4}, InputError, r"sum to one; got a sum of 0.9 in target=\{'a'.*Divide"),
        ({}, InputError, r"got a sum of 0 in target=\{\}"),
        ({"a": 1.5, "b": -0.5}, InputError, r"from 0 to 1; got 1.5 for arm='a'. Give every"),
        ({"a": math.nan, "b": 1.0}, InputError, r"from 0 to 1; got nan for arm='a'"),
        ({"a": "1"}, InputError, r"from 0 to 1; got '1' for arm='a'"),
        (0.5, InputError, r"Expected an arm, a mapping.*got target=0.5. Write .*\{'a': 1.0\}"),
        (lambda _: None, InputError, r"function of the context that returns .*got target=None"),
        (lambda context: context["z"], InputError, r"answers for every.*KeyError.*context=\{"),
        (lambda _: {"a": 2.0}, InputError, r"from 0 to 1; got 2.0 for arm='a'"),
    ],
)
def test_bad_targets_are_refused(target, error, message):
    with pytest.raises(error, match=message):
        evaluate_log(make_log(), target)


@pytest.mark.parametrize("seed", [-1, 0.5, True, "1", np.timedelta64(1)])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(InputError, match=r"whole number from zero; got seed=.*Use for example 0"):
        evaluate_log(make_log(), "a", seed=seed)


def broken(**changes):
    return make_log().to_pydict() | changes


def without(*names):
    return {name: column for name, column in make_log().to_pydict().items() if name not in names}


BAD_LOGS = [
    (without("reward", "user"), r"columns that build_log makes; got none of the name user, reward"),
    (without("eligible.b"), r"got none of the name eligible.b. Keep all columns"),
    (without("probability.a", "probability.b"), r"none of the name probability.<arm>"),
    (broken(reward=["1.0"] * 5), r"finite numbers in every row.*column='reward' of type string"),
    (broken(reward=[1.0, None] * 2 + [1.0]), r"column='reward' of type double with 2 values miss"),
    (broken(reward=[1.0, math.inf] * 2 + [1.0]), r"Expected finite numbers.*column='reward'"),
    (
        broken(is_withdrawn=["no"] * 5),
        r"Expected truth values.*column='is_withdrawn'.*Keep the type",
    ),
    (broken(user=[None] * 5), r"Expected texts in every row.*column='user'"),
    (broken(status=[["rewarded"]] * 5), r"Expected texts in every row.*column='status'"),
    (broken(**{"probability.a": [0.5] * 5}), r"sum to one in every row; got others. Keep the col"),
    (broken(**{"probability.a": [-0.5] * 5, "probability.b": [1.5] * 5}), r"sum to one in every"),
    (broken(probability=[0.5] * 5), r"probability of the chosen arm.*a difference of 0.3 to"),
    (broken(**{"eligible.a": [False] * 5}), r"arm that is not eligible; got 0.8. Evaluate"),
    (broken(user=["u1"] * 5), r"at least two users; got num_users=1 in a log of 5 .*Wait"),
    (broken(status=["open"] * 5), r"at least two users; got num_users=0 in a log of 5"),
    (7, r"Expected a table of decisions; got int .*Give an Arrow table, a data frame"),
    ({"user": [1, "x"]}, r"Expected a table of decisions; got dict"),
]


@pytest.mark.parametrize(("table", "message"), BAD_LOGS)
def test_bad_logs_are_refused(table, message):
    with pytest.raises(InputError, match=message):
        evaluate_log(table, "a")


def test_arm_without_columns_is_refused():
    with pytest.raises(
        UnknownNameError, match=r"got arm='z'. Known: a, b. Keep the columns of all"
    ):
        evaluate_log(broken(arm=["a", "z"] * 2 + ["a"]), "a")


def test_empty_log_is_refused():
    with pytest.raises(InputError, match=r"got num_users=0 in a log of 0 decisions"):
        evaluate_log(make_log([]), "a")


def test_infinite_context_is_refused():
    decisions = [(*decision, {"x": math.inf}) for decision in SMALL]
    with pytest.raises(InputError, match=r"finite numbers; got feature='x' with infinite values"):
        evaluate_log(make_log(decisions, ["x"]), "a")


def test_missing_extra_says_how_to_install_it(monkeypatch):
    columns = make_log().to_pydict()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'cocobandits\[experiments\]'"):
        evaluate_log(columns, "a")
