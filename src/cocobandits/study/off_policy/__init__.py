"""What another rule would have earned, read off the log of a study."""

from cocobandits.study.off_policy.estimates import Estimate
from cocobandits.study.off_policy.report import OffPolicyReport, evaluate_log, to_open_bandit
from cocobandits.study.off_policy.target import Target

__all__ = ["Estimate", "OffPolicyReport", "Target", "evaluate_log", "to_open_bandit"]
