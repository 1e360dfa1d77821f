"""The comparison itself: it finds a bit, names the call, and keeps the list of intentions short."""

import pytest

from golden.differences import find_differences, summarise
from golden.drivers import DRIVERS, find_driver
from golden.playing import Outcome


def outcome(name, *chances, broken=None):
    """Make a scenario of one decision per chance."""
    rows = [["decide ann", "a", {"a": float(chance).hex()}, "0x0p+0"] for chance in chances]
    return Outcome(name, rows, broken)


BASE = [outcome("one", 0.5, 0.25), outcome("two", 0.125)]
# The last bit of one number.
CHANGED = [outcome("one", 0.5, 0.25000000000000006), outcome("two", 0.125)]


def test_the_same_is_no_difference():
    summary = summarise(BASE, BASE, {})
    assert summary.is_good
    assert "2 scenarios, 3 decisions: 0 differences" in summary.text


def test_one_bit_is_a_difference_with_its_call():
    [difference] = find_differences(BASE, CHANGED)
    assert (difference.id, difference.call) == ("one", 1)
    summary = summarise(BASE, CHANGED, {})
    assert not summary.is_good
    assert "Different: one, call 1" in summary.text


def test_a_long_list_ends_with_counts_by_kind():
    many = [outcome(f"page/{number}", 0.5) for number in range(30)]
    summary = summarise(many, [outcome(each.id, 0.25) for each in many], {})
    assert summary.text.count("Different: page/") == 20
    assert "Different: 30 in all (30 page)" in summary.text


@pytest.mark.parametrize("after", [BASE[:1], [*BASE, outcome("three", 1.0)]])
def test_a_scenario_that_one_tree_lacks_is_a_difference(after):
    assert len(find_differences(BASE, after)) == 1


def test_an_intended_difference_is_shown_with_its_reason():
    summary = summarise(BASE, CHANGED, {"o*": "a better rule"})
    assert summary.is_good
    assert "a better rule" in summary.text


def test_an_intention_without_difference_is_an_error():
    summary = summarise(BASE, CHANGED, {"o*": "a better rule", "two": "another"})
    assert not summary.is_good
    assert "Stale: no difference matches 'two'" in summary.text


def test_a_broken_promise_is_an_error_though_nothing_differs():
    broken = [outcome("one", 0.5, broken="a loaded study answers otherwise")]
    assert not summarise(broken, broken, {}).is_good


def test_one_driver_fits_this_tree(monkeypatch):
    assert callable(find_driver().open_study)
    monkeypatch.setitem(DRIVERS, "another", "Study")
    with pytest.raises(LookupError, match="Expected one driver"):
        find_driver()
