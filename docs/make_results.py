"""Write the five lines of results in README.md, from the committed results alone.

Run by `make docs`; `tests/docs/test_docs_readme.py` compares the README with `lines`.
"""

import json
from pathlib import Path

from cocobandits.experiments.answer import count_claims
from cocobandits.experiments.beside import join
from cocobandits.experiments.claims import CLAIMS, judge
from cocobandits.experiments.comparison import OURS, YARDSTICK, load_comparison, rank
from cocobandits.experiments.drawing import label_of
from cocobandits.experiments.estimates import percent
from cocobandits.experiments.measures import measure
from cocobandits.experiments.presets import REFERENCE
from cocobandits.experiments.reading import load_run

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
BEGIN, END = "<!-- results: begin, written by `make docs` -->\n", "<!-- results: end -->\n"
_ORDINALS = ("first", "second", "third", "fourth", "fifth")


def lines() -> str:
    """Compute the lines."""
    return "".join(f"- {line}\n" for line in (_claims(), *_comparison(), *_speed()))


def _claims() -> str:
    run = join(load_run(RESULTS / "coids"), load_run(RESULTS / "paper"), RESULTS / "paper")
    measures = measure(run)
    counted = count_claims(judge(CLAIMS, measures))
    where = f"[Claim by claim](docs/reproduction.md), {len(measures.seeds)} seeds."
    return f"**Claims.** {counted} {where}"


def _comparison() -> list[str]:
    comparison = load_comparison(RESULTS / "compare-mended", RESULTS / "compare")
    places = {place.policy: place for place in rank(comparison)}
    position = list(places).index(OURS)
    ahead = " and ".join(label_of(name) for name in list(places)[:position])
    others = [place for place in places.values() if place.policy not in (OURS, REFERENCE)]
    best = min(others, key=lambda place: place.share)
    num_common = len(comparison.common_environments())
    is_behind_oracle = ahead == label_of(REFERENCE)
    behind = f", behind {ahead}, which knows the population" if is_behind_oracle else ""
    return [
        f"**Rank.** {label_of(OURS)}, the default policy, is {_ORDINALS[position]} of "
        f"{len(places)} policies (variants included) by mean rank over {num_common} "
        f"environments{behind}. [All systems](docs/compare.md).",
        f"**Regret.** {percent(places[OURS].share)} of the regret of independent learning "
        f"({label_of(YARDSTICK)}); {label_of(REFERENCE)} has {percent(places[REFERENCE].share)}, "
        f"the best other system, {label_of(best.policy)}, {percent(best.share)}. {label_of(OURS)} "
        "knows here how often each user is served (`steps_per_user`); without that it does not "
        "plan ahead.",
    ]


def _speed() -> list[str]:
    measured = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))
    latency = measured["coids"]
    every = round(latency["interactions"] / latency["rejuvenations"])
    return [
        f"**Time.** A decision of {label_of(OURS)} takes {latency['decision_ms_p50']:.1f} ms "
        f"(95 %: {latency['decision_ms_p95']:.1f} ms) and a reward "
        f"{latency['reward_ms_p50']:.1f} ms on one core; about every {every}th reward also updates "
        f"the population, for {latency['rejuvenation_seconds']:.1f} s, in the background if you "
        "like. [Performance](docs/performance.md).",
        f"**Memory.** {measured['peak_memory_mb']:,.0f} MB at the peak of a run of GIDS with "
        f"{measured['run']['full_observations']} interactions.",
    ]


def write(page: Path) -> None:
    """Replace the lines of a page between its two marks."""
    text = page.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    page.write_text(head + BEGIN + lines() + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    write(ROOT / "README.md")
