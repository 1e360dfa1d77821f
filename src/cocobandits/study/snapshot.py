"""The learner of a study as plain arrays, and back: it saves the time to learn again."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cocobandits.checks import freeze
from cocobandits.inference.smc import SmcInfo
from cocobandits.persistence.archive import UNREADABLE, AnyArray, Snapshot
from cocobandits.study.learner import Learner
from cocobandits.study.state import StudyState
from cocobandits.study.users import NUM_POINTS
from cocobandits.users.table import UserTable


def take_snapshot(state: StudyState) -> Snapshot:
    """Copy what was learned; no moves may be due."""
    learner = state.learned
    assert learner.due is None
    info = {
        "num_events": state.num_events,
        "num_updates": learner.num_updates,
        "health": learner.health and learner.health._asdict(),
    }
    leaves = jax.tree.leaves((learner.users, learner.state))
    return Snapshot(info, [np.asarray(leaf) for leaf in leaves])


def restore(state: StudyState, snapshot: Snapshot | None) -> Learner | None:
    """Rebuild the learner of a state that has none; None if the snapshot does not fit it.

    Raises:
        ConfigurationError: the policy cannot be built as designed.
    """
    learner = Learner.start(state.design, state.moves == "foreground")
    if snapshot is None:
        return None
    users, policy_state = learner.users, learner.state
    if not state.users.were_all_known:
        users = users.append(jnp.zeros((NUM_POINTS, len(state.design.features))))
        policy_state = learner.policy.enrol(policy_state, users)
    try:
        users, policy_state = _fill((users, policy_state), snapshot.arrays)
        counts = snapshot.info["num_events"], snapshot.info["num_updates"], int(users.num_users)
        if counts != (state.num_events, state.num_updates, len(state.users.names)):
            return None
        fields = snapshot.info["health"]
        health = fields and SmcInfo(**{name: freeze(value) for name, value in fields.items()})
        return replace(
            learner,
            users=users,
            state=policy_state,
            num_updates=state.num_updates,
            health=health,
        )
    except UNREADABLE:
        return None


def _fill(template: tuple[UserTable, Any], arrays: list[AnyArray]) -> tuple[UserTable, Any]:
    """Put arrays in the place of a template's leaves; refuse those that do not fit."""
    leaves, structure = jax.tree.flatten(template)
    capacity, grown = (each[0].shape[:1] for each in (leaves, arrays))
    for leaf, array in zip(leaves, arrays, strict=True):
        # Tables with a row per user grow along their first axis; those of policies start without
        # rows. Nothing else changes shape.
        is_table = leaf.shape[:1] in ((0,), capacity) and array.shape[:1] == grown >= capacity
        fits = leaf.shape == array.shape or (is_table and leaf.shape[1:] == array.shape[1:])
        if not fits or array.dtype != leaf.dtype or np.isnan(array).any():
            raise ValueError("an array does not fit")
    filled: tuple[UserTable, Any] = jax.tree.unflatten(structure, list(map(jnp.asarray, arrays)))
    return filled
