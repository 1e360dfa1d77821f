"""What a study can be asked. No answer changes what it has learned or will decide.

In the background, a question adopts moves that are done.
"""

from abc import ABC
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import jax.numpy as jnp

from cocobandits.errors import UnsupportedError
from cocobandits.inference.smc import SmcInfo
from cocobandits.models.base import Belief
from cocobandits.policies.base import Policy
from cocobandits.study.background import Adoption
from cocobandits.study.context import ContextValue, ContextValues, read_context
from cocobandits.study.decisions import Decision, DecisionLog
from cocobandits.study.description import Description, describe
from cocobandits.study.design import StudyDesign
from cocobandits.study.diagnosis import Diagnosis, diagnose
from cocobandits.study.explanation import (
    Explanation,
    explain,
    motives_of,
    read_summary,
    summarise_hyperparameters,
)
from cocobandits.study.learner import Learner
from cocobandits.study.log_rows import log_metadata, log_rows
from cocobandits.study.log_table import build_log, write_log
from cocobandits.study.off_policy import OffPolicyReport, evaluate_log, to_open_bandit
from cocobandits.study.off_policy.target import Target
from cocobandits.study.population import Population, describe_population
from cocobandits.study.roster import ArmStatus, Roster
from cocobandits.study.users import Users

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class Questions(ABC):
    """The part of a study that is read: what was learned, who takes part, and the log."""

    _learner: Learner
    _users: Users
    _roster: Roster
    _log: DecisionLog

    @property
    def design(self) -> StudyDesign:
        """What was fixed when the study started, and the arms that were added since."""
        return self._learner.design

    @property
    def users(self) -> tuple[str, ...]:
        """Everyone who is enrolled and has not withdrawn, in the order of enrolment."""
        return self._users.enrolled

    @property
    def arms(self) -> dict[str, ArmStatus]:
        """Arm → "active", "suspended" or "withdrawn"."""
        return self._roster.statuses

    @property
    def num_decisions(self) -> int:
        """How many decisions were made."""
        return len(self._log)

    @property
    def health(self) -> SmcInfo | None:
        """Diagnostics of the last update; None before it, or if the policy has no particles.

        In the background: of the last reweighting, or of the moves adopted since.
        """
        return self._learner.health

    @property
    def adoptions(self) -> tuple[Adoption, ...]:
        """When moves in the background were adopted, or given up; empty in the foreground."""
        return tuple(self._learner.adoptions)

    @property
    def log_evidence(self) -> float | None:
        """The log of p(all rewards) under the model; None for a policy without particles."""
        return self._learner.log_evidence

    @property
    def is_moving(self) -> bool:
        """Whether particles are being moved in the background now."""
        return self._learner.background is not None and self._learner.background.is_moving

    def context(self, user: str) -> dict[str, ContextValue]:
        """Return what is known of a user, as it was given; None is missing.

        Raises:
            UnknownNameError: the user is not enrolled.
        """
        return self._users.show(self._users.find(user))

    def decision(self, decision_id: str) -> Decision:
        """Look up a decision by its id.

        Raises:
            UnknownNameError: there is no such decision.
        """
        number = self._log.find(decision_id)
        user = self._users.names[self._log.users[number]]
        return self._log.read(number, user, self.design.arms)

    def explain(self, user: str) -> Explanation:
        """Say what is believed about each arm for a user, and where the uncertainty comes from.

        What a probability is for is said of active arms, as if all of them were eligible and had no
        floors.

        Raises:
            UnknownNameError: the user is not enrolled.
            UnsupportedError: the policy holds no beliefs.
        """
        number = self._users.find(user)
        self._adopt()
        policy, state, arms = self._policy, self._state, self._roster.active
        table = self._learner.users
        context, statistics = table.of(number)
        readings = self._believing(policy.read(state, table, (context, statistics), read_summary))
        some = None if len(arms) == len(self.design.arms) else arms
        motives = policy.motives(state, table, number, some) if len(arms) > 1 else None
        return explain(user, self.design, readings, motives_of(self.design, arms, motives))

    def diagnose(self, has_other_model: bool = False) -> Diagnosis:
        """Compare, in nats, what the policy assumes of the population with what else there is.

        Asked for the other model, the mixture is learned beside the log-density, or the log-density
        beside the mixture, from all rewards.

        A policy without particles (mtts, ind-ts) has a nonparametric population learned for it now,
        which takes seconds to minutes.

        Raises:
            ConfigurationError: the population that settings ask for, or the other one, is too large
                for these arms.
            UnsupportedError: rewards are yes or no, and there is no other model for them.
            NumericalError: no particle can explain the rewards.
        """
        self._adopt()
        key = self._learner.key("diagnose", self._learner.num_updates)
        users = self._learner.users
        return diagnose(key, self.design, users, self.log_evidence, has_other_model)

    def hyperparameters(self) -> dict[str, tuple[float, float, float]]:
        """Summarise what particles have learned besides the population: 5 %, 50 % and 95 % points.

        Lengthscales are in units of reward and of each feature, `amplitude` in nats, `noise` in
        units of reward. Empty for a policy that learns none.
        """
        self._adopt()
        return summarise_hyperparameters(self.design, self._policy.hyperparameters(self._state))

    def population(self, context: ContextValues | None = None) -> Population:
        """Describe the arm means of users at a context, under the posterior mean population.

        What is missing from the context is averaged over.

        Raises:
            InputError: the context is refused.
            UnknownNameError: a feature was never declared.
            UnsupportedError: the policy holds no beliefs.
        """
        return describe_population(self.design, self.prior(context), self._policy.mean_range)

    def prior(self, context: ContextValues | None = None) -> Belief:
        """Return the belief about somebody new at a context, in standardised units.

        There, more is better, whatever it is in the study. What is missing from the context is
        averaged over. It is a snapshot: it can be conditioned on rewards that the study never
        learns of.

        Raises:
            InputError: the context is refused.
            UnknownNameError: a feature was never declared.
            UnsupportedError: the policy holds no beliefs.
        """
        read = read_context(self.design.features, {} if context is None else context)
        self._adopt()
        context_or_points = jnp.asarray(self._users.complete(read))
        return self._believing(
            self._policy.prior(self._state, self._learner.users, context_or_points)
        )

    def describe(self) -> Description:
        """Say what the study is, which population it learns and why, and how far it has come."""
        return describe(self.design, self._roster, self._users, self._log)

    def log(self) -> "pa.Table":
        """Return all decisions as an Arrow table, with what is known of their users now.

        Raises:
            ConfigurationError: pyarrow is not installed.
        """
        features = [feature.name for feature in self.design.features]
        rows = log_rows(self.design, self._users, self._log)
        return build_log(self.design.arms, features, rows, log_metadata(self.design))

    def evaluate(self, target: Target, seed: int = 0) -> OffPolicyReport:
        """Estimate from the log what other choices would have earned per decision.

        A rule can be judged where its arms had a chance: without a `floor`, information-directed
        policies give most arms none, and the report then says so instead of an estimate.

        Args:
            target: an arm that is always played, a mapping from arm to probability, or a function
                from a context to one of these.
            seed: deals users to the folds of the reward model.

        Raises:
            ConfigurationError: pyarrow is not installed.
            InputError: the target is refused, or fewer than two users have rewards.
            UnknownNameError: the target plays an unknown arm.
        """
        return evaluate_log(self.log(), target, seed)

    def open_bandit(self) -> dict[str, Any]:
        """Return the log as the bandit feedback that Open Bandit Pipeline reads.

        Users, and so how their decisions depend on each other, are lost in it.

        Raises:
            ConfigurationError: pyarrow is not installed.
            InputError: fewer than two users have a reward.
        """
        return to_open_bandit(self.log())

    def export(self, path: str | Path) -> None:
        """Write the log to a file: .parquet, .feather or .csv, by the ending of its name.

        Raises:
            ConfigurationError: pyarrow is not installed.
            InputError: the name has another ending.
            StorageError: the file cannot be written.
        """
        write_log(self.log(), path)

    @property
    def _policy(self) -> Policy[Any]:
        return self._learner.policy

    @property
    def _state(self) -> Any:
        return self._learner.state

    def _adopt(self) -> None:
        self._learner.adopt(len(self._log))

    def _believing(self, answer: T | None) -> T:
        if answer is None:
            raise UnsupportedError(
                f"Expected a policy that holds beliefs; got policy={self.design.policy.name!r}. "
                "Use another policy, for example 'coids'."
            )
        return answer
