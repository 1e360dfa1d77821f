"""A policy and the table of users that a study would own, as one, for tests of policies alone."""

from typing import Any, NamedTuple

import jax
import numpy as np

from cocobandits.policies.base import History, SequentialPolicy, Step
from cocobandits.users.table import Change, UserTable


@jax.tree_util.register_static
class Past:
    """All that led to a state; a tree of arrays does not show it."""

    def __init__(self, rng_key, steps=()):
        self.history = History(rng_key, tuple(steps))

    def then(self, step):
        """Add a step."""
        return Past(self.history.rng_key, (*self.history.steps, step))


class SessionState(NamedTuple):
    """The table of users, the state of the policy, and all that led there."""

    users: UserTable
    own: Any
    past: Past

    def __getattr__(self, name):
        """Show the fields of the policy's own state."""
        return getattr(self.own, name)


class Session:
    """Serve users with a policy, without names, decisions or a log.

    Every method takes a state and returns another one, as those of a policy do.
    """

    def __init__(self, policy):
        self.policy = policy

    def __getattr__(self, name):
        return getattr(self.policy, name)

    def init(self, rng_key):
        """Start without users."""
        problem = self.policy.problem
        users = UserTable.empty(len(problem.features), problem.num_arms)
        return SessionState(users, self.policy.init(rng_key), Past(rng_key))

    def enrol(self, state, context):
        """Add a user without rewards."""
        users = state.users.append(context)
        past = state.past.then(Step(jax.random.key(0), int(users.num_users) - 1))
        return SessionState(users, self.policy.enrol(state.own, users), past)

    def update(self, rng_key, state, user, statistics, context=None):
        """Replace a user's statistics, and context if one is given.

        A policy that learns from one reward after another is given what was added, arm by arm;
        several rewards of an arm are given as their average. Without any rewards it is refitted.
        """
        if not isinstance(self.policy, SequentialPolicy):
            change = Change.of(state.users, user, statistics, context)
            own, info = self.policy.update(rng_key, state.own, change)
            return SessionState(change.applied(), own, state.past), info
        before = state.users.of(user)[1]
        counts = np.asarray(statistics.count - before.count)
        totals = np.asarray(statistics.total - before.total)
        if counts.min() < 0:
            return self._forget(rng_key, state, user, statistics), None
        if not counts.any() and context is not None:
            change = Change.of(state.users, user, statistics, context)
            own, _ = self.policy.revise(rng_key, state.own, change, state.past.history)
            return SessionState(change.applied(), own, state.past), None
        for arm in np.flatnonzero(counts):
            for _ in range(int(counts[arm])):
                reward = float(totals[arm] / counts[arm])
                state = self.reward(state, user, int(arm), reward, rng_key=rng_key, context=context)
        return state, None

    def reward(self, state, user, arm, value, *, rng_key=None, context=None):
        """Add one reward."""
        key = jax.random.key(0) if rng_key is None else rng_key
        change = Change.adding(state.users, user, arm, value, context)
        own, _ = self.policy.update(key, state.own, change)
        return SessionState(change.applied(), own, state.past.then(Step(key, user, arm, value)))

    def _forget(self, rng_key, state, user, statistics):
        """Refit without the rewards of a user."""
        assert float(statistics.count.sum()) == 0
        start, steps = state.past.history
        past = Past(start, (step for step in steps if step.user != user or step.arm < 0))
        change = Change.of(state.users, user, statistics)
        own, _ = self.policy.revise(rng_key, state.own, change, past.history)
        return SessionState(change.applied(), own, past)

    def reweigh(self, rng_key, state, user, statistics, context=None):
        """Replace a user's statistics, without moves of particles."""
        if isinstance(self.policy, SequentialPolicy):
            return *self.update(rng_key, state, user, statistics, context), False
        change = Change.of(state.users, user, statistics, context)
        own, info, is_due = self.policy.reweigh(rng_key, state.own, change)
        return SessionState(change.applied(), own, state.past), info, is_due

    def probabilities(self, state, user, arms=None):
        """Compute the probabilities of arms for a user."""
        return self.policy.probabilities(state.own, state.users, user, arms)

    def scores(self, state, user):
        """Compute the upper bounds of arms for a user."""
        return self.policy.scores(state.own, state.users, user)

    def rationales(self, state, user, arms=None):
        """Split the probabilities by purpose."""
        return self.policy.rationales(state.own, state.users, user, arms)

    def read(self, state, context, statistics, read_fn):
        """Apply a function to every particle's belief."""
        return self.policy.read(state.own, state.users, (context, statistics), read_fn)

    def prior(self, state, context):
        """Return the belief about a new user."""
        return self.policy.prior(state.own, state.users, context)

    def add_arm(self, rng_key, state):
        """Go on with one more arm."""
        users = state.users.with_arm()
        policy, own = self.policy.add_arm(rng_key, state.own, users, state.past.history)
        return Session(policy), SessionState(users, own, state.past)
