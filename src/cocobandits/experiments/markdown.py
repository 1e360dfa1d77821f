"""The Markdown twin of the report: the same content, as text that a repository can keep."""

from typing import Any

from cocobandits.experiments.claims import Claim
from cocobandits.experiments.tables import Table

# What does not come from the seeds of the grid.
_OWN_SEEDS = {"diet": "none: computed", "density": "0"}


def render(content: dict[str, Any]) -> str:
    """Write the whole twin."""
    symbols = content["symbols"]
    is_about_paper = content["is_about_paper"]
    sections = {}
    if is_about_paper:
        sections["Claims"] = _claims(content["claims"], "the paper's claim", symbols)
    if content["targets"]:
        told = _claims(content["targets"], "target", symbols)
        head = f"{content['about_targets']}\n\n{content['targets_headline']}"
        sections["What CoIDS must show"] = f"{head}\n\n{told}"
    sections |= {
        "What was run": _bullets([f"{name}: {fact}" for name, fact in content["facts"].items()]),
        "Total and second-half regret": "Mean ± standard error over seeds, in reward units.\n\n"
        + table(content["regrets"]),
        "Paired differences": "Total regret, seed by seed; below zero is better.\n\n"
        + table(content["differences"]),
    }
    if is_about_paper:
        sections["Third arm"] = table(content["third_arm"])
    sections |= {
        "Particle health": _health(content) if content["health"].rows else "No moves.",
        "Wall time": f"Per seed, {content['hours']} in all.\n\n" + table(content["times"]),
        "Figures": _figures(content),
        "Where it deviates" if is_about_paper else "What was missed": _deviations(content),
        "Settings": table(content["settings"]),
        "Provenance": table(content["provenance"]),
    }
    parts = [f"# {content['title']}"]
    if content["headline"]:
        parts.append(content["headline"])
    if content["gaps"]:
        parts.append(_bullets(content["gaps"]))
    parts += [f"## {title}\n\n{text}" for title, text in sections.items()]
    return "\n\n".join(parts) + "\n"


def table(shown: Table) -> str:
    """Write a table with names to the left and numbers to the right."""
    num_numbers = len(shown.header) - shown.num_names
    ruler = ("---",) * shown.num_names + ("---:",) * num_numbers
    return "\n".join(_row(cells) for cells in (shown.header, ruler, *shown.rows))


def _claims(claims: list[Claim], kind: str, symbols: dict[str, str]) -> str:
    header = ("#", "environment", kind, "verdict", "measured", "rule")
    rows = [
        (
            str(claim.number),
            claim.environment,
            claim.statement,
            f"{symbols[claim.verdict]} {claim.verdict}",
            claim.measured,
            claim.rule,
        )
        for claim in claims
    ]
    return table(Table(header, rows, num_names=len(header)))


def _health(content: dict[str, Any]) -> str:
    return f"{_bullets(content['health_words'])}\n\n{table(content['health'])}"


def _figures(content: dict[str, Any]) -> str:
    *runs, report = (f"`{command}`" for command in content["commands"])
    # Two runs are told once; one fits into every line.
    told = report if len(runs) > 1 else f"{runs[0]}, then {report}"
    rows = [
        (
            picture.title,
            f"`figures/{name}.svg`",
            told,
            _OWN_SEEDS.get(name, content["seeds"]),
        )
        for name, picture in content["pictures"].items()
    ]
    shown = table(Table(("figure", "file", "commands", "seeds"), rows, num_names=4))
    return f"First {' and '.join(runs)}.\n\n{shown}" if len(runs) > 1 else shown


def _deviations(content: dict[str, Any]) -> str:
    found = content["misses"] or ["Nothing failed that could be tested."]
    if not content["is_about_paper"]:
        return _bullets(found)
    set_up = [
        f"{each.what} Why: `{each.why}`" if each.why else each.what
        for each in content["departures"]
    ]
    return (
        f"In results:\n\n{_bullets(found)}\n\n"
        f"In set-up, each of which may be why:\n\n{_bullets(set_up)}"
    )


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _row(cells: tuple[str, ...]) -> str:
    # A bar would end the cell.
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
