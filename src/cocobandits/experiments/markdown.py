"""The Markdown twin of the report: the same content, as text that a repository can keep."""

from pathlib import Path
from typing import Any

import jinja2

from cocobandits.experiments.answer import MARKS, SYMBOLS
from cocobandits.experiments.claims import Judgement
from cocobandits.experiments.rules import Finding
from cocobandits.experiments.tables import Table

_TEMPLATES = Path(__file__).parent / "templates"


def render(content: dict[str, Any]) -> str:
    """Write the whole twin."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=False,  # Markdown, not HTML
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )

    def judged(judgements: list[Judgement], kind: str, is_strict_shown: bool) -> str:
        return table(_judged(judgements, kind, is_strict_shown, content["is_small"]))

    functions = {"table": table, "judged": judged, "rules": _rules}
    return environment.get_template("reproduction.md").render(content | functions)


def table(shown: Table) -> str:
    """Write a table with names to the left and numbers to the right."""
    num_numbers = len(shown.header) - shown.num_names
    ruler = ("---",) * shown.num_names + ("---:",) * num_numbers
    return "\n".join(_row(cells) for cells in (shown.header, ruler, *shown.rows))


def _judged(judgements: list[Judgement], kind: str, is_strict_shown: bool, is_small: bool) -> Table:
    header: tuple[str, ...] = ("#", "environment", kind, "verdict", "effect")
    rows: list[tuple[str, ...]] = []
    for each in judgements:
        words = (each.word(is_small), each.strict_word(is_small))
        shown = [f"{SYMBOLS[word]} {word}" for word in words]
        row = (
            str(each.claim.number),
            ", ".join(each.claim.environments),
            each.claim.statement if is_strict_shown else f"{each.claim.statement} {each.rule}",
            shown[0],
            _findings(each.findings),
        )
        rows.append((*row, shown[1]) if is_strict_shown else row)
    header = (*header, "read strictly") if is_strict_shown else header
    return Table(header, rows, num_names=len(header))


def _rules(judgements: list[Judgement]) -> str:
    header = ("#", "reading", "strict reading", "measured for the strict reading")
    rows = [
        (str(each.claim.number), each.rule, each.strict_rule, _findings(each.strict_findings))
        for each in judgements
    ]
    return table(Table(header, rows, num_names=len(header)))


def _findings(findings: tuple[Finding, ...]) -> str:
    return "<br>".join(f"{MARKS[finding.holds]} {finding.text}" for finding in findings)


def _row(cells: tuple[str, ...]) -> str:
    # A bar would end the cell.
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
