"""The reference and the limitations: every call, command, variable, policy and environment."""

import importlib.util
import inspect
import re
from html import unescape

import make_tables
import pytest
from doc_pages import ROOT, code_names, command_options, read, section, tables

from cocobandits import GIDS, NpmTS, PaperLogDensity, Study, disk_cache, notice
from cocobandits.environments.registry import environment_names
from cocobandits.experiments.claims import PAPER
from cocobandits.experiments.suites import paper_suite
from cocobandits.policies.coco.populations import MOST_GRID_ARMS, MOST_GRID_FEATURES
from cocobandits.runs.results import read_results

REFERENCE, LIMITATIONS = read("docs/reference.md"), read("docs/limitations.md")
PICTURE = "images/diet.svg"


def load_picture_script():
    path = ROOT / "docs" / "images" / "make_demo_svg.py"
    spec = importlib.util.spec_from_file_location("make_demo_svg", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def text_of(picture):
    """List the lines of text in a picture, without blanks."""
    return ["".join(unescape(line).split()) for line in re.findall(r"<text [^>]*>([^<]*)", picture)]


def test_every_call_of_a_study_is_described():
    """Compare the table with the public members of Study, and with its constructor."""
    [calls] = tables(section(REFERENCE, "What a study does"))
    described = set(re.findall(r"tudy\.(\w+)", " ".join(row["call"] for row in calls)))
    public = {name for name in dir(Study) if not name.startswith("_")}
    assert described <= public
    assert public - described == {"design"}
    [constructor] = re.findall(r"`Study\(([^)]*)\)`", calls[0]["call"])
    assert constructor.split(", ") == list(inspect.signature(Study).parameters)


def test_variables_are_those_that_are_read():
    [rows] = tables(section(REFERENCE, "Processes"))
    defaults = {row["variable"].strip("`"): row["default"] for row in rows}
    ours = {disk_cache.SWITCH, disk_cache.LIMIT, notice.QUIET}
    assert set(defaults) == ours | {"JAX_COMPILATION_CACHE_DIR"}
    assert defaults[disk_cache.LIMIT] == str(disk_cache.DEFAULT_LIMIT_MB)


@pytest.mark.parametrize("page", make_tables.PAGES)
def test_tables_are_those_of_the_code(page):
    """If this fails, run `make docs`."""
    assert make_tables.rewritten(read(page)) == read(page)


def test_every_table_stands_on_a_page():
    text = "".join(map(read, make_tables.PAGES))
    for name, made in make_tables.parts().items():
        assert f"<!-- {name} -->\n{made}<!-- /{name} -->" in text


def test_every_option_of_every_command_is_listed():
    """Read them from the page, and from the commands as they are."""
    _, rows = tables(section(REFERENCE, "The command coco"))
    listed = {(verb, row["option"].strip("`")) for row in rows for verb in code_names(row["of"])}
    options = {(verb, each) for verb, names in command_options().items() for each in names}
    assert {pair for pair in listed if pair[1].startswith("--")} == {
        (verb, option) for verb, option in options if option.startswith("--") and option != "--help"
    }


def test_the_default_policy_and_the_papers_environments_are_marked():
    policies, *_ = tables(section(REFERENCE, "Policies"))
    [default] = [row["policy"] for row in policies if "the default" in row["how it chooses"]]
    assert default.strip("`") == inspect.signature(Study).parameters["policy"].default
    [environments] = tables(section(REFERENCE, "Environments"))
    ours = [row["environment"].strip("`") for row in environments if "paper's" not in row["users"]]
    assert (*PAPER, *ours) == environment_names()


def test_limits_of_the_grid_are_those_of_the_code():
    shown = " ".join(section(REFERENCE, "Policies").split())
    assert f"up to {MOST_GRID_ARMS} arms and up to {MOST_GRID_FEATURES} features" in shown


def test_numbers_that_the_paper_does_not_state_are_those_of_the_code():
    shown = section(LIMITATIONS, "What is not reproduced")
    assert f"{paper_suite().newcomers[0]} newcomers here" in shown
    assert f"it is {PaperLogDensity().amplitude:g} here" in shown


def test_committed_run_is_the_one_described():
    """It has the paper's grid, and moves as the page says."""
    page = read("docs/reproduction.md")
    assert re.search(
        rf"\| population.nodes_per_arm \|.* {PaperLogDensity().nodes_per_arm} \|", page
    )
    assert NpmTS().move_every is GIDS().move_every is None
    assert "not every five rewards" in section(LIMITATIONS, "What is not reproduced")


def test_versions_of_committed_results_are_those_of_their_files():
    versions = []
    for name in ("reproduction", "compare"):
        cells = read_results(ROOT / "results" / name).cells.values()
        versions += {info.provenance["cocobandits"] for info in cells if info.settings}
    shown = "version {} for the reproduction and with {} for the comparison"
    assert shown.format(*versions) in LIMITATIONS


def test_picture_is_there_and_names_no_address():
    """The only address is the name of the SVG format itself."""
    assert f"({PICTURE})" in REFERENCE
    picture = read(f"docs/{PICTURE}")
    addresses = re.findall(r"\w+://[^\"'\s)]*", picture)
    assert addresses == ["http://www.w3.org/2000/svg"]
    assert "@font-face" not in picture


def test_picture_is_drawn_the_same_from_the_same_output():
    """Draw a small table twice, and find its text again."""
    script = load_picture_script()
    output = "Some people.\n\n\n\nA title  \n┏━━┓\n│ 1│\n└──┘\nB title\n└──┘\n"
    assert script.tidy(output) == "Some people.\n\nA title\n┏━━┓\n│ 1│\n└──┘\n\nB title\n└──┘"
    picture = script.render(output)
    assert picture == script.render(output)
    expected = ["codemo", "Somepeople.", "Atitle", "┏━━┓", "│1│", "└──┘", "Btitle", "└──┘"]
    shown = text_of(picture)
    assert [line for line in shown if line in expected] == expected[1:]


@pytest.mark.slow
def test_picture_shows_what_the_demo_prints():
    """Run the demo again; if this fails, run docs/images/make_demo_svg.py."""
    script = load_picture_script()
    assert read(f"docs/{PICTURE}") == script.render(script.run_demo())
