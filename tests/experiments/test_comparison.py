"""The page that compares all policies, from results whose totals are made here."""

import re
from dataclasses import replace

import numpy as np
import pytest
from synthetic_run import Curve, Scenario

from cocobandits.errors import StorageError
from cocobandits.experiments.figures.comparison import heat_map, ranking_figure
from cocobandits.experiments.ranking import rank
from cocobandits.experiments.report import write_comparison

# Per step, in two environments; MTTS did not run in the second.
LOSSES = {
    "coids": (0.1, 0.2),
    "gids": (0.1, 0.1),
    "mtts": (0.3, None),
    "ind-ts": (0.4, 0.4),
    "oracle-ts": (0.05, 0.05),
}


def compared(losses=LOSSES, seeds=(0, 1, 2), **info):
    """Make summaries, whose steps were not kept."""
    curves = {
        (name, policy): Curve(loss)
        for policy, both in losses.items()
        for name, loss in zip(("mixture", "diet"), both, strict=True)
        if loss is not None
    }
    results = Scenario(curves, seeds, {"has_steps": False} | info, has_tables=False).results()
    lost = ("regrets", "arms", "evaluations", "health", "hyperparameters")
    return replace(results, **{name: {} for name in lost})


def page_of(place, results):
    return write_comparison(results, place).read_text(encoding="utf-8")


def test_ranks_by_hand():
    """Two share a rank in mixture; where MTTS did not run, nobody is ranked."""
    standings = {each.policy: each for each in rank(compared())}
    assert list(standings) == ["oracle-ts", "coids", "gids", "mtts", "ind-ts"]
    assert [each.mean_rank for each in standings.values()] == [1, 2.5, 2.5, 4, 5]
    # 100 steps at 0.1 and at 0.4, and 0.1 more per seed.
    assert standings["coids"].share == pytest.approx(10.1 / 40.1)
    assert [each.num_environments for each in standings.values()] == [2, 2, 2, 1, 2]
    # 60, 120 and 180 seconds: the first cell of a process compiles, and does not count.
    assert standings["coids"].milliseconds == pytest.approx(1200)


def test_shares_are_geometric_means():
    """Over both environments, where all ran in both."""
    standings = {each.policy: each for each in rank(compared(LOSSES | {"mtts": (0.3, 0.3)}))}
    assert standings["coids"].share == pytest.approx(np.sqrt(10.1 / 40.1 * 20.1 / 40.1))


def test_where_no_environment_has_all_each_counts_among_those_that_ran():
    standings = {each.policy: each for each in rank(compared(LOSSES | {"gids": (None, 0.1)}))}
    assert standings["gids"].mean_rank == 2
    assert standings["coids"].mean_rank == 2.5


def test_page_shows_ranks_regrets_differences_and_verdicts(tmp_path):
    page = page_of(tmp_path, compared())
    assert "5 policies in 2 environments, 3 seeds each. First by mean rank: OraclePrior-TS" in page
    assert "in the 1 environment in which all ran" in page
    assert "| CoIDS | 2.5 | 0.25 | 2 | 1200.0 |" in page
    assert "| MTTS | 30.1 ± 0.1 | – |" in page
    assert "| Ind-TS | 30.0 [30.0, 30.0] | 20.0 [20.0, 20.0] |" in page
    assert "| MTTS | ✓ | ✗ | ✗ | ✗ | ✓ (✗) | ✓ |" in page
    assert "Hatched" in page
    assert "What people install today" not in page
    assert "Made by `coco reproduce --quick`." in page
    for link in re.findall(r"\]\(([^)]+)\)", page):
        assert (tmp_path / link).is_file()


def test_page_of_policies_that_ran_everywhere_has_no_holes_to_explain(tmp_path):
    assert "Hatched" not in page_of(tmp_path, compared({"coids": (0.1, 0.1), "ind-ts": (0.4, 0.4)}))


def test_page_may_have_another_place(tmp_path):
    page = write_comparison(compared(), tmp_path / "run", tmp_path / "docs" / "compare.md")
    assert "](../run/figures/comparison.svg)" in page.read_text(encoding="utf-8")
    assert (tmp_path / "run" / "figures" / "ranking.svg").is_file()
    assert page_of(tmp_path / "a", compared()) == page_of(tmp_path / "b", compared())


def test_cells_of_different_runs_are_kept_apart(tmp_path):
    """Their times compare only roughly, and each has its column of versions."""
    results = compared()
    for key, info in results.cells.items():
        if key.name == "gids":
            results.cells[key] = info._replace(provenance={"commit": "other", "jobs": 1})
    page = page_of(tmp_path, results)
    assert "compare only roughly" in page
    assert "| what | CoIDS; MTTS; Ind-TS; OraclePrior-TS | GIDS |" in page


def test_other_libraries_are_ordinary_cells(tmp_path):
    """They have a table, ordered by share, in the environments where one ran; no rank."""
    cells = {"mabwiser pooled": (0.2, None), "bayesianbandits per user": (0.3, None)}
    results = compared(LOSSES | cells, provenance={"packages": {"mabwiser": "2.7"}})
    for key, info in results.cells.items():
        if key.name in cells:
            results.cells[key] = info._replace(library=key.name.partition(" ")[0])
    page = page_of(tmp_path, results)
    assert page.startswith("# All systems on one bench\n\n5 policies")
    section = page.split("## What people install today")[1].split("## ")[0]
    assert "mabwiser 2.7 and bayesianbandits" in section
    rows = re.findall(r"^\| (.+?) \| (0\.\d\d|1\.00) \|", section, re.M)
    names = ["CoIDS", "mabwiser pooled", "bayesianbandits per user", "Ind-TS"]
    assert [name for name, _ in rows] == names
    assert "diet" not in section


@pytest.mark.parametrize("absent", ["coids", "ind-ts"])
def test_policies_that_all_are_compared_with_are_missed(tmp_path, absent):
    with pytest.raises(StorageError, match="Expected coids and ind-ts in every environment"):
        write_comparison(compared(LOSSES | {absent: (0.1, None)}), tmp_path)


def test_yardstick_that_loses_nothing_has_no_shares(tmp_path):
    """One seed, on which Ind-TS never loses: dashes, and an empty picture."""
    page = page_of(tmp_path, compared(LOSSES | {"ind-ts": (0.0, 0.0)}, seeds=(0,)))
    assert "| CoIDS | 3.5 | – |" in page


def test_cells_of_the_picture_are_shares():
    axes = heat_map(compared()).axes[0]
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == ["OraclePrior-TS", "CoIDS", "GIDS", "MTTS", "Ind-TS"]
    shares = [text.get_text() for text in axes.texts]
    assert shares[2:4] == ["0.25", "0.50"]
    assert shares[7] == ""


def test_bars_of_the_ranking_are_shares():
    """Lowest on top, ours in bold."""
    axes = ranking_figure(compared()).axes[0]
    assert [bar.get_width() for bar in axes.patches[:2]] == pytest.approx(
        [100 * 5.1 / 40.1, 100 * 10.1 / 40.1]
    )
    bold = [each.get_text() for each in axes.get_yticklabels() if each.get_fontweight() == "bold"]
    assert bold == ["CoIDS"]
