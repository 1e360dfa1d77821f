"""The tables of all pages: one function each, from results to cells of plain text."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cocobandits.experiments.claims import OURS
from cocobandits.experiments.estimates import DASH, difference, estimate, number, ratio
from cocobandits.experiments.ranking import rank
from cocobandits.experiments.rules import ALONE, THIRD_ARM
from cocobandits.experiments.table_one import CRITERIA
from cocobandits.runs.results import ORACLE, Key, Results, Values

# Below, moves are mostly refused; above, they are too small to get anywhere.
ACCEPTANCE_BAND = (0.3, 0.8)
BAND = "[{:g}, {:g}]".format(*ACCEPTANCE_BAND)
# CoIDS with a mixture, which may lose this much more than with the log-density.
MIXTURE, MODEL_LIMIT = "coids-mixture", 1.1
_MARKS = {"+": "✓", "-": "✗", "/": "n/a"}


class Table(NamedTuple):
    """A header and rows; the first `num_names` columns are names, the others numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    num_names: int = 1

    def markdown(self) -> str:
        """Write the table with names to the left and numbers to the right."""
        ruler = ["---" if n < self.num_names else "---:" for n in range(len(self.header))]
        # A bar would end the cell.
        rows = ([cell.replace("|", "\\|") for cell in row] for row in self.rows)
        return "\n".join(f"| {' | '.join(row)} |" for row in (self.header, ruler, *rows))


def regrets(results: Results) -> Table:
    """Show regret over the run and its later half, and of the learned prior at start and end."""
    names = ("total regret", "second-half regret", "multi-task regret")

    def cells(environment: str, policy: str) -> Iterable[str]:
        total = results.total_regret(environment, policy)
        yield estimate(total).show()
        yield estimate(results.second_half_regret(environment, policy)).show()
        has_oracle = results.has(environment, ORACLE)
        oracle = results.total_regret(environment, ORACLE) if has_oracle else math.nan
        yield estimate(total - oracle).show() if has_oracle else DASH
        curve = results.evaluations.get((environment, policy))
        yield from (DASH if curve is None else estimate(curve[:, n]).show(2) for n in (0, -1))

    rounds = ("evaluation, first round", "evaluation, last round")
    return _by_cell(results, (*names, *rounds), cells)


def differences(results: Results) -> Table:
    """Show paired differences in total regret against Ind-TS and the oracle."""
    others = [name for name in (ALONE, ORACLE) if name in results.policies]
    columns = ((f"minus {results.label(name)} ± s.e.", "95 % interval") for name in others)

    def cells(environment: str, policy: str) -> Iterable[str]:
        for other in others:
            if policy == other or not results.has(environment, other):
                yield from (DASH, DASH)
                continue
            gap = difference(*_totals(results, environment, policy, other))
            error = DASH if math.isnan(gap.error) else number(gap.error)
            yield from (f"{number(gap.mean)} ± {error}", gap.show_interval())

    return _by_cell(results, [name for pair in columns for name in pair], cells)


def third_arm(results: Results) -> Table:
    """Show how often the third arm was pulled: in all, early and late."""

    def cells(environment: str, policy: str) -> Iterable[str]:
        parts = results.share_of_arm(environment, policy, THIRD_ARM)
        pulled = (results.arms[environment, policy] == THIRD_ARM).mean(axis=1)
        return (estimate(100 * part).show() for part in (pulled, parts[:, 0], parts[:, -1]))

    names = ("whole run (%)", "first fifth (%)", "last fifth (%)")
    return _by_cell(results, names, cells, results.arms)


def health(results: Results) -> Table:
    """Show how the particles fared, for policies that have some."""

    def cells(environment: str, policy: str) -> Iterable[str]:
        for value, digits in particle_health(results, policy, environment).values():
            yield value if isinstance(value, str) else number(value, digits)

    first = next(iter(results.health), None)
    names = list(particle_health(results, first[1], first[0])) if first else []
    return _by_cell(results, names, cells, results.health)


def particle_health(results: Results, policy: str, *environments: str) -> dict[str, Any]:
    """Summarise the updates that moved particles; every number has its digits."""
    parts = [results.health[name, policy] for name in environments]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    rate, correlation = joined["acceptance_rate"], joined["start_correlation"]
    is_accepting = (rate >= ACCEPTANCE_BAND[0]) & (rate <= ACCEPTANCE_BAND[1]) | np.isnan(rate)

    def known(read: Callable[[Values], Any], values: Values) -> Any:
        finite = values[np.isfinite(values)]
        return read(finite) if len(finite) else math.nan

    return {
        "rejuvenations": (len(rate), 0),
        "acceptance, mean": (known(np.mean, rate), 2),
        "lowest": (known(np.min, rate), 2),
        "highest": (known(np.max, rate), 2),
        f"all in {BAND}": ("yes" if is_accepting.all() else "no", 0),
        "start correlation, median": (known(np.median, correlation), 2),
        "worst": (known(np.max, correlation), 2),
        "above target": ((correlation >= correlation_target(results, policy)).sum(), 0),
        "ESS, lowest": (known(np.min, joined["ess"]), 1),
        "moves per run": (joined["num_moves"].sum() / len(results.seeds), 0),
    }


def correlation_target(results: Results, policy: str) -> float:
    """Look up below which start correlation the moves of a policy were to end."""
    return float(find_setting(results, policy, "correlation_target")[1] or 0.5)


def seconds(results: Results) -> Table:
    """Show mean wall time per seed."""

    def cell(*key: str) -> str:
        return estimate(np.array([info.seconds for info in results.infos(*key)])).show()

    return _by_policy(results, results.policies, cell, unit=" (s)")


def settings(results: Results) -> Table:
    """Show the settings of policies with particles, one column for all that have the same."""
    moved = {policy for _, policy in results.health}
    chosen = [policy for policy in results.policies if policy in moved]
    return _facts("setting", ((results.label(each), results.settings(each)) for each in chosen))


def provenance(results: Results) -> Table:
    """Show code, packages and machine, one column for all policies that have the same."""
    table = _facts("what", ((info.label, info.provenance) for info in results.cells.values()))
    return table._replace(header=("what", "value")) if len(table.header) == 2 else table


def ranking(results: Results) -> Table:
    """List places, shares and times."""
    header = ("policy", "mean rank", "share", "environments", "ms per interaction")
    digits = (1, 2, 0, 1)
    rows = [
        (results.label(policy), *map(number, numbers, digits)) for policy, *numbers in rank(results)
    ]
    return Table(header, rows)


def totals(results: Results) -> Table:
    """List means and standard errors of total regret, best policy first."""
    ranked = [place.policy for place in rank(results)]
    return _by_policy(results, ranked, lambda *key: estimate(results.total_regret(*key)).show())


def paired(results: Results) -> Table:
    """List total regret minus that of CoIDS, seed by seed, with intervals."""

    def cell(environment: str, policy: str) -> str:
        gap = difference(*_totals(results, environment, policy, OURS))
        return number(gap.mean) if math.isnan(gap.low) else gap.show()

    others = [place.policy for place in rank(results) if place.policy != OURS]
    return _by_policy(results, others, cell)


def libraries(results: Results) -> Table:
    """List shares, times and total regrets, the smallest share first."""
    header, rows, _ = totals(results)
    found = {row[0]: row[1:] for row in rows}
    places = sorted(rank(results), key=lambda place: place.share)
    labels = {results.label(each.policy): each for each in places}
    shown = [
        (label, number(each.share, 2), number(each.milliseconds), *found[label])
        for label, each in labels.items()
    ]
    return Table((header[0], "share", "ms per interaction", *header[1:]), shown)


def verdicts(results: Results) -> Table:
    """List who meets which criteria of Table 1, and where the paper says otherwise."""
    rows = []
    for policy in (place.policy for place in rank(results)):
        ours, papers = results.table_one(policy)
        pairs = zip(ours, papers or ours, strict=True)
        cells = [_MARKS[a] if a == b else f"{_MARKS[a]} ({_MARKS[b]})" for a, b in pairs]
        if cells:
            rows.append((results.label(policy), *cells))
    header = ("policy", *CRITERIA)
    return Table(header, rows, num_names=len(header))


def models(results: Results) -> Table:
    """Compare total regrets of CoIDS with two models of the population."""
    header = ("environment", "log-density", "mixture", "ratio", "95 % interval")
    rows = []
    for environment in results.environments:
        if results.has(environment, OURS, MIXTURE):
            pair = _totals(results, environment, OURS, MIXTURE)
            share = ratio(pair[1], pair[0])
            shown = (*(estimate(each).show() for each in pair), number(share.mean, 2))
            is_met = "yes" if share.mean <= MODEL_LIMIT else "no"
            rows.append((environment, *shown, share.show_interval(2), is_met))
    return Table((*header, f"at most {MODEL_LIMIT:g}"), rows)


def find_setting(results: Results, policy: str, name: str) -> tuple[str, Any]:
    """Find the full name of a setting of a policy, and its value; None if it has none."""
    flat = _flatten(results.settings(policy))
    return next((item for item in flat.items() if item[0].split(".")[-1] == name), ("", None))


def _by_cell(
    results: Results,
    names: Sequence[str],
    cells: Callable[..., Iterable[str]],
    among: Mapping[Key, Any] | None = None,
) -> Table:
    """Make one row per environment and policy, or only for those among some."""
    rows = [
        (environment, results.label(policy), *cells(environment, policy))
        for environment in results.environments
        for policy in results.policies
        if results.has(environment, policy) and (among is None or (environment, policy) in among)
    ]
    return Table(("environment", "policy", *names), rows, num_names=2)


def _by_policy(
    results: Results, policies: Sequence[str], cell: Callable[..., str], unit: str = ""
) -> Table:
    """Make one row per policy, and a column per environment."""
    places = results.environments
    rows = [
        (results.label(each), *(cell(p, each) if results.has(p, each) else DASH for p in places))
        for each in policies
    ]
    return Table(("policy", *(f"{name}{unit}" for name in places)), rows)


def _facts(name: str, facts: Iterable[tuple[str, dict[str, Any]]]) -> Table:
    """Show nested facts, one line each, and a column for all owners of the same facts."""
    owners: dict[str, dict[str, None]] = {}
    for owner, each in facts:
        owners.setdefault(json.dumps(_flatten(each), default=str), {})[owner] = None
    columns = [json.loads(text) for text in owners]
    lines = dict.fromkeys(line for column in columns for line in column)
    found = {line: [column.get(line, DASH) for column in columns] for line in lines}
    rows = [(line, *("none" if v is None else str(v) for v in found[line])) for line in lines]
    header = (name, *("; ".join(names) for names in owners.values()))
    return Table(header, rows, num_names=len(header))


def _flatten(facts: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in facts.items():
        is_nested = isinstance(value, dict)
        flat |= _flatten(value, f"{prefix}{name}.") if is_nested else {prefix + name: value}
    return flat


def _totals(results: Results, environment: str, *policies: str) -> list[Any]:
    return [results.total_regret(environment, policy) for policy in policies]
