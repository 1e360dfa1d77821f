"""Figures about particles: their health, and the hyperparameters that they learn."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from cocobandits.experiments.claims import PAPER, STRESS
from cocobandits.experiments.figures import drawing
from cocobandits.experiments.figures.drawing import figure
from cocobandits.experiments.tables import ACCEPTANCE_BAND, find_setting
from cocobandits.runs.results import Results, Values

_NUM_BINS = 20
_HEALTH_LABELS = {
    "acceptance_rate": "acceptance rate of moves",
    "start_correlation": "correlation with start",
}
# Of all lines, so that none is hidden below a band.
_LAYER = 2.0
_UNITS = {"arm lengthscale": "reward units", "amplitude": "nats", "noise": "reward units"}
# The width of the range of rewards when a study has standardised them.
_STANDARD_WIDTH = 4.0


class Trace(NamedTuple):
    """One hyperparameter over the steps: 50 %, 5 % and 95 % points, averaged over seeds."""

    steps: Values
    median: Values
    low: Values
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
    traces = {key: traces_of(columns) for key, columns in results.hyperparameters.items()}
    names = list(dict.fromkeys(name for found in traces.values() for name in found))
    units = [_UNITS.get(name, f"units of {name.removesuffix(' lengthscale')}") for name in names]
    labels = [f"{name}\n({unit})" for name, unit in zip(names, units, strict=True)]
    drawn, axes = _step_panels(results, 1.75 * len(names) + 0.7, labels)
    for column, environment in zip(axes.T, results.environments, strict=True):
        for policy in results.policies:
            found = traces.get((environment, policy), {})
            starts = prior_medians(results, environment, policy)
            line = results.line(policy)._replace(width=1.8, layer=_LAYER)
            for place, name in zip(column, names, strict=True):
                if name in found:
                    steps, *points = found[name]
                    drawing.draw_band(place, line, steps, points)
                    if name in starts:
                        place.axhline(starts[name], color=drawing.GREY, ls=(0, (1, 1.5)), lw=1.1)
        for place in column:
            place.set_xlim(0, _num_steps(results, environment))
            place.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    for place in axes[:, 0]:
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
    drawn, axes = _step_panels(results, 4.6, list(_HEALTH_LABELS.values()))
    for column, environment in zip(axes.T, results.environments, strict=True):
        num_steps = _num_steps(results, environment)
        for policy in results.policies:
            if columns := results.health.get((environment, policy)):
                line = results.line(policy)._replace(width=1.6, layer=_LAYER)
                for place, name in zip(column, _HEALTH_LABELS, strict=True):
                    places, *curves = _binned(columns["step"], columns[name], num_steps)
                    drawing.draw_band(place, line, places, curves, alpha=0.15)
                    place.set_xlim(0, num_steps)
        for limit in ACCEPTANCE_BAND:
            column[0].axhline(limit, color=drawing.GREY, linestyle=(0, (1, 2)), linewidth=0.9)
    for place, name in zip(axes[:, 0], _HEALTH_LABELS, strict=True):
        found = np.concatenate([columns[name] for columns in results.health.values()])
        place.set_ylim(np.min(found, initial=0.0, where=np.isfinite(found)), 1)
    moved = {policy for _, policy in results.health}
    drawing.policy_legend(drawn, results, [each for each in results.policies if each in moved])
    return drawn


def traces_of(columns: dict[str, Values]) -> dict[str, Trace]:
    """Average the last values over seeds, from the step on at which all seeds have one.

    Averages are geometric, since values are positive and drawn on a logarithmic scale.
    """
    return {
        name: _trace({key: column[columns["name"] == name] for key, column in columns.items()})
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


def _trace(columns: dict[str, Values]) -> Trace:
    seeds = [columns["seed"] == seed for seed in np.unique(columns["seed"])]
    starts = [columns["step"][chosen].min() for chosen in seeds]
    steps = np.arange(max(starts), columns["step"].max() + 1)
    logs = np.zeros((3, len(steps)))
    for chosen in seeds:
        last = np.searchsorted(columns["step"][chosen], steps, side="right") - 1
        points = [columns[name][chosen][last] for name in ("median", "low", "high")]
        logs += np.log(points) / len(seeds)
    return Trace(steps + 1.0, *np.exp(logs))


def _binned(steps: Values, values: Values, num_steps: int) -> list[Values]:
    """Find the middle of every twentieth of the run that has values; their mean, least and most."""
    bins = (steps * _NUM_BINS // num_steps).astype(int)
    filled = np.unique(bins)
    parts = [values[bins == number] for number in filled]
    curves = [np.array([read(part) for part in parts]) for read in (np.mean, np.min, np.max)]
    return [(filled + 0.5) * num_steps / _NUM_BINS, *curves]


def _step_panels(results: Results, height: float, labels: list[str]) -> tuple[Figure, Any]:
    below = [""] * (len(labels) - 1) + ["interaction step"]
    return drawing.panels(results, height, labels, below, sharey="row")


def _num_steps(results: Results, environment: str) -> int:
    return next(info.num_steps for key, info in results.cells.items() if key[0] == environment)
