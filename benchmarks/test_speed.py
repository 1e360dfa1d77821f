"""What the library costs: one benchmark per question, run by `make bench`.

    make bench                                        everything; one to two hours
    make bench ONLY="run and coids"                   some; the other entries stay
    make bench QUICK=1                                a toy of each; writes nothing

Times are wall times on one thread. Functions were compiled before, where nothing else is said.
"""

import math
import os
import subprocess
import sys
import tempfile
import timeit
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from literal import RESAMPLE_EVERY, LiteralPosterior
from studies import CASES, Case, value_and_gradient
from timed import serve, summarise

from cocobandits import CoIDS
from cocobandits.environments.recruitment import Recruitment

FRESH = str(Path(__file__).with_name("fresh.py"))
# Between two interactions, while particles move in the background.
PAUSE = 0.05


def with_case(*names: str) -> pytest.MarkDecorator:
    """Run a benchmark for each of the named cases."""
    return pytest.mark.parametrize("case", names, indirect=True)


@with_case(*CASES)
def test_run(benchmark: Any, case: Case) -> None:
    """Serve users; the first run compiles, the second is measured."""
    cold = serve(case.open(), case)
    study = case.open()
    served = benchmark.pedantic(serve, (study, case))
    evaluate = value_and_gradient(study)
    evaluate()
    benchmark.extra_info |= summarise(served) | {
        "label": case.label,
        **case.sizes,
        "cold_seconds": sum(each.total for each in cold),
        "gradient_ms": 1e3 * median(timeit.repeat(evaluate, number=1, repeat=7)),
    }


@with_case("gids")
def test_literal(benchmark: Any, case: Case, quick: bool) -> None:
    """Decide and learn along the library's first observations as the paper is written."""
    case = replace(case, num_steps=8 if quick else 150)
    serve(case.open(), case)
    study = case.open()
    served = serve(study, case)
    users = study._learner.users
    history: Any = [
        (each.user, users.contexts[each.user], each.arm, study.design.standardise(each.reward))
        for each, *_ in served
    ]
    given: Any = case.policy.population
    population = replace(given, precision="double")
    num_particles = case.policy.num_particles
    model = population.model(study.design.problem(), num_particles)
    size = (int(users.num_users), 0, num_particles)
    LiteralPosterior(model, *size).replay(history[:RESAMPLE_EVERY])
    benchmark.pedantic(LiteralPosterior(model, *size).replay, (history,))
    library = sum(each.total for each in served)
    benchmark.extra_info |= {
        "observations": case.num_steps,
        "library_seconds": library,
        "ratio": benchmark.stats.stats.median / library,
    }


@with_case("coids-log-density", "coids")
def test_background(benchmark: Any, case: Case) -> None:
    """Keep the interactions during which particles moved in another process."""
    serve(case.open(), case)
    # The first round compiles in the other process.
    served = benchmark.pedantic(
        serve,
        setup=lambda: ((case.open("background"), case, PAUSE), {}),
        teardown=lambda study, *_: study.catch_up(),
        warmup_rounds=1,
    )
    meanwhile = [each._replace(has_moved=False) for each in served if each.while_moving]
    benchmark.extra_info |= {"label": case.label, **summarise(meanwhile)}


@with_case("gids")
def test_users(benchmark: Any, case: Case, quick: bool) -> None:
    """Serve users once each; average the second half of each number of users."""
    counts = (6, 12) if quick else (100, 1_000, 10_000)
    once = case.environment.recruiting(Recruitment.batches(counts[-1], 1, 1))
    case = replace(case, environment=once, num_steps=counts[-1])
    served = benchmark.pedantic(serve, (case.open(), case))
    rows = []
    for count in counts:
        half = served[count // 2 : count]
        # Tables of users grow by steps, each of which compiles once.
        cost = 1e3 * sum(each.total - each.compiling for each in half) / len(half)
        rows.append({"users": count, "ms_per_interaction": cost, **summarise(half)})
    benchmark.extra_info |= {
        "rows": rows,
        "ratio": rows[-1]["ms_per_interaction"] / rows[0]["ms_per_interaction"],
        "bound": math.log(counts[-1]) / math.log(counts[0]),
    }


@pytest.mark.parametrize(
    "start", ["import", "decide-cold", "decide-cached", "move-cold", "move-cached"]
)
def test_start(benchmark: Any, start: str, quick: bool) -> None:
    """Time whole processes, with nothing compiled or with compiled functions on disk."""
    task, _, state = start.partition("-")
    environment = {name: text for name, text in os.environ.items() if "CACHE" not in name}
    with tempfile.TemporaryDirectory() as folder:
        cache = {"JAX_COMPILATION_CACHE_DIR": folder}
        environment |= cache if state == "cached" else {"COCOBANDITS_CACHE": "off"}
        benchmark.pedantic(
            _run_fresh,
            (environment, task),
            rounds=1 if quick else 3,
            warmup_rounds=int(state == "cached"),
        )
    if task != "import":
        benchmark.extra_info["label"] = f"`coids`, {CoIDS.default_population.name}"


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is in a file of Linux")
@pytest.mark.parametrize("name", ["gids", "coids"])
def test_memory(benchmark: Any, name: str, quick: bool) -> None:
    """Serve users in a process of its own, and ask for its largest memory."""
    arguments = ("memory", name, *(["--quick"] if quick else []))
    # Compiling takes memory too.
    environment = {**os.environ, "COCOBANDITS_CACHE": "off"}
    kilobytes = benchmark.pedantic(_run_fresh, (environment, *arguments))
    benchmark.extra_info |= {"peak_mb": 1024 * int(kilobytes) / 1e6}


def _run_fresh(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, FRESH, *arguments], env=environment, capture_output=True, check=True
    )
    return done.stdout.decode()
