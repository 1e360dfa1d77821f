"""The log of a study, row by row, as tables and estimators take it."""

from collections import Counter
from collections.abc import Iterator

from cocobandits.study.decisions import DecisionLog, Status, make_id
from cocobandits.study.design import StudyDesign
from cocobandits.study.log_table import LogRow
from cocobandits.study.users import Users


def log_rows(design: StudyDesign, users: Users, log: DecisionLog) -> Iterator[LogRow]:
    """List all decisions in their order, with what is known of their users now."""
    served: Counter[int] = Counter()
    for number, user in enumerate(log.users):
        status, arm = Status(log.statuses[number]), log.arms[number]
        yield LogRow(
            make_id(number),
            users.names[user],
            served[user],
            design.arms[arm],
            log.probabilities[number][arm],
            log.draws[number],
            log.rewards[number] if status == Status.REWARDED else None,
            status.name.lower(),
            users.names[user] in users.withdrawn,
            log.probabilities[number],
            log.weights[number],
            log.eligible[number],
            users.show(user),
        )
        served[user] += 1


def log_metadata(design: StudyDesign) -> dict[str, str]:
    """Say what somebody who reads the log alone has to know of the study."""
    return {
        "policy": design.policy.name,
        "seed": str(design.seed),
        "rewards": design.rewards.name,
        "reward_range": f"{design.reward_range[0]!r} to {design.reward_range[1]!r}",
        "better": "higher" if design.rewards.maximise else "lower",
    }
