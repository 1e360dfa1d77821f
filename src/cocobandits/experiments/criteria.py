"""What a criterion is: a rule on what was measured, met or not, or not decided.

A rule is not decided if a policy it needs was not run, on a single seed, or if the 95 % interval
over seeds reaches to both sides of it: too little evidence is not evidence against. The rules
themselves stand in `regret_criteria` and `learning_criteria`.
"""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, NamedTuple, ParamSpec

from cocobandits.experiments.measures import POLICY_LABELS, Measures

MIN_SEEDS = 2
_Policies = ParamSpec("_Policies")
_Rule = Callable[Concatenate[Measures, str, _Policies], "Part"]


class Part(NamedTuple):
    """What one rule measured; `holds` is None if it was not decided."""

    told: str
    holds: bool | None

    @property
    def outcome(self) -> str:
        """Name the outcome in one or two words."""
        return {True: "yes", False: "no", None: "not decided"}[self.holds]


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
