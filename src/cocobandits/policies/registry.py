"""Policies by name, each with default settings. A new policy is one line in `_CLASSES`."""

from typing import Any

from cocobandits.errors import ConfigurationError, UnknownNameError
from cocobandits.policies.baselines.gradband import GradBand
from cocobandits.policies.baselines.hierts import HierTS
from cocobandits.policies.baselines.hlinucb import HLinUCB, HLinUCBT
from cocobandits.policies.baselines.kmtl_ucb import KmtlUCB
from cocobandits.policies.baselines.meta_ts import AdaTS, MetaTS
from cocobandits.policies.baselines.mtts import MTTS
from cocobandits.policies.baselines.robustagg import RobustAgg
from cocobandits.policies.baselines.rome import RoME
from cocobandits.policies.coco.descriptions import GIDS, CoIDS, NpmTS
from cocobandits.policies.description import PolicySettings
from cocobandits.policies.fixed import IndTS, OraclePlan, OracleTS, Uniform

# In the order of tables and legends.
_CLASSES: tuple[type[PolicySettings], ...] = (
    *(CoIDS, NpmTS, GIDS),
    *(MTTS, HierTS, HLinUCB, HLinUCBT, KmtlUCB, GradBand, MetaTS, AdaTS, RobustAgg, RoME),
    *(IndTS, OracleTS, OraclePlan, Uniform),
)
POLICIES: dict[str, type[PolicySettings]] = {each.name: each for each in _CLASSES}


def policy_names() -> tuple[str, ...]:
    """List all names that select a policy."""
    return tuple(POLICIES)


def find_policy(policy: Any) -> PolicySettings:
    """Return the settings given, or those of a name.

    Raises:
        UnknownNameError: there is no policy of that name.
        ConfigurationError: it is neither a name nor settings.
    """
    if isinstance(policy, PolicySettings):
        if not isinstance(policy, POLICIES.get(policy.name, PolicySettings)):
            raise ConfigurationError(
                f"Expected a name that no policy of the package has; got name={policy.name!r} of "
                f"{type(policy).__name__}. Give the class another `name`."
            )
        return policy
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise UnknownNameError("policy", policy, policy_names(), "Choose one of these.")
        return POLICIES[policy]()
    raise ConfigurationError(
        f"Expected the name of a policy, or its settings; got policy={policy!r}. Write for example "
        "'coids' or CoIDS(steps_per_user=5)."
    )
