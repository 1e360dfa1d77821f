"""`coco demo`: the diet example through `Study`, what was learned, and why plan 1 comes first."""

from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from cocobandits.environments.diet import DietEnvironment
from cocobandits.errors import InputError, StorageError
from cocobandits.experiments.diet import AgeStory, conclude, summarise
from cocobandits.policies.coco.descriptions import PaperLearner
from cocobandits.policies.coco.populations import PaperLogDensity
from cocobandits.policies.description import PolicySettings
from cocobandits.policies.registry import find_policy
from cocobandits.runs.info import second_half, total
from cocobandits.simulation.loop import InteractionRecord, open_study, serve
from cocobandits.simulation.world import World, draw_world
from cocobandits.study import Study

# Twelve nodes instead of the paper's twenty: the same story in a quarter of the time.
_COARSE = PaperLogDensity(nodes_per_arm=12)
_HARD_TO_GUESS = "middle-aged"
_KINDS = (".pdf", ".png", ".svg")


def show(policy: str, seed: int, picture: Path) -> None:
    """Simulate, and show the tables and the picture.

    Raises:
        InputError: the picture has another ending.
        StorageError: the folder of the picture cannot be written.
        UnknownNameError: there is no policy of that name.
        UnsupportedError: the policy holds no beliefs.
    """
    _check_picture(picture)
    console, environment = Console(), DietEnvironment()
    world, plan = draw_world(environment, seed), environment.recruitment
    names = dict.fromkeys((policy, "ind-ts", "uniform"))
    studies = {name: open_study(_settings(name), environment, world, seed) for name in names}
    # Refused before anything is simulated, if the policy holds no beliefs.
    studies[policy].prior({"age": _HARD_TO_GUESS})
    console.print(
        f"{plan.num_users} people, {plan.steps_per_user} decisions each, policy {policy}."
    )
    console.print("Seen: the age group. Hidden: the metabolic type.\n")
    runs = {name: _run(study, environment, world, console) for name, study in studies.items()}
    stories = summarise(studies[policy], world, runs[policy])
    _explain(console, stories)
    _draw(console, studies[policy], stories, picture)
    headings = "policy", "first half", "second half", "total"
    losses = ([name, *_losses(records)] for name, records in runs.items())
    console.print(_table("Reward lost against the best plan", headings, losses))


def _settings(name: str) -> PolicySettings:
    policy = find_policy(name)
    return replace(policy, population=_COARSE) if isinstance(policy, PaperLearner) else policy


def _check_picture(path: Path) -> None:
    """Refuse a picture of an unknown kind, or where nothing can be written.

    Raises:
        InputError: the path has another ending.
        StorageError: it cannot be written.
    """
    if path.suffix.lower() not in _KINDS:
        raise InputError(
            f"Expected a picture that ends in {', '.join(_KINDS)}; got picture={str(path)!r}. "
            "Write for example runs/demo.png."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        path.open("ab").close()
        if is_new:
            path.unlink()
    except OSError as error:
        raise StorageError(
            f"Expected a file that can be written; got picture={str(path)!r} ({error}). "
            "Choose another one."
        ) from error


def _explain(console: Console, stories: dict[str, AgeStory]) -> None:
    headings = "age group", *DietEnvironment.arms
    given, beliefs = [], []
    for age, story in stories.items():
        given.append([age, *(f"{share:.0%}" for share in story.first_shares)])
        pairs = zip(story.best_probability, story.expected_loss, strict=True)
        beliefs.append([age, *(f"{best:.2f}  {loss:5.2f}" for best, loss in pairs)])
    console.print(_table("First plan given, later half", headings, given), "")
    title = "Believed of somebody new: P(best), and reward lost if given now"
    console.print(_table(title, headings, beliefs), "")
    console.print("Why", style="italic")
    for age, story in stories.items():
        console.print(f"- {conclude(age, story)}", highlight=False)
    console.print("")


def _draw(console: Console, study: Study, stories: dict[str, AgeStory], picture: Path) -> None:
    if find_spec("matplotlib") is None:
        console.print("For the picture: pip install 'cocobandits[experiments]'", markup=False)
        return
    from cocobandits.experiments.figures.drawing import save  # noqa: PLC0415 - extra
    from cocobandits.experiments.figures.population import diet_picture  # noqa: PLC0415

    population, story = study.population({"age": _HARD_TO_GUESS}), stories[_HARD_TO_GUESS]
    settled = {"before": story.best_probability} | {
        f"plan 1 paid {reward:g}": after for reward, after in story.best_after.items()
    }
    given = {age: each.first_shares for age, each in stories.items()}
    learned = population.marginal
    save(diet_picture(_HARD_TO_GUESS, population.edges, learned, settled, given), picture)
    console.print(f"Picture: {picture}\n", soft_wrap=True, markup=False)


def _run(
    study: Study, environment: DietEnvironment, world: World, console: Console
) -> list[InteractionRecord]:
    steps, total = serve(study, environment, world), environment.recruitment.num_steps
    name, is_hidden = study.design.policy.name, not console.is_terminal
    return list(track(steps, name, total, console=console, transient=True, disable=is_hidden))


def _table(title: str, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """Build a table of names to the left and numbers to the right."""
    table = Table(title=title, title_justify="left")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left")
    for row in rows:
        table.add_row(*row)
    return table


def _losses(records: list[InteractionRecord]) -> list[str]:
    """Sum regret over both halves of a run, and over all of it."""
    regrets = np.array([record.regret for record in records])
    late, whole = second_half(regrets), total(regrets)
    return [f"{part:.1f}" for part in (whole - late, late, whole)]
