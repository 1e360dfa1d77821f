"""The report of a run: one page that stands alone, its figures, and a Markdown twin.

Reads a run folder and writes its subfolder `report`. The same run gives the same bytes: nothing
here asks for the date, the folder's name or the machine.
"""

import base64
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from matplotlib.figure import Figure

from cocobandits.errors import StorageError
from cocobandits.experiments import account, drawing, figures, population_figures, tables
from cocobandits.experiments.claims import FAILS, HOLDS, MIXED, OPEN, Claim, assess
from cocobandits.experiments.figure_one import diet_truth
from cocobandits.experiments.markdown import render
from cocobandits.experiments.measures import Measures, measure
from cocobandits.experiments.reading import Run, load_run

_TEMPLATES = Path(__file__).parent / "templates"
# A verdict is told by its word and its symbol; colour only repeats it.
SYMBOLS = {HOLDS: "✓", MIXED: "◐", FAILS: "✗", OPEN: "○"}


class Report(NamedTuple):
    """All that a report says."""

    run: Run
    measures: Measures
    claims: list[Claim]


class Picture(NamedTuple):
    """A figure on the page: its name, what it shows, its bytes, its width in CSS pixels."""

    name: str
    title: str
    caption: str
    uri: str
    width: int


def write_report(folder: Path) -> Path:
    """Write the report of a finished run, and return the path of its page.

    Raises:
        StorageError: the folder holds no finished run, or cannot be written.
    """
    run = load_run(folder)
    measures = measure(run)
    report = Report(run, measures, assess(measures))
    place = folder / "report"
    try:
        pictures = _save_pictures(report, place / "figures")
        (place / "reproduction.md").write_text(_markdown(report, pictures), encoding="utf-8")
        (place / "index.html").write_text(_page(report, pictures), encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"Expected a folder that can be written; got folder={str(place)!r} ({error}). "
            "Free the disk, or copy the run to a place of your own."
        ) from error
    return place / "index.html"


def _save_pictures(report: Report, folder: Path) -> dict[str, Picture]:
    pictures = {}
    for name, (title, caption, figure) in _draw(report).items():
        content = drawing.save(figure, folder, name)["svg"].read_bytes()
        uri = f"data:image/svg+xml;base64,{base64.b64encode(content).decode()}"
        pictures[name] = Picture(name, title, caption, uri, round(96 * figure.get_figwidth()))
    return pictures


def _draw(report: Report) -> dict[str, tuple[str, str, Figure]]:
    """Draw what the run has data for."""
    run, measures = report.run, report.measures
    num_seeds = len(measures.seeds)
    seeds = f"mean of {num_seeds} seeds, bands of one standard error" if num_seeds > 1 else "1 seed"
    drawn = {
        "regret": (
            "Regret of learning, and of what was learned",
            f"Top: regret beyond that of the oracle, step by step. Bottom: regret of newcomers who "
            f"are served from the prior learned so far; Uniform has none. {seeds.capitalize()}. "
            "Where Uniform leaves a panel at the top, the number there is where its curve ends.",
            figures.regret_figure(measures),
        ),
        "third-arm": (
            "Pulls of the third arm",
            f"Share of pulls in each fifth of the run; {seeds}. Uniform, at a third throughout, is "
            "left out. Claim 3 is about the mixture.",
            figures.third_arm_figure(measures),
        ),
        "diet": (
            "The motivating example",
            "Densities of rewards of three diet plans: above, given the hidden metabolic type; "
            "below, given the age group that is seen. Computed from the environment, not from "
            "this run.",
            population_figures.diet_figure(*diet_truth()),
        ),
    }
    if run.densities is not None:
        drawn["density"] = (
            "What the population looks like to the learner",
            "Densities of the mean rewards of two arms in the mixture, at five contexts, as users "
            "are observed one after another. Filled: learned. Outlined: true.",
            population_figures.density_figure(run.densities),
        )
    if run.health.num_rows:
        drawn["health"] = (
            "Particle health",
            "All updates that moved particles, over all seeds, per twentieth of the run: line, the "
            "mean; band, lowest to highest. A correlation of one means copies that never parted.",
            figures.health_figure(run.health, measures),
        )
    return drawn


def _content(report: Report, pictures: dict[str, Picture]) -> dict[str, Any]:
    """Gather what page and twin both show."""
    run, measures, claims = report
    return {
        "headline": account.headline(claims),
        "claims": claims,
        "symbols": SYMBOLS,
        "facts": account.run_facts(run, measures),
        "gaps": account.gaps(run, measures),
        "misses": account.misses(claims),
        "departures": account.departures(run, measures),
        "command": account.command(run),
        "seeds": account.show_seeds(measures),
        "pictures": pictures,
        "regrets": tables.regret_table(measures),
        "differences": tables.difference_table(measures),
        "third_arm": tables.third_arm_table(measures),
        "health": tables.health_table(run, measures),
        "times": tables.time_table(run, measures),
        "hours": tables.show_hours(run),
        "settings": tables.facts_table(_shared_settings(run), "setting"),
        "provenance": tables.facts_table(run.provenance, "what"),
    }


def _shared_settings(run: Run) -> dict[str, Any]:
    """Leave out what every environment sets for itself."""
    settings = run.config.get("settings", {})
    return {name: value for name, value in settings.items() if name not in ("mtts", "prior")}


def _page(report: Report, pictures: dict[str, Picture]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(_content(report, pictures))


def _markdown(report: Report, pictures: dict[str, Picture]) -> str:
    return render(_content(report, pictures))
