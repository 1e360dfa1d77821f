import inspect
import re
import tomllib

import pytest
from doc_pages import PAGES, ROOT, command_options, read

import cocobandits
from cocobandits import disk_cache, errors, notice
from cocobandits.environments.registry import environment_names
from cocobandits.experiments import suites

# Named in the newest changes as what something else replaces.
REPLACED = {"reward_range", "reward_noise", "reward_limits", "maximise", "settings", "model"}
REPLACED |= {"rejuvenate", "coco bench", "coids-mixture"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    """Resolve every link from the folder of its page."""
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target.split("#")[0]).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_stand_alone(page):
    """No addresses, and no path that only exists on one machine."""
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"\w+://\S+", text) == []
    assert [
        path for path in re.findall(r"(?<![\w.>/])/\w+/\S+", text) if "/path/to" not in path
    ] == []


def test_changelog_begins_with_the_present_version():
    """Compare with pyproject.toml and the package."""
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    [first, *_] = re.findall(r"^## (\S+)", read("CHANGELOG.md"), re.M)
    assert first == version == cocobandits.__version__


def test_changelog_is_written_in_sentences():
    """Each entry is one sentence that ends with a full stop."""
    entries = re.findall(r"^- (.*)$", read("CHANGELOG.md"), re.M)
    assert len(entries) > 5
    for entry in entries:
        assert re.fullmatch(r"[A-Z`][^\n]*[^.]\.", entry), entry
        assert ". " not in entry, entry


def test_names_in_the_newest_changes_exist():
    """Look up classes, policies, environments, errors, members of Study, commands and extras.

    Older entries, and what was removed or replaced, are history.
    """
    known = {*cocobandits.__all__, *dir(cocobandits.Study), *environment_names()}
    known |= {*suites.NAMES, *vars(suites), *vars(errors)}
    known |= {*inspect.signature(cocobandits.Study).parameters}
    known |= {*inspect.signature(cocobandits.Study.reward).parameters}
    known |= {f"coco {verb}" for verb in command_options()}
    known |= {option for options in command_options().values() for option in options}
    known |= {f"make {target}" for target in re.findall(r"^([a-z-]+):", read("Makefile"), re.M)}
    known |= {*tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]}
    known |= {disk_cache.SWITCH, disk_cache.LIMIT, notice.QUIET}
    newest = re.split(r"^## ", read("CHANGELOG.md"), flags=re.M)[1]
    present = newest.split("### Removed")[0]
    named = {re.sub(r"^rewards=|\(.*", "", name) for name in re.findall(r"`([^`]+)`", present)}
    assert named - REPLACED <= known
    assert not named & REPLACED & known


def test_every_page_is_reached_from_the_readme():
    """Follow links from page to page."""
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        links = re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
        waiting += [page.parent / target.split("#")[0] for target in links]
    assert set(PAGES) <= seen
