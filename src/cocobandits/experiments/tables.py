"""The tables of all pages: one function each, from results to cells of plain text."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cocobandits.experiments.claims import OURS
from cocobandits.experiments.estimates import DASH, Estimate, estimate, number, ratio
from cocobandits.experiments.populations import MODELS, with_population
from cocobandits.experiments.ranking import rank
from cocobandits.experiments.rules import ALONE, THIRD_ARM
from cocobandits.runs.results import ORACLE, Key, Results, Values

# Below, moves are mostly refused; above, they are too small to get anywhere.
ACCEPTANCE_BAND = (0.3, 0.8)
BAND = "[{:g}, {:g}]".format(*ACCEPTANCE_BAND)
# With the mixture, CoIDS may lose this much more than with the log-density.
MODEL_LIMIT = 1.1
# The criteria of the paper's Table 1, and the test in `tests/contracts/` that tries each on every
# policy, whose record has to agree with it.
CRITERIA = {
    "MT": "test_a_newcomer_is_given_what_was_best_for_others",
    "PC": "test_one_arm_informs_about_another_by_the_hidden_kind",
    "NPLRS": "test_two_modes_are_believed_in",
    "UD": "test_uncertainties_are_separated",
    "DR": "test_somebody_can_join_at_any_time",
    "CI": "test_users_learn_from_each_other_while_they_are_served",
}
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
    rounds = ("evaluation, first round", "evaluation, last round")

    def cells(*key: *Key) -> Iterable[str]:
        yield estimate(results.total_regret(*key)).with_error()
        yield estimate(results.second_half_regret(*key)).with_error()
        yield _gap(results, *key, ORACLE).with_error() if results.has(key[0], ORACLE) else DASH
        curve = results.evaluations.get(key)
        yield from (DASH if curve is None else estimate(curve[:, n]).with_error(2) for n in (0, -1))

    return _by_cell(results, (*names, *rounds), cells)


def differences(results: Results) -> Table:
    """Show paired differences in total regret against Ind-TS and the oracle."""
    others = [name for name in (ALONE, ORACLE) if name in results.policies]
    columns = ((f"minus {results.label(name)} ± s.e.", "95 % interval") for name in others)

    def cells(environment: str, policy: str) -> Iterable[str]:
        for other in others:
            is_known = policy != other and results.has(environment, other)
            gap = _gap(results, environment, policy, other) if is_known else None
            yield from (gap.with_error(), gap.interval()) if gap else (DASH, DASH)

    return _by_cell(results, [name for pair in columns for name in pair], cells)


def third_arm(results: Results) -> Table:
    """Show how often the third arm was pulled: in all, early and late."""

    def cells(*key: *Key) -> Iterable[str]:
        parts = results.share_of_arm(*key, THIRD_ARM)
        pulled = (results.arms[key] == THIRD_ARM).mean(axis=1)
        return (estimate(100 * part).with_error() for part in (pulled, parts[:, 0], parts[:, -1]))

    names = ("whole run (%)", "first fifth (%)", "last fifth (%)")
    return _by_cell(results, names, cells, results.arms)


def health(results: Results) -> Table:
    """Show how the particles fared, for policies that have some."""
    found = {key: particle_health(results, key[1], key[0]) for key in results.health}
    names = next(iter(found.values()), {})
    return _by_cell(results, list(names), lambda *key: found[key].values(), found)


def particle_health(results: Results, policy: str, *environments: str) -> dict[str, str]:
    """Summarise the updates that moved particles."""
    parts = [results.health[name, policy] for name in environments]

    def known(name: str) -> Values:
        values = np.concatenate([part[name] for part in parts])
        return values[np.isfinite(values)]

    def show(read: Callable[[Values], Any], values: Values, digits: int = 2) -> str:
        return number(read(values) if len(values) else math.nan, digits)

    rate, correlation, moves = map(known, ("acceptance_rate", "start_correlation", "num_moves"))
    is_accepting = (rate >= ACCEPTANCE_BAND[0]) & (rate <= ACCEPTANCE_BAND[1])
    return {
        "rejuvenations": str(len(moves)),
        "acceptance, mean": show(np.mean, rate),
        "lowest": show(np.min, rate),
        "highest": show(np.max, rate),
        f"all in {BAND}": "yes" if is_accepting.all() else "no",
        "start correlation, median": show(np.median, correlation),
        "worst": show(np.max, correlation),
        "above target": str((correlation >= correlation_target(results, policy)).sum()),
        "ESS, lowest": show(np.min, known("ess"), 1),
        "moves per run": number(moves.sum() / len(results.seeds), 0),
    }


def correlation_target(results: Results, policy: str) -> float:
    """Look up below which start correlation the moves of a policy were to end."""
    return float(find_setting(results, policy, "correlation_target")[1] or 0.5)


def seconds(results: Results) -> Table:
    """Show mean wall time per seed."""

    def cell(*key: *Key) -> str:
        return estimate(np.array([info.seconds for info in results.infos(*key)])).with_error()

    return _by_policy(results, results.policies, cell, unit=" (s)")


def settings(results: Results) -> Table:
    """Show the settings of policies with particles, one column for all that have the same."""
    moved = {policy for _, policy in results.health}
    chosen = [policy for policy in results.policies if policy in moved]
    return _facts(
        "setting", ((results.label(each), results.fact(each, "settings")) for each in chosen)
    )


def provenance(results: Results) -> Table:
    """Show code, packages and machine, one column for all policies that have the same."""
    table = _facts("what", ((info.label, info.provenance) for info in results.cells.values()))
    return table._replace(header=("what", "value")) if len(table.header) == 2 else table


def ranking(results: Results) -> Table:
    """List mean ranks, shares and times."""
    header = ("policy", "mean rank", "share", "environments", "ms per interaction")
    digits = (1, 2, 0, 1)
    rows = [
        (results.label(policy), *map(number, numbers, digits)) for policy, *numbers in rank(results)
    ]
    return Table(header, rows)


def totals(results: Results) -> Table:
    """List means and standard errors of total regret, best policy first."""
    ranked = [each.policy for each in rank(results)]
    total = results.total_regret
    return _by_policy(results, ranked, lambda *key: estimate(total(*key)).with_error())


def paired(results: Results) -> Table:
    """List total regret minus that of CoIDS, seed by seed, with intervals."""

    def cell(*key: *Key) -> str:
        gap = _gap(results, *key, OURS)
        return number(gap.mean) if math.isnan(gap.low) else gap.with_interval()

    others = [each.policy for each in rank(results) if each.policy != OURS]
    return _by_policy(results, others, cell)


def libraries(results: Results) -> Table:
    """List shares, times and total regrets, the smallest share first."""
    (policy, *environments), rows, _ = totals(results)
    joined = sorted(zip(rank(results), rows, strict=True), key=lambda pair: pair[0].share)
    shown = [
        (label, number(standing.share, 2), number(standing.milliseconds), *cells)
        for standing, (label, *cells) in joined
    ]
    return Table((policy, "share", "ms per interaction", *environments), shown)


def verdicts(results: Results) -> Table:
    """List who meets which criteria of Table 1, and where the paper says otherwise."""
    rows = []
    for policy in (each.policy for each in rank(results)):
        ours, papers = (results.fact(policy, each) for each in ("table_one", "published"))
        pairs = zip(ours, papers or ours, strict=True)
        cells = [_MARKS[a] if a == b else f"{_MARKS[a]} ({_MARKS[b]})" for a, b in pairs]
        if cells:
            rows.append((results.label(policy), *cells))
    return Table(("policy", *CRITERIA), rows, num_names=1 + len(CRITERIA))


def models(results: Results) -> Table:
    """Compare total regrets of CoIDS with two models of the population."""
    header = ("environment", *MODELS, "ratio", "95 % interval")
    rows = []
    for name in results.environments:
        ran = [with_population(results, model, name) for model in MODELS]
        if all(ran):
            pair = [results.total_regret(*found[0]) for found in ran]
            share = ratio(pair[1], pair[0])
            shown = (*(estimate(each).with_error() for each in pair), number(share.mean, 2))
            is_met = "yes" if share.mean <= MODEL_LIMIT else "no"
            rows.append((name, *shown, share.interval(2), is_met))
    return Table((*header, f"at most {MODEL_LIMIT:g}"), rows)


def find_setting(results: Results, policy: str, name: str) -> tuple[str, Any]:
    """Find the full name of a setting of a policy, and its value; None if it has none."""
    flat = _flatten(results.fact(policy, "settings", {}))
    return next((item for item in flat.items() if item[0].split(".")[-1] == name), ("", None))


def _gap(results: Results, environment: str, policy: str, other: str) -> Estimate:
    """Subtract total regrets, seed by seed."""
    mine, theirs = (results.total_regret(environment, name) for name in (policy, other))
    return estimate(mine - theirs)


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
