import json
import re
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic_run import Scenario, write_json, write_run

from cocobandits.errors import StorageError
from cocobandits.experiments.reading import load_run

SMALL = Scenario().only(("lmm",), ("gids", "oracle-ts", "uniform"))
SHAPE = re.compile(r"^Expected [^;]+; got \w+=.+\. [A-Z].+\.$", re.S)


@pytest.fixture
def folder(tmp_path):
    return write_run(tmp_path / "run", SMALL)


def refusal(folder):
    """Return the message of the refusal, whose shape is that of all errors."""
    with pytest.raises(StorageError, match=SHAPE) as caught:
        load_run(folder)
    return str(caught.value)


def change(folder, name, edit):
    path = folder / f"{name}.parquet"
    pq.write_table(edit(pq.read_table(path)), path)


def edit_config(folder, **changes):
    path = folder / "config.json"
    write_json(path, json.loads(path.read_text()) | changes)


def test_whole_run_is_read(folder):
    """Count what was written: 3 policies, 4 seeds, 100 steps, 11 rounds."""
    run = load_run(folder)
    assert run.config["policies"] == ["gids", "oracle-ts", "uniform"]
    assert run.provenance["python"] == "3.11.7"
    assert len(run.summary) == 3 * 4
    assert run.records.num_rows == 3 * 4 * 100
    assert run.evaluations.num_rows == 2 * 4 * 11
    assert run.health.num_rows == 4 * 10
    assert run.densities.num_rows == 5 * 5 * 2 * 40


def test_densities_may_be_absent(folder):
    """They belong to one environment only."""
    (folder / "densities.parquet").unlink()
    assert load_run(folder).densities is None


def test_hyperparameters_may_be_absent(folder):
    """Runs made before they were kept have none."""
    (folder / "hyperparameters.parquet").unlink()
    assert load_run(folder).hyperparameters.num_rows == 0


def test_missing_folder(tmp_path):
    """Say that it is none."""
    assert "is no folder" in refusal(tmp_path / "nowhere")


def test_folder_of_something_else(tmp_path):
    """No config.json."""
    assert "without a config.json" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"format": "cocobandits-study"}, "got format='cocobandits-study'"),
        ({"version": 2}, "got version=2"),
        ({"seeds": []}, "'seeds' is not a list with entries"),
        ({"policies": "gids"}, "'policies' is not a list"),
    ],
)
def test_other_configurations(folder, changes, told):
    """Another format, another version, nothing to read."""
    edit_config(folder, **changes)
    assert told in refusal(folder)


@pytest.mark.parametrize("name", ["config.json", "provenance.json", "summary.json"])
@pytest.mark.parametrize("content", ['{"format": ', "3"])
def test_damaged_texts(folder, name, content):
    """Cut off, or no object at all."""
    (folder / name).write_text(content)
    assert name in refusal(folder)


@pytest.mark.parametrize("name", ["records", "evaluations", "health"])
def test_missing_table_means_unfinished(folder, name):
    """Say how to finish."""
    (folder / f"{name}.parquet").unlink()
    told = refusal(folder)
    assert f"{name}.parquet is not there" in told
    assert "Finish it with the command that it was started with, and --resume" in told


@pytest.mark.parametrize("name", ["records", "evaluations", "health", "densities"])
@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_truncated_table(folder, name, kept):
    """Keep the first part of the file only."""
    path = folder / f"{name}.parquet"
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    assert f"{name}.parquet" in refusal(folder)
    assert "cannot be read" in refusal(folder)


def test_flipped_bit_is_found_by_its_checksum(folder):
    """Damage one regret in a file that was written with checksums; its number stays a number."""
    path = folder / "records.parquet"
    plain = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(pq.read_table(path), path, **plain)
    content = path.read_bytes()
    before = pq.read_table(path)["regret"].to_pylist()
    # Twice in a row, as only the data has it; the file's statistics have it once.
    place = content.index(struct.pack("<dd", before[-1], before[-1]))
    damaged = bytearray(content)
    damaged[place] ^= 1
    path.write_bytes(damaged)
    assert pq.read_table(path)["regret"].to_pylist() != before
    assert "cannot be read" in refusal(folder)


@pytest.mark.parametrize(
    "edit",
    [
        lambda table: table.drop_columns(["regret"]),
        lambda table: table.rename_columns({"regret": "loss"}),
        lambda table: table.append_column("extra", table["step"]),
    ],
)
def test_other_columns(folder, edit):
    """One missing, one renamed, one too many."""
    change(folder, "records", edit)
    assert "its columns are environment, policy, seed" in refusal(folder)


def test_other_types(folder):
    """Arms as words."""
    words = pa.array(["left"] * (3 * 4 * 100))
    change(folder, "records", lambda table: table.set_column(7, "arm", words))
    assert "cannot be read" in refusal(folder)


@pytest.mark.parametrize(
    ("value", "told"), [(None, "1 empty fields"), (float("nan"), "not finite")]
)
def test_holes_in_a_column(folder, value, told):
    """The last regret is empty or not a number."""

    def edit(table):
        regrets = [*table["regret"].to_pylist()[:-1], value]
        return table.set_column(10, "regret", pa.array(regrets, pa.float64()))

    change(folder, "records", edit)
    assert told in refusal(folder)


@pytest.mark.parametrize("name", ["records", "evaluations"])
def test_missing_cell_means_unfinished(folder, name):
    """Drop one seed of one policy."""

    def edit(table):
        rows = table.to_pylist()
        kept = [row for row in rows if (row["policy"], row["seed"]) != ("gids", 2)]
        return pa.Table.from_pylist(kept, schema=table.schema)

    change(folder, name, edit)
    told = refusal(folder)
    assert f"{name}.parquet lacks 1 of" in told
    assert "lmm / gids / seed 2" in told
    assert "--resume" in told


def test_config_that_asks_for_more_means_unfinished(folder):
    """Ask for one more seed than there is."""
    edit_config(folder, seeds=[0, 1, 2, 3, 4])
    assert "lacks 3 of 15 cells, first lmm / gids / seed 4" in refusal(folder)


def test_cells_that_cannot_be_are_not_missed(folder):
    """A policy that assumes normal rewards, where there are others."""
    edit_config(folder, environments=["lmm", "yes-no"], left_out=[["yes-no", "mtts"]])
    told = refusal(folder)
    assert "first yes-no / " in told
    names = json.loads((folder / "config.json").read_text())["policies"]
    edit_config(folder, left_out=[["yes-no", name] for name in names])
    assert load_run(folder).config["environments"] == ["lmm", "yes-no"]
    edit_config(folder, left_out=["mtts"])
    assert "not pairs" in refusal(folder)


def test_cell_that_nobody_asked_for(folder):
    """Ask for one seed fewer than there is."""
    edit_config(folder, seeds=[0, 1, 2])
    assert "lmm / gids / seed 3 is not in its config.json" in refusal(folder)


@pytest.mark.parametrize(("name", "index"), [("records", "step"), ("evaluations", "round")])
@pytest.mark.parametrize("row", [0, 5, -1])
def test_missing_row(folder, name, index, row):
    """Drop the first, a middle or the last row of the table."""

    def edit(table):
        place = row % table.num_rows
        return pa.concat_tables([table.slice(0, place), table.slice(place + 1)])

    change(folder, name, edit)
    assert f"does not have each {index} from 0" in refusal(folder)


def test_summary_without_a_cell(folder):
    """Drop the last row."""
    path = folder / "summary.json"
    write_json(path, json.loads(path.read_text())[:-1])
    assert "summary.json lacks 1 of 12 cells" in refusal(folder)
