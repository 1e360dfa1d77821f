"""Rebuild every generated page of this repository: `python -m cocobandits.experiments.pages`.

Reads `results/` and `benchmarks/results.json` of the folder it is run in, and nothing else.
"""

import json
from pathlib import Path

from cocobandits.experiments.report import (
    result_lines,
    write_comparison,
    write_models,
    write_report,
)
from cocobandits.runs.results import Results, read_results

BEGIN, END = "<!-- results: begin, written by `make docs` -->\n", "<!-- results: end -->\n"


def write_pages(root: Path) -> None:
    """Write the pages in `docs`, the figures in `results`, and the lines in the README.

    Raises:
        StorageError: results are missing or damaged, or a place cannot be written.
    """

    def read(*names: str) -> Results:
        return read_results(*(root / "results" / name for name in names))

    docs, results = root / "docs", root / "results"
    paper, compared = read("reproduction"), read("compare")
    write_report(paper, results / "reproduction" / "report", docs / "reproduction.md")
    write_report(read("studies"), results / "studies" / "report", docs / "studies.md")
    write_models(read("reproduction", "models"), docs / "models.md")
    write_comparison(compared, results / "compare" / "report", docs / "compare.md")
    speed = json.loads((root / "benchmarks" / "results.json").read_text(encoding="utf-8"))
    readme = root / "README.md"
    head, rest = readme.read_text(encoding="utf-8").split(BEGIN)
    lines = BEGIN + result_lines(paper, compared, speed) + END
    readme.write_text(head + lines + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path())
