import re
from collections import Counter

from doc_pages import ROOT, code_names, read, section, tables

from cocobandits.environments import registry as environments
from cocobandits.environments.base import Environment
from cocobandits.environments.recruitment import Recruitment
from cocobandits.experiments import suites
from cocobandits.policies import base, description
from cocobandits.policies import registry as policies
from cocobandits.policies.base import Policy, Problem
from cocobandits.policies.coco import descriptions, populations
from cocobandits.policies.coco.acquisition import Acquisition
from cocobandits.populations.base import Belief, PopulationModel
from cocobandits.populations.log_density import basis
from cocobandits.study import queries, state

PAGE = read("CONTRIBUTING.md")


def test_targets_are_those_of_the_makefile():
    """Compare the table with every target that `make help` lists."""
    [rows] = tables(section(PAGE, "Set-up"))
    named = [row["command"].strip("`").removeprefix("make ") for row in rows]
    listed = re.findall(r"^([a-z-]+):.*## ", read("Makefile"), re.M)
    assert sorted(named) == sorted(listed)


def test_files_and_folders_named_exist():
    """Look up every path but those with a placeholder, and those that commands make."""
    paths = [name for name in code_names(PAGE) if "/" in name and not re.search(r"[<=]", name)]
    assert len(paths) > 10
    places = (ROOT, ROOT / "tests")
    assert {".venv/", "/runs/"} <= set(read(".gitignore").split())
    made = (".venv/", "runs/", "benchmarks/results.json", "docs/performance.md")
    for path in paths:
        if not path.startswith(made):
            assert any((place / path).exists() for place in places), path


def test_test_folders_mirror_the_package():
    """Every folder of tests has a namesake in the package, but for those that are named."""
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    modules = {path.stem for path in (ROOT / "src" / "cocobandits").iterdir()}
    others = folders - modules
    assert others <= {"benchmarks", "contracts", "golden", "statistical", "docs", "packaging"}
    organised = section(PAGE, "How tests are organised")
    assert all(f"`{name}/`" in organised for name in others)


def test_names_of_test_files_are_unique():
    """Pytest imports them by name."""
    counts = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in counts.items() if count > 1] == []


def test_recipes_name_what_the_registries_have():
    """Look up every private name of the recipes, and what an environment declares."""
    recipe = section(PAGE, "Add a policy in five steps")
    assert "_CLASSES" in set(code_names(recipe)) & set(vars(policies))
    assert "REPRODUCED" in set(code_names(recipe)) & set(vars(suites))
    recipe = section(PAGE, "Add a model in five steps")
    named = {"Mixture", "POPULATIONS", "choose_population"}
    assert named <= set(code_names(recipe)) & set(vars(populations))
    recipe = section(PAGE, "Add an environment in five steps")
    assert {"_ENVIRONMENTS"} <= set(code_names(recipe)) & set(vars(environments))
    assert set(Environment.__annotations__) <= set(code_names(recipe))
    assert (
        Environment.__abstractmethods__ == {"draw_users", "population"} <= set(code_names(recipe))
    )
    assert {"Recruitment.batches", "all_at_once", "schedule"} <= set(code_names(recipe))
    assert {"batches", "all_at_once", "schedule"} <= set(vars(Recruitment))


def test_recipes_name_methods_that_are_to_be_written():
    """What a policy overrides if it believes something, and what a model and its belief add."""
    recipe = section(PAGE, "Add a policy in five steps")
    assert {"read", "prior", "probabilities"} <= set(code_names(recipe)) & set(vars(Policy))
    assert {"read", "read_together", "combine", "rationales"} <= set(code_names(recipe)) & set(
        vars(Acquisition)
    )
    assert "known_noise" in set(code_names(recipe)) & set(vars(Problem))
    assert {"PlainPolicy", "SequentialPolicy"} <= set(code_names(recipe)) & set(vars(base))
    assert "Learner" in set(code_names(recipe)) & set(vars(descriptions))
    assert "acquisition" in set(code_names(recipe)) & set(vars(descriptions.Learner))
    settings = set(vars(description.PolicySettings))
    assert {"build", "informed"} <= set(code_names(recipe)) & settings
    recipe = section(PAGE, "Add a model in five steps")
    written = {"log_evidence_at", "posterior_at"}
    assert written <= set(code_names(recipe)) & PopulationModel.__abstractmethods__
    answered = {"condition", "best_and_reward", "among", "blended"}
    assert answered <= set(code_names(recipe)) & Belief.__abstractmethods__
    overridden = {"interweave", "hyperparameters", "average", "information", "with_arm"}
    assert overridden <= set(code_names(recipe)) & set(vars(PopulationModel))
    assert {"Basis", "BasisName"} <= set(code_names(recipe)) & set(vars(basis))


def test_recipes_name_the_lists_of_the_experiments():
    """Environments of every comparison are grouped as the recipe says."""
    recipe = code_names(section(PAGE, "Add an environment in five steps"))
    groups = {"COMPARED_ENVIRONMENTS", "STRESS", "STUDIES"}
    assert groups <= set(recipe) & set(vars(suites))
    assert {*suites.STRESS, *suites.STUDIES} <= set(suites.COMPARED_ENVIRONMENTS)


def test_places_of_a_call_are_those_of_the_code():
    """Look up what the recipe of a call names."""
    named = set(code_names(section(PAGE, "Add a call of a study")))
    assert "Queries" in named & set(vars(queries))
    owner, verb = next(name for name in named if name.endswith(".apply")).split(".")
    assert verb in vars(vars(state)[owner])
    assert "COMMANDS" in named
    assert re.search("^COMMANDS = ", read("tests/study/test_events.py"), re.M)


def test_every_recipe_has_five_steps():
    """Count the numbers."""
    for heading in re.findall(r"^## (.* in five steps)$", PAGE, re.M):
        assert re.findall(r"^(\d)\. ", section(PAGE, heading), re.M) == list("12345")
