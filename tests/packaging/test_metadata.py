"""Licence, citation and metadata agree with each other and with the package."""

import re
import tomllib
from pathlib import Path

import cocobandits

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
SOFTWARE, PAPER = CITATION.split("preferred-citation:\n")


def values(text, key):
    """Read the values of a key; the file has no nested value that needs a YAML parser."""
    return [value.strip('"') for value in re.findall(rf"^[ -]*{key}: (.*)$", text, re.M)]


def test_versions_agree():
    assert values(SOFTWARE, "version") == [PROJECT["version"]] == [cocobandits.__version__]


def test_release_date_is_that_of_the_changelog():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    [first, *_] = re.findall(r"^## (.*)$", changelog, re.M)
    [date] = values(SOFTWARE, "date-released")
    assert first == f"{cocobandits.__version__} — {date}"


def test_licence_is_apache_everywhere():
    """A licence expression and a licence classifier exclude each other (PEP 639)."""
    assert values(SOFTWARE, "license") == [PROJECT["license"]] == ["Apache-2.0"]
    assert not [name for name in PROJECT["classifiers"] if name.startswith("License ::")]
    [name] = PROJECT["license-files"]
    lines = (ROOT / name).read_text(encoding="utf-8").split("\n")
    assert [line.strip() for line in lines[1:3]] == ["Apache License", "Version 2.0, January 2004"]


def test_citation_is_a_citation_file():
    """The keys that the format requires, of the software and of the paper."""
    assert values(SOFTWARE, "cff-version") == ["1.2.0"]
    for key in ("message", "title", "authors"):
        assert re.search(rf"^{key}:", SOFTWARE, re.M)
    for key in ("type", "title", "authors"):
        assert re.search(rf"^  {key}:", PAPER, re.M)
    assert not re.search(r"\t|: $", CITATION, re.M)


def test_authors_of_the_paper_are_named_in_their_order():
    given, family = values(PAPER, "given-names"), values(PAPER, "family-names")
    assert len(given) == len(family) == 9
    assert (given[0], family[0]) == ("Sumantrak", "Mukherjee")
    assert (given[-1], family[-1]) == ("Sebastian Josef", "Vollmer")
    [author] = PROJECT["authors"]
    assert values(SOFTWARE.split("authors:")[1], "name") == [author["name"]]


def test_package_declares_its_types():
    assert (Path(cocobandits.__file__).parent / "py.typed").exists()
    assert "Typing :: Typed" in PROJECT["classifiers"]
