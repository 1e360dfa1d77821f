"""Cells made up of simple numbers, for tests of files and results."""

from typing import Any

import pyarrow as pa

from cocobandits.runs.info import CellInfo, Line
from cocobandits.runs.store import cell_table

REGRETS = [1.0, 0.0, 2.0, 0.5, 0.25]


def sample_info(name: str = "coids", seed: int = 0, **changes: Any) -> CellInfo:
    """Describe a cell with five steps in two rounds."""
    return CellInfo(
        environment="mixture",
        name=name,
        seed=seed,
        environment_label="Mixture",
        label=name.upper(),
        line=Line("#000000", (0, (1, 2))),
        order=(0, len(name)),
        settings={"inference": {"num_particles": 3}},
        reward_range=(-2.0, 2.0),
        newcomers=(20, 10),
        world_sha256="w",
        num_users=3,
        num_outside=1,
        num_steps=5,
        num_evaluations=3,
        total_regret=sum(REGRETS),
        second_half_regret=sum(REGRETS[2:]),
        seconds=0.5,
        suite="reproduction",
        is_quick=False,
        provenance={"source_sha256": "s"},
        argv=["coco", "reproduce"],
    )._replace(**changes)


def sample_steps() -> list[dict[str, Any]]:
    """Make five steps; particles move in the second, and rounds end with the third and fifth."""
    rows: list[dict[str, Any]] = [
        {
            "step": step,
            "round": step // 3,
            "user": step % 3,
            "user_step": step // 3,
            "arm": step % 2,
            "probability": 0.5,
            "reward": float(step),
            "regret": regret,
        }
        for step, regret in enumerate(REGRETS)
    ]
    rows[1]["health"] = {
        "ess": 50.0,
        "acceptance_rate": 0.5,
        "num_moves": 4,
        "distinct_ancestors": 9,
        "start_correlation": float("nan"),
    }
    rows[1]["hyperparameters"] = [
        {"name": name, "low": 0.0, "median": 1.0, "high": 2.0} for name in ("noise", "spread")
    ]
    rows[2]["evaluation"], rows[4]["evaluation"] = 0.8, 0.7
    return rows


def sample_table(name: str = "coids", seed: int = 0, **changes: Any) -> pa.Table:
    """Make the table of a cell."""
    return cell_table(sample_info(name, seed, **changes), sample_steps(), first=0.9)
