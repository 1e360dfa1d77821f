"""Figures about particles: their health, and the hyperparameters that they learn."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from cocobandits.experiments.claims import PAPER, STRESS
from cocobandits.experiments.figures import drawing
from cocobandits.experiments.figures.registry import figure
from cocobandits.experiments.tables import ACCEPTANCE_BAND, find_setting
from cocobandits.runs.results import Line, Results, Values

_NUM_BINS = 20
_HEALTH_LABELS = {
    "acceptance_rate": "acceptance rate of moves",
    "start_correlation": "correlation with start",
}
_POINTS = ("low", "median", "high")
_UNITS = {"arm lengthscale": "reward units", "amplitude": "nats", "noise": "reward units"}
# The width of the range of rewards when a study has standardised them.
_STANDARD_WIDTH = 4.0


class Course(NamedTuple):
    """One hyperparameter over the steps: 5 %, 50 % and 95 % points, averaged over seeds."""

    steps: Values
    low: Values
    median: Values
    high: Values


@figure(
    "hyperparameters",
    "Learned hyperparameters",
    "Lengthscales and amplitude of the population's log-density, as CoIDS learns them, after each "
    "rejuvenation: line, the median; band, 90 % of the particles' weight; both averaged over "
    "seeds. Dotted: the median before any reward. Logarithmic scales.",
    needs="hyperparameters",
)
def hyperparameter_figure(results: Results) -> Figure:
    """Draw every hyperparameter over the steps, on a logarithmic scale: environments across."""
    courses = {key: courses_of(columns) for key, columns in results.hyperparameters.items()}
    names = list(dict.fromkeys(name for found in courses.values() for name in found))
    drawn, axes = drawing.panels(results, 1.75 * len(names) + 0.7, len(names), sharey="row")
    for column, environment in zip(axes.T, results.environments, strict=True):
        column[-1].set_xlabel("interaction step")
        for policy in results.policies:
            found = courses.get((environment, policy), {})
            starts = prior_medians(results, environment, policy)
            for place, name in zip(column, names, strict=True):
                if name in found:
                    _draw_course(place, results.line(policy), found[name], starts.get(name))
        for place in column:
            place.set_xlim(0, _num_steps(results, environment))
            place.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    for place, name in zip(axes[:, 0], names, strict=True):
        unit = _UNITS.get(name, f"units of {name.removesuffix(' lengthscale')}")
        place.set_ylabel(f"{name}\n({unit})")
        place.set_yscale("log")
        place.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        place.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        place.yaxis.set_minor_formatter(NullFormatter())
    return drawn


@figure(
    "health",
    "Particle health",
    "All updates that moved particles, over all seeds, per twentieth of the run: line, the mean; "
    "band, lowest to highest. Dotted: the range in which acceptance should lie. A correlation of "
    "one means copies that never parted.",
    needs="health",
)
def health_figure(results: Results) -> Figure:
    """Draw acceptance rate, between its limits, and start correlation over the steps."""
    drawn, axes = drawing.panels(results, 4.6, num_rows=2, sharey="row")
    for column, environment in zip(axes.T, results.environments, strict=True):
        column[-1].set_xlabel("interaction step")
        for policy in results.policies:
            if columns := results.health.get((environment, policy)):
                num_steps = _num_steps(results, environment)
                for place, name in zip(column, _HEALTH_LABELS, strict=True):
                    line = results.line(policy)
                    _draw_binned(place, line, columns["step"], columns[name], num_steps)
        for limit in ACCEPTANCE_BAND:
            column[0].axhline(limit, color=drawing.GREY, linestyle=(0, (1, 2)), linewidth=0.9)
    for place, (name, label) in zip(axes[:, 0], _HEALTH_LABELS.items(), strict=True):
        found = np.concatenate([columns[name] for columns in results.health.values()])
        place.set_ylabel(label)
        place.set_ylim(np.min(found, initial=0.0, where=np.isfinite(found)), 1)
    moved = {policy for _, policy in results.health}
    drawing.policy_legend(drawn, results, [each for each in results.policies if each in moved])
    return drawn


def courses_of(columns: dict[str, Values]) -> dict[str, Course]:
    """Average the last values over seeds, from the step on at which all seeds have one.

    Averages are geometric, since values are positive and drawn on a logarithmic scale.
    """
    return {
        str(name): _course(
            {key: column[columns["name"] == name] for key, column in columns.items()}
        )
        for name in dict.fromkeys(columns["name"].tolist())
    }


def prior_medians(results: Results, environment: str, policy: str) -> dict[str, float]:
    """Compute where hyperparameters start, in the units of the environment, as far as known."""
    names = ("arm_lengthscale", "context_lengthscale", "amplitude")
    arm, context, amplitude = (find_setting(results, policy, name)[1] for name in names)
    if None in (arm, context, amplitude):
        return {}
    low, high = results.infos(environment, policy)[0].reward_range
    medians = {"arm lengthscale": arm * (high - low) / _STANDARD_WIDTH, "amplitude": amplitude}
    # Features lie in [-1, 1] there, as when a study has standardised them.
    return medians | ({"x lengthscale": context} if environment in (*PAPER, *STRESS) else {})


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


def _draw_course(axes: Axes, line: Line, course: Course, start: float | None) -> None:
    axes.plot(course.steps, course.median, color=line.color, linestyle=line.dashes, lw=1.8)
    look: Any = {"color": line.color, "alpha": 0.18, "linewidth": 0}
    axes.fill_between(course.steps, course.low, course.high, **look)
    if start is not None:
        axes.axhline(start, color=drawing.GREY, linestyle=(0, (1, 1.5)), lw=1.1)


def _draw_binned(axes: Axes, line: Line, steps: Values, values: Values, num_steps: int) -> None:
    """Draw mean, lowest and highest value per twentieth of the run, over all seeds."""
    bins = (steps * _NUM_BINS // num_steps).astype(int)
    filled = [number for number in range(_NUM_BINS) if (bins == number).any()]
    parts = [values[bins == number] for number in filled]
    places = (np.array(filled) + 0.5) * num_steps / _NUM_BINS
    means, lows, highs = ([read(part) for part in parts] for read in (np.mean, np.min, np.max))
    axes.plot(places, means, color=line.color, linestyle=line.dashes, lw=1.6)
    axes.fill_between(places, lows, highs, color=line.color, alpha=0.15, linewidth=0)
    axes.set_xlim(0, num_steps)


def _num_steps(results: Results, environment: str) -> int:
    return next(info.num_steps for key, info in results.cells.items() if key[0] == environment)
