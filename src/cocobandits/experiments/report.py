"""All pages made from results: reproduction, comparison, models and the lines in the README.

Every page is a template. It gets results, judged claims, figures and the functions of `tables`. The
same results give the same bytes: nothing here reads the date, the machine or the registries.
"""

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
from cocobandits.experiments.ranking import libraries, mean_share, rank, shared_environments
from cocobandits.experiments.rules import ALONE
from cocobandits.experiments.table_one import CRITERIA
from cocobandits.runs.results import ORACLE, Results

# The page of the committed ten-seed run, which decides what a small run only indicates.
_TEN_SEEDS = "docs/reproduction.md"
# Texts that the page and its twin share; every line is a sentence or an item.
_TEXTS = (
    *("answer", "lead", "summary", "readings", "targets_count", "about_targets"),
    *("gaps", "departures", "facts", "health"),
)
_SYMBOLS = {
    "✓": ("holds", "agrees"),
    "◐": ("in part", "disagrees in part"),
    "✗": ("does not hold", "disagrees"),
    "○": ("not decided", "too small to tell"),
}


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
    _check_finite(results)
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
        content |= {name: _lines(_render(f"{name}.txt", content)) for name in _TEXTS}
        _write(place / "index.html", _render("report.html", content))
        _write(twin, _render("reproduction.md", content))
    lines = [" ".join(content["lead"]), *(f"  {line}" for line in content["summary"])]
    return Written(place / "index.html", lines if judged else content["summary"])


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
    page, others = page or place / "comparison.md", libraries(results)
    ours = results.only(name for name in results.policies if name not in others)
    among = (name for name in results.environments if any(results.has(name, p) for p in others))
    content: dict[str, Any] = {
        "results": ours,
        "installed": results.only((OURS, ALONE, *others)).within(among),
        "figures": _link(place / "figures", page.parent),
    }
    with _writing(place, page):
        content["pictures"] = draw(ours, place / "figures", "comparison")
        _write(page, _render("comparison.md", content))
    return page


def write_models(results: Results, page: Path) -> None:
    """Compare CoIDS with the log-density and with the mixture.

    Raises:
        StorageError: the page cannot be written.
    """
    with _writing(page):
        _write(page, _render("models.md", {"results": results}))


def result_lines(paper: Results, compared: Results, speed: dict[str, Any]) -> str:
    """Write the five lines of results in the README."""
    ours = compared.only(name for name in compared.policies if name not in libraries(compared))
    judged = {"claims": judge(CLAIMS, paper), "num_seeds": len(paper.seeds)}
    return _render("results.md", {"results": ours, "speed": speed} | judged)


def values_of(results: Results, name: str) -> list[Any]:
    """List the values that the provenances of cells have for a name, each once."""
    provenances = [info.provenance for info in results.cells.values()]
    found = [each[name] for each in provenances if name in each]
    return [value for place, value in enumerate(found) if value not in found[:place]]


def commands(results: Results) -> list[str]:
    """List the commands that cells were made with, each once."""
    return list(dict.fromkeys(" ".join(info.argv) for info in results.cells.values()))


def _check_finite(results: Results) -> None:
    for part in (results.regrets, results.evaluations):
        for (environment, policy), values in part.items():
            if not np.isfinite(values).all():
                raise StorageError(
                    f"Expected finite regrets; got others of policy={policy!r} in environment="
                    f"{environment!r}. Restore its cells, or run them again with --refresh."
                )


def _link_to_ten_seeds(place: Path) -> str:
    """Find the committed ten-seed page relative to the page; empty outside of a clone."""
    pages = (parent / _TEN_SEEDS for parent in place.parents)
    return next((_link(page, place) for page in pages if page.is_file()), "")


def _link(target: Path, folder: Path) -> str:
    return Path(os.path.relpath(target, folder)).as_posix()


def _render(template: str, content: dict[str, Any]) -> str:
    return _JINJA.get_template(template).render(content)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


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


_JINJA = jinja2.Environment(
    loader=jinja2.PackageLoader("cocobandits.experiments"),
    autoescape=jinja2.select_autoescape(["html"]),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_JINJA.globals |= {
    **{"tables": tables, "number": number, "percent": percent, "mean_share": mean_share},
    **{"rank": rank, "shared_environments": shared_environments, "values_of": values_of},
    **{"commands": commands, "num_claims": len(CLAIMS), "criteria": CRITERIA},
    **{"paper": claims.PAPER, "stress": claims.STRESS, "paper_policies": claims.PAPER_POLICIES},
    **{"alone": ALONE, "oracle": ORACLE, "marks": {True: "✓", False: "✗", None: "○"}},
    "symbols": {verdict: symbol for symbol, both in _SYMBOLS.items() for verdict in both},
}
