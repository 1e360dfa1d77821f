"""Processes of their own: how long until a first decision, and how much memory a run needs."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from cocobandits.disk_cache import SWITCH
from parts.scale import Scale

_CHILD = str(Path(__file__).with_name("child.py"))


def measure_startup(scale: Scale) -> dict[str, float]:
    """Time whole processes: importing, a first decision, the same with compiled code on disk."""
    bare = {name: text for name, text in os.environ.items() if "COMPILATION_CACHE" not in name}
    bare[SWITCH] = "off"
    with tempfile.TemporaryDirectory() as cache:
        cached = bare | {
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        _timed([_CHILD, "decide"], cached)
        return {
            "import": _median(scale, ["-c", "import cocobandits"], bare),
            "first_decision_cold": _median(scale, [_CHILD, "decide"], bare),
            "first_decision_warm": _median(scale, [_CHILD, "decide"], cached),
        }


def measure_memory(scale: Scale) -> float:
    """Run the library alone and ask for the largest memory of that process, in megabytes."""
    told: dict[str, Any] = json.loads(_timed([_CHILD, "run", scale.name], dict(os.environ))[1])
    return float(told["peak_memory_mb"])


def _median(scale: Scale, arguments: list[str], environment: dict[str, str]) -> float:
    return float(np.median([_timed(arguments, environment)[0] for _ in range(scale.children)]))


def _timed(arguments: list[str], environment: dict[str, str]) -> tuple[float, str]:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return time.perf_counter() - began, done.stdout
