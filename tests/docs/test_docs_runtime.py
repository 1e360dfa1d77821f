import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax
import jax.numpy as jnp
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


def test_tests_and_their_processes_share_a_cache_that_is_not_the_users():
    """Ask a process as tests start them."""
    folder = str(Path(__file__).parents[2] / ".pytest_cache" / "jax")
    assert jax.config.jax_compilation_cache_dir == folder
    program = "import cocobandits, jax; print(jax.config.jax_compilation_cache_dir)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == folder


def test_short_computations_do_not_wait_for_long_ones():
    """Compute something long in another thread, and something short in this one meanwhile."""

    @jax.jit
    def multiply(matrix, num_times):
        # A loop: what XLA takes for cheap never waits, and would prove nothing.
        return jax.lax.fori_loop(0, num_times, lambda _, power: jnp.tanh(power @ matrix), matrix)

    matrix = jnp.ones((300, 300)) / 300
    multiply(matrix, 1).block_until_ready()
    thread = threading.Thread(target=lambda: multiply(matrix, 500).block_until_ready())
    thread.start()
    time.sleep(0.05)
    multiply(matrix, 1).block_until_ready()
    is_meanwhile = thread.is_alive()
    thread.join()
    assert is_meanwhile
