"""Results, from files of made-up cells."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.lines import Line2D
from sample_cells import REGRETS, sample_info, sample_table

from cocobandits.display import Line
from cocobandits.errors import StorageError
from cocobandits.experiments.ranking import libraries
from cocobandits.runs.results import read_results
from cocobandits.runs.store import cell_table, read_cells, write_table


def write(folder: Path, *tables: pa.Table) -> Path:
    """Write cells as one packed file."""
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder / "cells.parquet", pa.concat_tables(tables))
    return folder


@pytest.fixture
def folder(tmp_path) -> Path:
    names = ("coids", "oracle-ts")
    return write(tmp_path / "run", *(sample_table(name, n) for n in range(2) for name in names))


def test_info_survives_a_round_trip(folder):
    assert read_cells(folder / "cells.parquet")[0].info == sample_info()


def test_each_regret_follows_from_the_steps(folder):
    results = read_results(folder)
    assert results.seeds == (0, 1)
    assert results.policies == ("coids", "oracle-ts")
    curve = results.cumulative_regret("mixture", "coids")
    np.testing.assert_array_equal(curve, [np.cumsum(REGRETS)] * 2)
    np.testing.assert_array_equal(results.total_regret("mixture", "coids"), curve[:, -1])
    np.testing.assert_array_equal(results.second_half_regret("mixture", "coids"), [2.75, 2.75])
    assert not results.multitask_regret("mixture", "coids").any()
    np.testing.assert_array_equal(results.milliseconds("mixture", "coids"), [100.0, 100.0])
    np.testing.assert_array_equal(
        results.share_of_arm("mixture", "coids", 1), [[0, 1, 0, 1, 0]] * 2
    )


def test_sparse_columns_become_columns_with_seed_and_step(folder):
    results = read_results(folder)
    np.testing.assert_array_equal(results.evaluations["mixture", "coids"], [[0.9, 0.8, 0.7]] * 2)
    health = results.health["mixture", "coids"]
    assert health["seed"].tolist() == [0, 1]
    assert health["step"].tolist() == [1, 1]
    assert health["ess"].tolist() == [50.0, 50.0]
    learned = results.hyperparameters["mixture", "coids"]
    assert learned["name"].tolist() == ["noise", "spread"] * 2


def test_summaries_have_totals_but_no_curves(tmp_path):
    info = sample_info(has_steps=False, num_evaluations=0)
    results = read_results(write(tmp_path, cell_table(info, [])))
    assert results.total_regret("mixture", "coids").tolist() == [sum(REGRETS)]
    assert results.has("mixture", "coids")
    assert not results.regrets


def test_folders_are_joined_on_the_seeds_that_all_have(folder, tmp_path):
    other = write(tmp_path / "other", sample_table("gids", 1), sample_table("gids", 2))
    results = read_results(folder, other)
    assert results.seeds == (1,)
    assert results.num_left_out == 3
    assert set(results.policies) == {"coids", "oracle-ts", "gids"}
    assert results.only(["gids"]).cells.keys() == {("mixture", "gids", 1)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "gids", "world_sha256": "v"}, "the same users or rewards"),
        ({"name": "gids", "newcomers": (2, 2)}, "the same newcomers"),
        ({"settings": {}}, "has another settings"),
        ({"total_regret": 3.75 + 1e-7}, "has another regret"),
    ],
)
def test_contradictory_folders_are_refused(folder, tmp_path, changes, message):
    other = write(tmp_path / "other", sample_table(**changes))
    with pytest.raises(StorageError, match=message):
        read_results(folder, other)


def test_an_unknown_world_contradicts_nothing(folder, tmp_path):
    other = write(tmp_path / "other", sample_table("gids", world_sha256=""))
    assert read_results(folder, other).has("mixture", "gids")


def rewrite(table: pa.Table, column: str, values: list) -> pa.Table:
    place = table.column_names.index(column)
    return table.set_column(place, column, pa.array(values, table.schema.field(column).type))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.slice(0, 4), "lacks steps or evaluations"),
        (lambda table: rewrite(table, "evaluation", [None] * 6), "lacks steps or evaluations"),
        (lambda table: rewrite(table, "regret", [None, 1, 0, 2, 1, 0.25]), "lacks steps"),
        (lambda table: rewrite(table, "regret", [None, 1, 0, 2, None, 0.25]), "lacks steps"),
        (lambda table: rewrite(table, "info", ["[" * 9999, *[None] * 5]), "cannot be read"),
        (lambda table: rewrite(table, "info", ["7", *[None] * 5]), "cannot be read"),
        (lambda table: rewrite(table, "info", ['{"seed": 1}', *[None] * 5]), "cannot be read"),
        (lambda table: table.drop_columns("regret"), "cannot be read"),
        (lambda table: rewrite(table, "arm", [None, 0, 1, None, 1, 0]), "lacks steps"),
        (lambda _: sample_table(total_regret=np.inf), "lacks steps"),
        (lambda _: sample_table(second_half_regret=0.0), "lacks steps"),
        (lambda table: pa.concat_tables([table.slice(1), table]), "does not begin with a cell"),
        (lambda table: table.slice(0, 0), "does not begin with a cell"),
    ],
)
def test_a_damaged_cell_is_one_sentence(tmp_path, change, message):
    write(tmp_path, change(sample_table()))
    with pytest.raises(StorageError, match=message):
        read_results(tmp_path)


def test_a_truncated_file_is_one_sentence(folder):
    path = folder / "cells.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(StorageError, match=r"cells.parquet', but it cannot be read"):
        read_results(folder)


def test_a_folder_without_cells_is_refused(tmp_path):
    with pytest.raises(StorageError, match="holds no cells"):
        read_results(tmp_path)


def test_variants_of_one_policy_have_labels_and_lines_of_their_own(tmp_path):
    """The policy under its own name keeps both, a line of another colour is left alone."""
    line = Line("#6A51A3", "-", 1.2)
    looks = {
        "robustagg": {"label": "RobustAgg", "line": line, "order": (0, 0)},
        "close": {"label": "RobustAgg", "line": line},
        "far": {"label": "RobustAgg", "line": line},
        "rome": {"label": "RoME", "line": line._replace(color="#000000")},
        "dotted": {"label": "Dotted", "line": line._replace(dashes=(0, (6.0, 1.5, 1.0, 1.5)))},
    }
    settings = {"settings": {"kind": "robustagg"}}
    tables = [
        sample_table(name, **({"order": (0, 1)} | settings | look)) for name, look in looks.items()
    ]
    results = read_results(write(tmp_path, *tables))
    assert {name: results.label(name) for name in looks} == {
        "robustagg": "RobustAgg",
        "close": "RobustAgg, close",
        "far": "RobustAgg, far",
        "rome": "RoME",
        "dotted": "Dotted",
    }
    lines = {name: results.line(name) for name in looks}
    for name in ("robustagg", "rome", "dotted"):
        assert lines[name] == looks[name]["line"]
    assert {lines[name].color for name in ("close", "far")} == {"#6A51A3"}
    assert len(set(lines.values())) == len(looks)
    # A part of the results shows the same.
    assert results.only(["far"]).line("far") == lines["far"]
    Line2D([], [], linestyle=lines["far"].dashes)


def test_policies_of_other_libraries_are_known_by_their_cells(tmp_path):
    results = read_results(write(tmp_path, sample_table(), sample_table("x", library="mabwiser")))
    assert libraries(results) == ["x"]
