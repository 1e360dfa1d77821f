"""The page and the figure, from results that nobody measured."""

import json

import figure
import page
import prose
import pytest
from sample_results import sample

from cocobandits.experiments.drawing import save_as


def test_page_has_its_sections():
    """Each part of the results has its place."""
    text = page.render(sample())
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == [
        "# Performance",
        "## Against the literal reference",
        "## Is it as good?",
        "## How long a caller waits",
        "## How costs grow",
        "## Start-up and memory",
        "## Where the time goes",
        "## Machine",
    ]
    assert "None" not in text
    assert "nan" not in text


def test_page_shows_the_numbers():
    """Look for some that stand in one place only."""
    text = page.render(sample())
    for shown in ("| 600 s | 10 s | 60 |", "-0.5 ± 0.5", "512 MB", "1.25 times the exponentials"):
        assert shown in text, shown
    assert "| `inference.smc:_move_block` | 70 % | 90 |" in text


def test_page_depends_on_the_results_alone():
    """What went through a file gives the same page."""
    results = sample()
    assert page.render(json.loads(json.dumps(results))) == page.render(results)


def test_targets_are_held_against_what_was_measured():
    """The bound of growth comes from the numbers of users; others have none beforehand."""
    results = sample()
    [growth] = [row for row in page.target_rows(results) if "most users" in row[0]]
    assert growth[1:] == ("at most 2", "1.5", "yes")
    results["growth_users_ratio"] = 2.5
    [growth] = [row for row in page.target_rows(results) if "most users" in row[0]]
    assert growth[1:] == ("at most 2", "2.5", "no")


@pytest.mark.parametrize(
    ("library", "shown", "verdict"),
    [
        ([8.0, 9.0, 7.0], "-2.00 [-4.48, 0.48]", "not decided"),
        ([7.0, 8.0, 6.0], "-3.00 [-5.48, -0.52]", "yes"),
        ([13.0, 14.0, 12.0], "3.00 [0.52, 5.48]", "no"),
    ],
)
def test_differences_are_decided_by_their_interval(library, shown, verdict):
    """Student's t for three seeds is 4.303."""
    results = sample()
    results["quality"]["regret"] |= {"library": library, "literal": [10.0, 10.0, 10.0]}
    [regret] = [row for row in page.target_rows(results) if row[0].startswith("regret")]
    assert regret[1:] == ("at most 0", shown.replace("-", "\N{MINUS SIGN}"), verdict)


def test_parts_that_were_not_measured_are_missed():
    """A page is only written when it can be written in full."""
    results = sample()
    assert page.missing(results) == []
    del results["quality"]
    assert page.missing(results) == ["quality"]


def test_numbers_that_are_not_known_have_a_mark():
    """As JSON has no NaN, they arrive as None."""
    results = sample()
    results["coids"] = {**results["coids"], "rejuvenation_seconds": None}
    results["quality"]["regret"]["standard_error"] = None
    assert prose.NOTHING in page.render(results)


def test_numbers_keep_three_digits():
    """Whole numbers in full, seconds below one as milliseconds."""
    assert [prose.number(each) for each in (0.01234, 12.3456, 80_000.0, 3.0)] == [
        "0.0123",
        "12.3",
        "80,000",
        "3",
    ]
    assert (prose.seconds(0.0456), prose.seconds(4.56)) == ("45.6 ms", "4.56 s")


def test_figure_has_named_axes(tmp_path):
    """And the growth is drawn on logarithmic ones."""
    drawn = figure.draw(sample())
    left, right = drawn.axes
    assert left.get_xlabel()
    assert right.get_xlabel()
    assert right.get_ylabel()
    assert (right.get_xscale(), right.get_yscale()) == ("log", "log")
    save_as(drawn, tmp_path / "performance.svg")
    assert (tmp_path / "performance.svg").stat().st_size > 10_000
