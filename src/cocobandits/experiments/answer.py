"""The answer of a report: does the paper's method do what it says?

Counts verdicts, and adds the two or three figures that a reader asks for next. Every number is
computed from the run.
"""

from collections.abc import Iterable

import numpy as np

from cocobandits.experiments import presets
from cocobandits.experiments.claims import (
    AGREES,
    CLAIMS,
    DISAGREES,
    DISAGREES_IN_PART,
    FAILS,
    HOLDS,
    IN_PART,
    OPEN,
    TOO_SMALL,
    Judgement,
)
from cocobandits.experiments.drawing import label_of
from cocobandits.experiments.estimates import number, percent, ratio
from cocobandits.experiments.measures import ORACLE, Measures

QUESTION = "Does the paper's method do what it says?"
READINGS = (
    "The paper gives no numbers, no kernel amplitude and no number of newcomers, so the split into "
    "eight claims and the readings of its words are ours, and we settled them after we had seen "
    "the first results."
)
# The page of the committed ten-seed run, which decides what a small run only indicates.
TEN_SEEDS = "docs/reproduction.md"
SYMBOLS = {
    HOLDS: "✓",
    IN_PART: "◐",
    FAILS: "✗",
    OPEN: "○",
    AGREES: "✓",
    DISAGREES_IN_PART: "◐",
    DISAGREES: "✗",
    TOO_SMALL: "○",
}
# Of a single finding.
MARKS = {True: "✓", False: "✗", None: "○"}
_ROLES = {
    "npm-ts": "the paper's ",
    "gids": "the paper's ",
    "mtts": "the baseline (given the true design in lmm) ",
    "coids": "our ",
    ORACLE: "the oracle ",
}
_ALONE = "ind-ts"
# By verdict, for one claim and for several; the braces are how many.
_VERBS = {
    HOLDS: ("{} holds", "{} hold"),
    IN_PART: ("{} holds in part", "{} hold in part"),
    FAILS: ("{} does not", "{} do not"),
    OPEN: ("{} is not decided", "{} are not decided"),
    AGREES: ("agrees with {}",) * 2,
    DISAGREES_IN_PART: ("disagrees in part with {}",) * 2,
    DISAGREES: ("disagrees with {}",) * 2,
    TOO_SMALL: ("is too small to tell for {}",) * 2,
}


def answer(judgements: list[Judgement], measures: Measures, is_run_small: bool) -> str:
    """Answer the question of the page in one paragraph; empty if no claim could be judged."""
    if not judgements:
        return ""
    lead = _lead(judgements, is_run_small)
    return " ".join([lead, *_shares(measures), *_details(judgements, is_run_small)])


def _details(judgements: list[Judgement], is_run_small: bool) -> list[str]:
    """Explain the claims that fail, and those of which no part fails."""
    failing = (DISAGREES, FAILS)
    failed = [
        f"Claim {each.claim.number} {'disagrees' if is_run_small else 'does not hold'}: "
        f"{next(finding.text for finding in each.findings if finding.holds is False)}."
        for each in judgements
        if each.word(is_run_small) in failing
    ]
    if is_run_small:
        return failed
    open_parts = [
        str(each.claim.number)
        for each in judgements
        if each.verdict == IN_PART and False not in {found.holds for found in each.findings}
    ]
    if open_parts:
        which = f"claim{'s' if len(open_parts) > 1 else ''} {_joined(open_parts)}"
        failed.append(f"No part of {which} fails; the rest is undecided there.")
    strict = _counts((each.claim.number, each.strict_verdict) for each in judgements)
    return [*failed, f"Read strictly, {strict}."]


def _lead(judgements: list[Judgement], is_run_small: bool) -> str:
    """Count the verdicts, and sum them up in a word or two if every claim was judged."""
    counts = _counts((each.claim.number, each.word(is_run_small)) for each in judgements)
    small = "This run is small, so it only indicates. " if is_run_small else ""
    if len(judgements) < len(CLAIMS):
        subject = "It" if is_run_small else "This run"
        scope = f"{subject} can speak to {len(judgements)} of the paper's {len(CLAIMS)} claims: "
    else:
        scope = f"Of the paper's {len(CLAIMS)} claims, "
        small = small or f"{_short(judgements)} "
    return f"{small}{scope}{'it ' if is_run_small else ''}{counts}."


def _short(judgements: list[Judgement]) -> str:
    verdicts = [each.verdict for each in judgements]
    num_whole, num_some = verdicts.count(HOLDS), verdicts.count(IN_PART)
    if num_whole == len(verdicts):
        return "Yes."
    if num_whole >= len(verdicts) / 2 and num_whole + num_some >= 0.75 * len(verdicts):
        return "Mostly."
    return "In part." if num_whole + num_some else "No."


def count_targets(judgements: list[Judgement], is_run_small: bool) -> str:
    """Count the verdicts on our own targets; empty if none was judged."""
    if not judgements:
        return ""
    counts = _counts((each.claim.number, each.word(is_run_small)) for each in judgements)
    noun = "target" if len(judgements) == 1 else "targets"
    return f"Of {len(judgements)} {noun}, {'this run ' if is_run_small else ''}{counts}."


def count_claims(judgements: list[Judgement]) -> str:
    """Count the verdicts of a run that is large enough to decide claims."""
    counts = _counts((each.claim.number, each.verdict) for each in judgements)
    return f"Of the paper's {len(judgements)} claims, {counts}."


def _counts(found: Iterable[tuple[int, str]]) -> str:
    """Write '4 hold (1, 2, 5, 6) and 1 does not (3)'."""
    numbers: dict[str, list[str]] = {verdict: [] for verdict in _VERBS}
    for number_of_claim, verdict in found:
        numbers[verdict].append(str(number_of_claim))
    texts = [
        f"{_VERBS[verdict][len(each) > 1].format(len(each))} ({', '.join(each)})"
        for verdict, each in numbers.items()
        if each
    ]
    return _joined(texts)


def _joined(texts: list[str]) -> str:
    """Write 'a, b and c'."""
    return f"{', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else texts[0]


def _shares(measures: Measures) -> list[str]:
    """Compare the paper's policies, ours and the oracle with Ind-TS in its environments."""
    names = [name for name in presets.ENVIRONMENTS if measures.has(name, _ALONE)]
    policies = [
        policy for policy in _ROLES if names and all(measures.has(name, policy) for name in names)
    ]
    if not policies:
        return []
    shown = [
        f"{_ROLES[policy]}{label_of(policy)} {percent(_share(measures, names, policy))}"
        for policy in policies
    ]
    where = f"the {len(names)} environments" if len(names) > 1 else names[0]
    return [
        f"Regret as a share of independent Thompson sampling's (geometric mean over {where}): "
        f"{', '.join(shown)}."
    ]


def _share(measures: Measures, names: list[str], policy: str) -> float:
    """Compute the geometric mean; NaN where Ind-TS loses nothing."""
    shares = [
        ratio(measures.total_regret(name, policy), measures.total_regret(name, _ALONE)).mean
        for name in names
    ]
    return float(np.prod(shares) ** (1 / len(shares)))


def rankings(measures: Measures) -> list[str]:
    """List the mean total regrets of every environment, lowest first."""
    found = []
    for name in measures.environments:
        totals = {
            policy: float(measures.total_regret(name, policy).mean())
            for policy in measures.policies
            if measures.has(name, policy)
        }
        ordered = sorted(totals, key=lambda policy: totals[policy])
        shown = ", ".join(f"{label_of(policy)} {number(totals[policy])}" for policy in ordered)
        found.append(f"Total regret in {name}: {shown}.")
    return found


def summary(judgements: list[Judgement], is_run_small: bool) -> list[str]:
    """Write the answer for a terminal: a sentence, then one line per claim."""
    if not judgements:
        return []
    lines = [_lead(judgements, is_run_small)]
    for each in judgements:
        word = each.word(is_run_small)
        where = ", ".join(each.claim.environments)
        lines.append(
            f"  {SYMBOLS[word]} {each.claim.number} {word:<17}  {each.claim.short} ({where})"
        )
    return lines
