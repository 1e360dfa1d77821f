"""The committed run of studies with many arms, gaps and yes/no rewards."""

import pytest
import two_models
from doc_pages import ROOT

from cocobandits.experiments import presets
from cocobandits.experiments.reading import load_run

STUDIES = ROOT / "results" / "studies"


def test_committed_run_is_whole():
    config = load_run(STUDIES).config
    assert config["scale"] == "paper"
    assert config["seeds"] == list(range(5))
    assert config["environments"] == list(presets.STUDIES)


def test_runs_that_cannot_be_compared_are_refused():
    """Five seeds and ten."""
    with pytest.raises(ValueError, match="same seeds"):
        two_models.write_page(STUDIES, ROOT / "results" / "coids")
