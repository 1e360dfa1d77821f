"""The command as a process of its own, as a user starts it."""

import subprocess
import sys
from pathlib import Path

COCO = Path(sys.executable).with_name("coco")


def run(*arguments: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run([COCO, *arguments], capture_output=True, text=True, check=False)
