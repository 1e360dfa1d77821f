"""The page of a comparison: ranking, heat map, paired differences, and the paper's Table 1.

Written from the outline of a run, as Markdown with figures beside it. The same run gives the same
bytes.
"""

import math
import os
from pathlib import Path

from cocobandits.errors import StorageError
from cocobandits.experiments import drawing, presets
from cocobandits.experiments.comparison import (
    OURS,
    YARDSTICK,
    Comparison,
    Place,
    load_comparison,
    rank,
)
from cocobandits.experiments.comparison_figure import heat_map
from cocobandits.experiments.drawing import label_of
from cocobandits.experiments.estimates import DASH, difference, estimate, number
from cocobandits.experiments.markdown import table
from cocobandits.experiments.peers_table import peers_section
from cocobandits.experiments.table_one import CRITERIA, PUBLISHED, TABLE
from cocobandits.experiments.tables import Table, facts_table

_TICKS = {"yes": "✓", "no": "✗", "n/a": "n/a"}
_TESTS = "tests/contracts/test_table_one.py"
_EMPTY = """ Hatched: the system assumes
normal rewards, and was not run where they are yes or no."""
_PAGE = """# All systems on one bench

{lead}

Every policy meets the same users and the same noise on a seed, and works on the range of arm means
that the environment declares. NPM-TS and GIDS have the paper's hyperparameters where the population
is held as a log-density, {ours} learns its own; in studies that are too large for it, all three
learn a mixture. All others have the defaults of their settings, which were chosen on a few seeds of
the paper's environments, or the setting that their name tells. {ours} and GradBand are told how
often a user is served; MTTS, in both forms, is told the true design and deviations in `lmm`, and
those that fit best in `lmm-misspecified`.

## Ranking

By the mean rank of the average total regret in {num_common} environments, those in which all ran;
share is that regret over {yardstick}'s, as a geometric mean over these. A mean rank is no test: see
the paired differences. Times are per interaction, decision and update together, the median over
seeds, with {jobs} processes at once; the first cells of a process compile, and are left out by it.

{ranking}

## Who loses how much, where

![Total regret of every policy in every environment, over that of {yardstick}]({figure})

Total regret over that of {yardstick}, who serves every user alone.{empty}

## Total regret

Mean ± standard error over seeds, in reward units.

{regrets}

## Paired differences

Total regret minus {ours}'s, seed by seed, with 95 % intervals; above zero loses more than {ours}.
Of so many intervals a few miss the truth by chance.

{differences}

{peers}## The paper's Table 1, tried out

{criteria}

A verdict is about what is built here, and a test tries every one of them, those that are not met
included: `{tests}`. There the learners have a mixture of four components. In
brackets what the paper's table says, where it says otherwise.

{verdicts}

## Provenance

Made by `{command}`.

{provenance}
"""


def write_comparison(folder: Path, page: Path | None = None) -> Path:
    """Write page and figures of a finished run, and return the path of the page.

    The figures go to the folder of the run, and the page there too, unless it has another place.

    Raises:
        StorageError: the folder holds no finished run or damaged peers, or a place cannot be
            written.
    """
    comparison = load_comparison(folder)
    places = rank(comparison)
    figures = folder / "report" / "figures"
    page = page or folder / "report" / "comparison.md"
    try:
        figure = heat_map(comparison, [each.policy for each in places])
        drawing.save(figure, figures, "comparison")
        peers = peers_section(folder, comparison)
        link = os.path.relpath(figures / "comparison.svg", page.parent)
        text = render(comparison, places, Path(link).as_posix(), peers)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"Expected places that can be written; got folder={str(folder)!r} and "
            f"page={str(page)!r} ({error}). Free the disk, or choose other places."
        ) from error
    return page


def render(comparison: Comparison, places: list[Place], figure: str, peers: str = "") -> str:
    """Write the page, with the section on peers if there is one."""
    names = {"ours": label_of(OURS), "yardstick": label_of(YARDSTICK)}
    return _PAGE.format(
        **names,
        lead=_lead(comparison, places),
        num_common=len(comparison.common_environments()),
        jobs=comparison.provenance.get("jobs", "several"),
        empty=_EMPTY if comparison.config.get("left_out") else "",
        ranking=table(_ranking(places)),
        figure=figure,
        regrets=table(_regrets(comparison, places)),
        differences=table(_differences(comparison, places)),
        peers=peers,
        criteria="\n".join(
            f"- {each.short}, {each.name}: {each.question} `{each.test}`" for each in CRITERIA
        ),
        tests=_TESTS,
        verdicts=table(_verdicts(places)),
        command=command_of(comparison),
        provenance=table(facts_table({"value": comparison.provenance}, "what")),
    )


def command_of(comparison: Comparison) -> str:
    """Write the command that makes the same run."""
    config = comparison.config
    parts = ["coco compare"]
    if config.get("scale") == "quick":
        parts.append("--quick")
    if set(comparison.environments) != set(presets.COMPARED_ENVIRONMENTS):
        parts += [f"--env {name}" for name in comparison.environments]
    if set(comparison.policies) != set(presets.COMPARED):
        parts += [f"--policy {name}" for name in comparison.policies]
    return " ".join([*parts, f"--seeds {len(comparison.seeds)}", "--out DIR"])


def _lead(comparison: Comparison, places: list[Place]) -> str:
    first = places[0]
    return (
        f"{len(places)} policies in {len(comparison.environments)} environments, "
        f"{len(comparison.seeds)} seeds each. First by mean rank: {label_of(first.policy)}, "
        f"{number(first.mean_rank)}; then {label_of(places[1].policy)}, "
        f"{number(places[1].mean_rank)}."
    )


def _ranking(places: list[Place]) -> Table:
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


def _regrets(comparison: Comparison, places: list[Place]) -> Table:
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


def _differences(comparison: Comparison, places: list[Place]) -> Table:
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


def _verdicts(places: list[Place]) -> Table:
    rows = []
    for policy in (each.policy for each in places if each.policy in TABLE):
        published = PUBLISHED.get(policy, TABLE[policy])
        cells = [
            _TICKS[mine] if mine == theirs else f"{_TICKS[mine]} ({_TICKS[theirs]})"
            for mine, theirs in zip(TABLE[policy], published, strict=True)
        ]
        rows.append((label_of(policy), *cells))
    return Table(("policy", *(each.short for each in CRITERIA)), rows, num_names=1 + len(CRITERIA))
