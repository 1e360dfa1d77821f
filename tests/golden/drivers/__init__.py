"""One driver per API of the package; the tree under test decides which one is used.

A driver is a module with these functions:

- `open_study(scenario)` starts the study of a `Scenario`.
- `load_study(path)` reads a study that `save` wrote.
- `explain(study, user)` returns numbers per arm.
- `simulate(run)` returns one plain row per step of a `SimulatedRun`.
- `run_tables(run, folder, is_interrupted)` returns the rows of every table of a `ResumedRun`.

To add a driver, write its module and add a line to `DRIVERS`. Probes must exclude each other.
"""

import importlib
from types import ModuleType

import cocobandits

# The name of a module in this folder, and a name that only its API exports.
DRIVERS = {"coco_settings": "CocoSettings", "settings_classes": "CoIDS"}


def find_driver() -> ModuleType:
    """Import the driver of the package that is installed.

    Raises:
        LookupError: no driver fits, or several do.
    """
    fitting = [name for name, probe in DRIVERS.items() if hasattr(cocobandits, probe)]
    if len(fitting) != 1:
        raise LookupError(
            f"Expected one driver for cocobandits {cocobandits.__version__}; got {fitting}. Add a "
            "driver to tests/golden/drivers, or correct the probes."
        )
    return importlib.import_module(f"golden.drivers.{fitting[0]}")
