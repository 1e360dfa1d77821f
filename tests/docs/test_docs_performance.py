import page
from doc_pages import ROOT, read
from results import RESULTS
from results import read as read_results


def test_page_is_generated_from_the_committed_results():
    """If this fails, run `make docs`."""
    assert read("docs/performance.md") == page.render(read_results())


def test_committed_results_are_complete():
    """With the page and its figure, all in this repository."""
    assert set(page.NEEDED) <= set(read_results())
    assert RESULTS.parent == ROOT / "benchmarks"
    assert page.PAGE == ROOT / "docs" / "performance.md"
    assert page.PICTURE.is_file()
