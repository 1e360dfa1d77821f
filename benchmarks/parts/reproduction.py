"""How long the paper's four experiments take: all its policies, all seeds, on all processors."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cocobandits.experiments.presets import PAPER_POLICIES
from parts.scale import Scale


def measure_reproduction(scale: Scale, kept: Path | None = None) -> float:
    """Run the command as a user would, report included; return the minutes.

    The run folder is thrown away, unless a place to keep it is given.
    """
    start = "from cocobandits.cli.main import main; main()"
    command = [sys.executable, "-c", start, "reproduce"]
    for policy in PAPER_POLICIES:
        command += ["--policy", policy]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        subprocess.run(
            [*command, *scale.reproduction, "--out", str(kept or Path(folder) / "run")],
            check=True,
            capture_output=True,
        )
    return (time.perf_counter() - began) / 60
