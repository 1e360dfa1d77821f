"""CoCo-Bandits: learn the population that users come from, and serve each user accordingly."""

from typing import TYPE_CHECKING, Any

from cocobandits.disk_cache import configure_cache
from cocobandits.runtime import configure_jax

configure_jax()
configure_cache()

from cocobandits.errors import CocoError  # noqa: E402
from cocobandits.policies.baselines.gradband import GradBand  # noqa: E402
from cocobandits.policies.baselines.hierts import HierTS  # noqa: E402
from cocobandits.policies.baselines.hlinucb import HLinUCB, HLinUCBT  # noqa: E402
from cocobandits.policies.baselines.kmtl_ucb import KmtlUCB  # noqa: E402
from cocobandits.policies.baselines.meta_ts import AdaTS, MetaTS  # noqa: E402
from cocobandits.policies.baselines.mtts import MTTS  # noqa: E402
from cocobandits.policies.baselines.robustagg import RobustAgg  # noqa: E402
from cocobandits.policies.baselines.rome import RoME  # noqa: E402
from cocobandits.policies.coco.descriptions import GIDS, CoIDS, NpmTS  # noqa: E402
from cocobandits.policies.coco.populations import LogDensity, Mixture, PaperLogDensity  # noqa: E402
from cocobandits.policies.fixed import IndTS, OraclePlan, OracleTS, Uniform  # noqa: E402
from cocobandits.policies.registry import policy_names  # noqa: E402
from cocobandits.rewards import Bernoulli, Bounded, Gaussian  # noqa: E402
from cocobandits.study import Decision, Explanation, Population, Study  # noqa: E402

if TYPE_CHECKING:
    from cocobandits.simulation import simulate

__version__ = "0.8.0"
__all__ = [
    "GIDS",
    "MTTS",
    "AdaTS",
    "Bernoulli",
    "Bounded",
    "CoIDS",
    "CocoError",
    "Decision",
    "Explanation",
    "Gaussian",
    "GradBand",
    "HLinUCB",
    "HLinUCBT",
    "HierTS",
    "IndTS",
    "KmtlUCB",
    "LogDensity",
    "MetaTS",
    "Mixture",
    "NpmTS",
    "OraclePlan",
    "OracleTS",
    "PaperLogDensity",
    "Population",
    "RoME",
    "RobustAgg",
    "Study",
    "Uniform",
    "policy_names",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Load the simulation when it is first used: studies and reports do without environments."""
    if name == "simulate":
        from cocobandits.simulation import simulate  # noqa: PLC0415 - see above

        return simulate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
