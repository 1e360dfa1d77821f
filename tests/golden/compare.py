"""`make golden`: does the working tree behave as another commit, bit for bit?

The other commit is checked out into a temporary worktree. Scenarios and drivers of the working
tree are played in both, by one environment. Bits hold on one machine, so nothing is stored.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from golden.differences import load_intended, summarise
from golden.playing import Outcome
from support.compilation import ROOT, compile_quickly


def choose_base() -> str:
    """Take HEAD if there are changes that are not committed, and else its parent."""
    return "HEAD" if _git("status", "--porcelain") else "HEAD~1"


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """Check a commit out into a worktree that is removed whatever happens."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "base"
        try:
            _git("worktree", "add", "--detach", "--quiet", str(tree), revision)
            yield tree
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=False
            )


def record(tree: Path) -> list[Outcome]:
    """Record a tree in a process that imports the package from it."""
    paths = os.pathsep.join(map(str, (tree / "src", ROOT / "tests")))
    environment = os.environ | {"PYTHONPATH": paths, "COCOBANDITS_QUIET": "1"}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "outcomes.json"
        command = [sys.executable, "-m", "golden.worker", str(tree), str(out)]
        _run(command, environment, folder)
        return [Outcome(**each) for each in json.loads(out.read_text(encoding="utf-8"))]


def _run(command: list[str], environment: dict[str, str], folder: str) -> None:
    """Run a command to its end; if this process is stopped, so is everything that it started."""
    worker = subprocess.Popen(command, env=environment, cwd=folder, start_new_session=True)
    try:
        if worker.wait():
            sys.exit(f"Expected a worker that runs to its end; got exit code {worker.returncode}.")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)


def compare(base: str) -> bool:
    """Record both trees, print the summary, and say whether all is as expected."""
    print(f"Base: {base}, {_git('log', '-1', '--format=%h %s', base)}", flush=True)
    started = time.monotonic()
    with checked_out(base) as tree:
        before = record(tree)
    print(f"Recorded in {time.monotonic() - started:.0f} s. Now the working tree.", flush=True)
    summary = summarise(before, record(ROOT), load_intended())
    print(f"{summary.text}\n{time.monotonic() - started:.0f} s.")
    return summary.is_good


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE)
    return done.stdout.strip()


def _stop(*_: object) -> None:
    """End by an exception, so that the worktree is removed."""
    sys.exit("Stopped.")


def main() -> None:
    """Compare with the commit that is asked for, or with the one before the present changes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", help="commit to compare with (default: see CONTRIBUTING.md)")
    asked = parser.parse_args().base
    signal.signal(signal.SIGTERM, _stop)
    compile_quickly()
    sys.exit(0 if compare(asked or choose_base()) else 1)


if __name__ == "__main__":
    main()
