"""The paper's eight claims about its experiments, as data (paper, "Results").

Owns the claims, how findings combine into a verdict, and which claims a run can speak to. A claim
has two sets of rules: those of an ordinary careful reader, which decide it, and strict ones.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cocobandits.experiments.learning_rules import (
    Approaches,
    ExploresMore,
    Falls,
    Rises,
    ThirdArmExceeds,
    ThirdArmFades,
)
from cocobandits.experiments.measures import Measures
from cocobandits.experiments.regret_rules import (
    Close,
    Flattens,
    Less,
    Linear,
    SlopeDrops,
    SlopeStays,
    WithinShare,
)
from cocobandits.experiments.rules import Finding, Rule

HOLDS, FAILS, IN_PART, OPEN = "holds", "does not hold", "in part", "not decided"
AGREES, DISAGREES, TOO_SMALL = "agrees", "disagrees", "too small to tell"
DISAGREES_IN_PART = "disagrees in part"


@dataclass(frozen=True)
class Claim:
    """A statement, and the rules that decide it; every rule is applied in every environment.

    Attributes:
        number: its place in the paper's "Results", or in our list of targets.
        environments: where it is made.
        statement: the claim in one sentence.
        short: the claim in a few words, for a line on a terminal.
        rules: that decide it.
        strict: stricter readings of the same words, if any.
    """

    number: int
    environments: tuple[str, ...]
    statement: str
    short: str
    rules: tuple[Rule, ...]
    strict: tuple[Rule, ...] = ()

    def is_decidable(self, measures: Measures) -> bool:
        """Check that the run has every environment and policy that the claim is about."""
        return all(
            name in measures.environments and measures.has(name, *rule.policies)
            for rule in (*self.rules, *self.strict)
            for name in (*self.environments, *rule.other_environments)
        )


class Judgement(NamedTuple):
    """A claim and what a run found about it."""

    claim: Claim
    findings: tuple[Finding, ...]
    strict_findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """The verdict of the claim's rules."""
        return verdict(self.findings)

    @property
    def strict_verdict(self) -> str:
        """The verdict of the strict rules."""
        return verdict(self.strict_findings)

    @property
    def agreement(self) -> str:
        """The verdict of a small run."""
        return agreement(self.findings)

    @property
    def strict_agreement(self) -> str:
        """The verdict of the strict rules in a small run."""
        return agreement(self.strict_findings)

    def word(self, is_run_small: bool) -> str:
        """The verdict in the words of a small or of a large run."""
        return self.agreement if is_run_small else self.verdict

    def strict_word(self, is_run_small: bool) -> str:
        """The verdict of the strict rules in the words of a small or of a large run."""
        return self.strict_agreement if is_run_small else self.strict_verdict

    @property
    def rule(self) -> str:
        """The rules in words, each once."""
        return _words(self.claim.rules)

    @property
    def strict_rule(self) -> str:
        """The strict rules in words, each once."""
        return _words(self.claim.strict)


def judge(claims: Iterable[Claim], measures: Measures) -> list[Judgement]:
    """Judge the claims that a run can speak to, in their order."""
    return [
        Judgement(claim, _findings(claim, claim.rules, measures), _strict(claim, measures))
        for claim in claims
        if claim.is_decidable(measures)
    ]


def verdict(findings: Sequence[Finding]) -> str:
    """Combine findings: a claim holds if all of its parts do, and in part if some do."""
    outcomes = {finding.holds for finding in findings}
    if True in outcomes:
        return HOLDS if outcomes == {True} else IN_PART
    return FAILS if False in outcomes else OPEN


def agreement(findings: Sequence[Finding]) -> str:
    """Combine the findings of a small run, in which an undecided part decides nothing."""
    outcomes = {finding.holds for finding in findings}
    if False in outcomes:
        return DISAGREES_IN_PART if True in outcomes else DISAGREES
    return AGREES if outcomes == {True} else TOO_SMALL


def _strict(claim: Claim, measures: Measures) -> tuple[Finding, ...]:
    return _findings(claim, claim.strict, measures)


def _findings(claim: Claim, rules: tuple[Rule, ...], measures: Measures) -> tuple[Finding, ...]:
    """Apply rules in every environment, which the text names where there are several."""
    found = []
    for rule in rules:
        for environment in claim.environments:
            finding = rule.find(measures, environment)
            where = f"{environment}: " if len(claim.environments) > 1 else ""
            found.append(finding._replace(text=where + finding.text))
    return tuple(found)


def _words(rules: tuple[Rule, ...]) -> str:
    return " ".join(dict.fromkeys(rule.words for rule in rules))


def _each(rule: type[Rule], **settings: Any) -> tuple[Rule, ...]:
    """Apply one rule to both of the paper's policies."""
    return tuple(rule(policy, **settings) for policy in ("npm-ts", "gids"))


_APPROACH_STRICTLY = _each(Approaches, closed=0.8, is_last_round=True)

CLAIMS = (
    Claim(
        1,
        ("mixture",),
        "NPM-TS and GIDS converge to the oracle's behaviour: their multi-task regret flattens, and "
        "their evaluation regret approaches the oracle's.",
        "NPM-TS and GIDS converge to the oracle",
        (*_each(Flattens), *_each(Approaches)),
        (*_each(SlopeDrops), *_APPROACH_STRICTLY),
    ),
    Claim(
        2,
        ("mixture",),
        "GIDS has lower regret than NPM-TS.",
        "GIDS beats NPM-TS",
        (Less("gids", "npm-ts"),),
        (Less("gids", "npm-ts"),),
    ),
    Claim(
        3,
        ("mixture",),
        "GIDS wins because it first explores informative arms that are not the best.",
        "GIDS wins by exploring poor arms first",
        (ExploresMore("gids", "npm-ts"),),
        (ThirdArmFades("gids"), ThirdArmExceeds("gids", "npm-ts")),
    ),
    Claim(
        4,
        ("partial",),
        "NPM-TS and GIDS gradually align with the oracle, and the gap between them is small.",
        "both align with the oracle, close together",
        (*_each(Approaches), Close("gids", "npm-ts")),
        (*_APPROACH_STRICTLY, WithinShare("gids", "npm-ts")),
    ),
    Claim(
        5,
        ("lmm",),
        "MTTS, whose assumptions hold, converges fastest; NPM-TS and GIDS still converge, and beat "
        "Ind-TS.",
        "MTTS is fastest; both converge and beat Ind-TS",
        (
            *(Less("mtts", policy) for policy in ("npm-ts", "gids")),
            *_each(Less, other="ind-ts"),
            *_each(Approaches),
        ),
        (
            *(Less("mtts", policy) for policy in ("npm-ts", "gids")),
            *_each(Less, other="ind-ts"),
            *_APPROACH_STRICTLY,
        ),
    ),
    Claim(
        6,
        ("lmm-misspecified",),
        "MTTS, whose assumptions are violated, has linear regret and does worse than Ind-TS.",
        "MTTS has linear regret, worse than Ind-TS",
        (Linear("mtts"), Less("ind-ts", "mtts")),
        (SlopeStays("mtts"), Less("ind-ts", "mtts")),
    ),
    Claim(
        7,
        ("lmm-misspecified",),
        "The evaluation regret of MTTS decreases at first and then increases.",
        "MTTS's evaluation regret falls, then rises",
        (Falls("mtts"), Rises("mtts")),
        (Falls("mtts"), Rises("mtts")),
    ),
    Claim(
        8,
        ("lmm-misspecified",),
        "NPM-TS and GIDS converge, and their evaluation regret approaches the oracle's.",
        "NPM-TS and GIDS converge to the oracle",
        (*_each(Flattens), *_each(Approaches)),
        (*_each(SlopeDrops), *_APPROACH_STRICTLY),
    ),
)
