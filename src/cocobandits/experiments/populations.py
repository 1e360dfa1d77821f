"""Which population CoIDS learned in stored cells, from the settings that they store.

Its default changed: cells of earlier versions had the log-density wherever its grid fitted. Imports
no policy, since pages are made from files alone.
"""

from cocobandits.experiments.claims import OURS
from cocobandits.runs.results import CellInfo, Key, Results

MODELS = ("log-density", "mixture")
DEFAULT = "mixture"


def population_of(info: CellInfo) -> str:
    """Return the kind of population that a policy learned; empty if it learned none."""
    population = info.settings.get("population")
    return population["kind"] if info.settings.get("kind") == OURS and population else ""


def with_population(results: Results, kind: str, *environments: str) -> list[Key]:
    """List where CoIDS ran with a kind of population, whatever name it has in the results."""
    found = (key for key, info in results.cells.items() if population_of(info) == kind)
    kept = (key[:2] for key in found if not environments or key.environment in environments)
    return list(dict.fromkeys(kept))


def other_populations(results: Results) -> dict[str, list[str]]:
    """List where cells named after CoIDS learned another population than its default, by kind."""
    found: dict[str, dict[str, None]] = {}
    for key, info in results.cells.items():
        kind = population_of(info)
        if key.name == OURS and kind not in ("", DEFAULT):
            found.setdefault(kind, {})[key.environment] = None
    return {kind: list(names) for kind, names in found.items()}
