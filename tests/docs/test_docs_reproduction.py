import shutil

import pytest
from doc_pages import ROOT, read

from cocobandits.experiments.reading import load_run
from cocobandits.experiments.report import write_report

RESULTS = ROOT / "results" / "paper"


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory):
    """Rebuild the report from a copy of the committed tables."""
    copy = tmp_path_factory.mktemp("results") / "paper"
    shutil.copytree(RESULTS, copy, ignore=shutil.ignore_patterns("report"))
    return write_report(copy).parent


def test_page_is_generated_from_the_committed_records(rebuilt):
    """If this fails, run `make docs`."""
    assert read("docs/reproduction.md") == (rebuilt / "reproduction.md").read_text("utf-8")


def test_figures_are_those_of_the_committed_records(rebuilt):
    """Every figure, as PNG, SVG and PDF; their bytes depend on the version of matplotlib."""
    names = {path.name for path in (rebuilt / "figures").iterdir()}
    assert {path.name for path in (RESULTS / "report" / "figures").iterdir()} == names
    assert {name.rpartition(".")[2] for name in names} == {"png", "svg", "pdf"}


def test_committed_run_is_the_whole_paper():
    """Ten seeds of every policy in every environment."""
    config = load_run(RESULTS).config
    assert config["scale"] == "paper"
    assert config["seeds"] == list(range(10))
    assert config["environments"] == ["mixture", "partial", "lmm", "lmm-misspecified"]
    assert len(config["policies"]) == 6
