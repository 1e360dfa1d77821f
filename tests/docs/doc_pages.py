"""Reads Markdown: tables, fenced blocks and code names, to be compared with the code."""

import itertools
import re
from pathlib import Path

import typer

from cocobandits.cli.main import app

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "cocobandits"
PAGES = sorted(
    [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    + list((ROOT / "docs").rglob("*.md"))
)


def read(name: str) -> str:
    """Read a page by its path from the root of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """Return what stands under a heading of the second level."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert found, f"no section {heading!r}"
    return found.group(1)


def tables(text: str) -> list[list[dict[str, str]]]:
    """Parse all tables, each a list of rows by column name."""
    parsed = []
    for block in re.findall(r"(?:^\|.*\|\n?)+", text, re.M):
        head, _, *body = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()
        ]
        parsed.append([dict(zip(head, row, strict=True)) for row in body])
    return parsed


def fenced(text: str) -> list[tuple[str, str]]:
    """List all fenced blocks with their language."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)


def executed(text: str) -> list[tuple[str, str]]:
    """List each Python block with the output printed below it."""
    blocks = fenced(text)
    pairs = []
    for (language, code), (next_language, output) in itertools.pairwise(blocks):
        if (language, next_language) == ("python", "text"):
            pairs.append((code, output))
    assert len(pairs) == sum(language == "python" for language, _ in blocks)
    return pairs


def code_names(text: str) -> list[str]:
    """List everything between backticks, outside of fenced blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))


def tree(block: str) -> list[str]:
    """List the paths drawn in an indented tree whose first line is the root."""
    root, *lines = block.splitlines()
    parents, paths = [root.rstrip("/")], []
    for line in lines:
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        path = f"{parents[depth - 1]}/{name.rstrip('/')}"
        parents[depth:] = [path]
        paths.append(path)
    return paths


def command_options() -> dict[str, set[str]]:
    """List the verbs of the command line, each with its options."""
    verbs = typer.main.get_command(app).commands
    return {
        verb: {option for parameter in command.params for option in parameter.opts}
        for verb, command in verbs.items()
    }
