"""Simulated and resumed runs as plain data. Knows no API."""

from typing import Any, NamedTuple

_FEW = {"num_particles": 20, "max_blocks": 2}
_MIXTURE = {**_FEW, "population": "mixture", "num_components": 2}
_GRID = {**_FEW, "population": "log-density", "nodes_per_arm": 6, "num_modes": 20}
NUM_STEPS = 40


class SimulatedRun(NamedTuple):
    """The first steps of a policy in an environment."""

    id: str
    environment: str
    policy: str
    overrides: dict[str, Any]
    seed: int = 5
    num_steps: int = NUM_STEPS


class ResumedRun(NamedTuple):
    """A small experiment: run whole, and interrupted after its first cell and resumed."""

    id: str
    environment: str
    policies: tuple[str, ...]
    overrides: dict[str, Any]
    num_seeds: int


_OVERRIDES = {
    "mixture": {"coids": _GRID, "npm-ts": _GRID},
    "yes-no": {"coids": _MIXTURE, "npm-ts": _MIXTURE},
    "survey-missing": {"coids": _MIXTURE, "npm-ts": _MIXTURE},
}
SIMULATED = tuple(
    SimulatedRun(f"run/{environment}/{policy}", environment, policy, learners.get(policy, {}))
    for environment, learners in _OVERRIDES.items()
    for policy in ("coids", "npm-ts", "kmtl-ucb", "ind-ts", "oracle-ts")
)
RESUMED = (ResumedRun("resumed/diet", "diet", ("npm-ts", "ind-ts", "oracle-ts"), _MIXTURE, 1),)
