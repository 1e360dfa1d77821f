"""Figures about what is learned besides the population: lengthscales and amplitude over time."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from cocobandits.environments.registry import build_environment
from cocobandits.experiments import drawing
from cocobandits.experiments.estimates import Values
from cocobandits.experiments.measures import ENVIRONMENT_LABELS, Key, Measures, group
from cocobandits.experiments.reading import Run

_POINTS = ("low", "median", "high")
_UNITS = {"arm lengthscale": "reward units", "amplitude": "nats", "noise": "reward units"}
# Where rewards and features lie when a study has standardised them.
_STANDARD_WIDTH, _FEATURE_WIDTH = 4.0, 2.0


class Course(NamedTuple):
    """One hyperparameter over the steps: 5 %, 50 % and 95 % points, averaged over seeds."""

    steps: Values
    low: Values
    median: Values
    high: Values


@drawing.styled
def hyperparameter_figure(run: Run, measures: Measures) -> Figure:
    """Draw every hyperparameter over the steps, on a logarithmic scale: environments across."""
    courses = {key: courses_of(columns) for key, columns in _tables(run, measures).items()}
    names = list(dict.fromkeys(name for found in courses.values() for name in found))
    environments = measures.environments
    figure = drawing.new_figure(2.75 * len(environments) + 0.4, 1.75 * len(names) + 0.7)
    axes = figure.subplots(len(names), len(environments), sharey="row", squeeze=False)
    for column, environment in enumerate(environments):
        axes[0, column].set_title(ENVIRONMENT_LABELS.get(environment, environment))
        axes[-1, column].set_xlabel("interaction step")
        medians = prior_medians(run.config, environment)
        for row, name in enumerate(names):
            place = axes[row, column]
            for policy in measures.policies:
                if name in courses.get((environment, policy), {}):
                    _draw_course(place, policy, courses[environment, policy][name])
            if name in medians:
                place.axhline(medians[name], color="#555555", linestyle=(0, (1, 1.5)), lw=1.1)
            place.set_xlim(0, _num_steps(measures, environment))
    for row, name in enumerate(names):
        unit = _UNITS.get(name, f"units of {name.removesuffix(' lengthscale')}")
        axes[row, 0].set_ylabel(f"{name}\n({unit})")
        _scale(axes[row, 0])
        for place in axes[row]:
            place.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    return figure


def courses_of(columns: dict[str, Values]) -> dict[str, Course]:
    """Average over seeds what the particles said last, from when all seeds have said something.

    Averages are geometric, as suits what is positive and drawn on a logarithmic scale.
    """
    return {
        str(name): _course(
            {key: column[columns["name"] == name] for key, column in columns.items()}
        )
        for name in dict.fromkeys(columns["name"].tolist())
    }


def prior_medians(config: dict[str, Any], environment: str) -> dict[str, float]:
    """Compute where the hyperparameters start, in the units of the environment."""
    settings = config.get("learned", {})
    if not settings.keys() >= {"arm_lengthscale", "context_lengthscale", "amplitude"}:
        return {}
    declared = build_environment(environment)
    low, high = declared.reward_range
    medians = {
        "arm lengthscale": settings["arm_lengthscale"] * (high - low) / _STANDARD_WIDTH,
        "amplitude": settings["amplitude"],
    }
    for name, values in declared.context.items():
        width = values[1] - values[0] if isinstance(values, tuple) else _FEATURE_WIDTH
        medians[f"{name} lengthscale"] = settings["context_lengthscale"] * width / _FEATURE_WIDTH
    return medians


def has_courses(run: Run, measures: Measures) -> bool:
    """Say whether there is something to draw in these environments."""
    return bool(_tables(run, measures))


def _tables(run: Run, measures: Measures) -> dict[Key, dict[str, Values]]:
    shown = measures.environments
    return {key: each for key, each in group(run.hyperparameters).items() if key[0] in shown}


def _course(columns: dict[str, Values]) -> Course:
    seeds = [columns["seed"] == seed for seed in np.unique(columns["seed"])]
    starts = [columns["step"][chosen].min() for chosen in seeds]
    steps = np.arange(max(starts), columns["step"].max() + 1)
    logs = {name: np.zeros(len(steps)) for name in _POINTS}
    for chosen in seeds:
        order = np.argsort(columns["step"][chosen])
        known = columns["step"][chosen][order]
        last = np.searchsorted(known, steps, side="right") - 1
        for name in _POINTS:
            logs[name] += np.log(columns[name][chosen][order][last]) / len(seeds)
    return Course(steps + 1.0, *(np.exp(logs[name]) for name in _POINTS))


def _draw_course(axes: Axes, policy: str, course: Course) -> None:
    line = drawing.line_of(policy)
    axes.plot(course.steps, course.median, color=line.color, linestyle=line.dashes, lw=1.8)
    axes.fill_between(
        course.steps, course.low, course.high, color=line.color, alpha=0.18, linewidth=0
    )


def _scale(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _num_steps(measures: Measures, environment: str) -> int:
    return next(curve.shape[1] for key, curve in measures.regrets.items() if key[0] == environment)
