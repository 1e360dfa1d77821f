"""The paper's experiments as frozen data: environments, policies, settings, seeds."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from cocobandits.environments import lmm
from cocobandits.environments.registry import build_environment
from cocobandits.errors import ConfigurationError, UnknownNameError
from cocobandits.inference.smc import SmcConfig
from cocobandits.policies.mtts import MttsSettings
from cocobandits.policies.registry import CocoSettings, policy_names

ENVIRONMENTS = ("mixture", "partial", "lmm", "lmm-misspecified")
POLICIES = ("npm-ts", "gids", "mtts", "ind-ts", "oracle-ts", "uniform")
# Multi-task regret is measured against it, so every experiment has it.
REFERENCE = "oracle-ts"

# What MTTS is told. In `lmm` the truth; in `lmm-misspecified` the true mean and variance of the
# coefficients over both modes; elsewhere its own line per arm, and its defaults.
_MTTS = {
    "lmm": MttsSettings(lmm.DESIGN, 1.0, lmm.COEFFICIENT_DEVIATION, lmm.USER_DEVIATION),
    "lmm-misspecified": MttsSettings(
        lmm.DESIGN, 0.0, math.sqrt(1 + lmm.COEFFICIENT_DEVIATION**2), lmm.USER_DEVIATION
    ),
}


@dataclass(frozen=True)
class Scale:
    """How much is computed."""

    name: str
    num_seeds: int
    settings: CocoSettings
    evaluation_users: int = 20
    evaluation_pulls: int = 10


PAPER = Scale("paper", 10, CocoSettings())
# Fewer seeds, coarser cells and fewer particles: the same curves, less smooth.
QUICK = Scale("quick", 2, CocoSettings(nodes_per_arm=8, inference=SmcConfig(num_particles=60)))


def scale(is_quick: bool, nodes_per_arm: int | None = None) -> Scale:
    """Choose a scale, with another grid if one is given.

    Raises:
        ConfigurationError: a grid of fewer than two points.
    """
    chosen = QUICK if is_quick else PAPER
    if nodes_per_arm is None:
        return chosen
    if nodes_per_arm < 2:
        raise ConfigurationError(
            f"Expected at least two grid points; got nodes={nodes_per_arm}. The paper uses 20."
        )
    return replace(chosen, settings=replace(chosen.settings, nodes_per_arm=nodes_per_arm))


@dataclass(frozen=True)
class Experiment:
    """A grid of cells (environment, policy, seed), all at one scale."""

    scale: Scale
    environments: tuple[str, ...]
    policies: tuple[str, ...]
    num_seeds: int

    def __post_init__(self) -> None:
        if self.num_seeds < 1:
            raise ConfigurationError(
                f"Expected at least one seed; got seeds={self.num_seeds}. Use for example 10."
            )

    @classmethod
    def declare(
        cls,
        scale: Scale,
        environments: list[str] | None = None,
        policies: list[str] | None = None,
        num_seeds: int | None = None,
    ) -> "Experiment":
        """Read what was asked for; nothing asked is everything.

        Raises:
            UnknownNameError: an environment or policy that nobody registered.
            ConfigurationError: no seeds.
        """
        asked = dict.fromkeys(environments or ENVIRONMENTS)
        for name in asked:
            build_environment(name)
        wanted = dict.fromkeys([*(policies or POLICIES), REFERENCE])
        for name in wanted:
            if name not in policy_names():
                raise UnknownNameError("policy", name, policy_names(), "Choose one of these.")
        return cls(
            scale,
            tuple(asked),
            tuple(name for name in policy_names() if name in wanted),
            scale.num_seeds if num_seeds is None else num_seeds,
        )

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, from zero."""
        return tuple(range(self.num_seeds))

    def settings_for(self, environment: str) -> CocoSettings:
        """Complete the settings of the scale for an environment."""
        return replace(self.scale.settings, mtts=_MTTS.get(environment, MttsSettings()))

    def as_json(self) -> dict[str, Any]:
        """Describe the experiment in plain values."""
        return {
            "scale": self.scale.name,
            "environments": list(self.environments),
            "policies": list(self.policies),
            "seeds": list(self.seeds),
            "evaluation": {
                "users": self.scale.evaluation_users,
                "pulls": self.scale.evaluation_pulls,
            },
            "settings": asdict(self.scale.settings),
        }
