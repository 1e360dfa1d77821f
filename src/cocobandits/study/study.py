"""One study in this process: enrol, decide, reward, explain.

Owns names, validation, open decisions and random keys around a policy. Every method either does all
of its work or raises and changes nothing. A key derives from (seed, purpose, sequence number), so
the same calls with the same seed give the same decisions, bit for bit.
"""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from cocobandits.errors import (
    ConflictError,
    InputError,
    NumericalError,
    UnknownNameError,
    UnsupportedError,
)
from cocobandits.inference.smc import SmcInfo
from cocobandits.models.base import Belief, Statistics
from cocobandits.policies.base import Readings
from cocobandits.policies.registry import build_policy
from cocobandits.policies.settings import CocoSettings
from cocobandits.study import storage
from cocobandits.study.background import Adoption, BackgroundMoves, Rejuvenation, Update, plan_for
from cocobandits.study.decisions import Decision, DecisionLog, Status, choose_arm, make_id
from cocobandits.study.design import (
    ContextDeclaration,
    ContextValues,
    FloatVector,
    StudyDesign,
)
from cocobandits.study.diagnosis import Diagnosis, diagnose
from cocobandits.study.explanation import (
    Explanation,
    Population,
    describe_population,
    explain,
    read_summary,
    summarise_hyperparameters,
)
from cocobandits.study.moving_process import MOVING_PROCESS
from cocobandits.types import RngKey, Scalar

T = TypeVar("T")

_PURPOSES = {"start": 0, "decide": 1, "update": 2, "diagnose": 3}


class Study:
    """Serve users one arm at a time, and learn from all of them.

    Args:
        arms: names of the arms, at least two.
        context: feature name → (low, high), or a list of category names. Empty for no context.
        reward_range: where arm means lie; grids reach half a cell further.
        reward_noise: standard deviation of a reward around its arm mean; None learns it (coids,
            npm-ts and gids).
        policy: how arms are chosen; see `cocobandits.policies.registry.policy_names`.
        seed: fixes every decision.
        settings: how the population is modelled: `CocoSettings`, or the name of a preset, "learned"
            or "paper". By default "paper" for npm-ts and gids, "learned" for all others.
        reward_limits: a reward outside is refused as a typing error; by default the range and ten
            noise deviations on either side (half the width if the noise is not known).
        rejuvenate: "foreground" moves particles within the reward that makes it due; "background"
            does it in a process beside rewards and decisions; the `adoptions` of a study that ran
            in the background repeat it.

    Raises:
        ConfigurationError: the design is refused; the message says what to change.
        UnknownNameError: there is no such policy.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the design of a study has this many parts
        self,
        arms: Sequence[str],
        context: ContextDeclaration,
        reward_range: tuple[float, float],
        reward_noise: float | None,
        policy: str = "coids",
        seed: int = 0,
        settings: CocoSettings | str | None = None,
        reward_limits: tuple[float, float] | None = None,
        rejuvenate: Rejuvenation = "foreground",
    ) -> None:
        self._begin(
            StudyDesign.declare(
                arms, context, reward_range, reward_noise, policy, seed, settings, reward_limits
            ),
            rejuvenate,
        )

    def _begin(self, design: StudyDesign, rejuvenate: Rejuvenation) -> None:
        plan = plan_for(rejuvenate)
        self._design = design
        self._policy = build_policy(design.policy, design.problem(), design.settings)
        self._base_key = jax.random.key(design.seed)
        self._state = self._policy.init(self._key("start", 0))
        self._names: list[str] = []
        self._users: dict[str, int] = {}
        self._withdrawn: set[str] = set()
        self._open: dict[int, int] = {}
        self._log = DecisionLog()
        self._num_updates = 0
        self._health: SmcInfo | None = None
        self._adoptions: list[Adoption] = []
        self._background = (
            None
            if rejuvenate == "foreground"
            else BackgroundMoves(
                self._policy, partial(MOVING_PROCESS.update, design), self._adoptions, plan
            )
        )

    @property
    def design(self) -> StudyDesign:
        """What was fixed when the study started."""
        return self._design

    @property
    def users(self) -> tuple[str, ...]:
        """Everyone who is enrolled and has not withdrawn, in the order of enrolment."""
        return tuple(user for user in self._names if user not in self._withdrawn)

    @property
    def num_decisions(self) -> int:
        """How many decisions were made."""
        return len(self._log)

    @property
    def health(self) -> SmcInfo | None:
        """Diagnostics of the last update; None before it, or if the policy has no particles.

        In the background: of the last reweighting, or of the moves adopted since.
        """
        return self._health

    @property
    def adoptions(self) -> tuple[Adoption, ...]:
        """When moves in the background were adopted, or given up; empty in the foreground."""
        return tuple(self._adoptions)

    @property
    def log_evidence(self) -> float | None:
        """The log of p(all rewards) under the model; None for a policy without particles."""
        posterior = getattr(self._state, "posterior", None)
        return None if posterior is None else float(posterior.log_evidence)

    @property
    def is_moving(self) -> bool:
        """Whether particles are being moved in the background now."""
        return self._background is not None and self._background.is_moving

    def enrol(self, user: str, context: ContextValues | None = None) -> None:
        """Add a user; the same user with the same context again is harmless.

        Raises:
            InputError: the context or the user's name is refused.
            UnknownNameError: a feature was never declared.
            ConflictError: the user is enrolled with another context, or has withdrawn.
        """
        if not isinstance(user, str) or not user.strip():
            raise InputError(f"Expected a non-empty text; got user={user!r}. Give a user id.")
        encoded = self._design.encode_context({} if context is None else context)
        if user in self._withdrawn:
            raise ConflictError(
                f"Expected a new user; got user={user!r}, who has withdrawn. Use another id."
            )
        if user in self._users:
            known = np.asarray(self._policy.users(self._state).contexts[self._users[user]])
            if not np.array_equal(known, encoded):
                raise ConflictError(
                    f"Expected the context that user={user!r} enrolled with; got {context!r}. "
                    "Enrol a second person under another id."
                )
            return
        self._state = self._policy.enrol(self._state, jnp.asarray(encoded))
        if self._background is not None:
            self._background.enrol(jnp.asarray(encoded))
        self._users[user] = len(self._names)
        self._names.append(user)

    def decide(self, user: str) -> Decision:
        """Choose an arm for a user; an open decision is returned again, never drawn twice.

        Raises:
            UnknownNameError: the user is not enrolled.
            NumericalError: the policy's probabilities are not a distribution.
            ConflictError: the calls are not those of the study that is repeated.
        """
        number = self._find_user(user)
        if number not in self._open:
            self._adopt()
            sequence = len(self._log)
            probabilities = self._probabilities(number)
            draw = float(_uniform(self._key("decide", sequence)))
            arm = choose_arm(probabilities, draw)
            self._open[number] = self._log.append(
                number, arm, tuple(map(float, probabilities)), draw
            )
        return self.decision(make_id(self._open[number]))

    def decision(self, decision_id: str) -> Decision:
        """Look up a decision by its id.

        Raises:
            UnknownNameError: there is no such decision.
        """
        number = self._log.find(decision_id)
        arms = self._design.arms
        return Decision(
            decision_id,
            self._names[self._log.users[number]],
            arms[self._log.arms[number]],
            dict(zip(arms, self._log.probabilities[number], strict=True)),
            self._log.draws[number],
        )

    def reward(self, decision_id: str, value: float) -> None:
        """Record the reward of a decision, however late; the same value twice is harmless.

        Raises:
            InputError: the value is refused.
            ConflictError: another value was recorded, or the user has withdrawn.
            UnknownNameError: there is no such decision.
            NumericalError: no particle can explain the reward, or moves in the background failed.
        """
        number = self._find_live(decision_id)
        standardised = self._design.standardise(value)
        status = self._log.statuses[number]
        if status == Status.REWARDED and self._log.rewards[number] == float(value):
            return
        if status in (Status.REWARDED, Status.RETRACTED):
            raise ConflictError(
                f"Expected a decision without reward; got decision={decision_id!r}, "
                f"{self._describe(number)}. Use correct({decision_id!r}, {value!r}) to replace it."
            )
        user, statistics = self._statistics_of(number)
        self._learn(user, statistics.add(self._log.arms[number], standardised))
        self._settle(number, Status.REWARDED, float(value))

    def correct(self, decision_id: str, value: float | None) -> None:
        """Replace a recorded reward by another value, or take it back with None.

        Raises:
            InputError: the value is refused.
            ConflictError: there is nothing to correct yet, or the user has withdrawn.
            UnknownNameError: there is no such decision.
            NumericalError: no particle can explain the new value, or moves in the background
                failed.
        """
        number = self._find_live(decision_id)
        standardised = None if value is None else self._design.standardise(value)
        status = self._log.statuses[number]
        if status in (Status.OPEN, Status.CLOSED):
            raise ConflictError(
                f"Expected a decision with a reward; got decision={decision_id!r}, "
                f"{self._describe(number)}. Use reward({decision_id!r}, value) first."
            )
        user, statistics = self._statistics_of(number)
        arm = self._log.arms[number]
        if status == Status.REWARDED:
            old = self._design.standardise(self._log.rewards[number])
            statistics = statistics.remove(arm, old)
        if standardised is not None:
            statistics = statistics.add(arm, standardised)
        self._learn(user, statistics)
        if value is None:
            self._settle(number, Status.RETRACTED, math.nan)
        else:
            self._settle(number, Status.REWARDED, float(value))

    def close(self, decision_id: str) -> None:
        """Stop waiting for a reward, so that the user can be served again; it may still come late.

        Raises:
            ConflictError: the decision is not open, or the user has withdrawn.
            UnknownNameError: there is no such decision.
        """
        number = self._find_live(decision_id)
        if self._log.statuses[number] != Status.OPEN:
            raise ConflictError(
                f"Expected an open decision; got decision={decision_id!r}, "
                f"{self._describe(number)}. There is nothing to close."
            )
        self._settle(number, Status.CLOSED, math.nan)

    def withdraw(self, user: str) -> None:
        """Unlearn a user's rewards: the posterior becomes what it is without that user.

        The log of decisions keeps what was decided and rewarded.

        Raises:
            UnknownNameError: the user is not enrolled.
            NumericalError: the particles cannot follow the change, or moves in the background
                failed.
        """
        number = self._find_user(user)
        self._learn(number, Statistics.empty(len(self._design.arms)))
        self._withdrawn.add(user)
        self._open.pop(number, None)

    def explain(self, user: str) -> Explanation:
        """Say what is believed about each arm for a user, and where the uncertainty comes from.

        Raises:
            UnknownNameError: the user is not enrolled.
            UnsupportedError: the policy holds no beliefs.
        """
        number = self._find_user(user)
        self._adopt()
        context, statistics = self._policy.users(self._state).of(number)
        readings = self._read(context, statistics, read_summary)
        return explain(user, self._design, readings, self._policy.motives(self._state, number))

    def diagnose(self) -> Diagnosis:
        """Compare, in nats, what the policy assumes of the population with what else there is.

        A policy without particles (mtts, ind-ts) has a nonparametric population learned for it now,
        which takes seconds to minutes.

        Raises:
            ConfigurationError: a grid for that is too large for these arms.
            NumericalError: no particle can explain the rewards.
        """
        self._adopt()
        users = self._policy.users(self._state)
        key = self._key("diagnose", self._num_updates)
        return diagnose(key, self._design, users, self.log_evidence)

    def hyperparameters(self) -> dict[str, tuple[float, float, float]]:
        """Summarise what particles have learned besides the population: 5 %, 50 % and 95 % points.

        Lengthscales are in units of reward and of each feature, `amplitude` in nats, `noise` in
        units of reward. Empty for a policy that learns none.
        """
        self._adopt()
        return summarise_hyperparameters(self._design, self._policy.hyperparameters(self._state))

    def population(self, context: ContextValues | None = None) -> Population:
        """Describe the arm means of users at a context, under the posterior mean population.

        Raises:
            InputError: the context is refused.
            UnknownNameError: a feature was never declared.
            UnsupportedError: the policy holds no beliefs.
        """
        return describe_population(self._design, self.prior(context), self._policy.mean_range)

    def prior(self, context: ContextValues | None = None) -> Belief:
        """Return the belief about somebody new at a context, in standardised units.

        It is a snapshot: it can be conditioned on rewards that the study never learns of.

        Raises:
            InputError: the context is refused.
            UnknownNameError: a feature was never declared.
            UnsupportedError: the policy holds no beliefs.
        """
        encoded = self._design.encode_context({} if context is None else context)
        self._adopt()
        belief = self._policy.prior(self._state, jnp.asarray(encoded))
        return self._believing(belief)

    def catch_up(self) -> None:
        """Wait for moves in the background and adopt them, until none are due.

        Unless moves failed, the posterior is then that of a study in the foreground that was given
        the same rewards, bit for bit.

        Raises:
            NumericalError: moves failed, now or before; the particles stay reweighted.
        """
        if self._background is not None:
            self._adopt(is_waiting=True)
            self._background.raise_failure()

    def save(self, path: str | Path) -> None:
        """Write the study to one file; an existing one is replaced whole or not at all.

        Moves in the background are waited for and adopted first.

        Raises:
            StorageError: the file cannot be written.
            NumericalError: moves in the background failed; the next call saves without them.
        """
        self.catch_up()
        storage.write(
            Path(path),
            storage.Snapshot(
                self._design,
                self._state,
                self._names,
                sorted(self._withdrawn),
                self._log,
                self._num_updates,
                self._adoptions,
            ),
        )

    @classmethod
    def load(cls, path: str | Path, rejuvenate: Rejuvenation = "foreground") -> "Study":
        """Read a study that `save` wrote; it decides as the saved one would have.

        Raises:
            ConfigurationError: `rejuvenate` is refused.
            StorageError: the file is missing, damaged, or not a saved study.
        """
        plan_for(rejuvenate)
        archive = storage.open_archive(Path(path))
        study = cls.__new__(cls)
        with archive.refusing():
            study._begin(archive.design(), rejuvenate)
        snapshot = archive.snapshot(study._design, study._state)
        study._state = snapshot.state
        study._names = snapshot.users
        study._users = {user: number for number, user in enumerate(snapshot.users)}
        study._withdrawn = set(snapshot.withdrawn)
        study._log = snapshot.log
        study._num_updates = snapshot.num_updates
        study._adoptions += snapshot.adoptions
        gone = {study._users[user] for user in study._withdrawn}
        study._open = {
            study._log.users[number]: number
            for number, status in enumerate(study._log.statuses)
            if status == Status.OPEN and study._log.users[number] not in gone
        }
        return study

    def _key(self, purpose: str, sequence: int) -> RngKey:
        return _derive(self._base_key, _PURPOSES[purpose], sequence)

    def _find_user(self, user: str) -> int:
        if not isinstance(user, str) or user not in self._users or user in self._withdrawn:
            raise UnknownNameError("user", user, self.users, "Enrol the user first.")
        return self._users[user]

    def _find_live(self, decision_id: str) -> int:
        number = self._log.find(decision_id)
        if self._names[self._log.users[number]] in self._withdrawn:
            raise ConflictError(
                f"Expected a decision of an enrolled user; got decision={decision_id!r}, whose "
                "user has withdrawn. Nothing more can be recorded for that user."
            )
        return number

    def _probabilities(self, user: int) -> FloatVector:
        vector = np.asarray(self._policy.probabilities(self._state, user), dtype=float)
        if not (np.all(vector >= 0) and 0.99 < vector.sum() < 1.01):
            raise NumericalError(
                f"Expected probabilities that sum to one; got {vector.tolist()} from "
                f"policy={self._design.policy!r}. Check that range and noise fit the rewards."
            )
        return vector / vector.sum()

    def _describe(self, number: int) -> str:
        status = Status(self._log.statuses[number])
        if status == Status.REWARDED:
            return f"which has reward {self._log.rewards[number]!r}"
        return f"which is {status.name.lower()}"

    def _statistics_of(self, number: int) -> tuple[int, Statistics]:
        user = self._log.users[number]
        return user, self._policy.users(self._state).of(user)[1]

    def _learn(self, user: int, statistics: Statistics) -> None:
        number = self._num_updates
        key = self._key("update", number)
        if self._background is None:
            learned = self._policy.update(key, self._state, user, statistics)
        else:
            self._adopt()
            self._background.raise_failure()
            learned = self._background.learn(self._state, Update(number, key, user, statistics))
        self._state, self._health = learned
        self._num_updates = number + 1

    def _adopt(self, is_waiting: bool = False) -> None:
        if self._background is not None:
            now = self._num_updates, len(self._log)
            while (adopted := self._background.adopt(*now, is_waiting=is_waiting)) is not None:
                self._state, self._health = adopted

    def _settle(self, number: int, status: Status, value: float) -> None:
        self._log.statuses[number] = status
        self._log.rewards[number] = value
        if self._open.get(self._log.users[number]) == number:
            del self._open[self._log.users[number]]

    def _read(self, context: jax.Array, statistics: Statistics, reader: Any) -> Readings:
        return self._believing(self._policy.read(self._state, context, statistics, reader))

    def _believing(self, answer: T | None) -> T:
        if answer is None:
            raise UnsupportedError(
                f"Expected a policy that holds beliefs; got policy={self._design.policy!r}. "
                "Use another policy, for example 'coids'."
            )
        return answer


@jax.jit
def _derive(key: RngKey, purpose: int, sequence: int) -> RngKey:
    return jax.random.fold_in(jax.random.fold_in(key, purpose), sequence)


@jax.jit
def _uniform(key: RngKey) -> Scalar:
    return jax.random.uniform(key)
