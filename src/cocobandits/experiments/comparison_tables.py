"""The tables of a comparison: ranking, total regrets, paired differences, and Table 1."""

import math

from cocobandits.experiments.comparison import OURS, Comparison, Place
from cocobandits.experiments.drawing import label_of
from cocobandits.experiments.estimates import DASH, difference, estimate, number
from cocobandits.experiments.table_one import CRITERIA, PUBLISHED, TABLE
from cocobandits.experiments.tables import Table

_TICKS = {"yes": "✓", "no": "✗", "n/a": "n/a"}


def ranking_table(places: list[Place]) -> Table:
    """List places, shares and times."""
    header = ("policy", "mean rank", "share", "environments", "ms per interaction")
    rows = [
        (
            label_of(each.policy),
            number(each.mean_rank),
            number(each.share, 2),
            str(each.num_environments),
            number(each.milliseconds),
        )
        for each in places
    ]
    return Table(header, rows, num_names=1)


def regrets_table(comparison: Comparison, places: list[Place]) -> Table:
    """List means and standard errors of total regret."""
    rows = [
        (
            label_of(each.policy),
            *(
                estimate(comparison.totals[name, each.policy]).show()
                if comparison.has(name, each.policy)
                else DASH
                for name in comparison.environments
            ),
        )
        for each in places
    ]
    return Table(("policy", *comparison.environments), rows, num_names=1)


def differences_table(comparison: Comparison, places: list[Place]) -> Table:
    """List total regret minus ours, seed by seed, with intervals."""

    def cell(environment: str, policy: str) -> str:
        if not (comparison.has(environment, policy) and comparison.has(environment, OURS)):
            return DASH
        mine, ours = (comparison.totals[environment, name] for name in (policy, OURS))
        gap = difference(mine, ours)
        return number(gap.mean) if math.isnan(gap.low) else gap.show()

    rows = [
        (label_of(each.policy), *(cell(name, each.policy) for name in comparison.environments))
        for each in places
        if each.policy != OURS
    ]
    return Table(("policy", *comparison.environments), rows, num_names=1)


def verdicts_table(places: list[Place]) -> Table:
    """List who meets which criteria of Table 1, and where the paper says otherwise."""
    rows = []
    for policy in (each.policy for each in places if each.policy in TABLE):
        published = PUBLISHED.get(policy, TABLE[policy])
        cells = [
            _TICKS[mine] if mine == theirs else f"{_TICKS[mine]} ({_TICKS[theirs]})"
            for mine, theirs in zip(TABLE[policy], published, strict=True)
        ]
        rows.append((label_of(policy), *cells))
    return Table(("policy", *(each.short for each in CRITERIA)), rows, num_names=1 + len(CRITERIA))
