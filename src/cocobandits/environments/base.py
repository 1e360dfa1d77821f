"""What an environment declares, and the truth it draws."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cocobandits.environments.recruitment import Recruitment
from cocobandits.errors import ConfigurationError, brief
from cocobandits.populations.known.beta_mixture import BetaMixture
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.rewards import Rewards

FloatVector = np.ndarray[tuple[int], np.dtype[np.float64]]
FloatMatrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
FloatCube = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

_DECLARED: dict[str, type] = {
    **{"name": str, "arms": Sequence, "context": Mapping, "rewards": Rewards},
    "recruitment": Recruitment,
}
NOTHING_SHARED: FloatVector = np.zeros(0)


class Cohort(NamedTuple):
    """Users as nature made them: what can be seen, and what cannot."""

    contexts: list[dict[str, float | str | bool | None]]
    arm_means: FloatMatrix  # user × arm


class Environment(ABC):
    """A population to learn from.

    What nature fixes once for all users of a run (`draw_shared`) goes into every user and into the
    true population; most environments share nothing.
    """

    name: str
    arms: tuple[str, ...]
    context: dict[str, tuple[float, float] | list[str] | type[bool]]
    rewards: Rewards
    recruitment: Recruitment
    # In tables and figures; the name if it is empty.
    label: str = ""
    # Its users, in a few words.
    about: str = ""
    # A linear mixed model that comes close, as the settings of MTTS take it; in units of reward.
    mixed_model: Mapping[str, Any] | None = None

    def draw_shared(self, generator: np.random.Generator) -> FloatVector:
        """Draw what all users of one run have in common."""
        del generator
        return NOTHING_SHARED

    @abstractmethod
    def draw_users(
        self, generator: np.random.Generator, num_users: int, shared: FloatVector = NOTHING_SHARED
    ) -> Cohort:
        """Draw users from the true population."""

    @abstractmethod
    def population(self, shared: FloatVector = NOTHING_SHARED) -> ConditionalMixture | BetaMixture:
        """Describe the true population P*(μ | x), in reward units and features on [-1, 1]."""

    def check(self) -> None:
        """Refuse an environment that does not declare what a simulation needs.

        Raises:
            ConfigurationError: a declaration is missing, or of another type.
        """
        for name, kind in _DECLARED.items():
            given = getattr(self, name, None)
            if not isinstance(given, kind):
                raise ConfigurationError(
                    f"Expected an environment with {name} as a {kind.__name__}; got "
                    f"{name}={brief(given)} in {type(self).__name__}. Declare it in the class, as "
                    "docs/skeletons/environment.py does."
                )

    def recruiting(self, plan: Recruitment) -> "Environment":
        """Make the same environment with another plan of arrivals."""
        changed = copy.copy(self)
        changed.recruitment = plan
        return changed
