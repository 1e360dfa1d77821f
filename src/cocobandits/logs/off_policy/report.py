"""What another policy would have earned, from the log of a study.

Every decision was drawn with known probabilities, so the log of one policy informs about others.
Three estimates of the target's mean reward per decision, over the users and contexts of the log:

- ips weighs rewards by target probability / logged probability. Logged probabilities may depend on
  everything before: given the past, a weighted reward has the target's mean, and deviations from it
  are a martingale. So ips is exactly unbiased also for an adaptive policy.
- snips divides by the sum of weights instead of their number. Its bias is of order 1/n.
- dr adds a reward model, fitted on other users. It is exactly unbiased, however wrong the model, if
  users' logs are independent. An adaptive policy makes others' later decisions depend on a user's
  rewards, which leaves a bias of order 1/n, below the standard error of order 1/√n.

All of this holds if the target has no probability where the log has none (see `Overlap`); if who is
served, how often, and whose reward is missing does not depend on rewards; if a reward depends on
the arm given now, not on arms given before; and if no context was added after a decision that the
target could not have known then, since a log holds what is known now. The target is judged decision
by decision.

Intervals take users for independent, and decisions of one user not. They are approximate: they need
many users, and under an adaptive policy also probabilities that stay away from zero and settle; a
policy that drops arms, or cannot tell two arms apart, gives estimates that are not normal even in
long logs (Hadad et al. 2021). And where a policy spares few users an arm that is very bad for them,
large weights meet extreme rewards: in a test of that kind, 60 users give intervals that cover 88 %.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cocobandits.checks import is_number
from cocobandits.errors import InputError
from cocobandits.logs.off_policy.estimates import (
    UNKNOWN,
    Clusters,
    Estimate,
    doubly_robust,
    inverse_propensity,
    self_normalised,
)
from cocobandits.logs.off_policy.overlap import Overlap, measure_overlap
from cocobandits.logs.off_policy.reading import (
    LoggedDecisions,
    PerArm,
    PerDecision,
    read_decisions,
)
from cocobandits.logs.off_policy.reward_model import encode_contexts, predict_rewards
from cocobandits.logs.off_policy.target import Target, target_probabilities

ESTIMATORS = ("ips", "snips", "dr")


@dataclass(frozen=True)
class OffPolicyReport:
    """Estimates of a target's mean reward per decision. Prints as a table.

    Attributes:
        ips: inverse propensity.
        snips: self-normalised inverse propensity.
        dr: doubly robust.
        overlap: how far the log covers the target; without any, estimates are unknown.
        num_decisions: decisions that entered.
        num_users: users who were served.
        num_left_out: decisions without reward, or of users who have withdrawn.
        logged_mean: mean reward of the decisions that entered, as they were made.
    """

    ips: Estimate
    snips: Estimate
    dr: Estimate
    overlap: Overlap
    num_decisions: int
    num_users: int
    num_left_out: int
    logged_mean: float

    @property
    def warning(self) -> str | None:
        """Why the estimates need care, and what to do about it; None if they do not."""
        return self.overlap.warning

    def __str__(self) -> str:
        lines = [f"{'estimate':<10}{'value':>11}{'95 % from':>11}{'to':>11}{'s.e.':>11}"]
        for name in ESTIMATORS:
            found: Estimate = getattr(self, name)
            shown = (found.value, found.low, found.high, found.standard_error)
            cells = [f"{number:11.4g}" if found.is_known else f"{'-':>11}" for number in shown]
            lines.append(f"{name:<10}{''.join(cells)}")
        lines += [
            f"{'as logged':<10}{self.logged_mean:11.4g}",
            f"overlap: {self.overlap.verdict}; effectively "
            f"{self.overlap.effective_decisions:.1f} of {self.num_decisions} decisions, "
            f"{self.overlap.effective_users:.1f} of {self.num_users} users",
            f"left out: {self.num_left_out} decisions without reward or of users who withdrew",
        ]
        return "\n".join(lines if self.warning is None else [*lines, self.warning])


def evaluate_log(table: Any, target: Target, seed: int = 0) -> OffPolicyReport:
    """Estimate what a target would have earned per decision, as `Study.evaluate` does.

    The table is the log, from `build_log` or read back from a file; also a data frame or a
    dictionary of columns.

    Raises:
        ConfigurationError: pyarrow is not installed.
        InputError: the log, the target or the seed is refused.
        UnknownNameError: the target or the log plays an arm that has no column.
    """
    _check_seed(seed)
    logged = read_decisions(table)
    shares = target_probabilities(target, logged)
    weights = _of_chosen(shares, logged) / logged.probability
    overlap = measure_overlap(logged, shares, weights)
    is_known = overlap.verdict != "none"
    estimates = _estimate(logged, shares, weights, seed) if is_known else (UNKNOWN,) * 3
    return OffPolicyReport(
        *estimates,
        overlap,
        len(logged.rewards),
        logged.num_users,
        logged.num_left_out,
        float(logged.rewards.mean()),
    )


def to_open_bandit(table: Any) -> dict[str, Any]:
    """Write a log as the bandit feedback that Open Bandit Pipeline reads.

    Contexts are encoded as for the reward model; `pi_b` are the logged probabilities. The same
    decisions enter as in `evaluate_log`; users, and so their dependence, are lost.

    Raises:
        ConfigurationError: pyarrow is not installed.
        InputError: the log is refused.
        UnknownNameError: an arm was chosen that has no column.
    """
    logged = read_decisions(table)
    return {
        "n_rounds": len(logged.rewards),
        "n_actions": len(logged.arms),
        "context": encode_contexts(logged.contexts, len(logged.rewards)),
        "action_context": np.eye(len(logged.arms), dtype=int),
        "action": logged.chosen,
        "position": None,
        "reward": logged.rewards,
        "expected_reward": None,
        "pi_b": logged.probabilities[:, :, None],
        "pscore": logged.probability,
    }


def _estimate(
    logged: LoggedDecisions, target: PerArm, weights: PerDecision, seed: int
) -> tuple[Estimate, Estimate, Estimate]:
    clusters = Clusters.of(logged.users, weights)
    design = encode_contexts(logged.contexts, len(logged.rewards))
    predicted = predict_rewards(logged, design, seed)
    residuals = logged.rewards - _of_chosen(predicted, logged)
    return (
        inverse_propensity(weights, logged.rewards, clusters),
        self_normalised(weights, logged.rewards, clusters),
        doubly_robust(weights, residuals, predicted, target, clusters),
    )


def _of_chosen(values: PerArm, logged: LoggedDecisions) -> PerDecision:
    return values[np.arange(len(logged.chosen)), logged.chosen]


def _check_seed(seed: object) -> None:
    if not is_number(seed) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(
            f"Expected a whole number from zero; got seed={seed!r}. Use for example 0."
        )
