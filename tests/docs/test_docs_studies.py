"""The pages about studies with many arms, gaps and yes/no rewards, and about the two models."""

import shutil

import pytest
import two_models
from doc_pages import ROOT, read

from cocobandits.experiments import presets
from cocobandits.experiments.reading import load_run
from cocobandits.experiments.report import write_report

STUDIES, MIXTURE = ROOT / "results" / "studies", ROOT / "results" / "mixture"
COIDS = ROOT / "results" / "coids"


def test_page_of_studies_is_generated_from_the_committed_records(tmp_path):
    """If this fails, run `make docs`."""
    copy, twin = tmp_path / "results" / "studies", tmp_path / "docs" / "studies.md"
    twin.parent.mkdir()
    shutil.copytree(STUDIES, copy, ignore=shutil.ignore_patterns("report"))
    write_report(copy, twin=twin)
    assert read("docs/studies.md") == twin.read_text("utf-8")


def test_page_of_models_is_generated_from_the_committed_records():
    """If this fails, run `make docs`."""
    assert read("docs/models.md") == two_models.write_page(COIDS, MIXTURE)


def test_committed_runs_are_whole():
    studies, mixture = load_run(STUDIES).config, load_run(MIXTURE).config
    assert studies["scale"] == mixture["scale"] == "paper"
    assert studies["seeds"] == list(range(5))
    assert mixture["seeds"] == list(range(10))
    assert studies["environments"] == list(presets.STUDIES)
    assert mixture["environments"] == list(presets.ENVIRONMENTS)


def test_runs_that_cannot_be_compared_are_refused():
    with pytest.raises(ValueError, match="same seeds"):
        two_models.write_page(STUDIES, MIXTURE)
