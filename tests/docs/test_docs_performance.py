import json

import page
from doc_pages import ROOT, read


def test_page_is_generated_from_the_committed_results():
    """If this fails, run `make docs`."""
    assert read("docs/performance.md") == page.render(json.loads(read("benchmarks/results.json")))


def test_page_and_results_are_in_this_repository():
    """With the figure."""
    assert page.RESULTS == ROOT / "benchmarks" / "results.json"
    assert page.PAGE == ROOT / "docs" / "performance.md"
    assert page.PICTURE.is_file()
