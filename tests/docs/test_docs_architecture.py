import importlib
import io
import json
import re
import tomllib
import zipfile
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from doc_pages import PACKAGE, ROOT, code_names, fenced, read, section, tables, tree
from matplotlib.figure import Figure

from cocobandits import Study
from cocobandits.experiments import pictures, report, schemas
from cocobandits.experiments.cells import CellResult
from cocobandits.experiments.folder import RunFolder
from cocobandits.experiments.presets import QUICK, Experiment
from cocobandits.experiments.reading import FORMAT, VERSION
from cocobandits.experiments.runner import cells_of
from cocobandits.study import storage
from cocobandits.study.decisions import Status

PAGE = read("docs/architecture.md")


def resolve(name):
    """Follow a name `module:function` into the package."""
    module, _, path = name.partition(":")
    found = importlib.import_module(f"cocobandits.{module}")
    for part in path.split("."):
        found = getattr(found, part)
    return found


def make_study():
    study = Study(["left", "right"], {"age": (18, 90)}, (0.0, 1.0), 0.1, policy="uniform", seed=4)
    for number in range(6):
        study.enrol(f"user-{number}", {"age": 20 + number})
        decision = study.decide(f"user-{number}")
        if number < 4:
            study.reward(decision.id, 0.25 * number)
    return study


def test_tree_is_the_package():
    """Compare with all modules but the empty ones that only make a folder a package."""
    named = tree(fenced(section(PAGE, "The tree"))[0][1])
    for path in named:
        assert (ROOT / path).exists(), path
    modules = {str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*.py")}
    inner = {path for path in modules if path.endswith("/__init__.py")}
    assert modules - inner <= set(named)


def test_arrows_are_the_layers_contract():
    """Compare with the contract that import-linter enforces."""
    [contract] = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    assert fenced(section(PAGE, "Imports"))[0][1].strip() == " -> ".join(contract["layers"])


def test_answers_to_where_exist():
    """Look up every file."""
    [rows] = tables(section(PAGE, "Where does X live?"))
    for row in rows:
        [path] = code_names(row["file"])
        assert (ROOT / path).is_file(), path


@pytest.mark.parametrize("life", ["The life of one reward", "The life of one cell"])
def test_functions_in_a_life_exist(life):
    """Import every name."""
    [steps] = tables(section(PAGE, life))
    assert [row["step"] for row in steps] == [str(number + 1) for number in range(len(steps))]
    assert 6 <= len(steps) <= 8
    for row in steps:
        for name in code_names(row["where"]):
            assert resolve(name), name


def test_functions_of_state_and_randomness_exist():
    """Import every name, and compare the purposes of keys."""
    text = section(PAGE, "State and randomness")
    for name in [name for name in code_names(text) if ":" in name]:
        assert resolve(name), name
    purposes = importlib.import_module("cocobandits.study.learner").PURPOSES
    assert set(purposes) <= set(code_names(text))


def _row(schema):
    """Make a row of zeros, and of texts where a column holds texts."""
    return {field.name: "0" if field.type == pa.string() else 0 for field in schema}


def make_run(path):
    """Fill a run folder with one row per table and cell."""
    experiment = Experiment.declare(QUICK, ["diet"], ["ind-ts"], 1)
    folder = RunFolder(path, experiment)
    folder.prepare(is_resumed=False, num_jobs=1)
    for cell in cells_of(experiment):
        tables_of_cell = [
            pa.Table.from_pylist([_row(schema) | cell._asdict()], schema)
            for schema in (
                schemas.RECORDS,
                schemas.EVALUATIONS,
                schemas.HEALTH,
                schemas.HYPERPARAMETERS,
            )
        ]
        folder.store(cell, CellResult(*tables_of_cell, seconds=1.0))
    row = dict.fromkeys(schemas.DENSITIES.names, 0)
    folder.store_densities(pa.Table.from_pylist([row], schemas.DENSITIES))
    folder.finish(cells_of(experiment))
    return folder, cells_of(experiment)


def test_run_folder_has_the_documented_files(tmp_path, monkeypatch):
    """Fill a folder, and compare its files, their keys and their columns with the table."""
    text = section(PAGE, "A run folder")
    assert f"`{FORMAT}`, version {VERSION}" in text.replace("\n", " ")
    [rows] = tables(text)
    documented = {row["file"].strip("`"): code_names(row["what it holds"]) for row in rows}
    folder, cells = make_run(tmp_path / "run")
    blank = ("title", "caption", Figure(figsize=(1, 1)))
    drawn = dict.fromkeys(("regret", "cumulative", "third-arm", "diet"), blank)
    monkeypatch.setattr(pictures, "_draw", lambda *_: drawn)
    report.write_report(folder.path)
    there = {path.name for path in folder.path.iterdir()}
    assert there == {name.split("/")[0] for name in documented}
    for name, names in documented.items():
        if name.endswith(".json"):
            content = json.loads((folder.path / name).read_text(encoding="utf-8"))
            assert list(content[0] if isinstance(content, list) else content) == names
        elif name.endswith(".parquet"):
            columns = pq.read_schema(folder.path / name).names
            assert names[: len(columns)] == columns
            # What follows the columns tells who has no rows.
            assert set(names[len(columns) :]) <= {"uniform", "mixture", "npm-ts"}
    [place] = [name for name in documented if name.startswith("cells/")]
    for cell in cells:
        where = place.replace("ENVIRONMENT", cell.environment).replace("POLICY", cell.policy)
        files = (folder.path / where.replace("seed-N", f"seed-{cell.seed}")).iterdir()
        assert sorted(path.name for path in files) == sorted(documented[place])
    command, *made = documented["report/"]
    assert command == "coco report"
    assert sorted(
        f"{path.name}/" if path.is_dir() else path.name
        for path in (folder.path / "report").iterdir()
    ) == sorted(made)


def test_saved_study_has_the_documented_entries(tmp_path):
    """Save a study and list the archive."""
    [rows] = tables(section(PAGE, "Storage"))
    assert f"version of the format is {storage.VERSION}." in section(PAGE, "Storage")
    documented = {name for row in rows for name in code_names(row["entry"])}
    path = tmp_path / "small.study"
    make_study().save(path)
    with zipfile.ZipFile(path) as archive:
        entries = archive.namelist()
        text = json.loads(archive.read("study.json"))
        statuses = np.load(io.BytesIO(archive.read("statuses.npy")))
        rewards = np.load(io.BytesIO(archive.read("rewards.npy")))
    assert {name for name in entries if not name.startswith("state-")} == {
        name for name in documented if not name.startswith("state-")
    }
    keys = {"format", "version", "design", "users", "withdrawn", "num_updates", "adoptions"}
    keys |= {"arm_changes", "arrivals"}
    assert set(text) == keys | {"sha256"}
    arrays = {name.removesuffix(".npy") for name in entries if name.endswith(".npy")}
    assert set(text["sha256"]) == arrays
    assert len(statuses) == len(rewards) == 6
    np.testing.assert_array_equal(np.isnan(rewards), [False] * 4 + [True] * 2)
    with np.load(path) as opened:
        np.testing.assert_array_equal(opened["rewards"], rewards)


def test_arm_follows_from_the_stored_draw():
    """Invert the cumulated probabilities by hand for every decision."""
    study = make_study()
    for number in range(study.num_decisions):
        decision = study.decision(f"d{number}")
        sums = accumulate(decision.probabilities.values())
        first = next(
            arm
            for arm, total in zip(decision.probabilities, sums, strict=True)
            if total > decision.draw
        )
        assert decision.arm == first


def test_statuses_are_those_listed():
    """Read them off the table of entries."""
    listed = re.findall(r"and (\w+), (\w+), (\w+) or (\w+) \|", section(PAGE, "Storage"))
    assert listed == [tuple(status.name.lower() for status in Status)]
