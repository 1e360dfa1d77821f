"""Write the tables of policies, settings, environments and commands into README and reference.

Each table stands between two comments of a page, and comes from the registries and docstrings of
the package. Run by `make docs`.
"""

import inspect
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import typer

from cocobandits.cli.main import app
from cocobandits.environments.registry import environment_names, find_environment
from cocobandits.policies.coco.populations import POPULATIONS
from cocobandits.policies.registry import POLICIES
from cocobandits.rewards import KINDS

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/reference.md")
COMMANDS: dict[str, Any] = vars(typer.main.get_command(app))["commands"]


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Lay out a Markdown table."""
    head, *body = (f"| {' | '.join(row)} |\n" for row in (heads, *rows))
    return head + "|---" * len(heads) + "|\n" + "".join(body)


def joined(names: Any) -> str:
    """List names as code."""
    return ", ".join(f"`{name}`" for name in names)


def policies() -> str:
    """Say how each policy chooses, and what it knows."""
    rows = [
        (f"`{name}`", f"`{each.__name__}`", each.chooses, each.knows)
        for name, each in POLICIES.items()
    ]
    heads = ("policy", "settings", "how it chooses", "what it knows of the population")
    return table(heads, rows)


def environments() -> str:
    """Say who the users of each environment are."""
    rows = [(f"`{name}`", find_environment(name).about) for name in environment_names()]
    return table(("environment", "users"), rows)


def commands() -> str:
    """Say what each command does, in the words of its docstring without the example."""
    rows = []
    for name, command in COMMANDS.items():
        parts = inspect.cleandoc(command.help).split("\n\n")
        words = " ".join(part for part in parts if not part.startswith("Example: "))
        rows.append((f"`coco {name}`", " ".join(words.split())))
    return table(("command", "what it does"), rows)


def options() -> str:
    """List the options of all commands; those with the same words share a row."""
    users: dict[tuple[str, str], list[str]] = {}
    for name, command in COMMANDS.items():
        for option in command.params:
            if "--help" not in option.opts and option.help:
                written = (
                    option.opts[0] if option.param_type_name == "option" else option.name.upper()
                )
                users.setdefault((written, option.help), []).append(name)
    rows = [(f"`{written}`", joined(names), text) for (written, text), names in users.items()]
    return table(("option", "of", "what it does"), rows)


def settings(classes: list[Any]) -> str:
    """List the settings of classes, in the words of their docstrings; equal ones share a row."""
    users: dict[tuple[str, str, str], list[str]] = {}
    for cls in classes:
        meanings = _meanings(cls)
        for each in fields(cls):
            default = "" if each.default is MISSING else f"`{each.default!r}`"
            row = (f"`{each.name}`", default, meanings[each.name])
            users.setdefault(row, []).append(cls.__name__)
    rows = [(joined(names), *row) for row, names in users.items()]
    return table(("of", "setting", "default", "meaning"), rows)


def _meanings(cls: type) -> dict[str, str]:
    """Read the attributes of a class and its bases from their docstrings."""
    found: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        text = inspect.cleandoc(each.__doc__ or "")
        part = re.search(r"^Attributes:\n(.*?)(?=^\S|\Z)", text, re.M | re.S)
        entries = re.split(r"^    (?=\w)", part[1], flags=re.M)[1:] if part else []
        for entry in entries:
            names, _, meaning = entry.partition(": ")
            found |= dict.fromkeys(names.split(", "), " ".join(meaning.split()))
    return found


def names() -> str:
    """List everything by name, for the README."""
    verbs = joined(f"coco {name}" for name in COMMANDS)
    lines = (
        f"- **Policies**: {joined(POLICIES)}.",
        f"- **Environments**: {joined(environment_names())}.",
        f"- **Commands**: {verbs}.",
    )
    return "".join(f"{line}\n" for line in lines)


def parts() -> dict[str, str]:
    """Make every generated part, by the name in its comments."""
    return {
        "names": names(),
        "policies": policies(),
        "policy settings": settings(list(POLICIES.values())),
        "population settings": settings(list(POPULATIONS.values())),
        "rewards": settings(list(KINDS.values())),
        "environments": environments(),
        "commands": commands(),
        "options": options(),
    }


def rewritten(text: str) -> str:
    """Replace what stands between the comments of a page."""
    for name, made in parts().items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        text = re.sub(
            pattern, lambda found, made=made: found[1] + made + found[2], text, flags=re.S
        )
    return text


if __name__ == "__main__":
    for page in PAGES:
        path = ROOT / page
        path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
