"""The tables of the report, as plain text cells that both the page and its Markdown twin show."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cocobandits.experiments.drawing import label_of
from cocobandits.experiments.estimates import DASH, difference, estimate, number
from cocobandits.experiments.measures import (
    ACCEPTANCE_BAND,
    ORACLE,
    Measures,
    correlation_target,
    particle_health,
)
from cocobandits.experiments.reading import Run

_BAND = "[{:g}, {:g}]".format(*ACCEPTANCE_BAND)


class Table(NamedTuple):
    """A header and rows; the first `num_names` columns are names, the others numbers."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    num_names: int = 2


def regret_table(measures: Measures) -> Table:
    """Show regret over the run and its later half, and of the learned prior at start and end."""
    header = (
        *("environment", "policy", "total regret", "second-half regret", "multi-task regret"),
        *("evaluation, first round", "evaluation, last round"),
    )
    rows = []
    for environment, policy in _keys(measures):
        multitask = DASH
        if measures.has(environment, ORACLE):
            multitask = estimate(measures.multitask_regret(environment, policy)[:, -1]).show()
        curve = measures.evaluations.get((environment, policy))
        ends = (DASH, DASH)
        if curve is not None:
            ends = (estimate(curve[:, 0]).show(2), estimate(curve[:, -1]).show(2))
        total = estimate(measures.total_regret(environment, policy)).show()
        later = estimate(measures.second_half_regret(environment, policy)).show()
        rows.append((environment, label_of(policy), total, later, multitask, *ends))
    return Table(header, rows)


def difference_table(measures: Measures) -> Table:
    """Show paired differences in total regret against the two yardsticks."""
    yardsticks = ("ind-ts", ORACLE)
    header = ["environment", "policy"]
    for yardstick in yardsticks:
        header += [f"minus {label_of(yardstick)} ± s.e.", "95 % interval"]
    rows = []
    for environment, policy in _keys(measures):
        row = [environment, label_of(policy)]
        for yardstick in yardsticks:
            row += _difference_cells(measures, environment, policy, yardstick)
        rows.append(tuple(row))
    return Table(tuple(header), rows)


def third_arm_table(measures: Measures) -> Table:
    """Show how often the third arm was pulled: in all, early and late."""
    header = ("environment", "policy", "whole run (%)", "first fifth (%)", "last fifth (%)")
    rows = []
    for environment, policy in _keys(measures):
        parts = measures.third_arm_parts(environment, policy)
        shares = (measures.third_arm_share(environment, policy), parts[:, 0], parts[:, -1])
        cells = (estimate(100 * share).show() for share in shares)
        rows.append((environment, label_of(policy), *cells))
    return Table(header, rows)


def health_table(run: Run, measures: Measures) -> Table:
    """Show how the particles fared, for policies that have some."""
    header = (
        *("environment", "policy", "rejuvenations", "acceptance, mean", "lowest", "highest"),
        f"all in {_BAND}",
        *("start correlation, median", "worst", "above target", "ESS, lowest", "moves per run"),
    )
    found = particle_health(run)
    rows = []
    for environment, policy in _keys(measures):
        if (environment, policy) in found:
            health = found[environment, policy]
            digits = (0, 2, 2, 2, 2, 2, 0, 1, 0)
            cells = [number(value, places) for value, places in zip(health, digits, strict=True)]
            cells.insert(4, "yes" if health.is_accepting else "no")
            rows.append((environment, label_of(policy), *cells))
    return Table(header, rows)


def health_words(run: Run, measures: Measures) -> list[str]:
    """Sum up, policy by policy, how the particles fared in all environments."""
    found = particle_health(run)
    told = []
    for policy in measures.policies:
        parts = [found[key] for key in _keys(measures) if key[1] == policy and key in found]
        if parts:
            low = min(part.lowest_acceptance for part in parts)
            high = max(part.highest_acceptance for part in parts)
            verdict = "all" if all(part.is_accepting for part in parts) else "not all"
            target = correlation_target(run, policy)
            told.append(
                f"{label_of(policy)}: {sum(part.num_rejuvenations for part in parts)} "
                f"rejuvenations with acceptance from {number(low, 2)} to {number(high, 2)}, "
                f"{verdict} in {_BAND}; {sum(part.num_above_target for part in parts)} spent their "
                f"budget of moves before the start correlation fell below {target:g}, the worst "
                f"at {number(max(part.worst_correlation for part in parts), 2)}."
            )
    return told


def time_table(run: Run, measures: Measures) -> Table:
    """Show mean wall time per seed."""
    header = ("policy", *(f"{environment} (s)" for environment in measures.environments))
    seconds: dict[tuple[str, str], list[float]] = {}
    for row in run.summary:
        seconds.setdefault((row["environment"], row["policy"]), []).append(row["seconds"])
    rows = []
    for policy in measures.policies:
        keys = [(environment, policy) for environment in measures.environments]
        cells = (
            estimate(np.array(seconds[key])).show() if key in seconds else DASH for key in keys
        )
        rows.append((label_of(policy), *cells))
    return Table(header, rows, num_names=1)


def facts_table(facts: Mapping[str, dict[str, Any]], name: str) -> Table:
    """Show nested settings or versions, one line each, a column for each of their owners."""
    columns = {owner: _flatten(each) for owner, each in facts.items()}
    lines = dict.fromkeys(line for column in columns.values() for line in column)
    rows = [(line, *(column.get(line, DASH) for column in columns.values())) for line in lines]
    return Table((name, *columns), rows, num_names=1 + len(columns))


def show_hours(run: Run) -> str:
    """Add up the wall time of all cells."""
    minutes = sum(row["seconds"] for row in run.summary) / 60
    return f"{minutes:.0f} minutes" if minutes < 100 else f"{minutes / 60:.1f} hours"


def _keys(measures: Measures) -> list[tuple[str, str]]:
    return [
        (environment, policy)
        for environment in measures.environments
        for policy in measures.policies
        if measures.has(environment, policy)
    ]


def _difference_cells(
    measures: Measures, environment: str, policy: str, yardstick: str
) -> tuple[str, str]:
    if policy == yardstick or not measures.has(environment, yardstick):
        return DASH, DASH
    gap = difference(
        measures.total_regret(environment, policy), measures.total_regret(environment, yardstick)
    )
    error = DASH if math.isnan(gap.error) else number(gap.error)
    return f"{number(gap.mean)} ± {error}", gap.show_interval()


def _flatten(facts: dict[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in facts.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = "none" if value is None else str(value)
    return flat
