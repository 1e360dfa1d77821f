"""The reference and the limitations: every call, command, variable, policy and environment."""

import importlib.util
import inspect
import json
import re
from html import unescape

import pytest
from doc_pages import ROOT, command_options, read, section, tables

from cocobandits import Study, disk_cache, notice, policy_names
from cocobandits.environments.registry import environment_names
from cocobandits.experiments import presets
from cocobandits.policies.settings import PRESETS

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
    assert public - described == {"decision", "design", "num_decisions", "users"}
    [constructor] = re.findall(r"`Study\(([^)]*)\)`", calls[0]["call"])
    assert constructor.split(", ") == list(inspect.signature(Study).parameters)


def test_variables_are_those_that_are_read():
    [rows] = tables(section(REFERENCE, "Processes"))
    defaults = {row["variable"].strip("`"): row["default"] for row in rows}
    ours = {disk_cache.SWITCH, disk_cache.LIMIT, notice.QUIET}
    assert set(defaults) == ours | {"JAX_COMPILATION_CACHE_DIR"}
    assert defaults[disk_cache.LIMIT] == str(disk_cache.DEFAULT_LIMIT_MB)


def test_commands_of_coco_are_described():
    """Every verb has its line, with all options of `reproduce`; none is made up."""
    [rows] = tables(section(REFERENCE, "The command coco"))
    described = {row["command"].strip("`").removeprefix("coco "): row for row in rows}
    options = command_options()
    assert set(described) == set(options)
    for verb, row in described.items():
        assert set(re.findall(r"`(--\w+)`", row["what it does"])) <= options[verb]
    assert set(re.findall(r"`(--\w+)`", described["reproduce"]["what it does"])) == {
        option for option in options["reproduce"] if option != "--help"
    }


def test_policies_and_environments_are_those_registered():
    """Compare with the registries, and with those of the paper."""
    policies, environments = tables(section(REFERENCE, "Policies and environments"))
    assert tuple(row["policy"].strip("`") for row in policies) == policy_names()
    [default] = [row["policy"] for row in policies if "the default" in row["how it chooses"]]
    assert default.strip("`") == inspect.signature(Study).parameters["policy"].default
    assert tuple(row["environment"].strip("`") for row in environments) == environment_names()
    ours = [row["environment"].strip("`") for row in environments if "paper's" not in row["users"]]
    assert (*presets.ENVIRONMENTS, *ours) == environment_names()


def test_presets_are_those_of_the_code():
    assert set(re.findall(r'`"(\w+)"`', REFERENCE)) == set(PRESETS)


def test_numbers_that_the_paper_does_not_state_are_those_of_the_code():
    shown = section(LIMITATIONS, "What is not reproduced")
    assert f"{presets.PAPER.evaluation_users} newcomers here" in shown
    assert f"it is {PRESETS['paper'].amplitude:g} here" in shown


def test_committed_run_is_the_one_described():
    """It has the paper's grid, and moves as the page says."""
    page = read("docs/reproduction.md")
    assert f"| nodes_per_arm | {presets.PAPER.settings.nodes_per_arm} |" in page
    assert PRESETS["paper"].inference.move_every is None
    assert "not every five rewards" in section(LIMITATIONS, "What is not reproduced")


def test_versions_of_committed_results_are_those_of_their_files():
    versions = {
        name: json.loads(read(f"results/{name}/provenance.json"))["cocobandits"]
        for name in ("coids", "compare")
    }
    shown = "version {coids} for the reproduction and with {compare} for the comparison"
    assert shown.format(**versions) in LIMITATIONS


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
