"""The page on which all systems stand side by side, and the two runs that it is made from."""

import shutil

from doc_pages import ROOT, read

from cocobandits.experiments import presets
from cocobandits.experiments.comparison import load_comparison, read_comparison
from cocobandits.experiments.comparison_page import write_comparison
from cocobandits.experiments.peers_table import FILE, beside_peers, read_peers

RUN_ANEW = ("robustagg", "gradband", "kmtl-ucb", "rome")
COMPARE, MENDED = ROOT / "results" / "compare", ROOT / "results" / "compare-mended"


def test_page_is_generated_from_the_committed_runs(tmp_path):
    """If this fails, run `make docs`."""
    copy = tmp_path / "results" / "compare-mended"
    shutil.copytree(MENDED, copy, ignore=shutil.ignore_patterns("report"))
    page = write_comparison(copy, COMPARE, tmp_path / "docs" / "compare.md")
    assert page.read_text("utf-8") == read("docs/compare.md")
    names = {path.name for path in (copy / "report" / "figures").iterdir()}
    assert {path.name for path in (MENDED / "report" / "figures").iterdir()} == names


def test_committed_runs_have_all_systems_in_all_environments():
    comparison = load_comparison(MENDED, COMPARE)
    anew = {name for name in presets.COMPARED if presets.policy_of(name) in RUN_ANEW}
    assert set(read_comparison(MENDED).policies) == {*anew, presets.REFERENCE}
    assert comparison.config["scale"] == "paper"
    assert comparison.seeds == tuple(range(10))
    assert comparison.environments == presets.COMPARED_ENVIRONMENTS
    assert set(comparison.policies) == set(presets.COMPARED)


def test_libraries_met_all_environments_and_seeds():
    comparison = load_comparison(MENDED, COMPARE)
    _, cells, _ = read_peers(COMPARE / FILE)
    beside = beside_peers(comparison, cells)
    libraries = set(beside.policies) - set(comparison.policies)
    assert {name.partition(" ")[0] for name in libraries} == {"mabwiser", "bayesianbandits"}
    for environment in presets.COMPARED_ENVIRONMENTS:
        assert all(beside.has(environment, name) for name in libraries)
