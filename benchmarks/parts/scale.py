"""How much is measured: everything, a quick look, or a trial of the machinery on a toy."""

from dataclasses import dataclass, replace

from cocobandits.inference.smc import SmcConfig
from cocobandits.policies.settings import PRESETS, CocoSettings


@dataclass(frozen=True)
class Scale:
    """What the parts are told.

    Attributes:
        name: of the scale, kept in the results.
        paper: settings of gids.
        learned: settings of coids.
        literal_steps: observations that library and literal reference share.
        full_steps: observations of the library's whole run.
        num_seeds: of the paired comparison of quality.
        latency_steps: interactions of coids whose latency is measured.
        users: numbers of users at which the cost of an interaction is measured.
        arms: numbers of arms that are compared.
        particles: numbers of particles that are compared.
        growth_nodes: grid points per arm in both comparisons.
        growth_steps: interactions in each of them.
        repeats: of every function that is timed alone.
        children: processes per start-up figure, of which the median counts.
        reproduction: options of `coco reproduce` for the paper's experiments.
    """

    name: str
    paper: CocoSettings = PRESETS["paper"]
    learned: CocoSettings = PRESETS["learned"]
    literal_steps: int = 150
    full_steps: int = 750
    num_seeds: int = 6
    latency_steps: int = 300
    users: tuple[int, ...] = (100, 1_000, 10_000)
    arms: tuple[int, ...] = (2, 3, 4)
    particles: tuple[int, ...] = (50, 100, 200, 400)
    growth_nodes: int = 12
    growth_steps: int = 120
    repeats: int = 7
    children: int = 3
    reproduction: tuple[str, ...] = ()


FULL = Scale("full")
QUICK = replace(
    FULL,
    name="quick",
    literal_steps=40,
    num_seeds=1,
    latency_steps=150,
    users=(100, 1_000),
    growth_steps=60,
    repeats=3,
    children=1,
    reproduction=("--quick",),
)
_TOY = SmcConfig(num_particles=20, max_blocks=1, moves="scales")
TINY = Scale(
    "tiny",
    replace(PRESETS["paper"], nodes_per_arm=5, nodes_per_feature=4, num_modes=10, inference=_TOY),
    replace(PRESETS["learned"], nodes_per_arm=5, num_modes=10, inference=_TOY),
    literal_steps=8,
    full_steps=16,
    num_seeds=2,
    latency_steps=10,
    users=(6, 12),
    arms=(2, 3),
    particles=(10, 20),
    growth_nodes=4,
    growth_steps=8,
    repeats=2,
    children=1,
    reproduction=("--quick", "--env", "lmm", "--seeds", "1"),
)
SCALES = {scale.name: scale for scale in (FULL, QUICK, TINY)}
