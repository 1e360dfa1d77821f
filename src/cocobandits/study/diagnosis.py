"""Is the population that a policy assumes the one that users come from? A monitor, in nats.

Three kinds of population explain all rewards so far: a nonparametric one (the particles' own
log-evidence), a Gaussian one (a linear mixed model, in closed form), and none (a flat prior for
every user, in closed form). The kind that a policy assumes is losing when another makes the rewards
far more probable. Owns that comparison and its words; changes nothing in a study.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from cocobandits.errors import NumericalError
from cocobandits.inference import smc
from cocobandits.models.base import PopulationModel, Statistics, floored_noise
from cocobandits.models.histories import Change, HistoryPath, UserTable
from cocobandits.models.linear_mixed import LinearMixedModel, mixed_model_log_evidence
from cocobandits.models.truncated_normal import interval_log_likelihood
from cocobandits.policies.base import Problem
from cocobandits.policies.mtts import MttsSettings
from cocobandits.policies.registry import log_density_model, noise_prior
from cocobandits.study.design import StudyDesign
from cocobandits.types import RngKey, Scalar, Values

Candidate = Literal["nonparametric", "gaussian", "no-sharing"]

# Twice what Kass and Raftery (1995) call very strong evidence, and more than the few nats by which
# the particles' estimate differs between two random keys.
LOSING_NATS = 10.0
# Deviations of a user from the line, in standardised units: what a Gaussian population that nobody
# was told is averaged over.
USER_DEVIATIONS = (0.05, 0.1, 0.2, 0.4, 0.8)
# A noise that is not known is averaged over this many values, up to so many prior deviations off.
_NUM_NOISES, _NOISE_REACH = 341, 8.0

# What each policy assumes; None if it is told the truth, or learns nothing from anybody.
ASSUMPTIONS: dict[str, Candidate | None] = {
    "coids": "nonparametric",
    "npm-ts": "nonparametric",
    "gids": "nonparametric",
    "mtts": "gaussian",
    "ind-ts": "no-sharing",
    "oracle-ts": None,
    "oracle-plan": None,
    "uniform": None,
}
_MEANINGS: dict[Candidate, str] = {
    "nonparametric": "a population of any shape",
    "gaussian": "users with Gaussian deviations from a line",
    "no-sharing": "users who have nothing in common",
}
# What to check before giving an assumption up, and who assumes the other instead.
_CHECKS: dict[Candidate, str] = {
    "nonparametric": "Check that arm means lie inside reward_range",
    "gaussian": "Check settings.mtts, above all its user_deviation",
    "no-sharing": "Check that arm means lie inside reward_range",
}
_SUCCESSORS: dict[Candidate, str] = {
    "nonparametric": "coids",
    "gaussian": "mtts",
    "no-sharing": "ind-ts",
}


@dataclass(frozen=True)
class Diagnosis:
    """How well each kind of population explains all rewards so far. Prints as a table.

    Log-evidences are densities of standardised rewards. In units of reward each of them would be
    larger by the number of rewards times the log of the scale, so differences between candidates
    do not depend on units.

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
        return (
            f"policy={self.policy!r} assumes {_MEANINGS[self.in_use]}, but the rewards so far are "
            f"{self.deficit:.0f} nats more probable under {_MEANINGS[self.best]}. "
            f"{_CHECKS[self.in_use]}; if all is right, start a new study with "
            f"policy={_SUCCESSORS[self.best]!r}."
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
    rng_key: RngKey, design: StudyDesign, users: UserTable, log_evidence: float | None
) -> Diagnosis:
    """Compare all candidates; without a log-evidence of particles, learn it now.

    Raises:
        ConfigurationError: the grid of the nonparametric population is too large for these arms.
        NumericalError: no particle can explain a user, or an evidence is not finite.
    """
    if log_evidence is None:
        model = log_density_model(design.problem(), design.settings)
        log_evidence = learn_log_evidence(rng_key, model, users, design.settings.inference)
    return compare(design, users, log_evidence)


def compare(design: StudyDesign, users: UserTable, nonparametric_log_evidence: float) -> Diagnosis:
    """Put the closed forms beside the log-evidence of particles.

    MTTS is held to its own settings. Otherwise the Gaussian candidate has a line per arm, MTTS's
    default deviation of coefficients, and an evidence averaged over `USER_DEVIATIONS`.

    Raises:
        NumericalError: an evidence is not finite.
    """
    problem = design.problem()
    told = design.settings.mtts if ASSUMPTIONS[design.policy] == "gaussian" else None
    log_evidences: dict[Candidate, float] = {
        "nonparametric": nonparametric_log_evidence,
        "gaussian": float(_gaussian_log_evidence(problem, told, users)),
        "no-sharing": float(_flat_log_evidence(problem, users)),
    }
    if not all(map(math.isfinite, log_evidences.values())):
        raise NumericalError(
            f"Expected finite log-evidences; got {log_evidences}. Check that the reward range and "
            "noise of the study fit the rewards."
        )
    counts = np.asarray(users.statistics.count).sum(axis=1)
    return Diagnosis(
        log_evidences,
        design.policy,
        ASSUMPTIONS[design.policy],
        int(np.count_nonzero(counts)),
        round(counts.sum()),
    )


def learn_log_evidence(
    rng_key: RngKey, model: PopulationModel, users: UserTable, config: smc.SmcConfig
) -> float:
    """Learn a population from its prior, one user after the other with all rewards at once.

    Raises:
        NumericalError: no particle can explain a user.
    """
    start_key, update_key = jax.random.split(rng_key)
    state = smc.init(start_key, model.num_parameters, config)
    learned = users._replace(statistics=Statistics(*map(jnp.zeros_like, users.statistics)))
    counts = np.asarray(users.statistics.count).sum(axis=1)
    for user in map(int, np.flatnonzero(counts)):
        statistics = users.of(user)[1]
        change = Change(learned, jnp.asarray(user), statistics)
        key = jax.random.fold_in(update_key, user)
        state, _ = smc.step(key, state, HistoryPath(model), change, config)
        learned = learned.replace(user, statistics)
    return float(state.log_evidence)


def _noises(problem: Problem) -> tuple[Values, Values]:
    """List what the noise may be, with log-probabilities; just itself if it is known."""
    median, deviation = noise_prior(problem)
    if deviation == 0:
        return jnp.array([median]), jnp.zeros(1)
    steps = jnp.linspace(-_NOISE_REACH, _NOISE_REACH, _NUM_NOISES)
    noises = floored_noise(median * jnp.exp(deviation * steps), problem.reward_range)
    return noises, jax.nn.log_softmax(-(steps**2) / 2)


def _gaussian_log_evidence(problem: Problem, told: MttsSettings | None, users: UserTable) -> Scalar:
    settings = MttsSettings() if told is None else told
    model = LinearMixedModel(
        jnp.asarray(settings.tensor(problem)),
        float(settings.coefficient_mean),
        float(settings.coefficient_deviation),
        float(settings.user_deviation),
        1.0,
        problem.features,
    )
    deviations = USER_DEVIATIONS if told is None else (model.user_deviation,)
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

    table = jax.vmap(jax.vmap(evidence, (None, 0)), (0, None))(noises, user_deviations)
    return logsumexp(table + log_shares[:, None]) - math.log(len(user_deviations))


def _flat_log_evidence(problem: Problem, users: UserTable) -> Scalar:
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
