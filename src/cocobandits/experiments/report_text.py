"""What a report says about its run: what was run, what is missing, departures from the paper.

Sentences are computed from the run. The standing departures name the decision record that gives
their reason.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cocobandits.environments.registry import build_environment
from cocobandits.experiments import presets
from cocobandits.experiments.beside import SETTINGS_OF
from cocobandits.experiments.drawing import label_of
from cocobandits.experiments.estimates import percent
from cocobandits.experiments.measures import ORACLE, POLICY_LABELS, Measures
from cocobandits.experiments.reading import Run
from cocobandits.experiments.rules import MIN_SEEDS
from cocobandits.simulation.world import draw_world

# The paper's App. "Hyperparameters (All Models)"; names with a dot lie one level down.
_PAPER_SETTINGS = {
    "nodes_per_arm": 20,
    "nodes_per_feature": 10,
    "num_modes": 80,
    "kernel": "squared-exponential",
    "arm_lengthscale": 0.7,
    "context_lengthscale": 0.7,
    "inference.num_particles": 200,
    "inference.ess_threshold": 0.5,
    "inference.move_every": 5,
}
_PAPER_NUM_SEEDS = 10
_FEW_SEEDS = 5
_PAPER_WITHOUT_MTTS = ("mixture", "partial")


class Departure(NamedTuple):
    """A departure from the paper, and the page that gives the reason, if there is one."""

    what: str
    why: str = ""


_DECISIONS = "docs/decisions"
_STANDING = (
    Departure(
        "Regret is counted on means, without the noise of rewards.",
        f"{_DECISIONS}/0010-regret-on-means.md",
    ),
    Departure(
        "The likelihood of a reward is averaged over a cell of the grid, not taken at its node.",
        f"{_DECISIONS}/0002-cell-averaged-likelihood.md",
    ),
    Departure(
        "A reward is weighed once, not at every later visit of its user.",
        f"{_DECISIONS}/0005-no-double-counting.md",
    ),
    Departure(
        "The kernel has amplitude 2; the paper gives none.",
        f"{_DECISIONS}/0004-amplitude-and-number-of-modes.md",
    ),
    Departure(
        "The step size of moves adapts, and moves go on until copies have parted.",
        f"{_DECISIONS}/0007-step-size-and-diversity.md",
    ),
    Departure(
        "The information gain of GIDS is floored at zero, and its optimum taken in closed form.",
        f"{_DECISIONS}/0008-information-gain-of-gids.md",
    ),
    Departure(
        "The coefficients of the mixed model are drawn once per run in lmm and for every user in "
        "lmm-misspecified, where MTTS knows the mean and variance of both modes together; the "
        "paper says neither. With one draw per run MTTS would not fail there, so claims 6 and 7 "
        "presuppose this reading.",
        f"{_DECISIONS}/0017-coefficients-of-the-mixed-models.md",
    ),
    Departure(
        "The paper does not say how many newcomers a prior is evaluated on.",
        f"{_DECISIONS}/0018-evaluation-of-priors.md",
    ),
    Departure(
        "Time in the density figure counts users; the paper does not say what it counts.",
        f"{_DECISIONS}/0020-time-in-the-density-figure.md",
    ),
)


def is_small(run: Run, measures: Measures) -> bool:
    """Check whether a run has too few seeds, or too coarse a grid, to decide claims."""
    return run.config.get("scale") == "quick" or len(measures.seeds) < _FEW_SEEDS


def run_facts(run: Run, measures: Measures) -> dict[str, str]:
    """Describe what was run, line by line."""
    evaluation = run.config.get("evaluation", {})
    return {
        "Scale": str(run.config.get("scale", "not stated")),
        "Seeds": f"{show_seeds(measures)} ({len(measures.seeds)})",
        "Environments": "; ".join(_describe(measures, each) for each in measures.environments),
        "Policies": "; ".join(
            [", ".join(label_of(policy) for policy in measures.policies), *_partly_run(measures)]
        ),
        "Evaluation": f"{evaluation.get('users', '?')} users, {evaluation.get('pulls', '?')} pulls "
        "each, by Thompson sampling from the prior learned so far",
    }


def show_seeds(measures: Measures) -> str:
    """Write seeds as a range where they are one."""
    seeds = sorted(measures.seeds)
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(str(seed) for seed in seeds)


def command(run: Run, folder: str = "DIR") -> str:
    """Write the command that makes the same run, in a folder."""
    config = run.config
    words = ["coco reproduce"]
    if config.get("scale") == "quick":
        words.append("--quick")
    for option, name, known in (
        ("--env", "environments", presets.ENVIRONMENTS),
        ("--policy", "policies", presets.POLICIES),
    ):
        if set(config[name]) != set(known):
            words += [f"{option} {each}" for each in _grouped(config[name])]
    default = presets.scale(config.get("scale") == "quick")
    nodes = config.get("settings", {}).get("nodes_per_arm")
    if nodes != default.settings.nodes_per_arm:
        words.append(f"--nodes {nodes}")
    usual = {"settings": default.settings.model, "learned": default.learned.model}
    models = {name: config.get(name, {}).get("model", model) for name, model in usual.items()}
    if models != usual:
        words.append(f"--model {models['settings']}")
    return " ".join([*words, f"--seeds {len(config['seeds'])}", f"--out {folder}"])


def gaps(run: Run, measures: Measures, is_about_paper: bool) -> list[str]:
    """List what the run cannot show, and why."""
    notes = []
    if len(measures.seeds) < MIN_SEEDS:
        notes.append("One seed: no standard errors, no intervals and no verdicts.")
    if ORACLE not in measures.policies:
        notes.append("Without OraclePrior-TS there is no multi-task regret.")
    return notes + (_gaps_to_paper(run, measures) if is_about_paper else [])


def _gaps_to_paper(run: Run, measures: Measures) -> list[str]:
    notes = []
    absent = [name for name in presets.ENVIRONMENTS if name not in measures.environments]
    if absent:
        notes.append(f"Environments not in this run: {', '.join(absent)}.")
    idle = [POLICY_LABELS[each] for each in presets.PAPER_POLICIES if each not in measures.policies]
    if idle:
        notes.append(f"Policies not in this run: {', '.join(idle)}.")
    if run.densities is None:
        notes.append("No densities were stored, so there is no figure of the learned population.")
    return notes


def departures(run: Run, measures: Measures) -> list[Departure]:
    """List what differs from the paper: in this run's settings, and in every run."""
    found = []
    if set(SETTINGS_OF["settings"]) & set(measures.policies):
        found = [
            Departure(f"{name} is {_show(value)}; the paper has {expected}.")
            for name, expected in _PAPER_SETTINGS.items()
            for value in [_look_up(run.config.get("settings", {}), name)]
            if value != expected
        ]
    if "coids" in measures.policies and run.config.get("learned", {}).get("model") == "mixture":
        found.append(
            Departure(
                "CoIDS learns a mixture here, which is three to five times as fast; at full scale "
                "it learns a log-density, as the paper's policies do.",
                f"{_DECISIONS}/0033-a-mixture-for-many-arms.md",
            )
        )
    if len(measures.seeds) != _PAPER_NUM_SEEDS:
        what = f"Number of seeds: {len(measures.seeds)}; the paper has {_PAPER_NUM_SEEDS}."
        found.append(Departure(what))
    extra = [name for name in _PAPER_WITHOUT_MTTS if measures.has(name, "mtts")]
    if extra:
        found.append(
            Departure(f"MTTS also runs in {' and '.join(extra)}; the paper leaves it out.")
        )
    return [*found, *_range_costs(measures), *_STANDING]


def _range_costs(measures: Measures) -> list[Departure]:
    """Count the users of the run with an arm mean outside the range in use."""
    shares: dict[bool, list[str]] = {True: [], False: []}
    for name in measures.environments:
        ranges = dict.fromkeys(
            (presets.has_paper_range(name, policy), presets.range_for(name, policy))
            for policy in measures.policies
            if measures.has(name, policy)
        )
        for is_paper, (low, high) in ranges:
            share = percent(_share_outside(name, low, high, measures.seeds), 0 if is_paper else 1)
            text = f"{name} {share}" if is_paper else f"{name} [{low:g}, {high:g}] {share}"
            shares[is_paper].append(text.replace("[-", "[−"))
    texts = (
        "The paper's policies keep the paper's range of arm means in its environments. Users with "
        "an arm mean outside it: ",
        "All others work with the range of each environment. Users outside it: ",
    )
    return [
        Departure(f"{text}{', '.join(found)}.", f"{_DECISIONS}/0003-reward-range-is-a-parameter.md")
        for text, found in zip(texts, (shares[True], shares[False]), strict=True)
        if found
    ]


def _share_outside(name: str, low: float, high: float, seeds: tuple[int, ...]) -> float:
    environment = build_environment(name)
    means = np.concatenate([draw_world(environment, seed).cohort.arm_means for seed in seeds])
    return float(np.mean(np.any((means < low) | (means > high), axis=1)))


def _partly_run(measures: Measures) -> list[str]:
    """Name policies that did not run everywhere, together where they lack the same."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    for policy in measures.policies:
        absent = tuple(each for each in measures.environments if not measures.has(each, policy))
        lacking.setdefault(absent, []).append(label_of(policy))
    return [
        f"not in {', '.join(_grouped(absent))}: {', '.join(labels)}"
        for absent, labels in lacking.items()
        if absent
    ]


def _grouped(names: Sequence[str]) -> list[str]:
    """Write a group of environments by its name, where it is there as a whole."""
    for group, members in presets.GROUPS.items():
        if set(members) <= set(names):
            rest = [group if name == members[0] else name for name in names]
            return [name for name in rest if name not in members]
    return list(names)


def _describe(measures: Measures, environment: str) -> str:
    num_steps = next(
        curve.shape[1] for key, curve in measures.regrets.items() if key[0] == environment
    )
    rounds = [
        curve.shape[1] - 1 for key, curve in measures.evaluations.items() if key[0] == environment
    ]
    in_rounds = f" in {rounds[0]} rounds" if rounds else ""
    return f"{environment} ({num_steps} steps{in_rounds})"


def _look_up(settings: dict[str, Any], name: str) -> Any:
    outer, _, inner = name.rpartition(".")
    return (settings.get(outer, {}) if outer else settings).get(inner)


def _show(value: Any) -> str:
    return "not set" if value is None else str(value)
