"""A policy and the table of users that a study would own, as one, for tests of policies alone."""

from typing import Any, NamedTuple

import jax

from cocobandits.models.histories import Change, UserTable


class SessionState(NamedTuple):
    """The table of users, and the state of the policy."""

    users: UserTable
    own: Any

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
        return SessionState(users, self.policy.init(rng_key))

    def enrol(self, state, context):
        """Add a user without rewards."""
        users = state.users.append(context)
        return SessionState(users, self.policy.enrol(state.own, users))

    def update(self, rng_key, state, user, statistics, context=None):
        """Replace a user's statistics, and context if one is given."""
        change = Change.of(state.users, user, statistics, context)
        own, info = self.policy.update(rng_key, state.own, change)
        return SessionState(change.applied(), own), info

    def reweigh(self, rng_key, state, user, statistics, context=None):
        """Replace a user's statistics, without moves of particles."""
        change = Change.of(state.users, user, statistics, context)
        own, info, is_due = self.policy.reweigh(rng_key, state.own, change)
        return SessionState(change.applied(), own), info, is_due

    def reward(self, state, user, arm, value, rng_key=None):
        """Add one reward."""
        key = jax.random.key(0) if rng_key is None else rng_key
        return self.update(key, state, user, state.users.of(user)[1].add(arm, value))[0]

    def probabilities(self, state, user, arms=None):
        """Compute the probabilities of arms for a user."""
        return self.policy.probabilities(state.own, state.users, user, arms)

    def scores(self, state, user):
        """Compute the upper bounds of arms for a user."""
        return self.policy.scores(state.own, state.users, user)

    def motives(self, state, user, arms=None):
        """Split the probabilities by purpose."""
        return self.policy.motives(state.own, state.users, user, arms)

    def read(self, state, context, statistics, read_fn):
        """Apply a function to every particle's belief."""
        return self.policy.read(state.own, state.users, context, statistics, read_fn)

    def prior(self, state, context):
        """Return the belief about a new user."""
        return self.policy.prior(state.own, state.users, context)

    def add_arm(self, rng_key, state):
        """Go on with one more arm."""
        users = state.users.with_arm()
        policy, own = self.policy.add_arm(rng_key, state.own, users)
        return Session(policy), SessionState(users, own)
