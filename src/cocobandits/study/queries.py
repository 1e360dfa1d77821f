"""Queries of a study: what was learned, who takes part, and the log. They change nothing."""

from abc import ABC
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cocobandits.errors import UnsupportedError
from cocobandits.inference.smc import SmcInfo
from cocobandits.logs.off_policy import OffPolicyReport, evaluate_log, to_open_bandit
from cocobandits.logs.off_policy.target import Target
from cocobandits.logs.table import LogRow, build_log, write_log
from cocobandits.populations.base import Belief
from cocobandits.study.context import ContextValue, ContextValues, read_context, show_context
from cocobandits.study.description import Description, describe
from cocobandits.study.design import StudyDesign
from cocobandits.study.diagnosis import Diagnosis, diagnose
from cocobandits.study.events import ArmStatus, Event
from cocobandits.study.explanation import (
    Explanation,
    explain,
    rationales_of,
    read_summary,
    summarise_hyperparameters,
)
from cocobandits.study.learner import Learner
from cocobandits.study.population import Population, describe_population
from cocobandits.study.rules import find_user
from cocobandits.study.state import StudyState

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


@dataclass(frozen=True)
class Decision:
    """An arm chosen for a user, with the exact probabilities it was drawn from.

    Attributes:
        id: to refer to it by.
        user: who is served.
        arm: what was chosen.
        probabilities: of every arm there was, after floors; zero if it could not be chosen.
        draw: the uniform number that chose the arm: the first one whose cumulated probability
            exceeds it.
        weights: the probabilities that the policy itself gave, before floors.
        eligible: the arms that could be chosen.
    """

    id: str
    user: str
    arm: str
    probabilities: dict[str, float]
    draw: float
    weights: dict[str, float]
    eligible: tuple[str, ...]


class Queries(ABC):
    """The part of a study that is read."""

    _state: StudyState
    _events: list[Event]

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that happened, in its order; first values and corrections stay."""
        return tuple(self._events)

    @property
    def design(self) -> StudyDesign:
        """What was fixed when the study started, and the arms that were added since."""
        return self._state.design

    @property
    def users(self) -> tuple[str, ...]:
        """Everyone who is enrolled and has not withdrawn, in the order of enrolment."""
        return self._state.users.enrolled

    @property
    def arms(self) -> dict[str, ArmStatus]:
        """Arm → "active", "suspended" or "withdrawn"."""
        return dict(self._state.arms)

    @property
    def num_decisions(self) -> int:
        """How many decisions were made."""
        return len(self._state.decisions)

    @property
    def health(self) -> SmcInfo | None:
        """Diagnostics of the last update; None before it, or if the policy has no particles.

        In the background: of the last reweighting, or of the moves adopted since.
        """
        return self._learner.health

    @property
    def log_evidence(self) -> float | None:
        """The log of p(all rewards) under the model; None for a policy without particles."""
        return self._learner.log_evidence

    @property
    def is_moving(self) -> bool:
        """Whether moves in the background are under way, or wait to be adopted."""
        return self._learner.due is not None

    def context(self, user: str) -> dict[str, ContextValue]:
        """Return what is known of a user, as it was given; None is missing.

        Raises:
            UnknownNameError: the user is not enrolled.
        """
        known = self._state.users.contexts[find_user(self._state, user)]
        return show_context(self.design.features, known)

    def explain(self, user: str) -> Explanation:
        """Say what is believed about each arm for a user, and where the uncertainty comes from.

        What a probability is for is said of active arms, as if all of them were eligible and had no
        floors.

        Raises:
            UnknownNameError: the user is not enrolled.
            UnsupportedError: the policy holds no beliefs.
        """
        number, arms = find_user(self._state, user), self._state.active
        learner = self._learner
        policy, state, table = learner.policy, learner.state, learner.users
        context, statistics = table.of(number)
        readings = self._believing(policy.read(state, table, (context, statistics), read_summary))
        some = None if len(arms) == len(self.design.arms) else arms
        rationales = policy.rationales(state, table, number, some) if len(arms) > 1 else None
        spoken = rationales_of(self.design, arms, rationales)
        return explain(user, self.design, readings, spoken, self._state.arms)

    def diagnose(self, has_other_model: bool = False) -> Diagnosis:
        """Compare, in nats, what the policy assumes of the population with what else there is.

        Asked for the other model, the mixture is also learned for a log-density, or the log-density
        for a mixture, from all rewards.

        A policy without particles (mtts, ind-ts) has a nonparametric population learned for it now,
        which takes seconds to minutes.

        Raises:
            ConfigurationError: the population that settings ask for, or the other one, is too large
                for these arms.
            UnsupportedError: rewards are yes or no, and there is no other model for them.
            NumericalError: no particle can explain the rewards.
        """
        key = self._learner.key("diagnose", self._learner.num_updates)
        users = self._learner.users
        return diagnose(key, self.design, users, self.log_evidence, has_other_model)

    def hyperparameters(self) -> dict[str, tuple[float, float, float]]:
        """Summarise what particles have learned besides the population: 5 %, 50 % and 95 % points.

        Lengthscales are in units of reward and of each feature, `amplitude` in nats, `noise` in
        units of reward. Empty for a policy that learns none.
        """
        return summarise_hyperparameters(
            self.design, self._learner.policy.hyperparameters(self._learner.state)
        )

    def population(self, context: ContextValues | None = None) -> Population:
        """Describe the arm means of users at a context, under the posterior mean population.

        What is missing from the context is averaged over.

        Raises:
            InputError: the context is refused.
            UnknownNameError: a feature was never declared.
            UnsupportedError: the policy holds no beliefs.
        """
        return describe_population(
            self.design, self.prior(context), self._learner.policy.mean_range
        )

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
        completed, learner = self._state.complete(read), self._learner
        return self._believing(learner.policy.prior(learner.state, learner.users, completed))

    def describe(self) -> Description:
        """Say what the study is, which population it learns and why, and how far it has come."""
        return describe(self._state)

    def log(self) -> "pa.Table":
        """Return all decisions as an Arrow table, with what is known of their users now.

        Raises:
            ConfigurationError: pyarrow is not installed.
        """
        design = self.design
        features = [feature.name for feature in design.features]
        metadata = {
            "policy": design.policy.name,
            "seed": str(design.seed),
            "rewards": design.rewards.name,
            "reward_range": "{!r} to {!r}".format(*design.rewards.range),
            "better": "higher" if design.rewards.maximise else "lower",
        }
        return build_log(design.arms, features, _log_rows(self._state), metadata)

    def evaluate(self, target: Target, seed: int = 0) -> OffPolicyReport:
        """Estimate from the log what other choices would have earned per decision.

        A rule can be judged where its arms had a chance: without a `floor`, information-directed
        policies give most arms none, and the report then says so instead of an estimate.

        Args:
            target: an arm that is always played, a mapping from arm to probability, or a function
                from a context, in which a missing feature is None, to one of these.
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
    def _learner(self) -> Learner:
        return self._state.learned

    def _believing(self, answer: T | None) -> T:
        if answer is None:
            raise UnsupportedError(
                f"Expected a policy that holds beliefs; got policy={self.design.policy.name!r}. "
                "Use another policy, for example 'coids'."
            )
        return answer


def _log_rows(state: StudyState) -> Iterator[LogRow]:
    """List all decisions in their order, with what is known of their users now."""
    served: Counter[str] = Counter()
    arms, features = state.design.arms, state.design.features
    for made in state.decisions.values():
        reward = state.rewards.get(made.decision)
        yield LogRow(
            made.decision,
            made.user,
            served[made.user],
            made.arm,
            made.probabilities[arms.index(made.arm)],
            made.draw,
            None if reward is None else reward.value,
            state.statuses[made.decision],
            made.user in state.users.withdrawn,
            made.probabilities,
            made.weights,
            tuple(arm in made.eligible for arm in arms[: len(made.weights)]),
            show_context(features, state.users.contexts[state.users.numbers[made.user]]),
        )
        served[made.user] += 1
