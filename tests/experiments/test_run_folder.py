"""A run folder while it is filled: claimed once, cells whole, never written again."""

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cocobandits.errors import ConflictError, StorageError
from cocobandits.experiments.cells import Cell, CellResult
from cocobandits.experiments.folder import RunFolder
from cocobandits.experiments.presets import QUICK, Experiment
from cocobandits.experiments.runner import cells_of
from cocobandits.experiments.schemas import EVALUATIONS, HEALTH, HYPERPARAMETERS, RECORDS

EXPERIMENT = Experiment.declare(QUICK, ["diet"], ["ind-ts"], 2)


def _result(cell: Cell, regrets: list[float], seconds: float = 1.5) -> CellResult:
    records = [
        cell._asdict()
        | {"step": n, "round": n, "user": 0, "user_step": n, "arm": 0}
        | {"probability": 1.0, "reward": 0.0, "regret": regret}
        for n, regret in enumerate(regrets)
    ]
    evaluations = [cell._asdict() | {"round": 0, "regret": 1.0}]
    return CellResult(
        pa.Table.from_pylist(records, RECORDS),
        pa.Table.from_pylist(evaluations, EVALUATIONS),
        pa.Table.from_pylist([], HEALTH),
        pa.Table.from_pylist([], HYPERPARAMETERS),
        seconds,
    )


def _filled(path) -> tuple[RunFolder, list[Cell]]:
    folder = RunFolder(path, EXPERIMENT)
    folder.prepare(is_resumed=False, num_jobs=1)
    cells = cells_of(EXPERIMENT)
    for number, cell in enumerate(reversed(cells)):
        folder.store(cell, _result(cell, [1.0, 2.0, 4.0 + number, 0.5]))
    return folder, cells


def test_summary_is_computed_from_the_cells(tmp_path):
    folder, cells = _filled(tmp_path / "run")
    folder.finish(cells)
    rows = json.loads((tmp_path / "run" / "summary.json").read_text())
    # Stored in reverse: ind-ts of seed 0 came last, oracle-ts of seed 0 second.
    assert [(row["policy"], row["seed"], row["total_regret"]) for row in rows] == [
        ("ind-ts", 0, 10.5),
        ("ind-ts", 1, 9.5),
        ("oracle-ts", 0, 8.5),
        ("oracle-ts", 1, 7.5),
    ]
    assert rows[0] == {
        "environment": "diet",
        "policy": "ind-ts",
        "seed": 0,
        "steps": 4,
        "total_regret": 10.5,
        "second_half_regret": 7.5,
        "multitask_regret": 2.0,
        "seconds": 1.5,
    }


def test_records_do_not_depend_on_who_finished_first(tmp_path):
    folder, cells = _filled(tmp_path / "run")
    folder.finish(cells)
    table = pq.read_table(tmp_path / "run" / "records.parquet")
    assert table.schema.equals(RECORDS)
    found = list(zip(table["policy"].to_pylist(), table["seed"].to_pylist(), strict=True))
    assert found == [(cell.policy, cell.seed) for cell in cells for _ in range(4)]


def test_finished_cell_is_never_written_again(tmp_path):
    folder, cells = _filled(tmp_path / "run")
    place = folder.cell_folder(cells[0])
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    folder.store(cells[0], _result(cells[0], [9.0, 9.0, 9.0, 9.0], seconds=7.0))
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    assert not [path for path in place.parent.iterdir() if path.name.startswith(".partial")]


def test_half_written_cell_is_no_cell(tmp_path):
    """What a killed process leaves behind is swept away on resume."""
    folder, cells = _filled(tmp_path / "run")
    extra = Cell("diet", "ind-ts", 7)
    partial = folder.cell_folder(extra).parent / ".partial-99-seed-7"
    partial.mkdir(parents=True)
    (partial / "records.parquet").write_bytes(b"half")
    assert not folder.has(extra)
    folder.prepare(is_resumed=True, num_jobs=1)
    assert not partial.exists()
    assert all(folder.has(cell) for cell in cells)


def test_folder_with_other_content_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(ConflictError, match=r"new or empty folder.*other files"):
        RunFolder(tmp_path, EXPERIMENT).prepare(is_resumed=True, num_jobs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_run_is_not_overwritten_without_resume(tmp_path):
    _filled(tmp_path / "run")
    with pytest.raises(ConflictError, match=r"holds a run. Add --resume"):
        RunFolder(tmp_path / "run", EXPERIMENT).prepare(is_resumed=False, num_jobs=1)


def test_another_experiment_cannot_resume(tmp_path):
    _filled(tmp_path / "run")
    other = Experiment.declare(QUICK, ["diet"], ["uniform"], 3)
    with pytest.raises(ConflictError, match=r"a run with other policies, seeds"):
        RunFolder(tmp_path / "run", other).prepare(is_resumed=True, num_jobs=1)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["seeds"] == [0, 1]


@pytest.mark.parametrize("num_seeds", [1, 3])
def test_run_may_go_on_with_other_seeds(tmp_path, num_seeds):
    """Finished cells stay; the summary has the seeds that were asked for last."""
    _filled(tmp_path / "run")
    other = replace(EXPERIMENT, num_seeds=num_seeds)
    folder = RunFolder(tmp_path / "run", other)
    folder.prepare(is_resumed=True, num_jobs=1)
    missing = [cell for cell in cells_of(other) if not folder.has(cell)]
    assert {cell.seed for cell in missing} == set(range(2, num_seeds))
    for cell in missing:
        folder.store(cell, _result(cell, [1.0, 1.0]))
    folder.finish(cells_of(other))
    found = json.loads((tmp_path / "run" / "config.json").read_text())["seeds"]
    rows = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert found == sorted({row["seed"] for row in rows}) == list(range(num_seeds))


def test_cells_of_other_code_are_not_mixed(tmp_path):
    _filled(tmp_path / "run")
    path = tmp_path / "run" / "provenance.json"
    told = json.loads(path.read_text()) | {"source_sha256": "0" * 64}
    path.write_text(json.dumps(told))
    with pytest.raises(ConflictError, match=r"made by other code or packages. Remove the folder"):
        RunFolder(tmp_path / "run", EXPERIMENT).prepare(is_resumed=True, num_jobs=1)


def test_unreadable_config_is_refused(tmp_path):
    _filled(tmp_path / "run")
    (tmp_path / "run" / "config.json").write_text("{")
    with pytest.raises(StorageError, match=r"config.json cannot be read"):
        RunFolder(tmp_path / "run", EXPERIMENT).prepare(is_resumed=True, num_jobs=1)


@pytest.mark.parametrize("name", ["records.parquet", "cell.json"])
def test_damaged_cell_is_named(tmp_path, name):
    folder, cells = _filled(tmp_path / "run")
    path = folder.cell_folder(cells[1]) / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(StorageError, match=r"diet / ind-ts / seed 1.*--resume"):
        folder.finish(cells)


def test_provenance_names_versions_and_code(tmp_path):
    _filled(tmp_path / "run")
    told = json.loads((tmp_path / "run" / "provenance.json").read_text())
    assert told["jobs"] == 1
    assert set(told["packages"]) >= {"jax", "numpy", "pyarrow"}
    assert len(told["source_sha256"]) == 64
    assert str(tmp_path) not in json.dumps(told)
