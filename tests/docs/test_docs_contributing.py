import re
from collections import Counter

from doc_pages import ROOT, code_names, read, section, tables

from cocobandits.environments import registry as environments
from cocobandits.environments.base import Environment
from cocobandits.policies import registry as policies

PAGE = read("CONTRIBUTING.md")


def test_targets_are_those_of_the_makefile():
    """Compare the table with every target that `make help` lists."""
    [rows] = tables(section(PAGE, "Set-up"))
    named = [row["command"].strip("`").removeprefix("make ") for row in rows]
    listed = re.findall(r"^([a-z-]+):.*## ", read("Makefile"), re.M)
    assert sorted(named) == sorted(listed)


def test_files_and_folders_named_exist():
    """Look up every path but those with a placeholder."""
    paths = [name for name in code_names(PAGE) if "/" in name and not re.search(r"[<=]", name)]
    assert len(paths) > 10
    places = (ROOT, ROOT / "tests")
    for path in paths:
        if not path.startswith(".venv"):
            assert any((place / path).exists() for place in places), path


def test_test_folders_mirror_the_package():
    """Every folder of tests has a namesake in the package, but for the three that are named."""
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    modules = {path.stem for path in (ROOT / "src" / "cocobandits").iterdir()}
    others = folders - modules
    assert others <= {"contracts", "statistical", "docs"}
    organised = section(PAGE, "How tests are organised")
    assert all(f"`{name}/`" in organised for name in others)


def test_names_of_test_files_are_unique():
    """Pytest imports them by name."""
    counts = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in counts.items() if count > 1] == []


def test_recipes_name_what_the_registries_have():
    """Look up every private name of the recipes, and what an environment declares."""
    recipe = section(PAGE, "Add a policy in five steps")
    assert {"_BUILDERS", "_coco"} <= set(code_names(recipe)) & set(vars(policies))
    recipe = section(PAGE, "Add a model in five steps")
    assert {"_BUILDERS", "log_density_model"} <= set(code_names(recipe)) & set(vars(policies))
    recipe = section(PAGE, "Add an environment in five steps")
    assert {"_ENVIRONMENTS"} <= set(code_names(recipe)) & set(vars(environments))
    assert set(Environment.__annotations__) <= set(code_names(recipe))


def test_every_recipe_has_five_steps():
    """Count the numbers."""
    for heading in re.findall(r"^## (.* in five steps)$", PAGE, re.M):
        assert re.findall(r"^(\d)\. ", section(PAGE, heading), re.M) == list("12345")
