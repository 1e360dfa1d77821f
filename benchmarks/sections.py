"""The sections of docs/performance.md, each from its part of the results."""

from typing import Any

from prose import columns, mean, number, paragraph, percent, seconds, table

Results = dict[str, Any]

_QUALITY = {
    "regret": "regret",
    "start_correlation": "correlation with ancestors after moving",
    "resamplings": "observations at which particles were resampled",
    "distinct_ancestors": "ancestors with descendants afterwards",
}
_COSTS = {
    "decision_ms": "decision ms",
    "reward_ms": "reward ms",
    "value_and_gradient_ms": "value and gradient ms",
}


def comparison(results: Results) -> list[str]:
    """Put library and literal reference side by side."""
    run, gradient = results["run"], results["value_and_gradient"]
    size = (
        f"{gradient['particles']} particles, {gradient['users']} users, {gradient['nodes']:,} nodes"
    )
    compared = (
        (
            f"first {run['observations']} observations of `mixture`, `gids`: decisions and updates",
            run["literal_seconds"],
            run["seconds"],
            run["ratio"],
        ),
        (
            f"value and gradient: {size}",
            gradient["baseline_seconds"],
            gradient["seconds"],
            gradient["ratio"],
        ),
        (
            "the same, reference in 32 bits",
            gradient["baseline32_seconds"],
            gradient["seconds"],
            gradient["ratio32"],
        ),
    )
    rows = [
        (name, seconds(theirs), seconds(ours), number(ratio))
        for name, theirs, ours, ratio in compared
    ]
    return [
        "## Against the literal reference\n",
        table(("what", "literal", "library", "ratio"), rows),
        paragraph(
            "Both sides of a row compute on the same arms and rewards, in turns, and what is",
            "compiled was compiled before. The reference computes in 64 bits where nothing else is",
            "said, the library its densities in 32. In processor time, the ratio of the first row",
            f"is {number(run['processor_ratio'])}. In the second and third row particles are the",
            "same, and users count at the nearest context node, so that both compute the same, up",
            f"to relative differences, with {gradient['context_points']} context points, of",
            f"{gradient['value_error']:.0e} in values and {gradient['gradient_error']:.0e} in",
            "gradients; with every user's own context",
            f"the library takes {seconds(gradient['own_contexts_seconds'])}. The whole run of",
            f"{run['full_observations']} observations takes the library",
            f"{seconds(run['full_seconds'])}, and {seconds(run['cold_seconds'])} where everything",
            "has to be compiled first.",
        ),
    ]


def quality(results: Results) -> list[str]:
    """Say whether regret and diversity differ."""
    told = results["quality"]
    rows = [
        (
            label,
            number(mean(told[name]["library"])),
            number(mean(told[name]["literal"])),
            f"{number(told[name]['difference'])} ± {number(told[name]['standard_error'])}",
        )
        for name, label in _QUALITY.items()
    ]
    return [
        "## Is it as good?\n",
        paragraph(
            "Both decide for themselves, for the same users, with the same noise and the same",
            "random numbers to choose by:",
            f"{told['observations']} observations, seeds: {told['seeds']}. The last column is the",
            "mean of paired differences, library minus literal, with its standard error.",
        ),
        table(("measure", "library", "literal", "difference"), rows),
        paragraph(
            "The literal reference resamples every five observations at the latest, the library",
            "when the effective sample size asks for it: fewer ancestors have descendants then,",
            "and it happens less often. Particles that resemble their ancestors less are the more",
            "diverse ones.",
        ),
    ]


def waiting(results: Results) -> list[str]:
    """Say how long a call takes."""
    policies = {"`gids`, preset `paper`": results, "`coids`, preset `learned`": results["coids"]}
    rows = [
        (
            name,
            *(
                f"{number(told[f'{call}_ms_p50'])} ({number(told[f'{call}_ms_p95'])})"
                for call in ("decision", "reward")
            ),
            seconds(told["rejuvenation_seconds"]),
            f"{told['rejuvenations']} of {told['interactions']}",
        )
        for name, told in policies.items()
    ]
    head = (
        "policy",
        "decision ms (95 %)",
        "reward ms (95 %)",
        "moving particles",
        "rewards that did",
    )
    return [
        "## How long a caller waits\n",
        table(head, rows),
        paragraph(
            "Medians; the second column is of users who are enrolled, the third of rewards that",
            "move no particles, the fourth of those that do. To enrol a user takes",
            f"{number(results['enrolment_ms_p50'])} ms.",
        ),
        _background(results["background"]),
    ]


def _background(told: Results) -> str:
    return paragraph(
        'With `rejuvenate="background"`, while particles move, a decision of `coids` takes',
        f"{number(told['decision_ms_p50'])} ms in the median and",
        f"{number(told['decision_ms_p95'])} ms at 95 %, a reward {number(told['reward_ms_p50'])}",
        f"and {number(told['reward_ms_p95'])} ms; {told['calls']} of each were made while moves",
        "went on, one user every 50 ms. Waited for, moves take",
        f"{seconds(told['moves_seconds'])} in the median.",
    )


def growth(results: Results) -> list[str]:
    """Say how costs grow with users, arms and particles."""
    labels = {
        "users": "users",
        "ms_per_interaction": "ms per interaction, moves included",
        "decision_ms": "decision ms",
        "reward_ms": "reward ms",
        "rejuvenations_per_1000": "moves per 1,000 rewards",
    }
    ratio, bound = results["growth_users_ratio"], results["growth_users_bound"]
    return [
        "## How costs grow\n",
        paragraph(
            "Users of `mixture` who are served once each by `gids`; every row averages the half of",
            "the run that ends there, without compiling.",
        ),
        columns(results["growth_users"], labels),
        paragraph(
            f"From the fewest to the most users the cost of an interaction grows {number(ratio)}",
            f"times, the logarithm of their number {number(bound)} times.",
        ),
        columns(results["growth_arms"], {"arms": "arms", **_COSTS}),
        columns(results["growth_particles"], {"particles": "particles", **_COSTS}),
        paragraph("Both on the same grid per arm, `gids`; the second with three arms."),
    ]


def start(results: Results) -> list[str]:
    """Say what a process costs."""
    told = results["startup_seconds"]
    rows = (
        ("imports the package", seconds(told["import"])),
        ("first decision of `coids`, nothing compiled", seconds(told["first_decision_cold"])),
        ("the same, compiled code on disk", seconds(told["first_decision_warm"])),
    )
    return [
        "## Start-up and memory\n",
        table(("process", "from start to end"), rows),
        paragraph(
            "Compiled code stays on disk unless `COCOBANDITS_CACHE=off` is set. A process that",
            "makes the whole run of `gids` needs",
            f"{results['peak_memory_mb']:,.0f} MB at most.",
        ),
    ]


def profile(results: Results) -> list[str]:
    """Say where the time goes, and how far it is from what the machine can do."""
    told = results["profile"]
    rows = [
        (f"`{row['function']}`", percent(row["share"]), f"{row['calls']:,}")
        for row in told["functions"]
    ]
    rows.append(("everything else, Python included", percent(told["rest_share"]), ""))
    likelihood = told["likelihood"]
    return [
        "## Where the time goes\n",
        paragraph(
            f"In a run of {seconds(told['seconds'])}, {percent(told['decisions_share'])} are",
            f"decisions, {percent(told['quiet_rewards_share'])} rewards that move nothing, and",
            f"{percent(told['rejuvenations_share'])} rewards that move particles. By compiled",
            "function:",
        ),
        table(("function", "share", "calls"), rows),
        paragraph("What one thread of this machine can do:"),
        _limits(told["limits"]),
        paragraph(
            "Every particle needs its density at every context point,",
            f"{likelihood['exponentials']:,} exponentials, and these alone take",
            f"{seconds(likelihood['exponentials_only_seconds'])} in {likelihood['bits']} bits. The",
            f"table of densities takes {seconds(likelihood['densities_seconds'])} where",
            "`log_density` is called for one particle after another, and value and gradient, with",
            "all sums",
            f"over users, {seconds(likelihood['value_and_gradient_seconds'])}:",
            f"{number(likelihood['times_the_bound'])} times the exponentials.",
        ),
    ]


def _limits(limits: Results) -> str:
    def million(value: float) -> str:
        return number(value / 1e6)

    rows = (
        (
            "million exponentials per second",
            million(limits["exponentials_per_second64"]),
            million(limits["exponentials_per_second32"]),
        ),
        (
            "GFLOP per second in matrix products",
            number(limits["product_gflops64"]),
            number(limits["product_gflops32"]),
        ),
        ("GB per second, read and written", number(limits["copy_gb_per_second"]), ""),
    )
    return table(("limit", "64 bits", "32 bits"), rows)


def machine(results: Results) -> list[str]:
    """Say what it was measured on."""
    rows = [(name.replace("_", " "), str(value)) for name, value in results["machine"].items()]
    parts = [
        (f"`{name}`", part["commit"], part["date"], seconds(part["seconds"]))
        for name, part in results["measured"].items()
    ]
    return [
        "## Machine\n",
        table(("what", "value"), rows),
        paragraph("Each part can be measured anew alone (`--only` of `benchmarks/bench.py`):"),
        table(("part", "commit", "date", "took"), parts),
    ]
