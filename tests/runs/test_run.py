"""Filling folders, with a policy, an environment and an agent from outside the package."""

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import outside
import pytest
from outside import Large, Last, Stubborn, Village

from cocobandits import GradBand, IndTS, OracleTS, RobustAgg, Uniform, simulate
from cocobandits.display import DEFAULT_LINE
from cocobandits.environments.recruitment import Recruitment
from cocobandits.errors import (
    ConfigurationError,
    ConflictError,
    CrashedError,
    StorageError,
)
from cocobandits.experiments.figures.regret import cumulative_figure
from cocobandits.experiments.report import write_comparison, write_report
from cocobandits.experiments.suites import Suite
from cocobandits.policies.description import PolicySettings
from cocobandits.policies.plain import to_plain
from cocobandits.runs import store
from cocobandits.runs.cell import Agent
from cocobandits.runs.info import Source
from cocobandits.runs.pool import fill, plan
from cocobandits.runs.results import read_results
from cocobandits.runs.store import cell_table, open_folder

SOURCE = Source({"source_sha256": "s", "packages": {}}, ["coco"])


def make_suite(num_seeds: int = 1, *further: Agent | PolicySettings) -> Suite:
    policies = {"ind-ts": IndTS(), "stubborn": Stubborn(label="Stubborn")}
    policies |= {each.label: each for each in further}
    return Suite("mine", (Village(),), policies, num_seeds, (4, 3))


def run(path: Path, suite: Suite, source: Source = SOURCE, is_refreshed: bool = False) -> list[str]:
    """Fill a folder in this number of processes, and list the cells that were computed."""
    with open_folder(path) as folder:
        todo = plan(folder, suite.cells(), source, is_refreshed).todo
        return [str(task.key) for task, _ in fill(folder, todo, source, 1)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("run")
    assert len(run(path, make_suite(10))) == 20
    return path


def test_policies_and_environments_from_outside_are_simulated():
    records = list(simulate(Last(), Village(), seed=1))
    assert [record.arm for record in records] == [1] * 12
    assert [record.probability for record in records] == [1.0] * 12
    assert len(list(simulate("ind-ts", Village(), seed=1))) == 12
    assert {record.arm for record in simulate(Last(), "diet", seed=1)} == {2}


def test_policies_and_environments_from_outside_have_figures_and_pages(tmp_path):
    """With the default line; a class's name is its label, and an environment's name its own."""
    # A comparison needs something of the name coids; the real one would only take longer.
    policies = {"coids": Uniform(), "ind-ts": IndTS(), "oracle-ts": OracleTS(), "last": Last()}
    suite = Suite("mine", (Village(),), policies, 2)
    assert len(run(tmp_path / "run", suite)) == 8
    results = read_results(tmp_path / "run")
    assert (results.label("last"), results.line("last")) == ("Last", DEFAULT_LINE)
    assert results.fact("last", "settings") == {"kind": "last"}
    assert results.environment_label("village") == "village"
    assert results.policies[-1] == "last"
    regret = [sum(record.regret for record in simulate(Last(), Village(), n)) for n in (0, 1)]
    assert results.total_regret("village", "last").tolist() == regret
    page = write_report(results, tmp_path / "report").page.read_text(encoding="utf-8")
    compared = write_comparison(results, tmp_path / "compared", None).read_text(encoding="utf-8")
    for text in (page, compared):
        assert "Last" in text
        assert "village" in text
    drawn = cumulative_figure(results)
    assert [axes.get_title() for axes in drawn.axes] == ["village"]
    assert "Last" in [text.get_text() for text in drawn.legends[0].get_texts()]
    [line] = [each for each in drawn.axes[0].lines if each.get_color() == DEFAULT_LINE.color]
    assert line.get_ydata()[-1] == pytest.approx(np.mean(regret))


def test_policies_and_environments_from_outside_run(finished):
    results = read_results(finished)
    assert results.environments == ("village",)
    assert results.label("stubborn") == "Stubborn"
    assert results.regrets["village", "stubborn"].shape == (10, 12)
    # Before any reward, and after each of three rounds.
    assert results.evaluations["village", "ind-ts"].shape == (10, 4)
    assert ("village", "stubborn") not in results.evaluations
    info = results.infos("village", "ind-ts")[3]
    assert (info.num_users, info.suite, info.argv) == (6, "mine", ["coco"])
    assert info.used == {"kind": "ind-ts"}
    assert results.infos("village", "stubborn")[3].used == {}
    assert info.world_sha256 == results.infos("village", "stubborn")[3].world_sha256
    assert info.world_sha256 != results.infos("village", "stubborn")[4].world_sha256


def test_adding_a_policy_computes_only_its_cells(finished):
    before = read_results(finished)
    ran = run(finished, make_suite(10, RobustAgg()))
    assert ran == [f"village / RobustAgg / seed {seed}" for seed in range(10)]
    after = read_results(finished)
    assert len(after.cells) == 30
    assert before.cells.items() <= after.cells.items()
    for key, regrets in before.regrets.items():
        np.testing.assert_array_equal(after.regrets[key], regrets)
    assert run(finished, make_suite(11)) == [
        f"village / {name} / seed 10" for name in ("ind-ts", "stubborn")
    ]


def test_stale_cells_are_counted_and_rerun_only_when_refreshed(tmp_path):
    run(tmp_path, make_suite())
    newer = Source(SOURCE.provenance | {"source_sha256": "t"}, ["coco"])
    with open_folder(tmp_path) as folder:
        planned = plan(folder, make_suite().cells(), newer)
    assert (planned.num_stale, planned.num_done, planned.todo) == (2, 2, [])
    assert not run(tmp_path, make_suite(), newer)
    assert len(run(tmp_path, make_suite(), newer, is_refreshed=True)) == 2
    assert not run(tmp_path, make_suite(), newer, is_refreshed=True)


def test_other_settings_are_refused_or_replaced(tmp_path):
    agent = Stubborn(label="x", settings={"depth": (1, 2)})
    run(tmp_path, make_suite(1, agent))
    assert not run(tmp_path, make_suite(1, agent))
    other = make_suite(1, replace(agent, settings={"depth": (1, 3)}))
    with pytest.raises(ConflictError, match=r"village / x / seed 0 has other settings \(depth\)"):
        run(tmp_path, other)
    assert run(tmp_path, other, is_refreshed=True) == ["village / x / seed 0"]
    assert read_results(tmp_path).fact("x", "settings") == {"depth": [1, 3]}


@pytest.mark.parametrize(
    ("fault", "reason"), [("refuse", "Use another"), ("break", "ZeroDivision")]
)
def test_a_cell_that_fails_does_not_stop_the_others(tmp_path, fault, reason):
    with pytest.raises(CrashedError, match=rf"(?s)village / bad / seed 0 .*{reason}"):
        run(tmp_path, make_suite(1, Stubborn(label="bad", fault=fault)))
    assert read_results(tmp_path).policies == ("ind-ts", "stubborn")


def test_a_killed_process_is_one_sentence(tmp_path):
    with pytest.raises(CrashedError, match=r"got one that was killed.*fewer --jobs"):
        run(tmp_path, make_suite(1, Stubborn(label="bad", fault="die")))


def test_nothing_is_computed_after_the_disk_is_full(tmp_path, monkeypatch):
    def fail(*_) -> None:
        raise OSError(28, os.strerror(28))

    trace = tmp_path / "trace"
    trace.mkdir()
    suite = make_suite(30, Stubborn(label="traced", trace=trace))
    monkeypatch.setattr(store, "write_table", fail)
    with pytest.raises(StorageError, match="free space, then run the same command again"):
        run(tmp_path / "run", suite)
    assert len(list(trace.iterdir())) < 10
    monkeypatch.undo()
    assert len(run(tmp_path / "run", make_suite(2))) == 4


def test_a_run_ends_at_once_while_a_result_is_on_its_way(tmp_path):
    """A worker is killed in the middle of a result that fills its pipe many times."""
    with open_folder(tmp_path) as folder:
        running = fill(folder, [Large(f"large-{number}") for number in range(8)], SOURCE, 2)
        next(running)
        time.sleep(0.5)
        started = time.monotonic()
        running.close()
    assert time.monotonic() - started < 20


def test_code_of_policies_from_outside_is_recorded(tmp_path):
    suite = Suite("mine", (Village(),), {"last": Last(), "uniform": Uniform()}, 1)
    [last, uniform] = [cell.made(SOURCE).provenance for cell in suite.cells()]
    assert len(last["outside_sha256"].split()) == 2
    assert len(uniform["outside_sha256"].split()) == 1
    run(tmp_path, suite)
    changed = Path(outside.__file__).read_bytes() + b"# changed"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda _: changed)
        with open_folder(tmp_path) as folder:
            assert plan(folder, suite.cells(), SOURCE).num_stale == 2


def test_settings_that_cannot_be_stored_are_refused(tmp_path):
    agent = Stubborn(label="x", settings={"weights": np.zeros(2)})
    with pytest.raises(ConfigurationError, match=r"got \{'weights': array.*Turn an array into"):
        run(tmp_path, make_suite(1, agent))


def test_another_plan_of_arrivals_is_another_cell(tmp_path):
    run(tmp_path, make_suite())
    longer = Village().recruiting(Recruitment.batches(4, 3, 2))
    with pytest.raises(ConflictError, match=r"other settings \(size, users\), and 1 more results"):
        run(tmp_path, replace(make_suite(), environments=(longer,)))


def test_other_parameters_of_an_environment_are_another_cell(tmp_path):
    """The same class and name, and other users."""
    run(tmp_path, make_suite())
    warmer = replace(make_suite(1, Uniform()), environments=(Village(shift=0.4),))
    with pytest.raises(ConflictError, match=r"village / ind-ts / seed 0 has .* \(users\)"):
        run(tmp_path, warmer)
    assert len(run(tmp_path, warmer, is_refreshed=True)) == 3
    assert read_results(tmp_path).policies == ("ind-ts", "Uniform", "stubborn")


def test_cells_from_before_a_setting_was_added_are_the_same(tmp_path):
    """The stored settings lack a field, as those of an earlier version do."""
    suite = Suite("mine", (Village(),), {"gradband": GradBand()}, 1)
    [cell], settings = suite.cells(), to_plain(GradBand())
    del settings["softness"]
    info = cell.info(SOURCE)._replace(settings=settings, has_steps=False)
    with open_folder(tmp_path) as folder:
        folder.save(cell.key, cell_table(info, []), info.made)
        assert plan(folder, suite.cells(), SOURCE).num_done == 1
        other = replace(suite, policies={"gradband": GradBand(softness=2.0)})
        with pytest.raises(ConflictError, match=r"other settings \(softness\)"):
            plan(folder, other.cells(), SOURCE)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("follow/0.5",), "without slashes.*; got policy='follow/0.5'"),
        (("..",), "or a dot in front; got policy='..'"),
        (("a\0b",), "null characters.*; got policy='a"),
        (("é" * 128,), "at most 255 bytes"),
        ((" ",), "1 to 256 characters; got policy=' '"),
    ],
)
def test_names_that_are_no_folders_are_refused(names, message):
    with pytest.raises(ConfigurationError, match=message):
        Suite("mine", (Village(),), dict.fromkeys(names, Last()), 1)


def test_policies_without_names_are_asked_for_a_mapping():
    with pytest.raises(ConfigurationError, match=r"mapping.*policies=\[Last\(\)\]. .*\{'mine'"):
        Suite("mine", (Village(),), [Last()], 1)
    with pytest.raises(ConfigurationError, match=r"policy=\['uniform'\] more than once"):
        Suite("mine", (Village(),), ["uniform", "uniform"], 1)


def test_two_environments_of_one_name_are_refused():
    with pytest.raises(ConfigurationError, match=r"environment=\['village'\] more than once"):
        Suite("mine", (Village(), Village()), {"last": Last()}, 1)


def test_an_interrupted_run_equals_an_uninterrupted_one(finished, tmp_path):
    """Stopped after three cells, with another number of processes afterwards."""
    suite = make_suite(10)
    with open_folder(tmp_path) as folder:
        running = fill(folder, plan(folder, suite.cells(), SOURCE).todo, SOURCE, 1)
        for _ in range(3):
            next(running)
        running.close()
    assert len(list(tmp_path.rglob("seed-*.parquet"))) == 3
    assert len(run(tmp_path, suite)) == 17
    whole, resumed = read_results(finished).only(["ind-ts", "stubborn"]), read_results(tmp_path)
    for name in ("regrets", "arms", "evaluations"):
        for key, values in getattr(resumed, name).items():
            np.testing.assert_array_equal(values, getattr(whole, name)[key])
    for key, info in resumed.cells.items():
        assert info._replace(seconds=0) == whole.cells[key]._replace(seconds=0)
