"""What the policy of a study is built from, and can be built from again in another process."""

from typing import Any, NamedTuple

import jax

from cocobandits.inference.smc import SmcInfo
from cocobandits.policies.base import History, Policy, Problem
from cocobandits.policies.description import PolicySettings, build
from cocobandits.users.table import UserTable

# What `Policy.update` computes, wherever that is done.
Moved = tuple[Any, SmcInfo | None]


class Recipe(NamedTuple):
    """The problem at the start, the settings, and how many arms were added.

    Arms that were added are added again: settings may speak of the arms of the start alone.
    """

    problem: Problem
    settings: PolicySettings
    num_added: int

    def policy(self) -> Policy[Any]:
        """Build the policy for the arms of the start, and add the others.

        Raises:
            ConfigurationError: the settings do not fit the problem.
            UnsupportedError: the policy takes no further arms.
        """
        policy, key = build(self.settings, self.problem), jax.random.key(0)
        for _ in range(self.num_added):
            # A policy depends on no state and no users: any will do.
            users = UserTable.empty(len(self.problem.features), policy.problem.num_arms + 1)
            policy, _ = policy.add_arm(key, policy.init(key), users, History(key))
        return policy
