"""The report of a run: one page that stands alone, its figures, and a Markdown twin.

Reads a run folder, and optionally another run, and writes the subfolder `report` of the first. The
same runs give the same bytes: nothing here reads the date or the machine. Only the link to the
ten-seed page depends on where the folder is.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from cocobandits.errors import StorageError
from cocobandits.experiments import report_text, tables
from cocobandits.experiments.answer import (
    MARKS,
    QUESTION,
    READINGS,
    SYMBOLS,
    TEN_SEEDS,
    answer,
    count_targets,
    rankings,
    summary,
)
from cocobandits.experiments.beside import SETTINGS_OF, join
from cocobandits.experiments.claims import CLAIMS, Judgement, judge
from cocobandits.experiments.markdown import render
from cocobandits.experiments.measures import Measures, measure
from cocobandits.experiments.pictures import Picture, of_paper, save_pictures
from cocobandits.experiments.presets import ENVIRONMENTS
from cocobandits.experiments.reading import Run, load_run
from cocobandits.experiments.targets import ABOUT, TARGETS
from cocobandits.policies.settings import SYSTEM_SETTINGS

_TEMPLATES = Path(__file__).parent / "templates"
# The placeholders in commands for the folder of the run, and of the other run.
_FOLDERS = ("DIR", "OTHER")


class Report(NamedTuple):
    """The content of a report; `sources` are the runs that `run` was joined from."""

    run: Run
    measures: Measures
    claims: list[Judgement]
    targets: list[Judgement]
    sources: tuple[Run, ...]

    @property
    def is_about_paper(self) -> bool:
        """Whether it has environments of the paper."""
        return bool(set(self.measures.environments) & set(ENVIRONMENTS))

    @property
    def is_whole(self) -> bool:
        """Whether it can speak to every claim of the paper."""
        return len(self.claims) == len(CLAIMS)

    @property
    def is_small(self) -> bool:
        """Whether it has too few seeds, or too coarse a grid, to decide claims."""
        return report_text.is_small(self.run, self.measures)

    @property
    def answer(self) -> str:
        """The paragraph that answers; for a run without claims, its total regrets."""
        found = answer(self.claims, self.measures, self.is_small)
        return found or " ".join(rankings(self.measures))


class Written(NamedTuple):
    """The path of a page, and its answer in lines for a terminal."""

    page: Path
    summary: list[str]


def write_report(folder: Path, beside: Path | None = None, twin: Path | None = None) -> Written:
    """Write the report of a finished run.

    Args:
        folder: of the run; gets a subfolder `report`.
        beside: of another run, whose further policies and environments are shown too.
        twin: where the Markdown twin goes; `report/reproduction.md` in the folder if None.

    Raises:
        StorageError: a folder holds no finished run, cannot be written, or the runs do not fit.
    """
    report = _read(folder, beside)
    place = folder / "report"
    twin = place / "reproduction.md" if twin is None else twin
    try:
        pictures = save_pictures(report.run, report.measures, place / "figures")
        content = _content(report, pictures) | {"ten_seeds": _link_to_ten_seeds(folder)}
        links = Path(os.path.relpath(place / "figures", twin.parent)).as_posix()
        twin.parent.mkdir(parents=True, exist_ok=True)
        twin.write_text(render(content | {"figures": links}), encoding="utf-8")
        (place / "index.html").write_text(_page(content), encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"Expected a folder that can be written; got folder={str(place)!r} ({error}). "
            "Free the disk, or copy the run to a place of your own."
        ) from error
    lines = summary(report.claims, report.is_small) or rankings(report.measures)
    return Written(place / "index.html", lines)


def _read(folder: Path, beside: Path | None) -> Report:
    run = load_run(folder)
    sources: tuple[Run, ...] = (run,)
    if beside is not None:
        other = load_run(beside)
        sources, run = (run, other), join(run, other, beside)
    measures = measure(run)
    return Report(run, measures, judge(CLAIMS, measures), judge(TARGETS, measures), sources)


def _link_to_ten_seeds(folder: Path) -> str:
    """Find the committed ten-seed page relative to the page; empty outside of a clone."""
    for parent in folder.resolve().parents:
        if (parent / TEN_SEEDS).is_file():
            return Path(os.path.relpath(parent / TEN_SEEDS, folder.resolve() / "report")).as_posix()
    return ""


def _content(report: Report, pictures: dict[str, Picture]) -> dict[str, Any]:
    """Gather what the page and its twin both show."""
    run, measures, claims, targets, sources = report
    is_about_paper = report.is_about_paper
    return {
        "is_about_paper": is_about_paper,
        "is_small": report.is_small,
        "title": "The paper's experiments" if is_about_paper else "Simulated studies",
        "question": QUESTION if report.is_whole else "",
        "answer": report.answer,
        "readings": READINGS if claims else "",
        "claims": claims,
        "num_claims": len(CLAIMS),
        "targets": targets,
        "about_targets": ABOUT,
        "targets_count": count_targets(targets, report.is_small),
        "symbols": SYMBOLS,
        "marks": MARKS,
        "facts": report_text.run_facts(run, measures),
        "gaps": report_text.gaps(run, measures, is_about_paper),
        "departures": report_text.departures(run, measures) if is_about_paper else [],
        "commands": _commands(sources),
        "seeds": report_text.show_seeds(measures),
        "pictures": pictures,
        "regrets": tables.regret_table(measures),
        "differences": tables.difference_table(measures),
        "third_arm": tables.third_arm_table(of_paper(measures)) if is_about_paper else None,
        "health": tables.health_table(run, measures),
        "health_words": tables.health_words(run, measures),
        "times": tables.time_table(run, measures),
        "hours": tables.show_hours(run),
        "settings": tables.facts_table(_settings(run), "setting"),
        "provenance": tables.facts_table(_provenance(sources), "what"),
    }


def _commands(sources: tuple[Run, ...]) -> list[str]:
    """List the commands that make the same report."""
    made = [report_text.command(run, name) for run, name in zip(sources, _FOLDERS, strict=False)]
    return [*made, "coco report DIR" + (" --beside OTHER" if len(sources) > 1 else "")]


def _settings(run: Run) -> dict[str, dict[str, Any]]:
    """Find the settings of the policies that have some, without those set by environments."""
    found = {
        ", ".join(policies): run.config[name]
        for name, policies in SETTINGS_OF.items()
        if name in run.config and set(policies) & set(run.config["policies"])
    }
    own = (*SYSTEM_SETTINGS, "prior", "steps_per_user")
    return {
        owner: {name: value for name, value in settings.items() if name not in own}
        for owner, settings in (found or {"value": run.config.get("settings", {})}).items()
    }


def _provenance(sources: tuple[Run, ...]) -> dict[str, dict[str, Any]]:
    names = ("value",) if len(sources) == 1 else _FOLDERS
    return {name: run.provenance for name, run in zip(names, sources, strict=True)}


def _page(content: dict[str, Any]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(content)
