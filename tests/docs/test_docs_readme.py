"""The README: everything it claims is executed, generated or compared with the code."""

import re
import subprocess
import sys
import tomllib

import pytest
from doc_pages import ROOT, executed, fenced, read, section, tables

from cocobandits import Study
from cocobandits.experiments.ranking import libraries
from cocobandits.experiments.report import BEGIN, END
from cocobandits.experiments.suites import paper_suite
from cocobandits.runs.results import read_results
from support.compilation import users_environment

README = read("README.md")
PARTS = [
    *("What came out", "Install", "Example", "Two commands", "Eight verbs"),
    *("Use it when", "Do not use it when", "Licence and further reading"),
]


def test_it_is_short_and_in_the_order_that_visitors_ask():
    assert re.findall(r"^## (.*)$", README, re.M) == PARTS
    assert len(README.splitlines()) <= 125


def test_example_prints_what_stands_below_it():
    """Run it in a process of its own, compiled as for a reader: rounding may change digits."""
    [(code, expected)] = executed(README)
    environment = users_environment() | {"COCOBANDITS_QUIET": "1"}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (expected, "")
    assert len(code.splitlines()) <= 13


@pytest.mark.slow
def test_another_seed_doubts_longer():
    """Seed 3, which the README names: the better arm of a young user is far from certain."""
    [(code, _)] = executed(README)
    assert code.count("seed=0") == 1
    command = [sys.executable, "-W", "error", "-c", code.replace("seed=0", "seed=3")]
    environment = users_environment() | {"COCOBANDITS_QUIET": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    [chance] = re.findall(r"anna: walk is best with P = (\S+),", done.stdout)
    assert float(chance) < 0.8


def test_results_have_five_lines():
    """`test_docs_generated` compares them with the committed results."""
    assert len(README.split(BEGIN)[1].split(END)[0].splitlines()) == 5


def test_figure_shows_as_many_policies_as_were_compared():
    [(words, link)] = re.findall(r"!\[([^]]*)\]\(([^)]+)\)", README)
    assert (ROOT / link).is_file()
    compared = read_results(ROOT / "results" / "compare")
    assert f"of {len(compared.policies) - len(libraries(compared))} policies" in words


def test_commands_are_in_the_makefile():
    """Read every `make` line of the page."""
    targets = re.findall(r"^([a-z-]+):", read("Makefile"), re.M)
    commands = re.findall(r"^make (\S+)", README, re.M)
    assert commands == ["run", "test"]
    assert {*commands, *re.findall(r"`make ([a-z-]+)`", README)} <= set(targets)


def test_first_command_is_the_small_reproduction():
    """Compare what it runs with the suite, and with the recipe in the Makefile."""
    [recipe] = re.findall(r"^run:.*\n\t(.*)$", read("Makefile"), re.M)
    assert "coco reproduce --quick" in recipe
    assert "make run    # the paper's four environments, four seeds" in README
    quick = paper_suite(is_quick=True)
    assert (len(quick.environments), quick.num_seeds) == (4, 4)


def test_installation_is_that_of_the_project():
    """Compare extras and the version of Python with pyproject.toml."""
    project = tomllib.loads(read("pyproject.toml"))["project"]
    extras = re.findall(r"pip install '\.\[(\w+)\]'", section(README, "Install"))
    assert set(extras) <= set(project["optional-dependencies"])
    [stated] = re.findall(r"Python (\S+) or newer", README)
    assert project["requires-python"] == f">={stated}"


def test_eight_verbs_are_those_of_a_study():
    [rows] = tables(section(README, "Eight verbs"))
    assert len(rows) == 8
    named = re.findall(r"tudy\.(\w+)\(", " ".join(row["call"] for row in rows))
    assert all(callable(getattr(Study, name)) for name in named)
    assert callable(Study.warm_up)


def test_citation_is_that_of_the_citation_file():
    """Authors, title, year and preprint."""
    [bibtex] = [block for language, block in fenced(README) if language == "bibtex"]
    citation = read("CITATION.cff").split("preferred-citation:")[1]
    [title] = re.findall(r"title: (.*)", citation)
    assert f"title = {{{title}}}" in bibtex
    assert title in README.split("![")[0]
    families = re.findall(r"family-names: (.*)", citation)
    [authors] = re.findall(r"author = \{(.*?)\},\n  year", bibtex, re.S)
    written = re.sub(r"\s+", " ", authors).replace('{\\"u}', "ü").split(" and ")
    assert [author.split(",")[0] for author in written] == families
    given = re.findall(r"given-names: (.*)", citation)
    for name, family in zip(given, families, strict=True):
        assert f"{name} {family}" in re.sub(r"\s+", " ", README.split("![")[0])
    [year] = re.findall(r"year: (.*)", citation)
    [preprint] = re.findall(r'value: "arXiv:(.*)"', citation)
    assert f"year = {{{year}}}, eprint = {{{preprint}}}" in bibtex
    assert f"arXiv:{preprint}, {year}" in README
