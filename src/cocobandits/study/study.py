"""One study in this process: enrol, decide, reward; arms that come and go; storage.

Owns what may be done when, and open decisions. Every method either does all of its work or raises
and changes nothing. The same calls with the same seed give the same decisions, bit for bit.
"""

import logging
import math
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from cocobandits.checks import MOST_CHARACTERS, is_name
from cocobandits.errors import ConflictError, InputError, brief
from cocobandits.models.base import Statistics
from cocobandits.models.histories import Change
from cocobandits.notice import NOTICE
from cocobandits.policies.description import PolicySettings
from cocobandits.policies.plain import check_classes
from cocobandits.rewards import Rewards
from cocobandits.study import storage
from cocobandits.study.background import Moves, plan_for
from cocobandits.study.completion import NUM_POINTS
from cocobandits.study.context import ContextDeclaration, ContextValues, read_context
from cocobandits.study.decisions import (
    Chances,
    Decision,
    DecisionLog,
    Status,
    choose_arm,
    make_id,
)
from cocobandits.study.design import Floor, StudyDesign, check_floor_sum
from cocobandits.study.learner import Learner, RewardOf
from cocobandits.study.questions import Questions
from cocobandits.study.roster import Roster, raise_to_floors
from cocobandits.study.users import Users
from cocobandits.study.warm_up import rehearse
from cocobandits.types import PossibleContext

_LOG = logging.getLogger(__name__)


class Study(Questions):
    """Serve users one arm at a time, and learn from all of them.

    Args:
        arms: names of the arms, at least two.
        context: feature name → (low, high), a list of category names, or the type `bool`. Empty for
            no context.
        rewards: `Gaussian(low, high)`, `Bounded(low, high)` or `Bernoulli()`.
        policy: settings of a policy, for example `CoIDS(steps_per_user=5)`, or the name of one with
            its default settings; see `cocobandits.policy_names`.
        floor: least probability of every arm that can be chosen, or a mapping from arm to that.
        seed: fixes every decision.
        moves: "foreground" moves particles within the reward that makes it due; "background" does
            so in another process, while rewards and decisions go on; the `adoptions` of a study
            that ran in the background repeat it.

    Raises:
        ConfigurationError: the design is refused; the message says what to change.
        UnknownNameError: there is no such policy, or no such arm with a floor.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the design of a study has this many parts
        self,
        arms: Sequence[str],
        context: ContextDeclaration,
        rewards: Rewards,
        policy: PolicySettings | str = "coids",
        floor: Floor = 0.0,
        seed: int = 0,
        moves: Moves = "foreground",
    ) -> None:
        design = StudyDesign.declare(arms, context, rewards, policy, floor, seed)
        learner, users = Learner(design, moves), Users(design.features)
        self._begin(learner, users, Roster(design.arms), DecisionLog())
        self._announce_model()

    def _begin(self, learner: Learner, users: Users, roster: Roster, log: DecisionLog) -> None:
        NOTICE.watch("10 to 40 s" if learner.design.policy.is_learner else "a few seconds")
        self._learner, self._users, self._roster, self._log = learner, users, roster, log
        self._open = {
            log.users[number]: number
            for number, status in enumerate(log.statuses)
            if status == Status.OPEN and users.names[log.users[number]] not in users.withdrawn
        }

    def enrol(self, user: str, context: ContextValues | None = None) -> None:
        """Add a user; the same user with the same context again is harmless.

        Missing features (None or absent) are integrated out over the values seen in other users.
        Those values are brought up to date with every reward of this user, as an exact change of
        likelihood; a user without further rewards keeps the last ones.

        Raises:
            InputError: the context or the user's name is refused.
            UnknownNameError: a feature was never declared.
            ConflictError: the user is enrolled with another context, or has withdrawn.
        """
        read = read_context(self.design.features, {} if context is None else context)
        if not self._users.is_known(user, read):
            self._learner.enrol(self._users.complete(read, len(self._users.contexts)))
            self._users.add(user, read)

    def update_context(self, user: str, context: ContextValues) -> None:
        """Add values that were missing so far; the same values again are harmless.

        The user's rewards are learned again at the context known now.

        Raises:
            InputError: a value is refused.
            UnknownNameError: the user is not enrolled, or a feature was never declared.
            ConflictError: another value was recorded.
            NumericalError: no particle can explain the rewards there, or moves in the background
                failed.
        """
        number = self._users.find(user)
        filled = self._users.with_late(user, context)
        if filled is None:
            return
        table, completed = self._learner.users, jnp.asarray(self._users.complete(filled, number))
        change = Change.of(table, number, table.of(number)[1], completed)
        self._learner.revise(change, len(self._log), self._reward_of)
        self._users.replace(number, filled)

    def decide(self, user: str, eligible: Sequence[str] | None = None) -> Decision:
        """Choose an arm for a user; an open decision is returned again, never drawn twice.

        The choice is made among the arms that are active and, if a list is given, eligible, as if
        there were no others.

        Raises:
            InputError: none of the eligible arms is active, or they are no list.
            UnknownNameError: the user is not enrolled, or an arm is not known.
            NumericalError: the policy's probabilities are not a distribution.
            ConflictError: no arm is active, the arm of the open decision is not eligible, or the
                calls are not those of the study that is repeated.
        """
        number = self._users.find(user)
        self._roster.check_eligible(eligible)
        if number not in self._open:
            self._open[number] = self._decide(number, eligible)
        decision = self.decision(make_id(self._open[number]))
        if eligible is not None and decision.arm not in eligible:
            raise ConflictError(
                f"Expected the arm of the open decision to be eligible; got arm={decision.arm!r} "
                f"of decision={decision.id!r}, which is not among {sorted(eligible)}. Use "
                f"close({decision.id!r}) first if that arm will not be given."
            )
        return decision

    def reward(self, decision_id: str, value: float) -> None:
        """Record the reward of a decision, however late; the same value twice is harmless.

        It counts whatever has become of its arm.

        Raises:
            InputError: the value is refused.
            ConflictError: another value was recorded, or the user has withdrawn.
            UnknownNameError: there is no such decision.
            NumericalError: no particle can explain the reward, or moves in the background failed.
        """
        number = self._find_live(decision_id)
        standardised = self.design.standardise(value)
        status = self._log.statuses[number]
        if status == Status.REWARDED and self._log.rewards[number] == float(value):
            return
        if status in (Status.REWARDED, Status.RETRACTED):
            raise ConflictError(
                f"Expected a decision without reward; got decision={decision_id!r}, "
                f"{self._log.describe(number)}. Use correct({decision_id!r}, {value!r}) to "
                "replace it."
            )
        user, arm = self._log.users[number], self._log.arms[number]
        change = Change.adding(self._learner.users, user, arm, standardised, self._context(user))
        self._learner.add(number, change, len(self._log))
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
        standardised = None if value is None else self.design.standardise(value)
        status = self._log.statuses[number]
        if status in (Status.OPEN, Status.CLOSED):
            raise ConflictError(
                f"Expected a decision with a reward; got decision={decision_id!r}, "
                f"{self._log.describe(number)}. Use reward({decision_id!r}, value) first."
            )
        user, arm = self._log.users[number], self._log.arms[number]
        statistics = self._learner.users.of(user)[1]
        if status == Status.REWARDED:
            statistics = statistics.remove(arm, self.design.standardise(self._log.rewards[number]))
        if standardised is not None:
            statistics = statistics.add(arm, standardised)
        corrected = None if standardised is None else (arm, standardised)
        self._revise(
            user, statistics, lambda each: corrected if each == number else self._reward_of(each)
        )
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
                f"{self._log.describe(number)}. There is nothing to close."
            )
        self._settle(number, Status.CLOSED, math.nan)

    def withdraw(self, user: str) -> None:
        """Unlearn a user: the posterior becomes what it is without that user's rewards.

        The user's context is no longer used to fill in what is missing from others'. The log of
        decisions keeps what was decided and rewarded.

        Raises:
            UnknownNameError: the user is not enrolled.
            NumericalError: the particles cannot follow the change, or moves in the background
                failed.
        """
        number = self._users.find(user)
        self._revise(
            number,
            Statistics.empty(len(self.design.arms)),
            lambda each: None if self._log.users[each] == number else self._reward_of(each),
        )
        self._users.withdraw(user)
        self._open.pop(number, None)

    def suspend(self, arm: str, reason: str = "") -> None:
        """Offer an arm no more until it is activated again; an open decision stays as it is.

        Once no arm is active, nobody can be served.

        Raises:
            InputError: the reason is no text.
            ConflictError: the arm was withdrawn.
            UnknownNameError: there is no such arm.
        """
        self._roster.change(arm, "suspended", reason, len(self._log))

    def withdraw_arm(self, arm: str, reason: str = "") -> None:
        """Offer an arm never again; an open decision stays as it is, and so does what was learned.

        Raises:
            InputError: the reason is no text.
            UnknownNameError: there is no such arm.
        """
        self._roster.change(arm, "withdrawn", reason, len(self._log))

    def activate(self, arm: str) -> None:
        """Offer an arm again that was suspended.

        Raises:
            ConflictError: the arm was withdrawn.
            UnknownNameError: there is no such arm.
        """
        self._roster.change(arm, "active", "", len(self._log))

    def add_arm(self, name: str) -> None:
        """Offer another arm from the next decision on; moves in the background are waited for.

        What was learned stays, and the new arm starts from its prior. Its floor is the one that was
        given for all arms, or else none.

        Raises:
            InputError: the name is refused.
            ConflictError: there is such an arm.
            ConfigurationError: floors would leave nothing to choose with, or the population model
                is too large for another arm.
            UnsupportedError: the policy was configured for the present arms.
            NumericalError: moves in the background failed.
        """
        if not is_name(name):
            raise InputError(
                f"Expected a name of 1 to {MOST_CHARACTERS} characters; got name={brief(name)}. "
                "Give the arm a name."
            )
        if name in self.design.arms:
            raise ConflictError(
                f"Expected a new arm; got name={name!r}, which is {self.arms[name]}. Use another "
                "name, or activate it if it is suspended."
            )
        design = self.design.with_arm(name, len(self._log))
        statuses = [*self.arms.values(), "active"]
        pairs = zip(design.floors, statuses, strict=True)
        check_floor_sum(tuple(floor for floor, status in pairs if status != "withdrawn"))
        before = self.describe().model.name
        self._learner.add_arm(design, len(self._log), self._reward_of)
        self._roster.add(name)
        if self.describe().model.name != before:
            self._announce_model()

    def catch_up(self) -> None:
        """Wait for moves in the background and adopt them, until none are due.

        Unless moves failed, the posterior is then that of a study in the foreground that was given
        the same rewards, bit for bit.

        Raises:
            NumericalError: moves failed, now or before; the particles stay reweighted.
        """
        self._learner.catch_up(len(self._log))

    def warm_up(self, has_gaps: bool = False) -> None:
        """Compile now what enrolment, decisions, rewards, moves and explanations will need.

        A copy of the study serves a few invented users until its particles have moved. The study
        itself does not change, and later decides as it would have without this call.

        Args:
            has_gaps: also compile for users with missing features, if there have been none.
        """
        rehearse(self._copy(), has_gaps=False)
        if has_gaps or not self._users.were_all_known:
            rehearse(self._copy(), has_gaps=True)

    def save(self, path: str | Path) -> None:
        """Write the study to one file; an existing one is replaced whole or not at all.

        Moves in the background are waited for and adopted first.

        Raises:
            StorageError: the file cannot be written.
            NumericalError: moves in the background failed; the next call saves without them.
        """
        self.catch_up()
        memory, changes = self._learner.remember(), self._roster.changes
        snapshot = storage.Snapshot(self.design, memory, self._users, changes, self._log)
        storage.write(Path(path), snapshot)

    @classmethod
    def load(
        cls,
        path: str | Path,
        moves: Moves = "foreground",
        policies: Sequence[type[PolicySettings]] = (),
    ) -> "Study":
        """Read a study that `save` wrote; it decides as the saved one would have.

        Args:
            path: of the file.
            moves: as in the constructor.
            policies: classes of policies from outside the package, if the study uses one.

        Raises:
            ConfigurationError: `moves` is refused, or `policies` are not classes.
            UnknownNameError: the study has a policy from outside the package, whose class is not
                among `policies`.
            StorageError: the file is missing, damaged, or not a saved study.
        """
        plan_for(moves)
        check_classes(policies)
        archive = storage.open_archive(Path(path))
        study = cls.__new__(cls)
        with archive.refusing():
            learner = Learner(archive.design(policies), moves)
            design = learner.design
            users, roster = archive.users(design), Roster(design.arms, archive.changes())
            points = jnp.zeros((NUM_POINTS, len(design.features)))
            template = learner.template(None if users.were_all_known else points)
            learner.recall(archive.memory(template))
            study._begin(learner, users, roster, archive.log(design))
        return study

    def _copy(self) -> "Study":
        study = type(self).__new__(type(self))
        study._begin(self._learner.fork(), *deepcopy((self._users, self._roster, self._log)))
        return study

    def _decide(self, user: int, eligible: Sequence[str] | None) -> int:
        """Draw an arm among those that can be chosen, and log it."""
        arms = self._roster.available(eligible)
        self._adopt()
        is_available = np.isin(np.arange(len(self.design.arms)), arms)
        weights = self._learner.weights(user, arms)
        probabilities = raise_to_floors(weights, self.design.floors, is_available)
        draw = self._learner.draw(len(self._log))
        chances = Chances(weights, probabilities, is_available)
        return self._log.append(user, choose_arm(probabilities, draw), chances, draw)

    def _find_live(self, decision_id: str) -> int:
        number = self._log.find(decision_id)
        if self._users.names[self._log.users[number]] in self._users.withdrawn:
            raise ConflictError(
                f"Expected a decision of an enrolled user; got decision={decision_id!r}, whose "
                "user has withdrawn. Nothing more can be recorded for that user."
            )
        return number

    def _revise(self, user: int, statistics: Statistics, reward_of: RewardOf) -> None:
        """Replace a user's statistics; `reward_of` has all rewards after that."""
        change = Change.of(self._learner.users, user, statistics, self._context(user))
        self._learner.revise(change, len(self._log), reward_of)

    def _context(self, user: int) -> PossibleContext | None:
        """Bring missing values up to date; None if there are none."""
        if self._users.is_complete(user):
            return None
        return jnp.asarray(self._users.complete(self._users.contexts[user], user))

    def _reward_of(self, decision: int) -> tuple[int, float] | None:
        """Return arm and standardised reward of a decision that counts."""
        is_gone = self._users.names[self._log.users[decision]] in self._users.withdrawn
        if is_gone or self._log.statuses[decision] != Status.REWARDED:
            return None
        return self._log.arms[decision], self.design.standardise(self._log.rewards[decision])

    def _announce_model(self) -> None:
        model = self.describe().model
        _LOG.info("Population model: %s, since %s.", model.name, model.reason)

    def _settle(self, number: int, status: Status, value: float) -> None:
        self._log.statuses[number] = status
        self._log.rewards[number] = value
        if self._open.get(self._log.users[number]) == number:
            del self._open[self._log.users[number]]
