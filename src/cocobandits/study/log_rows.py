"""The log of a study, row by row, as tables and estimators take it."""

from collections import Counter
from collections.abc import Iterator

from cocobandits.logs.table import LogRow
from cocobandits.study.design import StudyDesign
from cocobandits.study.state import StudyState


def log_rows(state: StudyState) -> Iterator[LogRow]:
    """List all decisions in their order, with what is known of their users now."""
    served: Counter[str] = Counter()
    arms = state.design.arms
    for made, status in zip(state.decisions, state.statuses, strict=True):
        reward = state.rewards.get(made.decision)
        yield LogRow(
            made.decision,
            made.user,
            served[made.user],
            made.arm,
            made.probabilities[arms.index(made.arm)],
            made.draw,
            None if reward is None else reward.value,
            status,
            made.user in state.users.withdrawn,
            made.probabilities,
            made.weights,
            tuple(arm in made.eligible for arm in arms[: len(made.weights)]),
            state.users.show(state.users.number(made.user)),
        )
        served[made.user] += 1


def log_metadata(design: StudyDesign) -> dict[str, str]:
    """List what somebody who reads the log alone has to know of the study."""
    return {
        "policy": design.policy.name,
        "seed": str(design.seed),
        "rewards": design.rewards.name,
        "reward_range": f"{design.reward_range[0]!r} to {design.reward_range[1]!r}",
        "better": "higher" if design.rewards.maximise else "lower",
    }
