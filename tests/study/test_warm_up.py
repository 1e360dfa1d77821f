"""`warm_up` compiles, and changes nothing else."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from cocobandits import CocoSettings, SmcConfig, Study, policy_names
from cocobandits.models.gaussian_mixture import ConditionalMixture

ARMS, CONTEXT = ["plan-1", "plan-2"], {"age": (18, 90), "smoker": bool}
# The terms of the context: one, the continuous feature, and two categories.
TRUTH = ConditionalMixture.from_arrays(
    np.zeros((1, 4)), np.arange(8.0).reshape(1, 2, 4) / 10, np.ones((1, 2, 2, 4)) / 5
)
SMALL = CocoSettings(
    nodes_per_arm=6,
    num_modes=20,
    inference=SmcConfig(num_particles=40),
    prior=TRUTH,
    num_components=3,
)
# A particle policy compiles for ten seconds and more; one of them is quick enough.
LONG = ("coids", "gids", "mixture", "bernoulli", "gaps")
DESIGNS = {name: {"policy": name} for name in policy_names()} | {
    "mixture": {"model": "mixture"},
    "bernoulli": {"rewards": "bernoulli", "reward_range": None, "reward_noise": None},
    "gaps": {},
    "lower is better, floors": {"policy": "ind-ts", "maximise": False, "floor": 0.1},
}


def make_study(**changes):
    policy = changes.get("policy", "npm-ts")
    settings = replace(SMALL, steps_per_user=3) if policy == "oracle-plan" else SMALL
    design = {"reward_range": (-2.0, 2.0), "reward_noise": 0.2, "settings": settings}
    return Study(ARMS, CONTEXT, **(design | {"policy": policy, "seed": 5} | changes))


def serve(study, users, has_gaps=False):
    """Serve users, and return everything that was decided and learned, bit for bit."""
    for number in users:
        context = {"age": 20 + 7 * number, "smoker": number % 3 == 0}
        if has_gaps and number % 2:
            del context["age"]
        study.enrol(f"user-{number}", context)
        for step in range(2):
            decision = study.decide(f"user-{number}")
            study.reward(decision.id, float((ARMS.index(decision.arm) + step) % 2))
            study.catch_up()
    log = [study.decision(f"d{number}") for number in range(study.num_decisions)]
    leaves = jax.tree.leaves(study._learner.state)
    return repr((log, study._log, study.adoptions)), [np.asarray(leaf).tobytes() for leaf in leaves]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in DESIGNS]
)
def test_decisions_are_those_without_it(name):
    """Warm up before the first user, and again in mid-study."""
    has_gaps, results = name == "gaps", []
    for is_warmed in (True, False):
        study = make_study(**DESIGNS[name])
        for users in (range(3), range(3, 5)):
            if is_warmed:
                study.warm_up()
            found = serve(study, users, has_gaps)
        results.append(found)
    assert results[0] == results[1]


def test_moves_in_the_background_are_those_without_it():
    """The second process compiles as well."""
    results = []
    for is_warmed in (True, False):
        study = make_study(rejuvenate="background")
        if is_warmed:
            study.warm_up()
        results.append(serve(study, range(3)))
        assert study.adoptions
    assert results[0] == results[1]


@pytest.mark.parametrize("has_gaps", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_nothing_is_left_to_compile(has_gaps):
    """Count compilations after it; moves and explanations are among the calls."""
    # Nobody else has as many particles, so nothing is compiled yet.
    settings = replace(SMALL, inference=SmcConfig(num_particles=37 + has_gaps))
    study, compiled = make_study(settings=settings), []

    def note(event, value, **details):
        del value
        if event.endswith("backend_compile_duration"):
            compiled.append(details["fun_name"])

    jax.monitoring.register_scalar_listener(note)
    try:
        study.warm_up(has_gaps)
        assert compiled
        compiled.clear()
        serve(study, range(3))
        study.explain("user-1")
        serve(study, range(3, 6), has_gaps)
        study.explain("user-5")
    finally:
        jax.monitoring.unregister_scalar_listener(note)
    assert compiled == []


def test_names_that_are_taken_are_not_invented():
    """The study has a user of the name that rehearsals use, and one who withdrew."""
    study = make_study(policy="ind-ts")
    for name in ("rehearsal", "rehearsal+"):
        study.enrol(name, {"age": 30, "smoker": True})
    study.withdraw("rehearsal+")
    study.warm_up()
    assert study.users == ("rehearsal",)
    assert study.num_decisions == 0


def test_arms_that_are_gone_or_added_are_no_hindrance():
    study = make_study(policy="ind-ts")
    study.add_arm("plan-3")
    study.suspend("plan-1")
    study.warm_up()
    for arm in ("plan-2", "plan-3"):
        study.suspend(arm)
    study.warm_up()
    assert study.num_decisions == 0
