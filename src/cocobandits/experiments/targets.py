"""What coids must show, held against a run: the same machinery as for the paper's claims.

Targets are about the seeds of the run. A part is met or not by its mean over them; the 95 %
interval beside it says how firmly.
"""

from cocobandits.experiments import target_criteria as target
from cocobandits.experiments.claims import Claim, is_about
from cocobandits.experiments.measures import ORACLE, Measures
from cocobandits.experiments.presets import STRESS, STUDIES

OURS = "coids"
ABOUT = (
    "CoIDS is this package's own policy. It learns the hyperparameters of the population too, is "
    "told how often a user is served, as the limit is, and plans for the user while it looks for "
    "information about the population."
)
# Where a planner has something to gain, and how much of the oracle's regret is left to it.
_SHARES_OF_ORACLE = {"mixture": 1.05, "partial": 0.75, "lmm-misspecified": 1.05}
_GROUPS, _YES_NO, _SURVEY, _GAPS = STUDIES
_GROUPS_SHARES, _GAPS_SHARE, _YES_NO_SHARE = {"oracle-ts": 1.2, "ind-ts": 0.25}, 1.25, 0.5
_SHARE_OF_IND, _WORST_SHARE_OF_IND, _STRESS_SHARE = 0.25, 0.5, 0.5


def assess_targets(measures: Measures) -> list[Claim]:
    """Hold all targets against what was measured; none, if coids was not run."""
    if OURS not in measures.policies:
        return []
    found = [
        like_the_oracle(measures),
        ends_ahead(measures),
        learns_the_line(measures),
        never_behind_gids(measures),
        holds_under_stress(measures),
        learns_many_arms(measures),
        bears_missing_context(measures),
        learns_from_yes_and_no(measures),
    ]
    # A target without parts is about policies that were not run.
    return [each for each in found if each.parts and is_about(each, measures)]


def like_the_oracle(measures: Measures) -> Claim:
    """Target 1: learning costs hardly more than being told."""
    shares = ", ".join(f"{limit:g} in {name}" for name, limit in _SHARES_OF_ORACLE.items())
    return Claim(
        1,
        ", ".join(_SHARES_OF_ORACLE),
        "CoIDS, which has to learn the population, loses hardly more than Thompson sampling that "
        "is told it, and less where information is worth most.",
        tuple(
            target.share(measures, environment, OURS, ORACLE, limit=target.Limit(limit))
            for environment, limit in _SHARES_OF_ORACLE.items()
        ),
        f"Mean total regret over OraclePrior-TS's is at most {shares}. {target.VERDICT_RULE}",
    )


def ends_ahead(measures: Measures) -> Claim:
    """Target 2: once learned, it does better."""
    return Claim(
        2,
        ", ".join(_SHARES_OF_ORACLE),
        "In the second half of the steps, CoIDS loses less than OraclePrior-TS.",
        tuple(
            target.share(
                measures,
                environment,
                OURS,
                ORACLE,
                limit=target.Limit(1.0, is_strict=True, is_second_half=True),
            )
            for environment in _SHARES_OF_ORACLE
        ),
        "Mean regret in the second half of the steps over OraclePrior-TS's is below 1. "
        f"{target.VERDICT_RULE}",
    )


def learns_the_line(measures: Measures) -> Claim:
    """Target 3: what all users share is learned, on every seed."""
    return Claim(
        3,
        "lmm",
        "CoIDS loses a quarter of what Ind-TS loses, and no more than half on any seed.",
        (
            target.share(measures, "lmm", OURS, "ind-ts", limit=target.Limit(_SHARE_OF_IND)),
            target.worst_seed(measures, "lmm", OURS, "ind-ts", limit=_WORST_SHARE_OF_IND),
        ),
        f"Mean total regret over Ind-TS's is at most {_SHARE_OF_IND:g}, and on no seed above "
        f"{_WORST_SHARE_OF_IND:g}. {target.VERDICT_RULE}",
    )


def never_behind_gids(measures: Measures) -> Claim:
    """Target 4: at least as good as the paper's best, wherever both ran."""
    shared = [name for name in measures.environments if measures.has(name, OURS, "gids")]
    return Claim(
        4,
        ", ".join(shared),
        "CoIDS is nowhere worse than GIDS.",
        tuple(target.not_worse(measures, environment, OURS, "gids") for environment in shared),
        "The difference in total regret, paired over seeds, is at most zero in every environment "
        f"where both ran. {target.VERDICT_RULE}",
    )


def holds_under_stress(measures: Measures) -> Claim:
    """Target 5: populations that nobody had in mind."""
    shared = [name for name in STRESS if name in measures.environments]
    return Claim(
        5,
        ", ".join(shared),
        "CoIDS loses less than half of what Ind-TS loses in every stress environment.",
        tuple(
            target.share(
                measures,
                environment,
                OURS,
                "ind-ts",
                limit=target.Limit(_STRESS_SHARE, is_strict=True),
            )
            for environment in shared
        ),
        f"Mean total regret over Ind-TS's is below {_STRESS_SHARE:g} in each. "
        f"{target.VERDICT_RULE}",
    )


def learns_many_arms(measures: Measures) -> Claim:
    """Target 6: ten arms, which nobody is served often enough to try."""
    limits = [
        *((name, target.Limit(share, is_strict=True)) for name, share in _GROUPS_SHARES.items()),
        (ORACLE, target.Limit(1.0, is_strict=True, is_second_half=True)),
    ]
    return Claim(
        6,
        _GROUPS,
        "With ten arms and four hidden groups CoIDS loses hardly more than Thompson sampling that "
        "is told the groups, a quarter of what Ind-TS loses, and less than the first in the end.",
        tuple(
            target.share(measures, _GROUPS, OURS, yardstick, limit=limit)
            for yardstick, limit in limits
        ),
        "Mean total regret is below 1.2 times OraclePrior-TS's and 0.25 times Ind-TS's, and in the "
        f"second half of the steps below OraclePrior-TS's. {target.VERDICT_RULE}",
    )


def bears_missing_context(measures: Measures) -> Claim:
    """Target 7: the same people with and without gaps in what is known of them."""
    has_both = {_SURVEY, _GAPS} <= set(measures.environments)
    return Claim(
        7,
        f"{_SURVEY}, {_GAPS}",
        "With 30 % of all values missing, CoIDS loses at most a quarter more.",
        (target.share_of_environment(measures, _GAPS, OURS, other=_SURVEY, limit=_GAPS_SHARE),)
        if has_both
        else (),
        f"Mean total regret over that with full context is at most {_GAPS_SHARE:g}. "
        f"{target.VERDICT_RULE}",
    )


def learns_from_yes_and_no(measures: Measures) -> Claim:
    """Target 8: rewards that are zero or one."""
    limit = target.Limit(_YES_NO_SHARE, is_strict=True)
    return Claim(
        8,
        _YES_NO,
        "With yes/no rewards CoIDS loses less than half of what Beta-Thompson per user loses.",
        (target.share(measures, _YES_NO, OURS, "ind-ts", limit=limit),),
        f"Mean total regret over that of Ind-TS, which is Beta-Thompson per user there, is below "
        f"{_YES_NO_SHARE:g}. {target.VERDICT_RULE}",
    )
