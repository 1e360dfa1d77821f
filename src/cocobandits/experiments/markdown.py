"""The Markdown twin of the report: the same content, as text that a repository can keep."""

from typing import Any

from cocobandits.experiments.tables import Table

# What does not come from the seeds of the grid.
_OWN_SEEDS = {"diet": "none: computed", "density": "0"}


def render(content: dict[str, Any]) -> str:
    """Write the whole twin."""
    sections = {
        "Claims": _claims(content),
        "What was run": _bullets([f"{name}: {fact}" for name, fact in content["facts"].items()]),
        "Final regrets": "Mean ± standard error over seeds, in reward units.\n\n"
        + table(content["regrets"]),
        "Paired differences": "Total regret, seed by seed; below zero is better.\n\n"
        + table(content["differences"]),
        "Third arm": table(content["third_arm"]),
        "Particle health": table(content["health"]) if content["health"].rows else "No moves.",
        "Wall time": f"Per seed, {content['hours']} in all.\n\n" + table(content["times"]),
        "Figures": _figures(content),
        "Where it deviates": _deviations(content),
        "Settings": table(content["settings"]),
        "Provenance": table(content["provenance"]),
    }
    parts = ["# Reproduction", content["headline"]]
    if content["gaps"]:
        parts.append(_bullets(content["gaps"]))
    parts += [f"## {title}\n\n{text}" for title, text in sections.items()]
    return "\n\n".join(parts) + "\n"


def table(shown: Table) -> str:
    """Write a table with names to the left and numbers to the right."""
    num_numbers = len(shown.header) - shown.num_names
    ruler = ("---",) * shown.num_names + ("---:",) * num_numbers
    return "\n".join(_row(cells) for cells in (shown.header, ruler, *shown.rows))


def _claims(content: dict[str, Any]) -> str:
    header = ("#", "environment", "the paper's claim", "verdict", "measured", "rule")
    rows = [
        (
            str(claim.number),
            claim.environment,
            claim.statement,
            f"{content['symbols'][claim.verdict]} {claim.verdict}",
            claim.measured,
            claim.rule,
        )
        for claim in content["claims"]
    ]
    return table(Table(header, rows, num_names=len(header)))


def _figures(content: dict[str, Any]) -> str:
    rows = [
        (
            picture.title,
            f"`figures/{name}.svg`",
            f"`{content['command']}`, then `coco report DIR`",
            _OWN_SEEDS.get(name, content["seeds"]),
        )
        for name, picture in content["pictures"].items()
    ]
    return table(Table(("figure", "file", "commands", "seeds"), rows, num_names=4))


def _deviations(content: dict[str, Any]) -> str:
    found = content["misses"] or ["No claim failed that could be tested."]
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
