"""Our own targets for CoIDS, as data: judged like the paper's claims.

A part is met or not by its mean over the seeds of the run.
"""

from cocobandits.experiments.claims import Claim
from cocobandits.experiments.measures import ORACLE
from cocobandits.experiments.presets import ENVIRONMENTS, STRESS, STUDIES
from cocobandits.experiments.target_rules import (
    NotWorse,
    ShareOf,
    ShareOfEnvironment,
    WorstSeed,
)

_OURS, _ALONE = "coids", "ind-ts"
_GROUPS, _YES_NO, _SURVEY, _GAPS = STUDIES
# Where a planner has something to gain.
_PLANNED = ("mixture", "partial", "lmm-misspecified")
ABOUT = (
    "CoIDS is this package's own policy. It also learns the hyperparameters of the population, "
    "knows how often a user will be served, as the limit does, and plans for the user while it "
    "gathers information about the population."
)

TARGETS = (
    Claim(
        1,
        ("mixture", "lmm-misspecified"),
        "CoIDS, which has to learn the population, loses hardly more than Thompson sampling that "
        "knows it.",
        "CoIDS loses hardly more than the oracle",
        (ShareOf(_OURS, ORACLE, 1.05),),
    ),
    Claim(
        2,
        ("partial",),
        "Where information is worth most, CoIDS loses at most three quarters of that.",
        "CoIDS loses less where information pays most",
        (ShareOf(_OURS, ORACLE, 0.75),),
    ),
    Claim(
        3,
        _PLANNED,
        "In the second half of the steps, CoIDS loses less than OraclePrior-TS.",
        "CoIDS ends ahead of the oracle",
        (ShareOf(_OURS, ORACLE, 1.0, is_strict=True, is_second_half=True),),
    ),
    Claim(
        4,
        ("lmm",),
        "CoIDS loses a quarter of what Ind-TS loses, and no more than half on any seed.",
        "CoIDS loses a quarter of Ind-TS's regret",
        (ShareOf(_OURS, _ALONE, 0.25), WorstSeed(_OURS, _ALONE, 0.5)),
    ),
    Claim(
        5,
        ENVIRONMENTS,
        "CoIDS is nowhere worse than GIDS.",
        "CoIDS is never behind GIDS",
        (NotWorse(_OURS, "gids"),),
    ),
    Claim(
        6,
        STRESS,
        "CoIDS loses less than half of what Ind-TS loses in every stress environment.",
        "CoIDS halves Ind-TS's regret under stress",
        (ShareOf(_OURS, _ALONE, 0.5, is_strict=True),),
    ),
    Claim(
        7,
        (_GROUPS,),
        "With ten arms and four latent groups, CoIDS loses hardly more than Thompson sampling that "
        "knows the groups, a quarter of what Ind-TS loses, and less than the first in the end.",
        "CoIDS learns ten arms",
        (
            ShareOf(_OURS, ORACLE, 1.2, is_strict=True),
            ShareOf(_OURS, _ALONE, 0.25, is_strict=True),
            ShareOf(_OURS, ORACLE, 1.0, is_strict=True, is_second_half=True),
        ),
    ),
    Claim(
        8,
        (_GAPS,),
        "With 30 % of all values missing, CoIDS loses at most a quarter more.",
        "CoIDS copes with missing context",
        (ShareOfEnvironment(_OURS, baseline=_SURVEY, limit=1.25),),
    ),
    Claim(
        9,
        (_YES_NO,),
        "With yes/no rewards, CoIDS loses less than half of what Beta-Thompson sampling per user "
        "loses.",
        "CoIDS learns from yes/no rewards",
        (ShareOf(_OURS, _ALONE, 0.5, is_strict=True),),
    ),
)
