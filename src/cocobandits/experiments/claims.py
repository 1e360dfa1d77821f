"""The paper's eight statements about its experiments, held against a run (paper, "Results").

Owns the list of claims and how parts add up to a verdict; the rules stand in `regret_criteria`
and `learning_criteria`. Verdicts and numbers are computed.
"""

from collections.abc import Callable
from typing import NamedTuple

from cocobandits.experiments import learning_criteria as learning
from cocobandits.experiments import regret_criteria as regret
from cocobandits.experiments.criteria import Part
from cocobandits.experiments.measures import Measures

HOLDS, FAILS, MIXED, OPEN = "holds", "does not hold", "mixed", "not decided"
OURS = ("npm-ts", "gids")


class Claim(NamedTuple):
    """A statement of the paper and what the run says about it."""

    number: int
    environment: str
    statement: str
    parts: tuple[Part, ...]
    rule: str

    @property
    def verdict(self) -> str:
        """Say whether all parts hold; a part that does not outweighs those not decided."""
        outcomes = {part.holds for part in self.parts}
        if False in outcomes:
            return MIXED if True in outcomes else FAILS
        return OPEN if None in outcomes else HOLDS

    @property
    def measured(self) -> str:
        """List what was measured for each part, with its outcome."""
        return "; ".join(f"{part.told} ({part.outcome})" for part in self.parts) + "."


def assess(measures: Measures) -> list[Claim]:
    """Hold all claims against what was measured; what several parts tell alike is told once.

    There are none in a run without any of the paper's environments.
    """
    claims = [claim(measures) for claim in CLAIMS]
    if not any(is_about(claim, measures) for claim in claims):
        return []
    return [claim._replace(parts=tuple(dict.fromkeys(claim.parts))) for claim in claims]


def is_about(claim: Claim, measures: Measures) -> bool:
    """Tell whether an environment that a claim is about was run."""
    return bool(set(claim.environment.split(", ")) & set(measures.environments))


def mixture_converges(measures: Measures) -> Claim:
    """Claim 1: both our policies end up like the oracle."""
    environment = "mixture"
    return Claim(
        1,
        environment,
        "NPM-TS and GIDS come to act like the oracle: their multi-task regret flattens and their "
        "evaluation regret approaches the oracle's.",
        _for_each(OURS, measures, environment, regret.flattens, learning.approaches),
        f"{regret.FLATTENS_RULE} {learning.APPROACHES_RULE}",
    )


def mixture_gids_ahead(measures: Measures) -> Claim:
    """Claim 2: information-directed sampling pays."""
    environment = "mixture"
    return Claim(
        2,
        environment,
        "GIDS loses less than NPM-TS.",
        (regret.less(measures, environment, "gids", "npm-ts"),),
        regret.LESS_RULE,
    )


def mixture_explores_early(measures: Measures) -> Claim:
    """Claim 3: it pays because of early pulls of an arm that informs."""
    environment = "mixture"
    return Claim(
        3,
        environment,
        "GIDS starts by pulling an arm that informs although it is not best.",
        (
            learning.third_arm_fades(measures, environment, "gids"),
            learning.third_arm_exceeds(measures, environment, "gids", "npm-ts"),
        ),
        learning.THIRD_ARM_RULE,
    )


def partial_close(measures: Measures) -> Claim:
    """Claim 4: both learn, and the acquisition matters little."""
    environment = "partial"
    return Claim(
        4,
        environment,
        "NPM-TS and GIDS gradually align with the oracle, and lie close together.",
        (
            *_for_each(OURS, measures, environment, learning.approaches),
            regret.close(measures, environment, "gids", "npm-ts"),
        ),
        f"{learning.APPROACHES_RULE} {regret.CLOSE_RULE}",
    )


def lmm_mtts_fastest(measures: Measures) -> Claim:
    """Claim 5: the right parametric model wins, ours still gain from sharing."""
    environment = "lmm"
    return Claim(
        5,
        environment,
        "MTTS, whose assumptions are met, learns fastest; NPM-TS and GIDS still beat Ind-TS and "
        "converge.",
        (
            *(regret.less(measures, environment, "mtts", policy) for policy in OURS),
            *(regret.less(measures, environment, policy, "ind-ts") for policy in OURS),
            *_for_each(OURS, measures, environment, learning.approaches),
        ),
        f"{regret.LESS_RULE} {learning.APPROACHES_RULE}",
    )


def misspecified_mtts_linear(measures: Measures) -> Claim:
    """Claim 6: the wrong parametric model never stops losing."""
    environment = "lmm-misspecified"
    return Claim(
        6,
        environment,
        "MTTS, whose assumptions are broken, has linear regret and does worse than Ind-TS.",
        (
            regret.linear(measures, environment, "mtts"),
            regret.less(measures, environment, "ind-ts", "mtts"),
        ),
        f"{regret.LINEAR_RULE} {regret.LESS_RULE}",
    )


def misspecified_mtts_turns(measures: Measures) -> Claim:
    """Claim 7: its prior gets better, then worse."""
    environment = "lmm-misspecified"
    return Claim(
        7,
        environment,
        "The evaluation regret of MTTS falls at first and then rises.",
        (
            learning.falls(measures, environment, "mtts"),
            learning.rises(measures, environment, "mtts"),
        ),
        learning.TURNS_RULE,
    )


def misspecified_converges(measures: Measures) -> Claim:
    """Claim 8: ours do not mind."""
    environment = "lmm-misspecified"
    return Claim(
        8,
        environment,
        "NPM-TS and GIDS converge, and their evaluation regret approaches the oracle's.",
        _for_each(OURS, measures, environment, regret.flattens, learning.approaches),
        f"{regret.FLATTENS_RULE} {learning.APPROACHES_RULE}",
    )


CLAIMS: tuple[Callable[[Measures], Claim], ...] = (
    mixture_converges,
    mixture_gids_ahead,
    mixture_explores_early,
    partial_close,
    lmm_mtts_fastest,
    misspecified_mtts_linear,
    misspecified_mtts_turns,
    misspecified_converges,
)


def _for_each(
    policies: tuple[str, ...],
    measures: Measures,
    environment: str,
    *rules: Callable[[Measures, str, str], Part],
) -> tuple[Part, ...]:
    return tuple(rule(measures, environment, policy) for rule in rules for policy in policies)
