"""The paper's claims about its experiments, and our own targets, as data (paper, "Results").

Owns both lists, the verdicts, and which claims results can speak to. A claim of the paper has two
sets of rules: those of an ordinary careful reader, which decide it, and strict ones.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from cocobandits.experiments import rules
from cocobandits.experiments.rules import ALONE, Finding, Rule
from cocobandits.runs.results import ORACLE, Results

PAPER = ("mixture", "partial", "lmm", "lmm-misspecified")
PAPER_POLICIES = ("npm-ts", "gids", "mtts", ALONE, ORACLE, "uniform")
STRESS = ("stress-skewed", "stress-groups", "stress-ring", "stress-heteroscedastic")
OURS = "coids"
_FEW_SEEDS = 5
# By the outcomes of the parts: the verdict of a large run, and of a small one, in which an
# undecided part decides nothing.
_VERDICTS: dict[frozenset[bool | None], tuple[str, str]] = {
    frozenset({True}): ("holds", "agrees"),
    frozenset({True, None}): ("in part", "too small to tell"),
    frozenset({True, False}): ("in part", "disagrees in part"),
    frozenset({True, False, None}): ("in part", "disagrees in part"),
    frozenset({False}): ("does not hold", "disagrees"),
    frozenset({False, None}): ("does not hold", "disagrees"),
    frozenset({None}): ("not decided", "too small to tell"),
}


@dataclass(frozen=True)
class Claim:
    """A statement, and the rules that decide it; every rule is applied in every environment.

    Attributes:
        number: in the paper's "Results", or in our list of targets.
        environments: where it is made.
        statement: the claim in one sentence.
        rules: that decide it.
        strict: a stricter reading of the same words; the same one, if empty.
        short: the claim in a few words, for a line on a terminal.
    """

    number: int
    environments: tuple[str, ...]
    statement: str
    rules: tuple[Rule, ...]
    strict: tuple[Rule, ...] = ()
    short: str = ""


class Reading(NamedTuple):
    """A set of rules in words, what they found, and the verdict."""

    words: str
    findings: tuple[Finding, ...]
    verdict: str


class Judgement(NamedTuple):
    """A claim, and what results say about it by the ordinary and by the strict reading."""

    claim: Claim
    plain: Reading
    strict: Reading


def judge(claims: Iterable[Claim], results: Results) -> list[Judgement]:
    """Judge the claims that results can speak to, in their order."""
    return [
        Judgement(
            claim,
            _read(claim, claim.rules, results),
            _read(claim, claim.strict or claim.rules, results),
        )
        for claim in claims
        if all(
            rule.is_decidable(results, environment)
            for rule in (*claim.rules, *claim.strict)
            for environment in claim.environments
        )
    ]


def is_small(results: Results) -> bool:
    """Check whether results have too few seeds, or too coarse a grid, to decide claims."""
    return len(results.seeds) < _FEW_SEEDS or any(info.is_quick for info in results.cells.values())


def _read(claim: Claim, criteria: tuple[Rule, ...], results: Results) -> Reading:
    """Apply rules in every environment, which the text names where there are several."""
    found = []
    for rule, environment in product(criteria, claim.environments):
        text, holds = rule.find(results, environment)
        where = f"{environment}: " if len(claim.environments) > 1 else ""
        found.append(Finding(where + text, holds))
    words = " ".join(dict.fromkeys(rule.words(results) for rule in criteria))
    verdicts = _VERDICTS[frozenset(finding.holds for finding in found)]
    return Reading(words, tuple(found), verdicts[is_small(results)])


def _both(rule: type[Rule], other: str = "") -> tuple[Rule, ...]:
    """Apply one rule to both of the paper's policies."""
    return rule("npm-ts", other), rule("gids", other)


_MTTS_FIRST = (
    *(rules.Less("mtts", other) for other in ("npm-ts", "gids")),
    *_both(rules.Less, ALONE),
)

CLAIMS = (
    Claim(
        1,
        ("mixture",),
        "NPM-TS and GIDS converge to the oracle's behaviour: their multi-task regret flattens, and "
        "their evaluation regret approaches the oracle's.",
        (*_both(rules.Flattens), *_both(rules.Approaches)),
        (*_both(rules.SlopeDrops), *_both(rules.ApproachesStrictly)),
        short="NPM-TS and GIDS converge to the oracle",
    ),
    Claim(
        2,
        ("mixture",),
        "GIDS has lower regret than NPM-TS.",
        (rules.Less("gids", "npm-ts"),),
        short="GIDS beats NPM-TS",
    ),
    Claim(
        3,
        ("mixture",),
        "GIDS wins because it first explores informative arms that are not the best.",
        (rules.ExploresMore("gids", "npm-ts"),),
        (rules.ThirdArmFades("gids"), rules.ThirdArmExceeds("gids", "npm-ts")),
        short="GIDS wins by exploring poor arms first",
    ),
    Claim(
        4,
        ("partial",),
        "NPM-TS and GIDS gradually align with the oracle, and the gap between them is small.",
        (*_both(rules.Approaches), rules.Close("gids", "npm-ts")),
        (*_both(rules.ApproachesStrictly), rules.WithinShare("gids", "npm-ts")),
        short="both align with the oracle, close together",
    ),
    Claim(
        5,
        ("lmm",),
        "MTTS, whose assumptions hold, converges fastest; NPM-TS and GIDS still converge, and beat "
        "Ind-TS.",
        (*_MTTS_FIRST, *_both(rules.Approaches)),
        (*_MTTS_FIRST, *_both(rules.ApproachesStrictly)),
        short="MTTS is fastest; both converge and beat Ind-TS",
    ),
    Claim(
        6,
        ("lmm-misspecified",),
        "MTTS, whose assumptions are violated, has linear regret and does worse than Ind-TS.",
        (rules.Linear("mtts"), rules.Less(ALONE, "mtts")),
        (rules.SlopeStays("mtts"), rules.Less(ALONE, "mtts")),
        short="MTTS has linear regret, worse than Ind-TS",
    ),
    Claim(
        7,
        ("lmm-misspecified",),
        "The evaluation regret of MTTS decreases at first and then increases.",
        (rules.Falls("mtts"), rules.Rises("mtts")),
        short="MTTS's evaluation regret falls, then rises",
    ),
    Claim(
        8,
        ("lmm-misspecified",),
        "NPM-TS and GIDS converge, and their evaluation regret approaches the oracle's.",
        (*_both(rules.Flattens), *_both(rules.Approaches)),
        (*_both(rules.SlopeDrops), *_both(rules.ApproachesStrictly)),
        short="NPM-TS and GIDS converge to the oracle",
    ),
)

TARGETS = (
    Claim(
        1,
        ("mixture", "lmm-misspecified"),
        "CoIDS, which has to learn the population, loses hardly more than Thompson sampling that "
        "knows it.",
        (rules.ShareOf(OURS, ORACLE, 1.05),),
    ),
    Claim(
        2,
        ("partial",),
        "Where information is worth most, CoIDS loses at most three quarters of that.",
        (rules.ShareOf(OURS, ORACLE, 0.75),),
    ),
    Claim(
        3,
        ("mixture", "partial", "lmm-misspecified"),
        "In the second half of the steps, CoIDS loses less than OraclePrior-TS.",
        (rules.LateShareOf(OURS, ORACLE, 1.0, "below"),),
    ),
    Claim(
        4,
        ("lmm",),
        "CoIDS loses a quarter of what Ind-TS loses, and no more than half on any seed.",
        (rules.ShareOf(OURS, ALONE, 0.25), rules.WorstSeed(OURS, ALONE, 0.5)),
    ),
    Claim(
        5,
        PAPER,
        "CoIDS is nowhere worse than GIDS.",
        (rules.NotWorse(OURS, "gids"),),
    ),
    Claim(
        6,
        STRESS,
        "CoIDS loses less than half of what Ind-TS loses in every stress environment.",
        (rules.ShareOf(OURS, ALONE, 0.5, "below"),),
    ),
    Claim(
        7,
        ("groups",),
        "With ten arms and four latent groups, CoIDS loses hardly more than Thompson sampling that "
        "knows the groups, a quarter of what Ind-TS loses, and less than the first in the end.",
        (
            rules.ShareOf(OURS, ORACLE, 1.2, "below"),
            rules.ShareOf(OURS, ALONE, 0.25, "below"),
            rules.LateShareOf(OURS, ORACLE, 1.0, "below"),
        ),
    ),
    Claim(
        8,
        ("survey-missing",),
        "With 30 % of all values missing, CoIDS loses at most a quarter more.",
        (rules.ShareOfEnvironment(OURS, "survey", 1.25),),
    ),
    Claim(
        9,
        ("yes-no",),
        "With yes/no rewards, CoIDS loses less than half of what Beta-Thompson sampling per user "
        "loses.",
        (rules.ShareOf(OURS, ALONE, 0.5, "below"),),
    ),
)
