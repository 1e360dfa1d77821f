"""Who loses how much compared with Ind-TS, and who ranks where, over several environments."""

from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from cocobandits.experiments.estimates import ratio
from cocobandits.experiments.rules import ALONE
from cocobandits.runs.results import Results


class Standing(NamedTuple):
    """Where a policy stands, over the environments in which all ran.

    Attributes:
        policy: its name.
        mean_rank: rank among the policies of an environment, averaged; one is best.
        share: its regret over that of Ind-TS, as a geometric mean; NaN where that loses nothing.
        num_environments: in how many it ran at all.
        milliseconds: per interaction: the median over seeds, of which the first of each process
            compiles, averaged over environments.
    """

    policy: str
    mean_rank: float
    share: float
    num_environments: int
    milliseconds: float


def rank(results: Results) -> list[Standing]:
    """Order policies by their mean rank, those with a smaller share first among equals.

    Where no environment has all policies, each counts among those that ran there.
    """
    ranks: dict[str, dict[str, float]] = {policy: {} for policy in results.policies}
    for environment in shared_environments(results) or results.environments:
        ran = [name for name in results.policies if results.has(environment, name)]
        means = [results.total_regret(environment, name).mean() for name in ran]
        for name, position in zip(ran, rankdata(means), strict=True):
            ranks[name][environment] = position
    standings = [
        Standing(
            policy,
            float(np.mean(list(mine.values()))),
            mean_share(results, list(mine), policy),
            sum(results.has(name, policy) for name in results.environments),
            float(np.mean([np.median(results.milliseconds(name, policy)) for name in mine])),
        )
        for policy, mine in ranks.items()
    ]
    return sorted(standings, key=lambda each: (each.mean_rank, each.share))


def shared_environments(results: Results) -> list[str]:
    """List the environments in which all policies ran; there may be none."""
    return [name for name in results.environments if results.has(name, *results.policies)]


def share(results: Results, environment: str, policy: str) -> float:
    """Divide mean total regret by that of Ind-TS; NaN if that is zero."""
    totals = (results.total_regret(environment, name) for name in (policy, ALONE))
    return ratio(*totals).mean


def mean_share(results: Results, environments: list[str], policy: str) -> float:
    """Compute the geometric mean of the shares in several environments."""
    shares = [share(results, name, policy) for name in environments]
    return float(np.exp(np.mean(np.log(np.maximum(shares, 1e-12)))))


def libraries(results: Results) -> list[str]:
    """List the policies that are those of other libraries."""
    return [name for name in results.policies if results.fact(name, "library")]
