import importlib.util
import inspect
import os
import re
import subprocess
import sys
import tomllib
from html import unescape

import pytest
from doc_pages import (
    PACKAGE,
    ROOT,
    code_names,
    command_options,
    executed,
    fenced,
    read,
    section,
    tables,
    tree,
)

from cocobandits import Study, policy_names
from cocobandits.environments.registry import environment_names
from cocobandits.experiments import presets
from cocobandits.policies.settings import PRESETS

README = read("README.md")
PICTURE = "docs/images/diet.svg"
REPRODUCTION = ROOT / "docs" / "reproduction.md"


def load_picture_script():
    path = ROOT / "docs" / "images" / "make_demo_svg.py"
    spec = importlib.util.spec_from_file_location("make_demo_svg", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def text_of(picture):
    """Read the lines of text off a picture, without blanks."""
    return ["".join(unescape(line).split()) for line in re.findall(r"<text [^>]*>([^<]*)", picture)]


def test_example_prints_what_stands_below_it():
    """Run it in a process of its own, as a reader would."""
    [(code, expected)] = executed(README)
    # Compiled as for a reader: rounding may change what the particles come to. The persistent cache
    # of the other tests serves this process too.
    environment = {name: text for name, text in os.environ.items() if "OPTIMIZATIONS" not in name}
    environment |= {
        "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".pytest_cache" / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
        "COCOBANDITS_QUIET": "1",
    }
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (expected, "")
    assert len(code.splitlines()) <= 13


def test_folder_map_is_true_and_complete():
    """Compare the tree with the folders, and with the modules beside them."""
    named = tree(fenced(section(README, "Folder map"))[0][1])
    for path in named:
        assert (ROOT / path).exists(), path
    there = {
        str(entry.relative_to(ROOT))
        for entry in PACKAGE.iterdir()
        if entry.suffix == ".py" or (entry / "__init__.py").exists()
    }
    assert there - {"src/cocobandits/__init__.py"} <= set(named)
    [beside] = re.findall(r"^Beside it: (.*?)\.\n\n", README, re.M | re.S)
    folders = code_names(beside)
    assert all((ROOT / folder).is_dir() for folder in folders)
    assert {"benchmarks/", "docs/", "results/", "tests/"} == set(folders)


def test_commands_are_in_the_makefile():
    """Read every `make` line of the page."""
    targets = re.findall(r"^([a-z-]+):", read("Makefile"), re.M)
    commands = re.findall(r"^make (\S+)", README, re.M)
    assert commands == ["run", "test"]
    assert {*commands, *re.findall(r"`make (\S+)`", README)} <= set(targets)


def test_first_command_is_the_small_reproduction():
    """Compare what it is said to run with the preset, and with the recipe in the Makefile."""
    [recipe] = re.findall(r"^run:.*\n\t(.*)$", read("Makefile"), re.M)
    assert "coco reproduce --quick" in recipe
    assert "make run    # the paper's four environments, two seeds" in README
    assert (len(presets.ENVIRONMENTS), presets.QUICK.num_seeds) == (4, 2)
    [recipe] = re.findall(r"^paper:.*\n\t(.*)$", read("Makefile"), re.M)
    assert "coco reproduce" in recipe
    assert "`make paper` is the full run, with ten seeds" in README
    assert presets.PAPER.num_seeds == 10


def test_commands_of_coco_are_described():
    """Every verb has its line, with all options of `reproduce`; none is made up."""
    [rows] = [rows for rows in tables(README) if "command" in rows[0]]
    described = {row["command"].strip("`").removeprefix("coco "): row for row in rows}
    options = command_options()
    assert set(described) == set(options)
    for verb, row in described.items():
        assert set(re.findall(r"`(--\w+)`", row["what it does"])) <= options[verb]
    assert set(re.findall(r"`(--\w+)`", described["reproduce"]["what it does"])) == {
        option for option in options["reproduce"] if option != "--help"
    }


def test_extras_are_declared():
    """Compare with pyproject.toml."""
    extras = tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]
    [named] = re.findall(r"pip install '\.\[(\w+)\]'", README)
    assert named in extras
    assert set(re.findall(r"extra `(\w+)`", README)) <= set(extras)
    assert "extra `peers`" in README.replace("\n", " ")


def test_required_python_is_the_declared_one():
    """Compare with pyproject.toml."""
    declared = tomllib.loads(read("pyproject.toml"))["project"]["requires-python"]
    [stated] = re.findall(r"Python (\S+) or newer", README)
    assert declared == f">={stated}"


def test_every_call_of_a_study_is_described():
    """Compare the table with the public members of Study, and with its constructor."""
    [calls] = tables(section(README, "What a study does"))
    described = set(re.findall(r"tudy\.(\w+)", " ".join(row["call"] for row in calls)))
    public = {name for name in dir(Study) if not name.startswith("_")}
    assert described <= public
    assert public - described == {"decision", "design", "num_decisions", "users"}
    [constructor] = re.findall(r"`Study\(([^)]*)\)`", calls[0]["call"])
    assert constructor.split(", ") == list(inspect.signature(Study).parameters)


def test_policies_and_environments_are_those_registered():
    """Compare with the registries, and with those of the paper."""
    policies, environments = tables(section(README, "Policies and environments"))
    assert tuple(row["policy"].strip("`") for row in policies) == policy_names()
    [default] = [row["policy"] for row in policies if "the default" in row["how it chooses"]]
    assert default.strip("`") == inspect.signature(Study).parameters["policy"].default
    assert tuple(row["environment"].strip("`") for row in environments) == environment_names()
    ours = [row["environment"].strip("`") for row in environments if "paper's" not in row["users"]]
    assert (*presets.ENVIRONMENTS, *ours) == environment_names()


def test_numbers_that_the_paper_does_not_state_are_those_of_the_code():
    """Read them off the list of what is not as in the paper, and presets off the table of calls."""
    assert set(re.findall(r'`"(\w+)"`', README)) == set(PRESETS)
    told = section(README, "What is not reproduced")
    assert f"{presets.PAPER.evaluation_users} newcomers here" in told
    assert f"it is {PRESETS['paper'].amplitude:g} here" in told


def test_committed_run_is_the_one_described():
    """It has the paper's grid, and moves as the README says."""
    page = REPRODUCTION.read_text(encoding="utf-8")
    assert f"| nodes_per_arm | {presets.PAPER.settings.nodes_per_arm} |" in page
    assert PRESETS["paper"].inference.move_every is None
    assert "not every five rewards" in section(README, "What is not reproduced")


def test_picture_is_there_and_names_no_address():
    """The only address is the name of the SVG format itself."""
    assert f"({PICTURE})" in README
    addresses = re.findall(r"\w+://[^\"'\s)]*", read(PICTURE))
    assert addresses == ["http://www.w3.org/2000/svg"]
    assert "@font-face" not in read(PICTURE)


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
    assert read(PICTURE) == script.render(script.run_demo())
