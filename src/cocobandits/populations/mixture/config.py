"""What a mixture of conjugate components is made of, and the prior of its parts."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from cocobandits.checks import check_numbers
from cocobandits.errors import ConfigurationError
from cocobandits.numerics.precision import DTYPES, Precision
from cocobandits.numerics.traced import traced
from cocobandits.populations.features import FeatureKinds, num_terms

RewardKind = Literal["gaussian", "bernoulli"]


@traced(
    "reward_noise",
    "noise_deviation",
    choices=(
        *("num_arms", "features", "num_components", "rank", "rewards", "mean_range", "precision"),
        "is_noise_learned",
    ),
)
@dataclass(frozen=True)
class MixtureConfig:
    """A dependent stick-breaking mixture; everything in standardised units.

    Attributes:
        num_arms: K.
        features: for each feature its number of categories, or None if it is continuous.
        num_components: C.
        rank: common factors of the arms within a component, 0 or 1; Gaussian rewards only.
        rewards: what a reward is.
        mean_range: where arm means lie; successes and failures are its ends.
        reward_noise: standard deviation of a reward; its prior median if it is learned.
        noise_deviation: of its logarithm; zero if it is known.
        precision: of what is read off beliefs, and of users' evidences before they are added up.
    """

    num_arms: int
    features: FeatureKinds = ()
    num_components: int = 8
    rank: int = 0
    rewards: RewardKind = "gaussian"
    mean_range: tuple[float, float] = (-2.0, 2.0)
    reward_noise: float = 0.1
    noise_deviation: float = 0.0
    precision: Precision = "single"

    def __post_init__(self) -> None:
        for name, least in (("num_arms", 2), ("num_components", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ConfigurationError(
                    f"Expected a whole number of at least {least}; got {name}={value!r}. Raise it."
                )
        if self.rewards not in get_args(RewardKind):
            raise ConfigurationError(
                f"Expected rewards in {get_args(RewardKind)}; got rewards={self.rewards!r}. Choose "
                "one of these."
            )
        most = 1 if self.rewards == "gaussian" else 0
        if type(self.rank) is not int or not 0 <= self.rank <= most:
            raise ConfigurationError(
                f"Expected a rank from 0 to {most} for {self.rewards} rewards; got "
                f"rank={self.rank!r}. Arms that are independent within a component have rank 0."
            )
        remedy = "Give the standard deviation of a reward."
        check_numbers(self, "positive", "reward_noise", remedy=remedy)

    @property
    def dtype(self) -> Any:
        """What numbers of that precision are held in."""
        return DTYPES[self.precision]

    @property
    def num_terms(self) -> int:
        """Number of terms that logits and means are linear in, the constant included."""
        return num_terms(self.features)

    @cached_property
    def is_noise_learned(self) -> bool:
        """Whether each particle has a noise of its own."""
        return self.noise_deviation > 0
