"""The public API: what a user of `Study` may rely on."""

import contextlib
import cProfile
import io
import math
import pstats
import re
import subprocess
import sys

import jax
import numpy as np
import pytest

from cocobandits import Gaussian, Study
from cocobandits.users.table import Change
from support.compilation import users_environment
from support.designs import small


def make_study(policy: str = "npm-ts", seed: int = 0, **changes) -> Study:
    design = {
        "arms": ["plan-1", "plan-2", "plan-3"],
        "context": {"age": (18, 90)},
        "rewards": Gaussian(-2.0, 2.0, noise=0.1),
    }
    return Study(**(design | changes), policy=small(policy), seed=seed)


def serve(study: Study, user: str, value: float) -> str:
    decision = study.decide(user)
    study.reward(decision.id, value)
    return decision.id


def test_decision_carries_its_exact_probabilities():
    study = make_study()
    study.enrol("anna", {"age": 34})
    decision = study.decide("anna")
    assert decision.user == "anna"
    assert decision.arm in study.design.arms
    assert set(decision.probabilities) == set(study.design.arms)
    assert math.isclose(sum(decision.probabilities.values()), 1.0)
    cumulated = np.cumsum(list(decision.probabilities.values()))
    number = study.design.arms.index(decision.arm)
    assert cumulated[number] > decision.draw
    assert number == 0 or cumulated[number - 1] <= decision.draw


def test_open_decision_is_returned_again():
    study = make_study()
    study.enrol("anna", {"age": 34})
    first = study.decide("anna")
    assert study.decide("anna") == first
    assert study.num_decisions == 1
    study.reward(first.id, 0.3)
    assert study.decide("anna").id != first.id


def test_same_reward_twice_is_harmless():
    study = make_study()
    study.enrol("anna", {"age": 34})
    decision = study.decide("anna")
    study.reward(decision.id, 1.3)
    explained = study.explain("anna")
    study.reward(decision.id, 1.3)
    assert study.explain("anna") == explained


def test_same_enrolment_twice_is_harmless():
    study = make_study()
    study.enrol("anna", {"age": 34})
    study.enrol("anna", {"age": 34})
    assert study.users == ("anna",)


@pytest.mark.parametrize("policy", ["coids", "npm-ts", "gids", "ind-ts", "uniform"])
def test_seed_fixes_every_decision(policy):
    def decisions(seed: int) -> list:
        study = make_study(policy, seed)
        made = []
        for user, age in (("anna", 34), ("bob", 71), ("carl", 20)):
            study.enrol(user, {"age": age})
            for value in (0.4, -0.2):
                made.append(study.decide(user))
                study.reward(made[-1].id, value)
        return made

    assert decisions(3) == decisions(3)
    assert decisions(3) != decisions(4)


_REPLAY = """
from cocobandits import GIDS, Gaussian, LogDensity, Study
grid = LogDensity(nodes_per_arm=6, num_modes=20)
policy = GIDS(grid, num_particles=40, moves_per_block=5, max_blocks=6)
study = Study(["a", "b"], {"x": (0, 1)}, Gaussian(-2, 2, noise=0.1), policy, seed=1)
for user in range(4):
    study.enrol(str(user), {"x": user / 4})
    for value in (1.9, -1.7, 0.3):
        decision = study.decide(str(user))
        study.reward(decision.id, value)
        print(decision.arm, [p.hex() for p in decision.probabilities.values()], decision.draw.hex())
        print(study.health)
"""
_PROBABILITY = re.compile(r"'([0-9a-fx.p+-]+)'")


@pytest.fixture(scope="module")
def replays() -> list[str]:
    """Run the same study in two processes that share nothing but the code, as users compile it."""
    command = [sys.executable, "-c", _REPLAY]
    environment = users_environment() | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    return [process.communicate()[0] for process in processes]


def test_two_processes_agree_bit_for_bit(replays):
    assert replays[0] == replays[1]
    assert "acceptance_rate=0." in replays[0]  # particles were moved, so the moves agree too


def test_code_that_tests_compile_quickly_is_as_right_as_that_of_users(replays):
    """The same arms, and probabilities within the rounding of densities in 32 bits."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(_REPLAY, {})
    here, there = (_PROBABILITY.findall(text) for text in (printed.getvalue(), replays[0]))
    assert len(here) == 4 * 3 * 2
    np.testing.assert_allclose(
        [float.fromhex(text) for text in here], [float.fromhex(text) for text in there], atol=1e-5
    )


def test_rewards_may_come_late_and_in_any_order():
    """A closed decision takes its reward later; statistics end the same as in order."""
    study, prompt = make_study("ind-ts"), make_study("ind-ts")
    for copy in (study, prompt):
        copy.enrol("anna", {"age": 34})
    first = study.decide("anna")
    study.close(first.id)
    second = study.decide("anna")
    assert second.id != first.id
    study.reward(second.id, -0.4)
    study.reward(first.id, 0.9)
    counts = {arm: [] for arm in study.design.arms}
    counts[first.arm].append(0.9)
    counts[second.arm].append(-0.4)
    for arm, values in counts.items():
        explained = study.explain("anna").arms[arm]
        if values:
            assert abs(explained.mean - np.mean(values)) < 0.01


def test_correction_gives_what_the_right_value_would_have_given():
    wrong, right = make_study("ind-ts"), make_study("ind-ts")
    for study, value in ((wrong, 1.4), (right, 0.2)):
        study.enrol("anna", {"age": 34})
        serve(study, "anna", value)
    wrong.correct("d0", 0.2)
    for arm in wrong.design.arms:
        left, good = wrong.explain("anna").arms[arm], right.explain("anna").arms[arm]
        np.testing.assert_allclose(left.mean, good.mean, atol=1e-12)
        np.testing.assert_allclose(left.best_probability, good.best_probability, atol=1e-9)


def test_retracted_reward_leaves_no_trace():
    study = make_study("ind-ts")
    study.enrol("anna", {"age": 34})
    before = study.explain("anna")
    identifier = serve(study, "anna", 1.1)
    assert study.explain("anna") != before
    study.correct(identifier, None)
    assert study.explain("anna") == before
    study.correct(identifier, 0.4)
    assert study.explain("anna") != before


def test_withdrawn_user_is_gone_and_the_rest_goes_on():
    study = make_study()
    study.enrol("anna", {"age": 34})
    study.enrol("bob", {"age": 40})
    serve(study, "anna", 1.1)
    serve(study, "bob", -0.3)
    study.withdraw("anna")
    assert study.users == ("bob",)
    assert study.decide("bob").user == "bob"


def test_explanation_adds_up():
    study = make_study()
    study.enrol("anna", {"age": 34})
    for value in (0.3, 0.5, 0.4):
        serve(study, "anna", value)
    explained = study.explain("anna")
    for arm in explained.arms.values():
        noise, person, population = arm.uncertainty
        assert math.isclose(noise, 0.01)
        assert person >= 0
        assert population >= 0
        assert math.isclose(arm.uncertainty.total, noise + person + population)
        assert arm.interval[0] <= arm.mean <= arm.interval[1]
    assert math.isclose(sum(arm.best_probability for arm in explained.arms.values()), 1.0)
    assert str(explained).count("\n") == 3
    assert "population" in str(explained)


def test_total_uncertainty_is_the_variance_of_the_next_reward():
    """Integrate the particle-averaged predictive density of GIDS on a fine grid of rewards."""
    study = make_study()
    study.enrol("anna", {"age": 34})
    serve(study, "anna", 0.7)
    context, statistics = study._learner.users.of(0)
    rewards = jax.numpy.linspace(-4.0, 4.0, 4001)

    def read(belief):
        return belief.predictive(rewards)

    users = study._learner.users
    log_weights, densities = study._learner.policy.read(
        study._learner.state, users, (context, statistics), read
    )
    density = np.tensordot(np.exp(log_weights), np.asarray(densities), axes=1)
    step = float(rewards[1] - rewards[0])
    mean = (density * np.asarray(rewards)).sum(axis=1) * step
    variance = (density * (np.asarray(rewards)[None] - mean[:, None]) ** 2).sum(axis=1) * step
    explained = study.explain("anna").arms.values()
    np.testing.assert_allclose([arm.uncertainty.total for arm in explained], variance, rtol=1e-6)
    np.testing.assert_allclose([arm.mean for arm in explained], mean, atol=1e-6)


def test_units_do_not_matter():
    """The same study in other units of reward and age makes the same decisions."""
    first = make_study()
    second = make_study(rewards=Gaussian(100.0, 300.0, noise=5.0), context={"age": (0, 7200)})
    for value in (0.3, -1.2, 0.8):
        for study, age, reward in ((first, 36, value), (second, 1800, 200 + 50 * value)):
            study.enrol("anna", {"age": age})
            decision = study.decide("anna")
            study.reward(decision.id, reward)
    one, other = first.explain("anna"), second.explain("anna")
    for arm in first.design.arms:
        np.testing.assert_allclose(other.arms[arm].mean, 200 + 50 * one.arms[arm].mean, rtol=1e-9)
        np.testing.assert_allclose(
            other.arms[arm].uncertainty.total, 2500 * one.arms[arm].uncertainty.total, rtol=1e-9
        )


def test_population_densities_integrate_to_one():
    study = make_study()
    study.enrol("anna", {"age": 34})
    serve(study, "anna", 1.2)
    population = study.population({"age": 34})
    width = population.edges[1] - population.edges[0]
    for density in population.marginal.values():
        assert math.isclose(density.sum() * width, 1.0, rel_tol=1e-9)
    for (first, second), density in population.pairwise.items():
        np.testing.assert_allclose(
            density.sum(axis=1) * width, population.marginal[first], rtol=1e-6
        )
        np.testing.assert_allclose(
            density.sum(axis=0) * width, population.marginal[second], rtol=1e-6
        )
    assert len(population.pairwise) == 3


def test_study_without_context_and_with_categories():
    bare = make_study(context={})
    bare.enrol("anna")
    serve(bare, "anna", 0.5)
    grouped = make_study(context={"sex": ["f", "m"], "age": (18, 90)})
    grouped.enrol("anna", {"sex": "f", "age": 20})
    serve(grouped, "anna", 0.5)
    assert grouped.explain("anna").arms.keys() == bare.explain("anna").arms.keys()


def test_long_histories_compile_nothing_and_keep_their_size():
    """Count compilations and array sizes over 600 decisions: none and no growth after the first."""
    study = make_study("npm-ts")
    study.enrol("anna", {"age": 34})
    generator = np.random.default_rng(0)
    for _ in range(100):
        serve(study, "anna", float(generator.normal(0.5, 0.1)))
    compiled = []

    def listener(event: str, *_args, **_details) -> None:
        if "backend_compile" in event:
            compiled.append(event)

    sizes = [leaf.shape for leaf in jax.tree.leaves((study._learner.users, study._learner.state))]
    jax.monitoring.register_event_duration_secs_listener(listener)
    for _ in range(500):
        serve(study, "anna", float(generator.normal(0.5, 0.1)))
    assert [
        leaf.shape for leaf in jax.tree.leaves((study._learner.users, study._learner.state))
    ] == sizes
    assert compiled == []
    assert float(study._learner.users.of(0)[1].count.sum()) == 600


def test_a_million_earlier_decisions_add_no_work():
    """Count function calls of one decision and reward, before and after a million others."""
    study = make_study("ind-ts")
    study.enrol("anna", {"age": 34})
    for _ in range(5):
        serve(study, "anna", 0.5)

    def num_calls() -> int:
        profile = cProfile.Profile()
        profile.runcall(serve, study, "anna", 0.5)
        return pstats.Stats(profile).total_calls

    few = min(num_calls() for _ in range(5))
    state = study._state
    others = [f"other-{number}" for number in range(1_000_000)]
    state.decisions |= dict.fromkeys(others, next(iter(state.decisions.values())))
    state.statuses |= dict.fromkeys(others, "closed")
    assert study.num_decisions > 1_000_000
    assert min(num_calls() for _ in range(5)) <= few + 10


@pytest.mark.parametrize("policy", ["ind-ts", "npm-ts"])
def test_interval_of_a_narrow_belief_is_narrow(policy):
    """After 400 rewards of every arm, nine tenths lie within 1.645 σ/√n of the average."""
    study = make_study(policy)
    study.enrol("anna", {"age": 34})
    statistics = study._learner.users.of(0)[1]
    many = statistics._replace(
        count=statistics.count + 400,
        total=statistics.total + 400 * 0.1234,
        total_square=statistics.total_square + 400 * (0.1234**2 + 0.01),
    )
    learner = study._learner
    study._state.learner = learner.updated(Change.of(learner.users, 0, many))
    for arm in study.explain("anna").arms.values():
        expected = 0.1234 + 1.645 * 0.1 / 20 * np.array([-1, 1])
        np.testing.assert_allclose(arm.interval, expected, atol=2e-4)
