"""What `make bench` adds to pytest-benchmark: `--quick`, cases by name, and our results file.

The file of `--benchmark-json` has one entry per benchmark. Those that ran replace theirs, with the
version, commit, date and machine; the others stay.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import pytest
from studies import CASES, Case

from cocobandits.runs.info import Source

# Before anything is measured, while the code is the one that was imported.
_MADE = Source.here(1).provenance
_GIGABYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
_PACKAGES = ", ".join(f"{name} {version}" for name, version in _MADE["packages"].items())
# No host and no paths.
ORIGIN = {
    "version": _MADE["cocobandits"],
    "commit": _MADE["commit"],
    "date": datetime.now(UTC).date().isoformat(),
    "machine": f"{_MADE['processor']}, {_MADE['num_cores']} cores, {_GIGABYTES:.1f} GB, "
    f"{_MADE['machine']}, Python {_MADE['python']}, {_PACKAGES}",
}
# The first run of a benchmark compiles, whatever earlier processes left on disk.
jax.config.update("jax_enable_compilation_cache", False)  # type: ignore[no-untyped-call]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make bench QUICK=1`."""
    parser.addoption("--quick", action="store_true", help="a toy of each benchmark")


def pytest_benchmark_generate_json(config: pytest.Config, benchmarks: list[Any]) -> dict[str, Any]:
    """Replace the entries of the benchmarks that ran."""
    path = Path(config.getoption("benchmark_json"))
    entries = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return entries | {
        each.name.removeprefix("test_"): ORIGIN | {"seconds": each["median"]} | each.extra_info
        for each in benchmarks
        if not each.has_error
    }


@pytest.fixture
def quick(request: pytest.FixtureRequest) -> bool:
    """Whether to shrink everything."""
    return bool(request.config.getoption("quick"))


@pytest.fixture
def case(request: pytest.FixtureRequest, quick: bool) -> Case:
    """Find the case that a benchmark asks for by its name."""
    return CASES[request.param].quick() if quick else CASES[request.param]


@pytest.fixture(autouse=True)
def _nothing_compiled() -> None:
    jax.clear_caches()  # type: ignore[no-untyped-call]
