"""Studies as plain data: arms, context, rewards, policy, overrides, calls. Knows no API.

Overrides name what differs from the defaults of a policy. A driver maps them to its API.
"""

from typing import Any, NamedTuple

from golden.calls import (
    ANSWERS,
    KNOWN,
    NUMBERS,
    ONE_FEATURE,
    WITH_GAPS,
    Call,
    additions,
    corrections,
    late_context,
)

Plain = dict[str, Any]
# They learn with particles, which move in single precision.
LEARNERS = ("coids", "npm-ts", "gids")
CLOSED_FORM = (
    *("mtts", "hierts", "hlinucb", "hlinucb-t", "kmtl-ucb", "gradband", "meta-ts", "ada-ts"),
    *("robustagg", "rome", "ind-ts", "oracle-ts", "oracle-plan", "uniform"),
)
POLICIES = (*LEARNERS, *CLOSED_FORM)

_ARMS = ("a", "b", "c")
_SEED = 11
_X: Plain = {"low": 0.0, "high": 1.0}
_FEATURES: Plain = {"x": _X, "group": {"categories": ["u", "v"]}}
_GAUSSIAN: Plain = {"kind": "gaussian", "low": 0.0, "high": 10.0, "noise": 1.0}
_YES_NO: Plain = {"kind": "bernoulli"}

_FEW: Plain = {"num_particles": 20, "max_blocks": 2}
_GRID: Plain = {**_FEW, "population": "log-density", "nodes_per_arm": 6, "num_modes": 20}
_MIXTURE: Plain = {**_FEW, "population": "mixture", "num_components": 2}
# Terms: one, x, group u, group v.
_PEOPLE: Plain = {
    "prior": {
        "kind": "gaussian",
        "logits": [[0.3, 0.8, -0.2, 0.4], [0.0, -0.5, 0.6, 0.0]],
        "means": [
            [[0.2, 0.5, -0.1, 0.3], [-0.4, 0.2, 0.1, 0.0], [0.0, -0.6, 0.2, 0.1]],
            [[-0.3, 0.1, 0.0, 0.2], [0.5, -0.2, 0.3, 0.0], [0.1, 0.4, -0.3, 0.2]],
        ],
        "factors": [
            [[[0.5, 0.1, 0.0, 0.1]], [[0.3, 0.0, 0.1, 0.0]], [[-0.2, 0.1, 0.0, 0.0]]],
            [[[0.4, 0.0, 0.1, 0.0]], [[-0.3, 0.1, 0.0, 0.0]], [[0.6, 0.0, 0.0, 0.1]]],
        ],
    }
}
# Terms: one, x.
_CHANCES: Plain = {
    "prior": {
        "kind": "bernoulli",
        "logits": [[0.4, 0.9], [0.0, -0.3]],
        "successes": [[8.0, 3.0, 5.0], [2.0, 6.0, 4.0]],
        "failures": [[3.0, 6.0, 5.0], [7.0, 3.0, 4.0]],
    }
}


class Scenario(NamedTuple):
    """One study and its calls."""

    id: str
    arms: tuple[str, ...]
    context: Plain
    rewards: Plain
    policy: str
    overrides: Plain
    calls: list[Call]
    floor: float = 0.0
    seed: int = _SEED


class Kind(NamedTuple):
    """What scenarios of one name have in common."""

    context: Plain
    rewards: Plain
    scripts: dict[str, list[Call]]


KINDS = {
    "gaussian": Kind(
        _FEATURES,
        _GAUSSIAN,
        {
            "additions-only": additions(KNOWN, NUMBERS),
            "with-corrections": corrections(KNOWN, NUMBERS),
        },
    ),
    "bernoulli": Kind(
        {"x": _X},
        _YES_NO,
        {
            "additions-only": additions(ONE_FEATURE, ANSWERS),
            "with-corrections": corrections(ONE_FEATURE, ANSWERS),
        },
    ),
    "gaps": Kind(
        _FEATURES,
        _GAUSSIAN,
        {
            "additions-only": additions(WITH_GAPS, NUMBERS),
            "late-context": late_context(WITH_GAPS, NUMBERS),
            "with-corrections": corrections(WITH_GAPS, NUMBERS),
        },
    ),
    "unknown-noise": Kind(
        _FEATURES, {**_GAUSSIAN, "noise": None}, {"additions-only": additions(KNOWN, NUMBERS)}
    ),
    "bounded": Kind(
        _FEATURES,
        {**_GAUSSIAN, "kind": "bounded"},
        {"additions-only": additions(KNOWN, NUMBERS)},
    ),
    "lower-is-better": Kind(
        _FEATURES,
        {**_GAUSSIAN, "maximise": False},
        {"with-corrections": corrections(KNOWN, NUMBERS)},
    ),
}
# Every policy meets these with its defaults; those that refuse one say so.
_ALL_MEET = ("gaussian", "bernoulli", "gaps", "unknown-noise")
# A few meet what concerns the study rather than the policy.
_SOME_MEET = ("bounded", "lower-is-better")
_SOME = ("npm-ts", "ind-ts", "mtts", "kmtl-ucb")

# Name of the variant, its policy, what differs from the defaults, and the kinds it meets.
VARIANTS: tuple[tuple[str, str, Plain, tuple[str, ...]], ...] = (
    ("mixture", "coids", _MIXTURE, ("gaussian", "gaps")),
    ("mixture", "npm-ts", {**_MIXTURE, "rank": 0, "precision": "double"}, ("gaussian",)),
    ("mixture", "gids", {**_MIXTURE, "rank": 0, "precision": "double"}, ("gaussian",)),
    ("mixture", "npm-ts", {**_MIXTURE, "rank": 0}, ("gaps",)),
    ("planned", "coids", {**_MIXTURE, "steps_per_user": 5}, ("gaussian",)),
    ("alone", "coids", {**_MIXTURE, "population_weight": 0.0}, ("gaussian",)),
    ("fitted", "mtts", {"prior_users": 10.0}, ("gaussian", "gaps")),
    ("shifted", "mtts", {"coefficient_mean": 0.3, "user_deviation": 0.8}, ("gaussian",)),
    ("fixed", "hierts", {"prior_users": None}, ("gaussian", "gaps")),
    ("hidden", "hlinucb", {"alpha": 0.5, "num_hidden": 3}, ("gaussian", "bernoulli")),
    ("hidden", "hlinucb-t", {"alpha": 0.5, "num_hidden": 3}, ("gaussian",)),
    ("contexts", "kmtl-ucb", {"similarity": "contexts"}, ("gaussian", "gaps")),
    ("independent", "kmtl-ucb", {"similarity": "independent"}, ("gaussian",)),
    ("careful", "kmtl-ucb", {"similarity": "contexts", "alpha": 0.3}, ("bernoulli",)),
    ("own", "kmtl-ucb", {"similarity": "independent", "user_share": 0.5}, ("gaussian",)),
    ("fast", "gradband", {"horizon": 2, "batch": 1, "softness": 2.0}, ("gaussian", "bernoulli")),
    ("wide", "meta-ts", {"population_deviation": 2.0, "user_deviation": 0.9}, ("gaussian",)),
    ("wide", "ada-ts", {"population_mean": 0.4, "user_deviation": 0.9}, ("gaussian", "gaps")),
    ("0.2", "robustagg", {"dissimilarity": 0.2, "horizon": 60}, ("gaussian", "bernoulli")),
    ("0", "robustagg", {"dissimilarity": 0.0}, ("gaussian",)),
    ("eager", "rome", {"scale": 1.0, "floor": 1.0, "num_bags": 3}, ("gaussian", "gaps")),
)
_FLOORED = ("uniform", "ind-ts", "robustagg")


def defaults_of(policy: str, kind: str) -> Plain:
    """List what defaults need: learners are made small, and oracles know the population."""
    is_gaussian = KINDS[kind].rewards["kind"] != "bernoulli"
    if policy in LEARNERS:
        has_grid = is_gaussian and kind != "unknown-noise"
        return _GRID if has_grid else _MIXTURE
    truth = _PEOPLE if is_gaussian else _CHANCES
    if policy == "oracle-plan":
        return {**truth, "steps_per_user": 5}
    return truth if policy == "oracle-ts" else {}


def scenarios() -> list[Scenario]:
    """List all scenarios; those of one policy stand together."""
    return [each for policy in POLICIES for each in _scenarios_of(policy)]


def _scenarios_of(policy: str) -> list[Scenario]:
    met = _ALL_MEET + (_SOME_MEET if policy in _SOME else ())
    found = [
        each
        for kind in met
        for each in _of_kind(kind, policy, "defaults", defaults_of(policy, kind))
    ]
    for variant, of_policy, overrides, kinds in VARIANTS:
        if of_policy == policy:
            found += [each for kind in kinds for each in _of_kind(kind, policy, variant, overrides)]
    if policy in _FLOORED:
        kind = "gaussian"
        given = _of_kind(kind, policy, "floor", defaults_of(policy, kind))
        found += [each._replace(floor=0.1) for each in given]
    return found


def _of_kind(kind: str, policy: str, variant: str, overrides: Plain) -> list[Scenario]:
    context, rewards, scripts = KINDS[kind]
    return [
        Scenario(
            f"{kind}/{policy}/{variant}/{script}",
            _ARMS,
            context,
            rewards,
            policy,
            overrides,
            calls,
        )
        for script, calls in scripts.items()
    ]
