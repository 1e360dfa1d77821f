"""`coco demo`: the diet example through `Study`, what was learned, and why plan 1 comes first."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from cocobandits.environments.diet import AGE_GROUPS, DietEnvironment
from cocobandits.errors import InputError, StorageError
from cocobandits.experiments.diet_story import AgeStory, conclude, first_shares, tell
from cocobandits.policies.settings import PRESETS
from cocobandits.simulation.loop import InteractionRecord, open_study, simulate, telling
from cocobandits.simulation.world import World, draw_world
from cocobandits.study import Study

# Twelve nodes instead of the paper's twenty: the same story in a quarter of the time.
_SETTINGS = replace(PRESETS["paper"], nodes_per_arm=12)
_HARD_TO_GUESS = "middle-aged"
_KINDS = (".pdf", ".png", ".svg")


def demo(
    policy: Annotated[str, typer.Option(help="How arms are chosen.")] = "gids",
    seed: Annotated[int, typer.Option(help="Fixes users, noise and decisions.", min=0)] = 0,
    picture: Annotated[
        Path, typer.Option(help="Where the picture goes; .png, .svg or .pdf.")
    ] = Path("runs/demo.png"),
) -> None:
    """Learn who needs which diet plan, and explain why plan 1 is given first to some.

    Example: coco demo --policy npm-ts --seed 3
    """
    if picture.suffix not in _KINDS:
        raise InputError(
            f"Expected a picture that ends in {', '.join(_KINDS)}; got picture={str(picture)!r}. "
            "Write for example runs/demo.png."
        )
    console = Console()
    environment = DietEnvironment()
    world = draw_world(environment, seed)
    settings = telling(_SETTINGS, environment, world)
    plan = environment.recruitment
    console.print(
        f"{plan.num_users} people, {plan.steps_per_user} decisions each, policy {policy}."
    )
    console.print("Seen: the age group. Hidden: the metabolic type.\n")
    runs = {
        name: _run(open_study(environment, name, seed, settings), environment, world, console)
        for name in dict.fromkeys((policy, "ind-ts", "uniform"))
    }
    study, records = runs[policy]
    if policy == "uniform":
        console.print(_first_choices(environment, world, records), "")
    else:
        _explain(console, study, world, records, picture)
    console.print(_regrets({name: made for name, (_, made) in runs.items()}))


def _explain(
    console: Console, study: Study, world: World, records: list[InteractionRecord], picture: Path
) -> None:
    stories = tell(study, world, records)
    console.print(_first_choices(DietEnvironment(), world, records), "")
    console.print(_beliefs(stories, study.design.arms), "")
    console.print("Why", style="italic")
    for age, story in stories.items():
        console.print(f"- {conclude(age, story)}", highlight=False)
    console.print("")
    if find_spec("matplotlib") is None:
        console.print("For the picture: pip install 'cocobandits[experiments]'", markup=False)
        return
    from cocobandits.experiments.diet_picture import diet_picture, write  # noqa: PLC0415 - extra

    population = study.population({"age": _HARD_TO_GUESS})
    try:
        write(diet_picture(population, stories, _HARD_TO_GUESS), picture)
    except OSError as error:
        raise StorageError(
            f"Expected a place that can be written; got picture={str(picture)!r} ({error}). "
            "Choose another path."
        ) from error
    console.print(f"Picture: {picture}\n", soft_wrap=True, markup=False)


def _run(
    study: Study, environment: DietEnvironment, world: World, console: Console
) -> tuple[Study, list[InteractionRecord]]:
    columns = (TextColumn("{task.description:>8}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        steps = simulate(study, environment, world)
        total = environment.recruitment.num_steps
        return study, list(progress.track(steps, total, description=study.design.policy))


def _first_choices(
    environment: DietEnvironment, world: World, records: list[InteractionRecord]
) -> Table:
    """Show what the later half of the people were given first."""
    table = Table(title="First plan given, later half", title_justify="left")
    table.add_column("age group")
    for arm in environment.arms:
        table.add_column(arm, justify="right")
    for age in AGE_GROUPS:
        table.add_row(age, *(f"{share:.0%}" for share in first_shares(world, records, age)))
    return table


def _beliefs(stories: dict[str, AgeStory], arms: tuple[str, ...]) -> Table:
    """Say what is believed about somebody new of each age group."""
    table = Table(
        title="Believed of somebody new: P(best), and reward lost if given now",
        title_justify="left",
    )
    table.add_column("age group")
    for arm in arms:
        table.add_column(arm, justify="right")
    for age, story in stories.items():
        cells = zip(story.best_probability, story.expected_loss, strict=True)
        table.add_row(age, *(f"{best:.2f}  {loss:5.2f}" for best, loss in cells))
    return table


def _regrets(runs: dict[str, list[InteractionRecord]]) -> Table:
    """Compare what was lost against always knowing everybody's best plan."""
    table = Table(title="Reward lost against the best plan", title_justify="left")
    for heading in ("policy", "first half", "second half", "total"):
        table.add_column(heading, justify="left" if heading == "policy" else "right")
    for name, records in runs.items():
        losses = np.array([record.regret for record in records])
        half = len(losses) // 2
        parts = (losses[:half].sum(), losses[half:].sum(), losses.sum())
        table.add_row(name, *(f"{part:.1f}" for part in parts))
    return table
