"""What a criterion is: a rule on what was measured, met or not, or not tested.

A rule is not tested if a policy it needs was not run, or on a single seed, whose chance no rule can
tell from an effect. The rules themselves stand in `regret_criteria` and `learning_criteria`.
"""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, NamedTuple, ParamSpec

from cocobandits.experiments.measures import POLICY_LABELS, Measures

MIN_SEEDS = 2
_Policies = ParamSpec("_Policies")
_Rule = Callable[Concatenate[Measures, str, _Policies], "Part"]


class Part(NamedTuple):
    """What one rule measured; `holds` is None if it could not be tested."""

    told: str
    holds: bool | None

    @property
    def outcome(self) -> str:
        """Name the outcome in one or two words."""
        return {True: "yes", False: "no", None: "not tested"}[self.holds]


def criterion(*also_needed: str) -> Callable[[_Rule[_Policies]], _Rule[_Policies]]:
    """Make a rule about policies tell what is missing, and stay open on too few seeds."""

    def decorate(rule: _Rule[_Policies]) -> _Rule[_Policies]:
        @wraps(rule)
        def limited(
            measures: Measures,
            environment: str,
            /,
            *args: _Policies.args,
            **kwargs: _Policies.kwargs,
        ) -> Part:
            if environment not in measures.environments:
                return Part(f"{environment} not in this run", None)
            needed = dict.fromkeys([*(str(policy) for policy in args), *also_needed])
            missing = [policy for policy in needed if not measures.has(environment, policy)]
            if missing:
                names = ", ".join(POLICY_LABELS[policy] for policy in missing)
                return Part(f"{names} not run in {environment}", None)
            part = rule(measures, environment, *args, **kwargs)
            return part if len(measures.seeds) >= MIN_SEEDS else part._replace(holds=None)

        return limited

    return decorate
