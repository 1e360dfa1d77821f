"""Compare lines of Python per folder between two commits, with the budget of each folder.

Files at the root of the package have rows of their own.

Run it with `.venv/bin/python docs/count_lines.py BEFORE [AFTER]`; without AFTER, the working tree.
Lines of code are those with a token of code: no blank lines, comments or docstrings.
"""

import argparse
import ast
import io
import subprocess
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "src/cocobandits"
# Lines that a folder, with what is below it, or a file should not exceed.
BUDGETS = {
    f"{PACKAGE}/rewards.py": 130,
    f"{PACKAGE}/inference": 600,
    f"{PACKAGE}/policies": 3000,
    f"{PACKAGE}/logs": 620,
    f"{PACKAGE}/persistence": 120,
    f"{PACKAGE}/workers": 175,
    f"{PACKAGE}/study": 1800,
    f"{PACKAGE}/runs": 630,
    f"{PACKAGE}/experiments": 1700,
    f"{PACKAGE}/cli": 380,
    "benchmarks": 1030,
}
_SILENT = (
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
)


def read_sources(commit: str | None) -> dict[str, str]:
    """Read every Python file of the package and the benchmarks, of the working tree if None."""
    folders = (PACKAGE, "src/cocobandits_command.py", "benchmarks")
    if commit is None:
        names = _git("ls-files", *folders).split()
        return {name: (ROOT / name).read_text(encoding="utf-8") for name in names if _is(name)}
    names = _git("ls-tree", "-r", "--name-only", commit, *folders).split()
    return {name: _git("show", f"{commit}:{name}") for name in names if _is(name)}


def count(sources: dict[str, str]) -> tuple[Counter[str], Counter[str]]:
    """Count lines, and lines of code, of every folder and every file next to folders."""
    lines, code = Counter[str](), Counter[str]()
    for name, text in sources.items():
        parts = name.split("/")
        row = "/".join(parts[: 1 if parts[0] == "benchmarks" else 3])
        lines[row] += len(text.splitlines())
        code[row] += len(_lines_of_code(text))
    return lines, code


def _is(name: str) -> bool:
    return name.endswith(".py")


def _lines_of_code(text: str) -> set[int]:
    docstrings = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node, clean=False) is not None
        for number in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    spans = ((token.start[0], token.end[0]) for token in tokens if token.type not in _SILENT)
    return {number for first, last in spans for number in range(first, last + 1)} - docstrings


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


def main() -> None:
    """Print the rows, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", help="a commit, for example HEAD~1")
    parser.add_argument("after", nargs="?", help="another one (default: the working tree)")
    asked = parser.parse_args()
    before, after = (count(read_sources(commit)) for commit in (asked.before, asked.after))
    print(f"{'lines (of code)':32}{'before':>16}{'after':>16}{'budget':>8}")
    for folder in [*sorted(before[0] | after[0]), "all"]:
        cells = []
        for lines, code in (before, after):
            both = (
                sum(each.values()) if folder == "all" else each[folder] for each in (lines, code)
            )
            cells.append("{:,} ({:,})".format(*both))
        budget = f"{BUDGETS[folder]:,}" if folder in BUDGETS else ""
        print(f"{folder:32}{cells[0]:>16}{cells[1]:>16}{budget:>8}")


if __name__ == "__main__":
    main()
