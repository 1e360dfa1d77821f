"""Two runs in one report: what is added, what has to agree, what is left alone."""

import re
from dataclasses import replace

import numpy as np
import pytest
from synthetic_run import ENVIRONMENTS, STRESS, Scenario, write_json, write_run

import cocobandits.experiments.pictures as pictures_module
from cocobandits.errors import StorageError
from cocobandits.experiments.beside import join
from cocobandits.experiments.claims import CLAIMS, HOLDS, judge
from cocobandits.experiments.measures import measure, particle_health
from cocobandits.experiments.reading import load_run
from cocobandits.experiments.report import write_report

SHAPE = re.compile(r"^Expected [^;]+; got beside=.+\. [A-Z].+\.$", re.S)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    return write_run(place / "coids", Scenario.of_coids()), write_run(place / "paper")


def joined(first, second):
    return join(load_run(first), load_run(second), second)


def refusal(folders, tmp_path, scenario):
    """Put another scenario beside the run of coids, and return why it is refused."""
    other = write_run(tmp_path / "other", scenario)
    with pytest.raises(StorageError, match=SHAPE) as caught:
        joined(folders[0], other)
    return str(caught.value)


def test_policies_of_the_other_run_are_added(folders):
    measures = measure(joined(*folders))
    assert measures.environments == (*ENVIRONMENTS, *STRESS)
    assert measures.policies == (
        *("coids", "npm-ts", "gids", "mtts", "ind-ts", "oracle-ts", "oracle-plan", "uniform"),
    )
    assert measures.has("mixture", "coids", "gids")
    assert not measures.has("stress-ring", "gids")
    assert measures.within(STRESS).policies == ("coids", "ind-ts", "oracle-ts", "oracle-plan")


def test_claims_of_the_paper_are_judged_as_in_its_own_run(folders):
    found = judge(CLAIMS, measure(joined(*folders)))
    assert found == judge(CLAIMS, measure(load_run(folders[1])))
    assert {each.verdict for each in found} == {HOLDS}


def test_what_comes_with_a_run_is_joined_too(folders):
    run = joined(*folders)
    assert run.densities is not None
    assert len(run.summary) == (8 * 4 + 4 * 4) * 4
    assert set(particle_health(run)) == {
        *((name, "coids") for name in (*ENVIRONMENTS, *STRESS)),
        *((name, policy) for name in ENVIRONMENTS for policy in ("npm-ts", "gids")),
    }
    assert run.hyperparameters.num_rows == load_run(folders[0]).hyperparameters.num_rows


def test_settings_are_those_of_the_run_that_used_them(folders):
    paper = load_run(folders[1])
    other = replace(paper, config=paper.config | {"settings": {"nodes_per_arm": 12}})
    config = join(load_run(folders[0]), other, folders[1]).config
    assert config["settings"] == {"nodes_per_arm": 12}
    assert config["learned"]["amplitude"] == 4.0


def test_only_seeds_of_both_are_used(folders, tmp_path):
    other = write_run(tmp_path / "other", Scenario(seeds=(2, 0, 7)))
    measures = measure(joined(folders[0], other))
    assert measures.seeds == (0, 2)
    assert {len(curve) for curve in measures.regrets.values()} == {2}
    drift = np.diff(measures.total_regret("mixture", "gids"))
    np.testing.assert_allclose(drift, 100 * 0.002 * 2)


def test_runs_without_a_seed_in_common_are_refused(folders, tmp_path):
    told = refusal(folders, tmp_path, Scenario(seeds=(7, 8)))
    assert "Expected a seed in common" in told


def test_cells_that_differ_are_refused(folders, tmp_path):
    """The oracle of one environment loses a little more in every step."""
    told = refusal(folders, tmp_path, Scenario().with_curve("lmm", "oracle-ts", floor=0.1 + 1e-8))
    assert "another regret, by 1e-08" in told
    assert "lmm / oracle-ts / seed" in told
    agreeing = Scenario().with_curve("lmm", "oracle-ts", floor=0.1 + 1e-11)
    assert joined(folders[0], write_run(tmp_path / "agreeing", agreeing))


def test_environments_of_another_length_are_refused(folders, tmp_path):
    """Also where no cell is in both."""
    scenario = Scenario(num_steps=50).only(("lmm",), ("gids",))
    assert "50 steps in lmm, not 100" in refusal(folders, tmp_path, scenario)


def test_other_newcomers_are_refused(folders, tmp_path):
    other = write_run(tmp_path / "other")
    config = load_run(other).config | {"evaluation": {"users": 5, "pulls": 10}}
    write_json(other / "config.json", config)
    with pytest.raises(StorageError, match="the same newcomers"):
        joined(folders[0], other)


def test_report_shows_both_and_names_both(folders, monkeypatch):
    """Figures are stand-ins; the run beside is left alone."""

    def save(figure, folder, name):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.svg"
        path.write_text("<svg/>")
        assert len(figure.axes) <= 25
        return {"svg": path}

    monkeypatch.setattr(pictures_module.drawing, "save", save)
    first, second = folders
    page = write_report(first, beside=second).page.read_text(encoding="utf-8")
    twin = (first / "report" / "reproduction.md").read_text(encoding="utf-8")
    assert not (second / "report").exists()
    for shown in (page, twin):
        assert "agrees with 8 (1, 2, 3, 4, 5, 6, 7, 8)." in shown
        assert "Of 6 targets, this run agrees with 6 (1, 2, 3, 4, 5, 6)." in shown
        assert "Our own targets for CoIDS" in shown
        assert "coco report DIR --beside OTHER" in shown
        assert "--env stress --policy coids" in shown
        assert "not in stress: NPM-TS, GIDS, MTTS, Uniform" in shown
        assert "All others work with the range of each environment" in shown
        assert "40 spent" not in shown
    assert "| what | DIR | OTHER |" in twin
    assert "| setting | npm-ts, gids | coids |" in twin
    made = {path.stem for path in (first / "report" / "figures").iterdir()}
    both = {
        f"{name}{end}"
        for name in ("regret", "cumulative", "hyperparameters", "health")
        for end in ("", "-stress")
    }
    assert made == both | {"third-arm", "diet", "density"}
    assert str(first) not in page
    assert str(second) not in page
    assert "CoIDS: 320 rejuvenations with acceptance from 0.51 to 0.60, all in [0.3, 0.8]" in twin
