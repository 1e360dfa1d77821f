"""Pages that are made from the committed results: the same again, from files alone."""

import shutil
import subprocess
import sys

import pytest
from doc_pages import ROOT, read

from cocobandits.experiments.claims import PAPER, PAPER_POLICIES, STRESS
from cocobandits.experiments.ranking import libraries
from cocobandits.policies.registry import POLICIES
from cocobandits.runs.results import read_results

PAGES = (
    "README.md",
    *(f"docs/{name}.md" for name in ("reproduction", "studies", "models", "compare")),
)
RESULTS = ROOT / "results"
# Environments and simulations cannot be imported, as if they had been deleted.
SCRIPT = """
import sys
from pathlib import Path

class Deleted:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("cocobandits.environments", "cocobandits.simulation")):
            raise ImportError(name)

sys.meta_path.insert(0, Deleted())
from cocobandits.experiments.report import write_pages
write_pages(Path(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory):
    """Rebuild all pages from copies of the committed results."""
    root = tmp_path_factory.mktemp("root")
    ignored = shutil.ignore_patterns("report")
    shutil.copytree(RESULTS, root / "results", ignore=ignored)
    for name in ("README.md", "benchmarks/results.json"):
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    subprocess.run([sys.executable, "-c", SCRIPT, str(root)], check=True)
    return root


@pytest.mark.parametrize("page", PAGES)
def test_page_is_generated_from_the_committed_results(rebuilt, page):
    """If this fails, run `make docs`."""
    assert (rebuilt / page).read_text("utf-8") == read(page)


@pytest.mark.parametrize("run", ["reproduction", "studies", "compare"])
def test_figures_are_those_of_the_committed_results(rebuilt, run):
    """Every figure, as SVG; their bytes depend on the version of matplotlib."""
    names = [
        {path.name for path in (root / "results" / run / "report" / "figures").iterdir()}
        for root in (rebuilt, ROOT)
    ]
    assert names[0] == names[1]
    assert {name.rpartition(".")[2] for name in names[0]} == {"svg"}


def test_committed_results_are_the_whole_paper_and_coids():
    """Ten seeds of every policy: the paper's in its environments, coids under stress too."""
    results = read_results(RESULTS / "reproduction")
    assert results.seeds == tuple(range(10))
    assert results.environments == (*PAPER, *STRESS)
    for environment in results.environments:
        assert results.has(environment, "coids", "oracle-plan", "oracle-ts", "ind-ts")
    assert all(results.has(environment, *PAPER_POLICIES) for environment in PAPER)
    assert set(results.tables) == {"densities", "diet"}
    models = read_results(RESULTS / "models")
    assert (models.environments, models.seeds) == (PAPER, results.seeds)


def test_all_systems_and_libraries_were_compared_in_all_environments():
    results = read_results(RESULTS / "compare")
    assert len(results.seeds) == 10
    systems = {name for name, each in POLICIES.items() if each.table_one}
    assert systems <= set(results.policies)
    others = libraries(results)
    assert {name.split()[0] for name in others} == {"mabwiser", "bayesianbandits"}
    assert all(results.has(environment, *others) for environment in results.environments)
