"""How long the paper's four experiments take: all its policies, all seeds, on all processors."""

import subprocess
import sys
import tempfile
import time

from cocobandits.experiments.presets import PAPER_POLICIES
from parts.scale import Scale


def measure_reproduction(scale: Scale) -> float:
    """Run the command as a user would, report included; return the minutes."""
    start = "from cocobandits.cli.main import main; main()"
    command = [sys.executable, "-c", start, "reproduce"]
    for policy in PAPER_POLICIES:
        command += ["--policy", policy]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        subprocess.run(
            [*command, *scale.reproduction, "--out", f"{folder}/run"],
            check=True,
            capture_output=True,
        )
    return (time.perf_counter() - began) / 60
