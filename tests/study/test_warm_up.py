"""`warm_up` compiles, and changes nothing else."""

import jax
import numpy as np
import pytest

from cocobandits import Bernoulli, Gaussian, Mixture, Study, policy_names
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.study.events import MovesAdopted
from support.designs import small

ARMS, CONTEXT = ["plan-1", "plan-2"], {"age": (18, 90), "smoker": bool}
# The terms of the context: one, the continuous feature, and two categories.
TRUTH = ConditionalMixture.from_arrays(
    np.zeros((1, 4)), np.arange(8.0).reshape(1, 2, 4) / 10, np.ones((1, 2, 2, 4)) / 5
)
# A particle policy compiles for ten seconds and more; one of them is quick enough.
LONG = ("coids", "gids", "mixture", "bernoulli", "gaps")
MIXTURE = small("npm-ts", population=Mixture(num_components=3))
STEPS = {"oracle-plan": {"steps_per_user": 3}}
DESIGNS = {
    name: {"policy": small(name, TRUTH, **STEPS.get(name, {}))} for name in policy_names()
} | {
    "mixture": {"policy": MIXTURE},
    "bernoulli": {"rewards": Bernoulli(), "policy": MIXTURE},
    "gaps": {},
    "lower is better, floors": {
        "rewards": Gaussian(-2.0, 2.0, noise=0.2, maximise=False),
        "policy": "ind-ts",
        "floor": 0.1,
    },
}


def make_study(**changes):
    design = {"rewards": Gaussian(-2.0, 2.0, noise=0.2), "policy": small("npm-ts"), "seed": 5}
    return Study(ARMS, CONTEXT, **(design | changes))


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
    return repr((log, study.events)), [np.asarray(leaf).tobytes() for leaf in leaves]


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
        study = make_study(moves="background")
        if is_warmed:
            study.warm_up()
        results.append(serve(study, range(3)))
        assert any(isinstance(event, MovesAdopted) for event in study.events)
    assert results[0] == results[1]


@pytest.mark.parametrize("has_gaps", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_nothing_is_left_to_compile(has_gaps):
    """Count compilations after it; moves and explanations are among the calls."""
    # Nobody else has as many particles, so nothing is compiled yet.
    study, compiled = make_study(policy=small("npm-ts", num_particles=37 + has_gaps)), []

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
