"""`coco demo`: the diet example through `Study`, and what was learned."""

from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from cocobandits.environments.diet import AGE_GROUPS, DietEnvironment
from cocobandits.policies.registry import CocoSettings
from cocobandits.simulation.loop import (
    InteractionRecord,
    World,
    draw_world,
    open_study,
    simulate,
)
from cocobandits.study import Study

# Twelve nodes instead of the paper's twenty: the same story in a quarter of the time.
_SETTINGS = CocoSettings(nodes_per_arm=12)


def demo(
    policy: Annotated[str, typer.Option(help="How arms are chosen.")] = "gids",
    seed: Annotated[int, typer.Option(help="Fixes users, noise and decisions.", min=0)] = 0,
) -> None:
    """Learn who needs which diet plan, and print what was learned.

    Example: coco demo --policy npm-ts --seed 3
    """
    console = Console()
    environment = DietEnvironment()
    world = draw_world(environment, seed)
    plan = environment.recruitment
    console.print(
        f"{plan.num_users} people, {plan.steps_per_user} decisions each, policy {policy}."
    )
    console.print("Seen: the age group. Hidden: the metabolic type.\n")
    runs = {
        name: _run(open_study(environment, name, seed, _SETTINGS), environment, world, console)
        for name in dict.fromkeys((policy, "ind-ts", "uniform"))
    }
    study, records = runs[policy]
    console.print(_first_choices(environment, world, records), "")
    if policy != "uniform":
        console.print(_beliefs(study), "")
    console.print(_regrets({name: made for name, (_, made) in runs.items()}))


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
    """Count what the later half of the people were given first."""
    table = Table(title="First plan given, later half", title_justify="left")
    table.add_column("age group")
    for arm in environment.arms:
        table.add_column(arm, justify="right")
    half = environment.recruitment.num_users // 2
    for age in AGE_GROUPS:
        first = [
            record.arm
            for record in records
            if record.user_step == 0
            and record.user >= half
            and world.cohort.contexts[record.user]["age"] == age
        ]
        counts = np.bincount(np.array(first, dtype=int), minlength=len(environment.arms))
        shares = [f"{count / max(len(first), 1):.0%}" for count in counts]
        table.add_row(age, *shares)
    return table


def _beliefs(study: Study) -> Table:
    """Say what is believed about somebody new of each age group."""
    table = Table(title="Believed of somebody new: P(best) and mean", title_justify="left")
    table.add_column("age group")
    for arm in study.design.arms:
        table.add_column(arm, justify="right")
    for age in AGE_GROUPS:
        newcomer = f"somebody new, {age}"
        study.enrol(newcomer, {"age": age})
        told = study.explain(newcomer).arms.values()
        table.add_row(age, *(f"{arm.best_probability:.2f}  {arm.mean:5.2f}" for arm in told))
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
