"""All pages made from results: reports, comparison, models and the lines in the README.

Every page is a template. It gets results, judged claims, figures and the functions of `tables`. The
same results give the same bytes: nothing here reads the date, the machine or the registries.

`python -m cocobandits.experiments.report` rebuilds every page of this repository that is made from
`results/` and `benchmarks/results.json`.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np

from cocobandits.errors import StorageError
from cocobandits.experiments import claims, tables
from cocobandits.experiments.claims import CLAIMS, OURS, TARGETS, judge
from cocobandits.experiments.estimates import number, percent
from cocobandits.experiments.figures import draw
from cocobandits.experiments.populations import other_populations, with_population
from cocobandits.experiments.ranking import libraries, mean_share, rank, shared_environments
from cocobandits.experiments.rules import ALONE
from cocobandits.runs.results import ORACLE, Results, read_results

# The page of the committed ten-seed run, which decides what a small run only indicates.
_TEN_SEEDS = "docs/reproduction.md"
BEGIN, END = "<!-- results: begin, written by `make docs` -->\n", "<!-- results: end -->\n"


class Written(NamedTuple):
    """The path of a page, and its answer in lines for a terminal."""

    page: Path
    summary: list[str]


def write_report(results: Results, place: Path, markdown: Path | None = None) -> Written:
    """Write the report of results: a page that stands alone, its figures, and a Markdown twin.

    Args:
        results: of one run or several.
        place: the folder of the page, which gets a subfolder `figures`.
        markdown: where the twin goes; `reproduction.md` in the folder if None.

    Raises:
        StorageError: results are not finite, or a place cannot be written.
    """
    for key, values in (*results.regrets.items(), *results.evaluations.items()):
        if not np.isfinite(values).all():
            raise StorageError(
                f"Expected finite regrets; got others of policy={key[1]!r} in environment="
                f"{key[0]!r}. Restore its cells, or run them again with --refresh."
            )
    twin, judged = markdown or place / "reproduction.md", judge(CLAIMS, results)
    content: dict[str, Any] = {
        "results": results,
        "claims": judged,
        "targets": judge(TARGETS, results),
        "is_small": claims.is_small(results),
        "is_whole": len(judged) == len(CLAIMS),
        "is_about_paper": bool(set(results.environments) & set(claims.PAPER)),
        "minutes": sum(info.seconds for info in results.cells.values()) / 60,
        "ten_seeds": _link_to_ten_seeds(place.resolve()),
        "figures": _link(place / "figures", twin.parent),
    }
    with _writing(place, twin):
        content["pictures"] = draw(results, place / "figures", "split", "paper")
        _write(place / "index.html", "report.html", content)
        _write(twin, "reproduction.md", content)
    return Written(place / "index.html", _render("summary.txt", content).splitlines())


def write_comparison(results: Results, place: Path, page: Path | None = None) -> Path:
    """Write the page that ranks all policies, and its figures; return its path.

    Args:
        results: of one run or several.
        place: a folder that gets a subfolder `figures`.
        page: where the page goes; `comparison.md` in the folder if None.

    Raises:
        StorageError: a place cannot be written, or a policy that all are compared with is missing.
    """
    for environment in results.environments:
        if not results.has(environment, OURS, ALONE):
            raise StorageError(
                f"Expected {OURS} and {ALONE} in every environment; got environment="
                f"{environment!r} without them. Run `coco compare --env {environment}` first."
            )
    page, others, ours = page or place / "comparison.md", libraries(results), _systems(results)
    among = (name for name in results.environments if any(results.has(name, p) for p in others))
    content: dict[str, Any] = {
        "results": ours,
        "installed": results.only((OURS, ALONE, *others)).within(among),
        "figures": _link(place / "figures", page.parent),
    }
    with _writing(place, page):
        content["pictures"] = draw(ours, place / "figures", "comparison")
        _write(page, "comparison.md", content)
    return page


def write_models(results: Results, page: Path) -> None:
    """Compare CoIDS with the log-density and with the mixture, whatever their names.

    Raises:
        StorageError: the page cannot be written.
    """
    with _writing(page):
        _write(page, "models.md", {"results": results})


def write_pages(root: Path) -> None:
    """Write the pages in `docs`, the figures in `results`, and the lines in the README.

    Raises:
        StorageError: results are missing or damaged, or a place cannot be written.
    """
    docs, runs = root / "docs", root / "results"
    paper, compared = read_results(runs / "reproduction"), read_results(runs / "compare")
    write_report(paper, runs / "reproduction" / "report", docs / "reproduction.md")
    write_report(read_results(runs / "studies"), runs / "studies" / "report", docs / "studies.md")
    write_models(read_results(runs / "reproduction", runs / "models"), docs / "models.md")
    write_comparison(compared, runs / "compare" / "report", docs / "compare.md")
    content = {
        "results": _systems(compared),
        "speed": json.loads((root / "benchmarks" / "results.json").read_text(encoding="utf-8")),
        "claims": judge(CLAIMS, paper),
        "num_seeds": len(paper.seeds),
    }
    readme = root / "README.md"
    head, rest = readme.read_text(encoding="utf-8").split(BEGIN)
    lines = BEGIN + _render("results.md", content) + END
    readme.write_text(head + lines + rest.split(END)[1], encoding="utf-8")


def values_of(results: Results, name: str) -> list[Any]:
    """List the values that the provenances of cells have for a name, each once."""
    provenances = [info.provenance for info in results.cells.values()]
    found = [each[name] for each in provenances if name in each]
    return [value for place, value in enumerate(found) if value not in found[:place]]


def commands(results: Results) -> list[str]:
    """List the commands that cells were made with, each once."""
    return list(dict.fromkeys(" ".join(info.argv) for info in results.cells.values()))


def _systems(results: Results) -> Results:
    """Leave other libraries out."""
    others = libraries(results)
    return results.only(name for name in results.policies if name not in others)


def _link_to_ten_seeds(place: Path) -> str:
    """Find the committed ten-seed page relative to the page; empty outside of a clone."""
    pages = (parent / _TEN_SEEDS for parent in place.parents)
    return next((_link(page, place) for page in pages if page.is_file()), "")


def _link(target: Path, folder: Path) -> str:
    return Path(os.path.relpath(target, folder)).as_posix()


def _render(template: str, content: dict[str, Any]) -> str:
    return _JINJA.get_template(template).render(content)


def _write(path: Path, template: str, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_render(template, content), encoding="utf-8")


@contextmanager
def _writing(*places: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        shown = " and ".join(repr(str(place)) for place in places)
        raise StorageError(
            f"Expected places that can be written; got {shown} ({error}). Free the disk, or choose "
            "other places."
        ) from error


def _lines(text: str) -> list[str]:
    """Split sentences of `sentences.txt`, which a page escapes if it has to."""
    return [line.strip() for line in str(text).splitlines() if line.strip()]


_JINJA = jinja2.Environment(
    loader=jinja2.PackageLoader("cocobandits.experiments"),
    autoescape=jinja2.select_autoescape(["html"]),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_JINJA.filters["lines"] = _lines
_JINJA.globals |= {
    **{"tables": tables, "number": number, "percent": percent, "mean_share": mean_share},
    **{"rank": rank, "shared_environments": shared_environments, "values_of": values_of},
    **{"commands": commands, "num_claims": len(CLAIMS), "criteria": tables.CRITERIA},
    **{"paper": claims.PAPER, "stress": claims.STRESS, "paper_policies": claims.PAPER_POLICIES},
    **{"alone": ALONE, "oracle": ORACLE},
    **{"other_populations": other_populations, "with_population": with_population},
}

if __name__ == "__main__":
    write_pages(Path())
