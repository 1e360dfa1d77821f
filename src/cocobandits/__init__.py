"""CoCo-Bandits: learn the population that users come from, and serve each user accordingly."""

from cocobandits.disk_cache import configure_cache
from cocobandits.runtime import configure_jax

configure_jax()
configure_cache()

from cocobandits.errors import CocoError  # noqa: E402
from cocobandits.inference.smc import SmcConfig  # noqa: E402
from cocobandits.policies.registry import policy_names  # noqa: E402
from cocobandits.policies.settings import CocoSettings  # noqa: E402
from cocobandits.study import Decision, Explanation, Population, Study  # noqa: E402

__version__ = "0.7.0"
__all__ = [
    "CocoError",
    "CocoSettings",
    "Decision",
    "Explanation",
    "Population",
    "SmcConfig",
    "Study",
    "policy_names",
]
