"""How a population is modelled and learned: one record of settings, and presets by name."""

from dataclasses import dataclass
from types import UnionType
from typing import Literal, get_args

from cocobandits.checks import check_numbers, check_whole
from cocobandits.errors import ConfigurationError, UnknownNameError
from cocobandits.inference.smc import SmcConfig
from cocobandits.models.chances import ChanceMixture
from cocobandits.models.gaussian_mixture import ConditionalMixture
from cocobandits.models.log_density import BasisName
from cocobandits.models.log_density.kernel import KernelName
from cocobandits.models.log_density.likelihood import LikelihoodName
from cocobandits.models.precision import Precision
from cocobandits.policies.gradband import GradBandSettings
from cocobandits.policies.hierts import HierTsSettings
from cocobandits.policies.hlinucb import HlinucbSettings
from cocobandits.policies.kmtl_ucb import KmtlUcbSettings
from cocobandits.policies.meta_ts import MetaTsSettings
from cocobandits.policies.mtts import MttsSettings
from cocobandits.policies.robustagg import RobustAggSettings
from cocobandits.policies.rome import RomeSettings

ModelName = Literal["auto", "log-density", "mixture"]

# Of anything that is counted in settings.
_MOST = 1_000_000


@dataclass(frozen=True)
class CocoSettings:
    """How the population is modelled and learned; the defaults learn the hyperparameters.

    Everything is in standardised units: rewards span [-2, 2], continuous features [-1, 1].

    Attributes:
        model: "log-density" (the paper's, on a grid), "mixture" (for many arms), or "auto", which
            takes the first where it fits.
        num_components: of the mixture.
        rank: common factors of the arms within a component of the mixture, 0 to 2; None for one
            factor up to three arms, and none beyond.
        smooth_terms: waves per continuous feature, besides its line, in the mixture.
        nodes_per_arm: grid points per arm; by default as many as the noise asks for.
        nodes_per_feature: grid points per feature; karhunen-loeve only.
        num_modes: basis functions; hilbert takes as many more as are equally strong.
        basis: "hilbert" learns lengthscales and amplitude, "karhunen-loeve" takes them as given.
        kernel: of the Gaussian process on the log-density.
        arm_lengthscale, context_lengthscale, amplitude: of the kernel; prior medians if learned.
        lengthscale_deviation, amplitude_deviation: of their logarithms; hilbert only.
        population_weight: what the population counts in coids; 0 looks at this user alone.
        likelihood: "cell" averages over a grid cell, "node" is the paper's.
        context_points: contexts per feature at which moves tabulate densities, to read them in
            between; None computes every user's own, exactly and slowly.
        precision: of densities, "single" or "double"; log-evidences are added in double. Single is
            faster, and takes a user whom a particle gives less than exp(-65) for as likely as that.
        memory_limit_gb: grids that need more are refused.
        inference: particles and their moves.
        mtts, hierts, hlinucb, kmtl_ucb, gradband, meta_ts, robustagg, rome: what other systems
            assume, each policy or pair of policies of that name.
        prior: the population that oracle-ts and oracle-plan are told.
        steps_per_user: how many rewards each user will give, if that is known: coids then plans
            ahead. oracle-plan has to know.
    """

    model: ModelName = "auto"
    num_components: int = 8
    rank: int | None = None
    smooth_terms: int = 0
    nodes_per_arm: int | None = None
    nodes_per_feature: int = 10
    num_modes: int = 250
    basis: BasisName = "hilbert"
    kernel: KernelName = "squared-exponential"
    arm_lengthscale: float = 0.7
    context_lengthscale: float = 1.5
    amplitude: float = 4.0
    lengthscale_deviation: float = 0.4
    amplitude_deviation: float = 0.6
    population_weight: float = 1.0
    likelihood: LikelihoodName = "cell"
    context_points: int | None = 20
    precision: Precision = "single"
    memory_limit_gb: float = 2.0
    inference: SmcConfig = SmcConfig(num_particles=100, ess_threshold=0.4, max_blocks=5)
    mtts: MttsSettings = MttsSettings()
    hierts: HierTsSettings = HierTsSettings()
    hlinucb: HlinucbSettings = HlinucbSettings()
    kmtl_ucb: KmtlUcbSettings = KmtlUcbSettings()
    gradband: GradBandSettings = GradBandSettings()
    meta_ts: MetaTsSettings = MetaTsSettings()
    robustagg: RobustAggSettings = RobustAggSettings()
    rome: RomeSettings = RomeSettings()
    prior: ConditionalMixture | ChanceMixture | None = None
    steps_per_user: int | None = None

    def __post_init__(self) -> None:
        remedy = "The default is 1; 0 looks at this user alone."
        check_numbers(self, "not negative", "population_weight", remedy=remedy)
        optional = ("nodes_per_arm", "steps_per_user", "context_points")
        given = [name for name in optional if getattr(self, name) is not None]
        given += ["nodes_per_feature", "num_modes", "num_components"]
        remedy = "Change it, or leave it out."
        check_whole(self, *given, most=_MOST, remedy=remedy)
        for name, most in (("rank", 2), ("smooth_terms", _MOST)):
            if getattr(self, name) is not None:
                check_whole(self, name, least=0, most=most, remedy=remedy)
        lengthscales = "arm_lengthscale", "context_lengthscale"
        check_numbers(self, "positive", *lengthscales, "amplitude", "memory_limit_gb")
        check_numbers(self, "not negative", "lengthscale_deviation", "amplitude_deviation")
        kinds: dict[str, type | UnionType] = {**SYSTEM_SETTINGS, "inference": SmcConfig}
        kinds["prior"] = ConditionalMixture | ChanceMixture | None
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise ConfigurationError(
                    f"Expected {getattr(kind, '__name__', kind)}; got {name}="
                    f"{getattr(self, name)!r}. Change it, or leave it out."
                )
        if self.model not in get_args(ModelName):
            raise ConfigurationError(
                f"Expected model in {get_args(ModelName)}; got model={self.model!r}. Choose one of "
                "these."
            )


# The fields of `CocoSettings` that other systems are told by.
SYSTEM_SETTINGS = {
    "mtts": MttsSettings,
    "hierts": HierTsSettings,
    "hlinucb": HlinucbSettings,
    "kmtl_ucb": KmtlUcbSettings,
    "gradband": GradBandSettings,
    "meta_ts": MetaTsSettings,
    "robustagg": RobustAggSettings,
    "rome": RomeSettings,
}
PRESETS = {
    "learned": CocoSettings(),
    "paper": CocoSettings(
        nodes_per_arm=20,
        num_modes=80,
        basis="karhunen-loeve",
        context_lengthscale=0.7,
        amplitude=2.0,
        context_points=8,
        inference=SmcConfig(moves_per_block=1, max_blocks=30),
    ),
}
_PAPER_POLICIES = ("npm-ts", "gids")


def preset(name: str) -> CocoSettings:
    """Find settings by name.

    Raises:
        UnknownNameError: there is no such preset.
    """
    if name not in PRESETS:
        raise UnknownNameError("settings", name, tuple(PRESETS), "Choose one of these.")
    return PRESETS[name]


def default_settings(policy: str) -> CocoSettings:
    """Choose the preset of a policy: the paper's for the paper's, learned for all others."""
    return PRESETS["paper" if policy in _PAPER_POLICIES else "learned"]
