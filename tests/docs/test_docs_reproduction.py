import shutil

import pytest
from doc_pages import ROOT, read

from cocobandits.experiments import presets
from cocobandits.experiments.reading import load_run
from cocobandits.experiments.report import write_report

RESULTS, BESIDE = ROOT / "results" / "coids", ROOT / "results" / "paper"


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory):
    """Rebuild the report from a copy of the committed tables, in folders as they are here."""
    root = tmp_path_factory.mktemp("root")
    (root / "docs").mkdir()
    copy = root / "results" / "coids"
    shutil.copytree(RESULTS, copy, ignore=shutil.ignore_patterns("report"))
    write_report(copy, BESIDE, twin=root / "docs" / "reproduction.md")
    return root


def test_page_is_generated_from_the_committed_records(rebuilt):
    """If this fails, run `make docs`."""
    made = (rebuilt / "docs" / "reproduction.md").read_text("utf-8")
    assert read("docs/reproduction.md") == made


def test_figures_are_those_of_the_committed_records(rebuilt):
    """Every figure, as SVG; their bytes depend on the version of matplotlib."""
    names = {path.name for path in (rebuilt / "results/coids/report/figures").iterdir()}
    assert {path.name for path in (RESULTS / "report" / "figures").iterdir()} == names
    assert {name.rpartition(".")[2] for name in names} == {"svg"}


def test_committed_runs_are_the_whole_paper_and_coids():
    """Ten seeds of every policy: the paper's in its environments, coids under stress too."""
    paper, coids = load_run(BESIDE).config, load_run(RESULTS).config
    assert paper["scale"] == coids["scale"] == "paper"
    assert paper["seeds"] == coids["seeds"] == list(range(10))
    assert paper["environments"] == list(presets.ENVIRONMENTS)
    assert coids["environments"] == [*presets.ENVIRONMENTS, *presets.STRESS]
    assert set(paper["policies"]) == set(presets.PAPER_POLICIES)
    assert set(coids["policies"]) == {"coids", "oracle-plan", "oracle-ts", "ind-ts"}
