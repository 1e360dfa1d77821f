"""The command as a process of its own, as a user starts it."""

import os
import subprocess
import sys
from pathlib import Path

COCO = Path(sys.executable).with_name("coco")


def run(*arguments: str | Path, width: int = 80) -> subprocess.CompletedProcess:
    """Run it in a terminal of that width."""
    environment = os.environ | {"COLUMNS": str(width)}
    return subprocess.run(
        [COCO, *arguments], capture_output=True, text=True, check=False, env=environment
    )
