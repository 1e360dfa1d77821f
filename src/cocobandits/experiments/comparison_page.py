"""The page of a comparison: ranking, heat map, paired differences, and the paper's Table 1.

Written from the outline of a run, as Markdown with figures beside it. The same run gives the same
bytes.
"""

import os
from pathlib import Path
from typing import Any

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
from cocobandits.experiments.comparison_figure import heat_map, ranking_figure
from cocobandits.experiments.comparison_tables import (
    differences_table,
    ranking_table,
    regrets_table,
    verdicts_table,
)
from cocobandits.experiments.drawing import label_of
from cocobandits.experiments.estimates import number
from cocobandits.experiments.markdown import table
from cocobandits.experiments.peers_table import peers_section
from cocobandits.experiments.presets import REFERENCE
from cocobandits.experiments.table_one import CRITERIA
from cocobandits.experiments.tables import facts_table

_TESTS = "tests/contracts/test_table_one.py"
_EMPTY = """ Hatched: the system assumes
normal rewards, and was not run where they are yes or no."""
_MANY = "the first cells of a process compile, which the median leaves out"
_FEW = "the first cells of a process compile, which so few seeds do not hide"
_CLOCK = f"""
Times of the second run are put on the clock of the first, by what {label_of(REFERENCE)} took in
both."""
_PAGE = """# All systems on one bench

{lead}

Every policy meets the same users and the same noise on a seed, and works on the range of arm means
that the environment declares. NPM-TS and GIDS have the paper's hyperparameters where the population
is held as a log-density, {ours} learns its own; in studies that are too large for it, all three
learn a mixture. All others have the defaults of their settings, which were chosen on a few seeds of
the paper's environments, and of `yes-no` for GradBand, or the setting that their name tells. {ours}
and GradBand are told how often a user is served, RobustAgg how many decisions there will be; its ε
is 0.9 unless its name tells another, in units of rewards. KMTL-UCB takes arms for as alike as the
rewards that they earned in like contexts, or as the contexts alone, which is the published
estimate, or keeps them apart, as its name tells; with an own share they are apart, and users
deviate. MTTS, in both forms, is told the true design and deviations in `lmm`; in `lmm-misspecified`
the same, with mean and variance of the coefficients over both modes.

## Ranking

By the mean rank of the average total regret, {common}; share is that regret over {yardstick}'s, as
a geometric mean over these. A mean rank is no test, and variants of one system crowd its
neighbours: see the paired differences. Times are per interaction, decision and update together, the
median over seeds averaged over the same environments, with {processes} at once; {compiling}.{clock}

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

Made by {command}.

{provenance}
"""


def write_comparison(folder: Path, beside: Path | None = None, page: Path | None = None) -> Path:
    """Write page and figures of a finished run, and return the path of the page.

    The figures go to the folder of the run, and the page there too, unless it has another place.
    Libraries are those of the run, or else of the one beside it.

    Raises:
        StorageError: a folder holds no finished run or damaged peers, the runs do not fit together,
            or a place cannot be written.
    """
    comparison = load_comparison(folder, beside)
    places = rank(comparison)
    figures = folder / "report" / "figures"
    page = page or folder / "report" / "comparison.md"
    try:
        figure = heat_map(comparison, [each.policy for each in places])
        drawing.save(figure, figures, "comparison")
        shared = comparison.common_environments() or comparison.environments
        ranking = ranking_figure(places, len(shared))
        drawing.save(ranking, figures, "ranking")
        peers = peers_section([folder] if beside is None else [folder, beside], comparison)
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
        common=_common(comparison),
        processes=_processes(comparison),
        compiling=_MANY if _is_median_free_of_compiling(comparison) else _FEW,
        clock=_CLOCK if comparison.beside else "",
        empty=_EMPTY if _has_holes(comparison, places) else "",
        ranking=table(ranking_table(places)),
        figure=figure,
        regrets=table(regrets_table(comparison, places)),
        differences=table(differences_table(comparison, places)),
        peers=peers,
        criteria="\n".join(
            f"- {each.short}, {each.name}: {each.question} `{each.test}`" for each in CRITERIA
        ),
        tests=_TESTS,
        verdicts=table(verdicts_table(places)),
        command=_commands(comparison),
        provenance=table(facts_table(_provenances(comparison), "what")),
    )


def command_of(comparison: Comparison) -> str:
    """Write the command that makes the same run."""
    config = comparison.config
    parts = ["coco compare"]
    if config.get("scale") == "quick":
        parts.append("--quick")
    if set(config["environments"]) != set(presets.COMPARED_ENVIRONMENTS):
        parts += [f"--env {name}" for name in config["environments"]]
    if set(config["policies"]) != set(presets.COMPARED):
        parts += [f"--policy {name}" for name in config["policies"]]
    parts += [f"--seeds {len(config['seeds'])}", "--out DIR"]
    return " ".join([*parts, "--beside FIRST"] if comparison.beside else parts)


def _commands(comparison: Comparison) -> str:
    if comparison.beside is None:
        return f"`{command_of(comparison)}`"
    first = command_of(comparison.beside).replace("--out DIR", "--out FIRST")
    return f"`{first}`, then `{command_of(comparison)}`"


def _provenances(comparison: Comparison) -> dict[str, dict[str, Any]]:
    if comparison.beside is None:
        return {"value": comparison.provenance}
    replaced = "; ".join(label_of(name) for name in comparison.config["policies"])
    return {"all others": comparison.beside.provenance, replaced: comparison.provenance}


def _numbers_of_jobs(comparison: Comparison) -> list[int]:
    runs = (comparison.beside or comparison, comparison)
    found = [run.provenance["jobs"] for run in runs if "jobs" in run.provenance]
    return list(dict.fromkeys(found))


def _processes(comparison: Comparison) -> str:
    jobs = _numbers_of_jobs(comparison)
    told = " and ".join(map(str, jobs)) or "several"
    return f"{told} process" if jobs == [1] else f"{told} processes"


def _is_median_free_of_compiling(comparison: Comparison) -> bool:
    """Tell whether less than half of the seeds can be the first of a process."""
    jobs = _numbers_of_jobs(comparison)
    return bool(jobs) and 2 * max(jobs) < len(comparison.seeds)


def _common(comparison: Comparison) -> str:
    num_common = len(comparison.common_environments())
    if not num_common:
        return "in every environment among those that ran there, since none has all"
    return f"in the {_counted(num_common, 'environment')} in which all ran"


def _has_holes(comparison: Comparison, places: list[Place]) -> bool:
    return any(each.num_environments < len(comparison.environments) for each in places)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _lead(comparison: Comparison, places: list[Place]) -> str:
    first = places[0]
    return (
        f"{len(places)} policies in {_counted(len(comparison.environments), 'environment')}, "
        f"{_counted(len(comparison.seeds), 'seed')} each. First by mean rank: "
        f"{label_of(first.policy)}, {number(first.mean_rank)}; then {label_of(places[1].policy)}, "
        f"{number(places[1].mean_rank)}."
    )
