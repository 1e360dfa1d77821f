import importlib
import json
import re
import tomllib
import zipfile
from dataclasses import fields
from itertools import accumulate
from typing import get_args

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from doc_pages import PACKAGE, ROOT, code_names, fenced, read, section, tables, tree

from cocobandits import Gaussian, Study
from cocobandits.experiments import report
from cocobandits.experiments.density import DietTask
from cocobandits.experiments.suites import paper_suite
from cocobandits.persistence import archive
from cocobandits.runs.info import Source
from cocobandits.runs.results import read_results
from cocobandits.runs.store import SCHEMA, open_folder
from cocobandits.study import events
from cocobandits.types import Status

PAGE = read("docs/architecture.md")


def resolve(name):
    """Follow a name `module:function` into the package."""
    module, _, path = name.partition(":")
    found = importlib.import_module(f"cocobandits.{module}")
    for part in path.split("."):
        found = getattr(found, part)
    return found


def make_study():
    study = Study(
        ["left", "right"], {"age": (18, 90)}, Gaussian(0, 1, noise=0.1), "uniform", seed=4
    )
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
    [contract, *_] = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
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


def make_run(path):
    """Fill a run folder with one cell and both tables, and add a loose cell."""
    suite = paper_suite(True, ["diet"], ["uniform"], 2)
    source = Source({}, [])
    with open_folder(path) as folder:
        first, second = (cell for cell in suite.cells() if cell.name == "uniform")
        folder.save(first.key, first.run(source), first.made(source))
        folder.pack()
        folder.save(second.key, second.run(source), second.made(source))
        row = dict.fromkeys(("time", "context", "arm", "low", "high", "density", "truth"), 0)
        folder.save("densities", pa.Table.from_pylist([row]), first.made(source))
        folder.save("diet", DietTask().run(source), first.made(source))
    return second.key


def test_run_folder_has_the_documented_files(tmp_path):
    """Fill a folder, and compare its files and their columns with the table."""
    [rows] = tables(section(PAGE, "A run folder"))
    documented = {row["file"].strip("`"): code_names(row["what it holds"]) for row in rows}
    key = make_run(tmp_path)
    report.write_report(read_results(tmp_path), tmp_path / "report")
    there = {path.name for path in tmp_path.iterdir()}
    assert there == {name.split("/")[0] for name in documented}
    [place] = [name for name in documented if name.startswith("cells/")]
    loose = place.replace("ENVIRONMENT", key.environment).replace("NAME", key.name)
    columns = {name: names[-len(SCHEMA) :] for name, names in documented.items()}
    assert columns["cells.parquet"] == SCHEMA.names
    assert pq.read_schema(tmp_path / loose.replace("seed-N", "seed-1")).names == SCHEMA.names
    for name in ("tables/densities.parquet", "tables/diet.parquet"):
        made = pq.read_schema(tmp_path / name).names
        assert documented[name][: len(made)] == made
    made = (
        f"{each.name}/" if each.is_dir() else each.name for each in (tmp_path / "report").iterdir()
    )
    assert sorted(made) == sorted(documented["report/"])


def test_saved_study_has_the_documented_entries(tmp_path):
    """Save a study and list the archive: its entries, what the texts hold, and hashes of all."""
    [rows] = tables(section(PAGE, "Storage"))
    assert f"version of the format is {archive.VERSION}." in section(PAGE, "Storage")
    held = {row["entry"]: code_names(row["what it holds"]) for row in rows}
    path, study = tmp_path / "small.study", make_study()
    study.save(path)
    with zipfile.ZipFile(path) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    arrays = [name for name in entries if name.endswith(".npy")]
    assert arrays == [f"{number}.npy" for number in range(len(arrays))]
    assert {*entries, "0.npy", "1.npy"} - {*arrays[2:]} == set(code_names(" ".join(held)))
    text, info = (json.loads(entries[name]) for name in ("study.json", "snapshot.json"))
    assert list(text) == held["`study.json`"]
    assert set(text["sha256"]) == {*entries} - {"study.json"}
    assert list(info) == held["`snapshot.json`"]
    lines = [json.loads(line) for line in entries["events.jsonl"].splitlines()]
    assert [line.pop(*held["`events.jsonl`"]) for line in lines] == [
        type(event).__name__ for event in study.events
    ]
    leaves = jax.tree.leaves((study._learner.users, study._learner.state))
    assert len(leaves) == len(arrays)
    with np.load(path) as opened:
        for number, leaf in enumerate(leaves):
            np.testing.assert_array_equal(opened[str(number)], leaf)


def test_events_are_those_listed():
    """Compare names and fields with the classes, in their order."""
    text = section(PAGE, "Events")
    [rows] = tables(text)
    listed = {row["event"].strip("`"): code_names(row["fields"]) for row in rows}
    common = [each.name for each in fields(events.Event)]
    assert set(common) <= set(code_names(text.split("|")[0]))
    for name, kind in events.KINDS.items():
        assert [each.name for each in fields(kind)] == [*common, *listed[name]]
    assert list(listed) == list(events.KINDS)


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
    """Read them off the sentence below the table of events."""
    pattern = r"A decision is (\w+), (\w+), (\w+) or (\w+);"
    assert re.findall(pattern, section(PAGE, "Events")) == [get_args(Status)]
