"""Records every benchmark in the results file as soon as it is measured.

`--quick` shrinks everything and records nothing, unless `--results` names a file.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest
import results
from studies import CASES, Case

# The first run of a benchmark compiles, whatever earlier processes left on disk.
jax.config.update("jax_enable_compilation_cache", False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `make bench`."""
    parser.addoption("--quick", action="store_true", help="a toy of each benchmark, not recorded")
    parser.addoption("--results", type=Path, help="the file to record entries in")


@pytest.fixture
def quick(request: pytest.FixtureRequest) -> bool:
    """Whether to shrink everything."""
    return bool(request.config.getoption("quick"))


@pytest.fixture
def case(request: pytest.FixtureRequest, quick: bool) -> Case:
    """Find the case that a benchmark asks for by its name."""
    return CASES[request.param].quick() if quick else CASES[request.param]


@pytest.fixture(scope="session")
def provenance(request: pytest.FixtureRequest) -> dict[str, str]:
    """Describe code and machine once, before anything is measured."""
    machine = request.config.hook.pytest_benchmark_generate_machine_info(config=request.config)
    return results.provenance(machine["cpu"].get("brand_raw", machine["machine"]))


@pytest.fixture(autouse=True)
def _recorded(
    request: pytest.FixtureRequest, benchmark: Any, provenance: dict[str, str]
) -> Iterator[None]:
    jax.clear_caches()
    yield
    path = _path(request.config)
    if path and benchmark.stats and not benchmark.has_error:
        measured = {"seconds": benchmark.stats.stats.median, **benchmark.extra_info}
        entry = {_name(request.node): provenance | measured}
        results.write(path, results.read(path) | entry)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """After a run of all benchmarks, drop the entries of those that no longer exist."""
    config, names = session.config, {_name(item) for item in getattr(session, "items", ())}
    is_part = config.getoption("keyword") or any("::" in word for word in config.args)
    path = _path(config)
    if path and names and exitstatus == 0 and not is_part and not config.getoption("collectonly"):
        entries = results.read(path)
        results.write(path, {name: entries[name] for name in entries if name in names})


def _path(config: pytest.Config) -> Path | None:
    return config.getoption("results") or (None if config.getoption("quick") else results.RESULTS)


def _name(item: Any) -> str:
    return item.name.removeprefix("test_")
