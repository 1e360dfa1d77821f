"""The comparison of all systems: ranks, shares and differences from totals worked out by hand."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from synthetic_run import write_json

from cocobandits.errors import StorageError
from cocobandits.experiments import presets
from cocobandits.experiments.cells import Cell, run_cell
from cocobandits.experiments.comparison import load_comparison, rank
from cocobandits.experiments.comparison_figure import heat_map, ranking_figure
from cocobandits.experiments.comparison_page import command_of, write_comparison
from cocobandits.experiments.presets import Experiment
from cocobandits.experiments.table_one import CRITERIA, TABLE
from cocobandits.policies.registry import policy_names

# Mean total regret of each policy, seeds one below and one above it.
MEANS = {
    ("mixture", "coids"): 50.0,
    ("mixture", "mtts"): 100.0,
    ("mixture", "ind-ts"): 200.0,
    ("mixture", "oracle-ts"): 50.0,
    ("yes-no", "coids"): 80.0,
    ("yes-no", "ind-ts"): 160.0,
    ("yes-no", "oracle-ts"): 40.0,
}


@pytest.fixture
def folder(tmp_path):
    config = {
        "format": "cocobandits-run",
        "version": 1,
        "scale": "paper",
        "is_reproduction": False,
        "environments": ["mixture", "yes-no"],
        "policies": ["coids", "mtts", "ind-ts", "oracle-ts"],
        "seeds": [0, 1],
        "left_out": [["yes-no", "mtts"]],
    }
    rows = [
        {
            "environment": environment,
            "policy": policy,
            "seed": seed,
            "steps": 100,
            "total_regret": mean + 2 * seed - 1,
            "seconds": 0.2 + 0.2 * seed,
        }
        for (environment, policy), mean in MEANS.items()
        for seed in (0, 1)
    ]
    write_json(tmp_path / "config.json", config)
    write_json(tmp_path / "provenance.json", {"cocobandits": "0.6.0", "commit": None})
    write_json(tmp_path / "summary.json", rows)
    return tmp_path


def test_places_by_hand(folder):
    """Two share the first place in mixture; where MTTS did not run, nobody is ranked."""
    places = {place.policy: place for place in rank(load_comparison(folder))}
    assert list(places) == ["coids", "oracle-ts", "mtts", "ind-ts"]
    assert [place.mean_rank for place in places.values()] == [1.5, 1.5, 3.0, 4.0]
    assert [place.share for place in places.values()] == [0.25, 0.25, 0.5, 1.0]
    assert [place.num_environments for place in places.values()] == [2, 2, 1, 2]
    # The middle of two seeds.
    assert places["coids"].milliseconds == pytest.approx(3.0)


def test_shares_are_geometric_means(folder):
    """Over both environments, once all ran in both."""
    leave_out_mtts(folder)
    places = {place.policy: place for place in rank(load_comparison(folder))}
    assert [place.mean_rank for place in places.values()] == [1.25, 1.75, 3.0]
    assert places["coids"].share == pytest.approx(np.sqrt(0.25 * 0.5))
    assert places["oracle-ts"].share == pytest.approx(0.25)


def leave_out_mtts(folder):
    config = json.loads((folder / "config.json").read_text())
    rows = json.loads((folder / "summary.json").read_text())
    policies = [name for name in config["policies"] if name != "mtts"]
    write_json(folder / "config.json", config | {"policies": policies, "left_out": []})
    kept = [row for row in rows if row["policy"] != "mtts"]
    write_json(folder / "summary.json", kept)


def test_compilation_of_the_first_seed_does_not_count(folder):
    """Half a minute on one of three seeds leaves the median where it was."""
    config = json.loads((folder / "config.json").read_text())
    rows = json.loads((folder / "summary.json").read_text())
    write_json(folder / "config.json", config | {"seeds": [0, 1, 2]})
    more = [row | {"seed": 2, "seconds": 30.0} for row in rows if row["seed"] == 0]
    write_json(folder / "summary.json", rows + more)
    for place in rank(load_comparison(folder)):
        assert place.milliseconds == pytest.approx(4.0)


def test_page_tells_ranks_regrets_differences_and_verdicts(folder):
    page = write_comparison(folder).read_text(encoding="utf-8")
    assert "4 policies in 2 environments, 2 seeds each." in page
    assert "First by mean rank: CoIDS, 1.5; then OraclePrior-TS, 1.5." in page
    assert "average total regret, in the 1 environment in which all ran" in page
    assert "which so few seeds do not hide" in page
    assert "Hatched: the system assumes" in page
    flags = "--env mixture --env yes-no --policy coids --policy mtts --policy ind-ts"
    assert f"Made by `coco compare {flags} --policy oracle-ts --seeds 2 --out DIR`." in page
    assert "| MTTS | 3.0 | 0.50 | 1 | 3.0 |" in page
    assert "| MTTS | 100.0 ± 1.0 | – |" in page
    # The same on every seed, so the interval has no width.
    assert "| Ind-TS | 150.0 [150.0, 150.0] | 80.0 [80.0, 80.0] |" in page
    # What the paper's table denies MTTS stands in brackets.
    assert "| MTTS | ✓ | ✗ | ✗ | ✗ | ✓ (✗) | ✓ |" in page
    for each in CRITERIA:
        assert f"`{each.test}`" in page
    pictures = {path.name for path in (folder / "report" / "figures").iterdir()}
    assert pictures == {"comparison.svg", "ranking.svg"}


def test_page_may_have_another_place(folder, tmp_path):
    """Its link leads to the figure, which stays with the run; the rest is the same."""
    page = write_comparison(folder, page=tmp_path / "docs" / "pages" / "compare.md")
    assert page == tmp_path / "docs" / "pages" / "compare.md"
    [link] = re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    assert (page.parent / link).resolve() == folder / "report" / "figures" / "comparison.svg"
    usual = write_comparison(folder).read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8").replace(link, "figures/comparison.svg") == usual


def test_places_that_cannot_be_written_are_told(folder):
    with pytest.raises(StorageError, match=r"places that can be written; .*choose other places"):
        write_comparison(folder, page=folder / "report")


def test_page_of_a_run_in_which_all_ran_has_no_holes_to_explain(folder):
    leave_out_mtts(folder)
    assert "Hatched" not in write_comparison(folder).read_text(encoding="utf-8")


def test_where_no_environment_has_all_each_counts_among_those_that_ran(folder):
    config = json.loads((folder / "config.json").read_text())
    rows = json.loads((folder / "summary.json").read_text())
    write_json(folder / "config.json", config | {"environments": ["yes-no"]})
    write_json(folder / "summary.json", [row for row in rows if row["environment"] == "yes-no"])
    page = write_comparison(folder).read_text(encoding="utf-8")
    assert "in every environment among those that ran there, since none has all" in page
    assert "3 policies in 1 environment, 2 seeds each." in page
    assert "Hatched" not in page


def other_run(folder, means, **changes):
    """Write a run of some policies with two seeds, the oracle among them."""
    known = json.loads((folder / "config.json").read_text())
    rows = json.loads((folder / "summary.json").read_text())
    place = folder / "other"
    place.mkdir()
    names = list(dict.fromkeys(policy for _, policy in means))
    environments = list(dict.fromkeys(environment for environment, _ in means))
    told = {"policies": names, "environments": environments, "left_out": []} | changes
    write_json(place / "config.json", known | told)
    write_json(place / "provenance.json", {"cocobandits": "0.7.0", "commit": "abc"})
    found = [
        {**rows[0], "environment": environment, "policy": policy, "seed": seed}
        | {"total_regret": mean + 2 * seed - 1}
        for (environment, policy), mean in means.items()
        for seed in (0, 1)
    ]
    write_json(place / "summary.json", found)
    return place


def test_a_run_beside_another_is_ranked_with_it(folder):
    """It brings a new policy and a mended one, in one of two environments."""
    means = {("mixture", "rome"): 60.0, ("mixture", "mtts"): 70.0, ("mixture", "oracle-ts"): 50.0}
    place = other_run(folder, means)
    joined = load_comparison(place, folder)
    assert joined.environments == ("mixture",)
    found = {each.policy: joined.mean("mixture", each.policy) for each in rank(joined)}
    expected = {"coids": 50, "oracle-ts": 50, "rome": 60, "mtts": 70, "ind-ts": 200}
    assert found == expected
    write_peers(folder, peer_cells("mixture", "mabwiser pooled", 100.0))
    page = write_comparison(place, folder).read_text(encoding="utf-8")
    assert "| mabwiser pooled | 0.50 |" in page
    assert "--seeds 2 --out FIRST`, then `coco compare --env mixture --policy rome" in page
    assert "--policy oracle-ts --seeds 2 --out DIR --beside FIRST`." in page
    assert "| what | all others | RoME; MTTS; OraclePrior-TS |" in page
    assert "| cocobandits | 0.6.0 | 0.7.0 |" in page


def test_times_of_a_run_beside_another_are_on_its_clock(folder):
    """Where the oracle took twice as long, everybody's time is halved."""
    means = {("mixture", "rome"): 60.0, ("mixture", "oracle-ts"): 50.0}
    place = other_run(folder, means)
    first = load_comparison(folder).milliseconds["mixture", "oracle-ts"]
    rows = json.loads((place / "summary.json").read_text())
    factors = {"oracle-ts": 2.0, "rome": 5.0}
    slower = [
        row | {"seconds": factors[row["policy"]] * np.median(first) * row["steps"] / 1e3}
        for row in rows
    ]
    write_json(place / "summary.json", slower)
    joined = load_comparison(place, folder)
    found = [joined.milliseconds["mixture", name] for name in ("oracle-ts", "rome", "coids")]
    np.testing.assert_allclose(np.median(found[0]), np.median(first))
    np.testing.assert_allclose(found[1], 2.5 * np.median(first))
    np.testing.assert_allclose(found[2], load_comparison(folder).milliseconds["mixture", "coids"])
    page = write_comparison(place, folder).read_text(encoding="utf-8")
    assert "clock of the first, by what OraclePrior-TS took in" in page
    assert "clock of the first" not in write_comparison(folder).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("oracle", "changes", "message"),
    [
        (50.5, {}, r"same users and noise; .* lost another total in mixture, by 0\.5"),
        (50.0, {"seeds": [0]}, r"Expected seeds \[0\]; .* which has seeds \[0, 1\]"),
        (50.0, {"scale": "quick"}, r"Expected scale='quick'; .* which has another scale"),
    ],
)
def test_runs_that_do_not_fit_together_are_refused(folder, oracle, changes, message):
    place = other_run(folder, {("mixture", "oracle-ts"): oracle}, **changes)
    with pytest.raises(StorageError, match=message):
        load_comparison(place, folder)


def test_environments_that_the_other_run_has_not_are_refused(folder):
    place = other_run(folder, {("lmm", "oracle-ts"): 50.0})
    with pytest.raises(StorageError, match=r"all of the environments; .* which has no lmm\."):
        load_comparison(place, folder)


def test_whom_a_run_left_out_somewhere_is_not_taken_from_the_other(folder):
    """One policy is of one code: where the first run left Ind-TS out, it stays out."""
    left_out = {"left_out": [["yes-no", "ind-ts"]]}
    means = {("mixture", "ind-ts"): 210.0, ("mixture", "oracle-ts"): 50.0}
    place = other_run(folder, means | {("yes-no", "oracle-ts"): 40.0}, **left_out)
    joined = load_comparison(place, folder)
    assert joined.mean("mixture", "ind-ts") == 210
    assert not joined.has("yes-no", "ind-ts")
    assert joined.has("yes-no", "coids")


def test_a_run_is_not_put_beside_itself(folder):
    with pytest.raises(StorageError, match=r"Expected two runs; .* Choose another --out"):
        load_comparison(folder, folder)


@pytest.mark.parametrize(
    ("jobs", "num_seeds", "expected"),
    [(1, 3, "leaves out"), (2, 4, "do not hide"), (8, 10, "do not hide"), (2, 10, "leaves out")],
)
def test_what_compiles_is_left_out_where_less_than_half_can(folder, jobs, num_seeds, expected):
    config = json.loads((folder / "config.json").read_text())
    rows = json.loads((folder / "summary.json").read_text())
    write_json(folder / "config.json", config | {"seeds": list(range(num_seeds))})
    first = [row for row in rows if row["seed"] == 0]
    every = [row | {"seed": seed} for seed in range(num_seeds) for row in first]
    write_json(folder / "summary.json", every)
    write_json(folder / "provenance.json", {"jobs": jobs})
    page = write_comparison(folder).read_text(encoding="utf-8")
    [told] = re.findall(
        r"with (\d) process(?:es)? at once; the first .*?(leaves out|do not hide)", page
    )
    assert told == (str(jobs), expected)


def test_whole_run_is_made_by_the_shortest_command(folder):
    comparison = load_comparison(folder)
    asked = {"environments": list(presets.COMPARED_ENVIRONMENTS), "scale": "quick"}
    asked["policies"] = list(presets.COMPARED)
    whole = replace(comparison, config=comparison.config | asked)
    assert command_of(whole) == "coco compare --quick --seeds 2 --out DIR"


def write_peers(folder, cells):
    packages = {"mabwiser": "2.7.4", "bayesianbandits": "1.5.0"}
    found = {"packages": packages, "environments_sha256": "ab12", "cells": cells}
    write_json(folder / "peers.json", found)


def peer_cells(environment, policy, mean, seeds=(0, 1)):
    return [
        {
            "environment": environment,
            "policy": policy,
            "seed": seed,
            "steps": 100,
            "total_regret": mean + 2 * seed - 1,
            "seconds": 0.1,
        }
        for seed in seeds
    ]


def test_libraries_that_people_install_stand_beside_ours(folder):
    """Ordered by their share of Ind-TS's regret, in the environments where one met all seeds."""
    page = write_comparison(folder).read_text(encoding="utf-8")
    assert "What people install" not in page
    write_peers(
        folder,
        [
            *peer_cells("mixture", "mabwiser pooled", 100.0),
            *peer_cells("mixture", "mabwiser per user", 220.0),
            # One seed is missing, the other environment is not of this run.
            *peer_cells("yes-no", "mabwiser pooled", 90.0, seeds=(0,)),
            *peer_cells("lmm", "mabwiser pooled", 90.0),
            # Served less often than ours.
            *[cell | {"steps": 10} for cell in peer_cells("yes-no", "mabwiser per user", 9.0)],
        ],
    )
    shown = write_comparison(folder).read_text(encoding="utf-8")
    [section] = re.findall(r"## What people install today\n(.*?)\n## ", shown, re.S)
    assert section in shown.partition("## Paired differences")[2]
    assert "mabwiser 2.7.4 and bayesianbandits 1.5.0: " in section
    assert [line for line in section.splitlines() if line.startswith("|")] == [
        "| policy | share | ms per interaction | mixture |",
        "| --- | ---: | ---: | ---: |",
        "| CoIDS | 0.25 | 3.0 | 50.0 ± 1.0 |",
        "| mabwiser pooled | 0.50 | 1.0 | 100.0 ± 1.0 |",
        "| Ind-TS | 1.00 | 3.0 | 200.0 ± 1.0 |",
        "| mabwiser per user | 1.10 | 1.0 | 220.0 ± 1.0 |",
    ]
    assert shown.replace(f"## What people install today\n{section}\n", "") == page


def test_shares_of_libraries_are_of_the_environments_that_all_have(folder):
    """Who was not run in the other one has a dash there."""
    write_peers(
        folder,
        [
            *peer_cells("mixture", "mabwiser pooled", 100.0),
            *peer_cells("yes-no", "mabwiser pooled", 40.0),
            *peer_cells("yes-no", "bayesianbandits pooled", 120.0),
        ],
    )
    page = write_comparison(folder).read_text(encoding="utf-8")
    assert "| mabwiser pooled | 0.25 | 1.0 | 100.0 ± 1.0 | 40.0 ± 1.0 |" in page
    assert "| bayesianbandits pooled | 0.75 | 1.0 | – | 120.0 ± 1.0 |" in page


def test_libraries_without_a_whole_cell_are_missed(folder):
    write_peers(folder, peer_cells("mixture", "mabwiser pooled", 100.0, seeds=(1,)))
    page = write_comparison(folder).read_text(encoding="utf-8")
    assert "no library met all steps of all seeds of the run; `make peers` runs them." in page


def test_libraries_have_the_environments_of_the_run(folder):
    """Known of runs that tell; a run that does not is believed."""
    write_peers(folder, peer_cells("mixture", "mabwiser pooled", 100.0))
    provenance = json.loads((folder / "provenance.json").read_text())
    write_json(folder / "provenance.json", provenance | {"environments_sha256": "ab12"})
    assert "mabwiser pooled" in write_comparison(folder).read_text(encoding="utf-8")
    write_json(folder / "provenance.json", provenance | {"environments_sha256": "cd34"})
    page = write_comparison(folder).read_text(encoding="utf-8")
    assert "Nothing to show: `peers.json` was made with other code of environments" in page
    assert "mabwiser pooled" not in page


@pytest.mark.parametrize("text", ["[]", "{", '{"packages": {}, "cells": []}'])
def test_damaged_files_of_libraries_are_refused(folder, text):
    (folder / "peers.json").write_text(text)
    refuse_peers(folder)


@pytest.mark.parametrize(
    "change", [{"seed": None}, {"steps": 0}, {"total_regret": float("nan")}, {"policy": 3}]
)
def test_damaged_cells_of_libraries_are_refused(folder, change):
    write_peers(folder, [cell | change for cell in peer_cells("mixture", "mabwiser pooled", 9.0)])
    refuse_peers(folder)


def refuse_peers(folder):
    with pytest.raises(StorageError, match=r"benchmarks/peers/run.py wrote; .* `make peers`"):
        write_comparison(folder)


def test_same_run_gives_the_same_bytes(folder):
    first = write_comparison(folder).read_bytes()
    picture = (folder / "report" / "figures" / "comparison.svg").read_bytes()
    assert write_comparison(folder).read_bytes() == first
    assert (folder / "report" / "figures" / "comparison.svg").read_bytes() == picture


def test_cells_of_the_picture_are_shares(folder):
    axes = heat_map(load_comparison(folder), ["coids", "mtts"]).axes[0]
    assert [text.get_text() for text in axes.texts] == ["0.25", "0.50", "0.50", ""]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["CoIDS", "MTTS"]


def test_bars_of_the_ranking_are_shares(folder):
    """Lowest on top, ours in bold; two policies of the same share keep their order."""
    [axes] = ranking_figure(rank(load_comparison(folder)), 1).axes
    assert [bar.get_width() for bar in axes.patches] == [25.0, 25.0, 50.0, 100.0]
    labels = axes.get_yticklabels()
    assert [each.get_text() for each in labels] == ["CoIDS", "OraclePrior-TS", "MTTS", "Ind-TS"]
    assert [each.get_fontweight() for each in labels] == ["bold", *["normal"] * 3]
    assert axes.yaxis_inverted()


def test_unfinished_runs_are_refused(folder):
    rows = json.loads((folder / "summary.json").read_text())
    write_json(folder / "summary.json", rows[:-1])
    with pytest.raises(
        StorageError,
        match=r"every seed.*yes-no / oracle-ts is not whole.*started with, and --resume",
    ):
        load_comparison(folder)


def test_policies_that_are_missing_everywhere_are_missed(folder):
    rows = json.loads((folder / "summary.json").read_text())
    write_json(folder / "summary.json", [row for row in rows if row["policy"] != "mtts"])
    with pytest.raises(StorageError, match=r"mixture / mtts is not whole"):
        load_comparison(folder)


def test_runs_without_a_yardstick_are_refused(folder):
    config = json.loads((folder / "config.json").read_text())
    policies = [name for name in config["policies"] if name != "ind-ts"]
    write_json(folder / "config.json", config | {"policies": policies})
    with pytest.raises(StorageError, match=r"coids and ind-ts; .* has no ind-ts\. .*--beside"):
        load_comparison(folder)


def test_reproductions_are_no_comparisons(folder):
    config = json.loads((folder / "config.json").read_text())
    for changes in ({"is_reproduction": True}, {"is_reproduction": None}):
        write_json(folder / "config.json", config | changes)
        with pytest.raises(StorageError, match=r"run of `coco compare`; .*Use `coco report`"):
            load_comparison(folder)


def test_every_policy_that_is_compared_has_its_verdicts():
    assert set(map(presets.policy_of, presets.COMPARED)) <= {*TABLE, "oracle-ts"}
    assert set(TABLE) <= set(policy_names())


def test_nobody_is_evaluated_in_a_comparison():
    """Only what is lost while serving counts; newcomers would take most of the time."""
    experiment = Experiment.declare(presets.comparison(is_quick=True), ["lmm"], ["robustagg"], 1)
    assert experiment.as_json()["evaluation"] == {"users": 0, "pulls": 0}
    result = run_cell(Cell("lmm", "robustagg", 0), experiment, lambda *_: None)
    assert result.evaluations.num_rows == 0
    assert result.records.num_rows == 250
