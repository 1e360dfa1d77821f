"""The figures of a report: which ones a run has data for, their titles and captions."""

import base64
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from cocobandits.experiments import drawing, figures, learned_figures, population_figures
from cocobandits.experiments.figure_one import diet_truth
from cocobandits.experiments.measures import Measures, group
from cocobandits.experiments.presets import ENVIRONMENTS, STRESS
from cocobandits.experiments.reading import Run


class Picture(NamedTuple):
    """A figure on the page: its name, what it shows, its bytes, its width in CSS pixels."""

    name: str
    title: str
    caption: str
    uri: str
    width: int


def save_pictures(run: Run, measures: Measures, folder: Path) -> dict[str, Picture]:
    """Draw and write every figure that the run has data for."""
    pictures = {}
    for name, (title, caption, figure) in _draw(run, measures).items():
        content = drawing.save(figure, folder, name)["svg"].read_bytes()
        uri = f"data:image/svg+xml;base64,{base64.b64encode(content).decode()}"
        pictures[name] = Picture(name, title, caption, uri, round(96 * figure.get_figwidth()))
    return pictures


def _draw(run: Run, measures: Measures) -> dict[str, tuple[str, str, Figure]]:
    """Draw what the run has data for; stress environments have figures of their own."""
    drawn: dict[str, tuple[str, str, Figure]] = {}
    for suffix, part in _parts(measures).items():
        drawn |= {
            f"{name}{suffix}": (f"{title}{', under stress' if suffix else ''}", caption, figure)
            for name, (title, caption, figure) in _draw_part(run, part).items()
        }
    papers = of_paper(measures)
    if not papers.environments:
        return drawn
    drawn["third-arm"] = (
        "Pulls of the third arm",
        f"Share of pulls in each fifth of the run; {_seeds(measures)}. Uniform, at a third "
        "throughout, is left out. The strict reading of claim 3 is about the mixture.",
        figures.third_arm_figure(papers),
    )
    drawn["diet"] = (
        "The motivating example",
        "Densities of rewards of three diet plans: above, given the latent metabolic type; "
        "below, given the observed age group. Computed from the environment, not from this run.",
        population_figures.diet_figure(*diet_truth()),
    )
    if run.densities is not None:
        drawn["density"] = (
            "The population as the learner sees it",
            "Densities of the mean rewards of two arms in the mixture, at five contexts, as NPM-TS "
            "observes one user after another. Filled: learned. Outlined: true.",
            population_figures.density_figure(run.densities),
        )
    return drawn


def of_paper(measures: Measures) -> Measures:
    """Keep the paper's environments, which have three arms."""
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
            "Regret of learning, and of the learned prior",
            "Top: cumulative regret beyond that of OraclePrior-TS, which knows the population. "
            "Bottom: regret of newcomers served by Thompson sampling from the prior learned so "
            f"far; Uniform has none. {_limit(measures)}{_seeds(measures).capitalize()}. Lower is "
            "better. A curve that leaves its panel is labelled with its last value.",
            figures.regret_figure(measures),
        ),
        "cumulative": (
            "Plain cumulative regret",
            "Regret compared with every user's best arm, summed over the steps. "
            f"{_seeds(measures).capitalize()}. Lower is better.",
            figures.cumulative_figure(measures),
        ),
    }
    if learned_figures.has_courses(run, measures):
        drawn["hyperparameters"] = (
            "Learned hyperparameters",
            "Lengthscales and amplitude of the population's log-density, as CoIDS learns them, "
            "after each rejuvenation: line, the median; band, 90 % of the particles' weight; both "
            "averaged over seeds. Dotted: the median before any reward. Logarithmic scales.",
            learned_figures.hyperparameter_figure(run, measures),
        )
    if any(key[0] in measures.environments for key in group(run.health)):
        drawn["health"] = (
            "Particle health",
            "All updates that moved particles, over all seeds, per twentieth of the run: line, the "
            "mean; band, lowest to highest. Dotted: the range in which acceptance should lie. A "
            "correlation of one means copies that never parted.",
            figures.health_figure(run.health, measures),
        )
    return drawn


def _limit(measures: Measures) -> str:
    """Explain the policy that no name explains."""
    is_drawn = "oracle-plan" in measures.policies
    return "Limit knows the population and plans one reward ahead. " if is_drawn else ""


def _seeds(measures: Measures) -> str:
    num_seeds = len(measures.seeds)
    return f"mean of {num_seeds} seeds, bands of one standard error" if num_seeds > 1 else "1 seed"
