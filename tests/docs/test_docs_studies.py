"""The committed run of studies with many arms, gaps and yes/no rewards, and its page."""

import shutil

import pytest
import two_models
from doc_pages import ROOT, read

from cocobandits.experiments import presets
from cocobandits.experiments.reading import load_run
from cocobandits.experiments.report import write_report

STUDIES = ROOT / "results" / "studies"


def test_page_is_generated_from_the_committed_records(tmp_path):
    """If this fails, run `make docs`."""
    copy = tmp_path / "studies"
    shutil.copytree(STUDIES, copy, ignore=shutil.ignore_patterns("report"))
    rebuilt = write_report(copy).parent
    assert read("docs/studies.md") == (rebuilt / "reproduction.md").read_text("utf-8")


def test_committed_run_is_whole():
    config = load_run(STUDIES).config
    assert config["scale"] == "paper"
    assert config["seeds"] == list(range(5))
    assert config["environments"] == list(presets.STUDIES)


def test_runs_that_cannot_be_compared_are_refused():
    """Five seeds and ten."""
    with pytest.raises(ValueError, match="same seeds"):
        two_models.write_page(STUDIES, ROOT / "results" / "coids")
