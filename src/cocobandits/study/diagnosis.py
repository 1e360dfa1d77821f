"""Is the population that a policy assumes the one that users come from? A monitor, in nats.

Three kinds of population explain all rewards so far: a nonparametric one (the particles' own
log-evidence), a Gaussian one (a linear mixed model, in closed form), and none (a flat prior for
every user, in closed form). The kind that a policy assumes is losing when another makes the rewards
far more probable. Of rewards that are 0 or 1, no Gaussian population is taken. Owns that comparison
and its words; changes nothing in a study.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln, logsumexp
from jaxtyping import Array, Float

from cocobandits.errors import NumericalError, UnsupportedError
from cocobandits.inference import smc
from cocobandits.policies.base import Problem
from cocobandits.policies.baselines.hierts import HierTS
from cocobandits.policies.baselines.mtts import MTTS
from cocobandits.policies.coco.descriptions import CoIDS, Learner
from cocobandits.policies.coco.policy import relearn
from cocobandits.policies.coco.populations import Mixture, noise_prior
from cocobandits.policies.description import PolicySettings
from cocobandits.populations.base import PopulationModel, floored_noise
from cocobandits.populations.hierarchy.linear_mixed import (
    LinearMixedModel,
    mixed_model_log_evidence,
)
from cocobandits.populations.truncated_normal import interval_log_likelihood
from cocobandits.study.design import StudyDesign
from cocobandits.types import RngKey, Scalar, Values
from cocobandits.users.table import UserTable

Candidate = Literal["nonparametric", "log-density", "mixture", "gaussian", "no-sharing"]

# Twice what Kass and Raftery (1995) call very strong evidence, and more than the few nats by which
# the particles' estimate differs between two random keys.
LOSING_NATS = 10.0
# Deviations of a user from the line, in standardised units: a Gaussian population without given
# settings is averaged over them.
USER_DEVIATIONS = (0.05, 0.1, 0.2, 0.4, 0.8)
# A noise that is not known is averaged over this many values, up to this many prior deviations off.
_NUM_NOISES, _NOISE_REACH = 341, 8.0


class _Kind(NamedTuple):
    """A kind of population: its meaning, who assumes it, and what to check before giving it up."""

    meaning: str
    policy: str
    check: str = "Check that arm means lie inside the range of rewards"


_KINDS: dict[Candidate, _Kind] = {
    "nonparametric": _Kind("a population of any shape", "'coids'"),
    "log-density": _Kind("a density over a grid of arm means", "CoIDS(population=LogDensity())"),
    "mixture": _Kind("a mixture of kinds of users", "CoIDS(population=Mixture())"),
    "gaussian": _Kind(
        "users with Gaussian deviations from a line",
        "'mtts'",
        "Check the settings of the policy, above all the user_deviation",
    ),
    "no-sharing": _Kind("users who have nothing in common", "'ind-ts'"),
}


@dataclass(frozen=True)
class Diagnosis:
    """How well each kind of population explains all rewards so far. Prints as a table.

    Log-evidences are densities of standardised rewards, or probabilities if rewards are 0 or 1.
    In units of reward each density would be larger by the number of rewards times the log of the
    scale, so differences between candidates do not depend on units.

    Attributes:
        log_evidences: candidate → log p(all rewards), in nats.
        policy: the policy of the study.
        in_use: the candidate that this policy assumes; None if it assumes none of them.
        num_users: users with rewards.
        num_rewards: rewards of all users.
    """

    log_evidences: dict[Candidate, float]
    policy: str
    in_use: Candidate | None
    num_users: int
    num_rewards: int

    @property
    def best(self) -> Candidate:
        """The candidate that makes the rewards most probable."""
        return max(self.log_evidences, key=self.log_evidences.__getitem__)

    @property
    def deficit(self) -> float | None:
        """Nats by which the candidate in use is behind the best; None if none is in use."""
        return None if self.in_use is None else self._behind(self.in_use)

    @property
    def is_losing(self) -> bool:
        """Whether the candidate in use is more than `LOSING_NATS` behind."""
        return self.deficit is not None and self.deficit > LOSING_NATS

    @property
    def warning(self) -> str | None:
        """What is wrong and what to do about it; None while the candidate in use is not losing."""
        if self.in_use is None or not self.is_losing:
            return None
        assumed, best = _KINDS[self.in_use], _KINDS[self.best]
        return (
            f"policy={self.policy!r} assumes {assumed.meaning}, but the rewards so far are "
            f"{self.deficit:.0f} nats more probable under {best.meaning}. {assumed.check}; if all "
            f"is right, start a new study with policy={best.policy}."
        )

    def __str__(self) -> str:
        lines = [f"{'population':<13}  {'log-evidence':>12}  {'behind':>8}"]
        for candidate, value in self.log_evidences.items():
            mark = "  in use" if candidate == self.in_use else ""
            lines.append(f"{candidate:<13}  {value:12.1f}  {self._behind(candidate):8.1f}{mark}")
        lines.append(f"in nats; {self.num_rewards} rewards of {self.num_users} users")
        return "\n".join(lines if self.warning is None else [*lines, self.warning])

    def _behind(self, candidate: Candidate) -> float:
        return self.log_evidences[self.best] - self.log_evidences[candidate]


def diagnose(
    rng_key: RngKey,
    design: StudyDesign,
    users: UserTable,
    log_evidence: float | None,
    has_other_model: bool = False,
) -> Diagnosis:
    """Compare all candidates; without a log-evidence of particles, learn it now.

    With `has_other_model`, the population model that was not chosen is learned now, too.

    Raises:
        ConfigurationError: a population that settings ask for, or the other one, is too large.
        UnsupportedError: there is no other model for rewards of this kind.
        NumericalError: no particle can explain a user, or an evidence is not finite.
    """
    problem = design.problem()
    # A policy that learns no population has the default one learned for it.
    learner = design.policy if isinstance(design.policy, Learner) else CoIDS()
    if has_other_model and problem.rewards != "gaussian":
        raise UnsupportedError(
            f"Expected Gaussian rewards for another population model; got rewards="
            f"{problem.rewards!r}, for which there is the mixture alone. Ask without it."
        )
    if log_evidence is None:
        model = learner.chosen(problem).settings.model(problem, learner.num_particles)
        log_evidence = learn_log_evidence(rng_key, model, users, learner.inference())
    learned: dict[Candidate, float] = {"nonparametric": log_evidence}
    if has_other_model:
        settings = learner.not_chosen(problem)
        name: Candidate = "mixture" if isinstance(settings, Mixture) else "log-density"
        other = settings.model(problem, learner.num_particles)
        other_key = jax.random.fold_in(rng_key, 1)
        learned[name] = learn_log_evidence(other_key, other, users, learner.inference())
    return compare(design, users, learned)


def compare(design: StudyDesign, users: UserTable, learned: Mapping[Candidate, float]) -> Diagnosis:
    """Compare the closed forms with the log-evidences of particles.

    MTTS and HierTS keep their own settings, and the initial covariance where they fit one: a
    density of rewards that it was fitted to would be no evidence. Otherwise the Gaussian candidate
    has a line per arm, MTTS's default deviation of coefficients, and an evidence averaged over
    `USER_DEVIATIONS`.

    Raises:
        NumericalError: an evidence is not finite.
    """
    problem = design.problem()
    log_evidences: dict[Candidate, float] = dict(learned)
    if problem.rewards == "gaussian":
        evidence = _gaussian_log_evidence(problem, design.policy, users)
        log_evidences["gaussian"] = float(evidence)
    log_evidences["no-sharing"] = float(_flat_log_evidence(problem, users))
    if not all(map(math.isfinite, log_evidences.values())):
        raise NumericalError(
            f"Expected finite log-evidences; got {log_evidences}. Check that the reward range and "
            "noise of the study fit the rewards."
        )
    counts = np.asarray(users.statistics.count).sum(axis=1)
    return Diagnosis(
        log_evidences,
        design.policy.name,
        design.policy.assumes,
        int(np.count_nonzero(counts)),
        round(counts.sum()),
    )


def learn_log_evidence(
    rng_key: RngKey, model: PopulationModel, users: UserTable, config: smc.SmcConfig
) -> float:
    """Learn a population from its prior and all rewards at once.

    Raises:
        NumericalError: no particle can explain the rewards.
    """
    return float(relearn(rng_key, model, users, config)[0].log_evidence)


def _noises(problem: Problem) -> tuple[Values, Values]:
    """List what the noise may be, with log-probabilities; just itself if it is known."""
    median, deviation = noise_prior(problem)
    if deviation == 0:
        return jnp.array([median]), jnp.zeros(1)
    steps = jnp.linspace(-_NOISE_REACH, _NOISE_REACH, _NUM_NOISES)
    noises = floored_noise(median * jnp.exp(deviation * steps), problem.reward_range)
    return noises, jax.nn.log_softmax(-(steps**2) / 2)


def _gaussian_log_evidence(problem: Problem, policy: PolicySettings, users: UserTable) -> Scalar:
    given = policy if isinstance(policy, MTTS | HierTS) else None
    model = (given or MTTS()).mixed_model(problem, reward_noise=1.0)
    deviations = USER_DEVIATIONS if given is None else (model.user_deviation,)
    return _average_log_evidence(model, users, jnp.array(deviations), *_noises(problem))


@jax.jit
def _average_log_evidence(
    model: LinearMixedModel,
    users: UserTable,
    user_deviations: Values,
    noises: Float[Array, " noise"],
    log_shares: Float[Array, " noise"],
) -> Scalar:
    def evidence(noise: Scalar, deviation: Scalar) -> Scalar:
        candidate = replace(model, user_deviation=deviation, reward_noise=noise)
        return mixed_model_log_evidence(candidate, users)

    # One noise after another: all at once would not fit the memory.
    table = jax.lax.map(lambda noise: jax.vmap(evidence, (None, 0))(noise, user_deviations), noises)
    return logsumexp(table + log_shares[:, None]) - math.log(len(user_deviations))


def _flat_log_evidence(problem: Problem, users: UserTable) -> Scalar:
    if problem.rewards == "bernoulli":
        return _sum_bernoulli(jnp.array(problem.reward_range), users)
    return _sum_flat(jnp.array(problem.reward_range), users, *_noises(problem))


@jax.jit
def _sum_flat(
    edges: Float[Array, " edge"],
    users: UserTable,
    noises: Float[Array, " noise"],
    log_shares: Float[Array, " noise"],
) -> Scalar:
    """Sum over users; a padding row has evidence one."""

    def evidence(noise: Scalar) -> Scalar:
        of_user = jax.vmap(interval_log_likelihood, in_axes=(0, None, None))
        return jnp.sum(of_user(users.statistics, noise, edges))

    return logsumexp(jax.vmap(evidence)(noises) + log_shares)


@jax.jit
def _sum_bernoulli(ends: Float[Array, " edge"], users: UserTable) -> Scalar:
    """Sum log ∫ p^s (1 - p)^f dp over users and arms; without rewards it is zero."""
    num_rewards, total, _ = users.statistics
    successes = (total - num_rewards * ends[0]) / (ends[1] - ends[0])
    return jnp.sum(betaln(1.0 + successes, 1.0 + num_rewards - successes))
