"""What another rule would have earned, estimated from the log of a study."""

from cocobandits.logs.off_policy.estimates import Estimate
from cocobandits.logs.off_policy.report import OffPolicyReport, evaluate_log, to_open_bandit
from cocobandits.logs.off_policy.target import Target

__all__ = ["Estimate", "OffPolicyReport", "Target", "evaluate_log", "to_open_bandit"]
