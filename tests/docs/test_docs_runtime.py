import os
import subprocess
import sys
from pathlib import Path

import pytest

# Counts the worker threads of JAX's CPU client after a computation that would use all of them.
PROGRAM = """
import os
import cocobandits
import jax.numpy as jnp
matrix = jnp.ones((300, 300))
(matrix @ matrix).block_until_ready()
tasks = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
print(sum("XLAEigen" in name for name in tasks), matrix.dtype, os.environ.get("NPROC"))
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted on Linux")
@pytest.mark.parametrize("value", [None, "7"])
def test_jax_has_one_worker_thread(value):
    """Count in a process of its own; the variable that was borrowed has its old value again."""
    environment = {name: text for name, text in os.environ.items() if name != "NPROC"}
    environment |= {} if value is None else {"NPROC": value}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "float64", str(value)]
