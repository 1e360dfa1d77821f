import json

import page
import pytest
from doc_pages import ROOT, read

NOT_MEASURED = pytest.mark.skipif(
    not page.RESULTS.exists(), reason="benchmarks/results.json does not exist; run `make bench`"
)


@NOT_MEASURED
def test_page_is_generated_from_the_committed_results():
    """If this fails, run `make docs`."""
    results = json.loads(read("benchmarks/results.json"))
    assert read("docs/performance.md") == page.render(results)


@NOT_MEASURED
def test_committed_results_are_complete_and_not_a_quick_look():
    """Every part, at full scale, with the figure beside the page."""
    results = json.loads(read("benchmarks/results.json"))
    assert page.missing(results) == []
    assert results["scale"] == "full"
    assert page.PICTURE.exists()


def test_page_is_written_where_the_documentation_is():
    """Both ends of the script are in this repository."""
    assert page.PAGE == ROOT / "docs" / "performance.md"
    assert page.PICTURE.parent == ROOT / "docs" / "images"
