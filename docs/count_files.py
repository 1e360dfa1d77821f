"""List the files above inference that one decision, one reward and one cell pass.

Run it with `.venv/bin/python docs/count_files.py`. A process of its own is needed: a compiled
function runs no Python from its second call on. Left out are `inference`, what is below it, and the
hook that announces compilation.
"""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cocobandits
from cocobandits import CoIDS, Gaussian, Mixture, Study
from cocobandits.environments.recruitment import Recruitment
from cocobandits.experiments.suites import paper_suite
from cocobandits.runs.info import Source
from cocobandits.runs.pool import plan
from cocobandits.runs.store import open_folder

PACKAGE = Path(cocobandits.__file__).parent
LEFT_OUT = ("inference", "populations", "users", "numerics", "notice.py")


def files_passed(call: Callable[[], Any]) -> list[str]:
    """List the files of the package whose functions a call runs, in order."""
    seen: dict[str, None] = {}
    # Called at the start of every function; its lines are not traced.
    sys.settrace(lambda frame, *_: seen.setdefault(frame.f_code.co_filename))
    try:
        call()
    finally:
        sys.settrace(None)
    ours = [Path(each).relative_to(PACKAGE) for each in seen if each.startswith(str(PACKAGE))]
    return [path.as_posix() for path in ours if path.parts[0] not in LEFT_OUT]


def count() -> dict[str, list[str]]:
    """Follow a decision of CoIDS and its reward, and a cell of Ind-TS from suite to folder."""
    policy = CoIDS(population=Mixture(num_components=2), num_particles=20)
    study = Study(["walk", "swim"], {"age": (18, 90)}, Gaussian(0, 10, noise=0.5), policy, seed=0)
    study.enrol("anna", {"age": 34})
    decided = files_passed(lambda: study.decide("anna"))
    decision = study.decide("anna")
    return {
        "decision": decided,
        "reward": files_passed(lambda: study.reward(decision.id, 6.0)),
        "cell": files_passed(_cell),
    }


def _cell() -> None:
    cells = paper_suite(is_quick=True, environments=["diet"], policies=["ind-ts"]).cells()
    cell = next(cell for cell in cells if cell.name == "ind-ts")
    few = cell.environment.recruiting(Recruitment.all_at_once(3, 2))
    source = Source({}, [])
    with tempfile.TemporaryDirectory() as place, open_folder(Path(place)) as folder:
        [todo] = plan(folder, [replace(cell, environment=few)], source, False).todo
        folder.save(todo.key, todo.run(source), todo.made(source))


if __name__ == "__main__":
    for name, files in count().items():
        print(f"{name}: {len(files)} files")
        print(*(f"  {file}" for file in files), sep="\n")
