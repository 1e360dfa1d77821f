"""The report of a run: one page that stands alone, its figures, and a Markdown twin.

Reads a run folder, and if asked another one beside it, and writes the subfolder `report` of the
first. The same runs give the same bytes: nothing here asks for the date, the folder's name or the
machine.
"""

import base64
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from matplotlib.figure import Figure

from cocobandits.errors import StorageError
from cocobandits.experiments import (
    account,
    drawing,
    figures,
    learned_figures,
    population_figures,
    tables,
)
from cocobandits.experiments.beside import SETTINGS_OF, join
from cocobandits.experiments.claims import FAILS, HOLDS, MIXED, OPEN, Claim, assess
from cocobandits.experiments.figure_one import diet_truth
from cocobandits.experiments.markdown import render
from cocobandits.experiments.measures import Measures, group, measure
from cocobandits.experiments.presets import ENVIRONMENTS, STRESS
from cocobandits.experiments.reading import Run, load_run
from cocobandits.experiments.targets import ABOUT, assess_targets
from cocobandits.policies.settings import SYSTEM_SETTINGS

_TEMPLATES = Path(__file__).parent / "templates"
# A verdict is told by its word and its symbol; colour only repeats it.
SYMBOLS = {HOLDS: "✓", MIXED: "◐", FAILS: "✗", OPEN: "○"}


# What a command calls the folder of the run, and of the one beside it.
_FOLDERS = ("DIR", "OTHER")


class Report(NamedTuple):
    """All that a report says; `sources` are the runs that `run` was joined from."""

    run: Run
    measures: Measures
    claims: list[Claim]
    targets: list[Claim]
    sources: tuple[Run, ...]

    @property
    def is_about_paper(self) -> bool:
        """Whether the paper's environments are in it; otherwise the paper has no say."""
        return bool(self.claims)


class Picture(NamedTuple):
    """A figure on the page: its name, what it shows, its bytes, its width in CSS pixels."""

    name: str
    title: str
    caption: str
    uri: str
    width: int


def write_report(folder: Path, beside: Path | None = None) -> Path:
    """Write the report of a finished run, and return the path of its page.

    Args:
        folder: of the run; gets a subfolder `report`.
        beside: of another run, whose further policies and environments are shown too.

    Raises:
        StorageError: a folder holds no finished run, cannot be written, or the runs do not fit.
    """
    run = load_run(folder)
    sources: tuple[Run, ...] = (run,)
    if beside is not None:
        other = load_run(beside)
        sources, run = (run, other), join(run, other, beside)
    measures = measure(run)
    report = Report(run, measures, assess(measures), assess_targets(measures), sources)
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
    """Draw what the run has data for; stress environments have figures of their own."""
    run, measures = report.run, report.measures
    drawn: dict[str, tuple[str, str, Figure]] = {}
    for suffix, part in _parts(measures).items():
        drawn |= {
            f"{name}{suffix}": (f"{title}{', under stress' if suffix else ''}", caption, figure)
            for name, (title, caption, figure) in _draw_part(run, part).items()
        }
    if not report.is_about_paper:
        return drawn
    drawn["third-arm"] = (
        "Pulls of the third arm",
        f"Share of pulls in each fifth of the run; {_seeds(measures)}. Uniform, at a third "
        "throughout, is left out. Claim 3 is about the mixture.",
        figures.third_arm_figure(_of_paper(measures)),
    )
    drawn["diet"] = (
        "The motivating example",
        "Densities of rewards of three diet plans: above, given the hidden metabolic type; "
        "below, given the age group that is seen. Computed from the environment, not from this "
        "run.",
        population_figures.diet_figure(*diet_truth()),
    )
    if run.densities is not None:
        drawn["density"] = (
            "What the population looks like to the learner",
            "Densities of the mean rewards of two arms in the mixture, at five contexts, as users "
            "are observed one after another by NPM-TS. Filled: learned. Outlined: true.",
            population_figures.density_figure(run.densities),
        )
    return drawn


def _of_paper(measures: Measures) -> Measures:
    """Keep the environments with three arms that the claim about the third one is for."""
    return measures.within([name for name in measures.environments if name in ENVIRONMENTS])


def _parts(measures: Measures) -> dict[str, Measures]:
    """Split environments into those of the first figures and, by their suffix, the further ones."""
    stress = [name for name in measures.environments if name in STRESS]
    others = [name for name in measures.environments if name not in STRESS]
    if not (stress and others):
        return {"": measures}
    return {"": measures.within(others), "-stress": measures.within(stress)}


def _draw_part(run: Run, measures: Measures) -> dict[str, tuple[str, str, Figure]]:
    drawn = {
        "regret": (
            "Regret of learning, and of what was learned",
            f"Top: regret beyond that of the oracle, step by step. Bottom: regret of newcomers who "
            f"are served from the prior learned so far; Uniform has none. "
            f"{_seeds(measures).capitalize()}. Where Uniform leaves a panel at the top, the number "
            "there is where its curve ends.",
            figures.regret_figure(measures),
        )
    }
    if learned_figures.has_courses(run, measures):
        drawn["hyperparameters"] = (
            "What is learned besides the population",
            "Lengthscales and amplitude of the population's log-density, as CoIDS believes in them "
            "after each rejuvenation: line, the median; band, 90 % of the particles' weight; both "
            "averaged over seeds. Dotted: the median before any reward. Logarithmic scales.",
            learned_figures.hyperparameter_figure(run, measures),
        )
    if any(key[0] in measures.environments for key in group(run.health)):
        drawn["health"] = (
            "Particle health",
            "All updates that moved particles, over all seeds, per twentieth of the run: line, the "
            "mean; band, lowest to highest. Dotted: between these acceptance should lie. A "
            "correlation of one means copies that never parted.",
            figures.health_figure(run.health, measures),
        )
    return drawn


def _seeds(measures: Measures) -> str:
    num_seeds = len(measures.seeds)
    return f"mean of {num_seeds} seeds, bands of one standard error" if num_seeds > 1 else "1 seed"


def _content(report: Report, pictures: dict[str, Picture]) -> dict[str, Any]:
    """Gather what page and twin both show."""
    run, measures, claims, targets, sources = report
    is_about_paper = report.is_about_paper
    return {
        "is_about_paper": is_about_paper,
        "title": "Reproduction" if is_about_paper else "Simulated studies",
        "headline": account.headline(claims) if is_about_paper else "",
        "claims": claims,
        "targets": targets,
        "about_targets": ABOUT,
        "targets_headline": account.headline(targets, "Targets"),
        "symbols": SYMBOLS,
        "facts": account.run_facts(run, measures),
        "gaps": account.gaps(run, measures, is_about_paper),
        "misses": account.misses(claims) + account.misses(targets, "Target"),
        "departures": account.departures(run, measures) if is_about_paper else [],
        "commands": _commands(sources),
        "seeds": account.show_seeds(measures),
        "pictures": pictures,
        "regrets": tables.regret_table(measures),
        "differences": tables.difference_table(measures),
        "third_arm": tables.third_arm_table(_of_paper(measures)) if is_about_paper else None,
        "health": tables.health_table(run, measures),
        "health_words": tables.health_words(run, measures),
        "times": tables.time_table(run, measures),
        "hours": tables.show_hours(run),
        "settings": tables.facts_table(_settings(run), "setting"),
        "provenance": tables.facts_table(_provenance(sources), "what"),
    }


def _commands(sources: tuple[Run, ...]) -> list[str]:
    """Write what has to be typed for the same report."""
    made = [account.command(run, name) for run, name in zip(sources, _FOLDERS, strict=False)]
    return [*made, "coco report DIR" + (" --beside OTHER" if len(sources) > 1 else "")]


def _settings(run: Run) -> dict[str, dict[str, Any]]:
    """Find the settings of the policies that have some, without what environments set."""
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
