"""Which population explains the rewards, in nats: the numbers, the words, and when it warns."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from cocobandits import MTTS, Bernoulli, CoIDS, Gaussian, HierTS, Mixture, PaperLogDensity, Study
from cocobandits.environments.recruitment import Recruitment
from cocobandits.environments.registry import find_environment
from cocobandits.errors import NumericalError, UnsupportedError
from cocobandits.policies.registry import POLICIES
from cocobandits.populations.hierarchy.linear_mixed import (
    LinearMixedModel,
    mixed_model_log_evidence,
)
from cocobandits.populations.known.flat import FlatModel
from cocobandits.simulation.loop import open_study, serve
from cocobandits.simulation.world import draw_world
from cocobandits.study.diagnosis import (
    USER_DEVIATIONS,
    Diagnosis,
    compare,
    diagnose,
    learn_log_evidence,
)
from support.designs import small

# A population small enough to be learned many times.
GRID = PaperLogDensity(nodes_per_arm=5, num_modes=12)
SMALL = small("coids", population=GRID, num_particles=20)
GIVEN = MTTS(None, 0.2, 0.7, 0.3)
REWARDS = [("anna", 24.0), ("bob", 14.0), ("anna", 23.5), ("anna", 24.6), ("dora", 21.0)]


def make_study(policy, scale=1.0, steps=REWARDS) -> Study:
    """Serve three of four users, in units where the standardised range is 20 · scale wide."""
    study = Study(
        ["a", "b"],
        {"x": (0.0, 4.0), "sex": ["f", "m"]},
        Gaussian(10.0 * scale, 30.0 * scale, noise=0.5 * scale),
        policy,
        seed=0,
    )
    for user, x, sex in (("anna", 0.5, "m"), ("bob", 3.0, "f"), ("carl", 1, "m"), ("dora", 2, "f")):
        study.enrol(user, {"x": x, "sex": sex})
    for user, value in steps:
        study.reward(study.decide(user).id, scale * value)
    return study


def users_of(study):
    return study._learner.users


def diagnose_study(study) -> Diagnosis:
    return diagnose(jax.random.key(0), study.design, users_of(study), study.log_evidence)


def diagnosis_of(policy, nonparametric, gaussian, no_sharing) -> Diagnosis:
    values = {"nonparametric": nonparametric, "gaussian": gaussian, "no-sharing": no_sharing}
    return Diagnosis(values, policy, POLICIES[policy].assumes, 40, 200)


def test_no_sharing_is_the_product_over_users_and_arms():
    """Once from the model of every user alone, once by integrating every arm mean out."""
    study = make_study("uniform")
    table = users_of(study)
    flat = FlatModel(2, -2.0, 2.0, 0.1)
    actual = compare(study.design, table, {"nonparametric": 0.0}).log_evidences["no-sharing"]
    evidence = jax.jit(flat.log_evidence)
    alone = [float(evidence(jnp.zeros(0), *table.of(user))) for user in range(4)]
    np.testing.assert_allclose(actual, sum(alone), rtol=1e-12)
    heard: dict = {}
    for number, (user, value) in enumerate(REWARDS):
        arm = study.decision(f"d{number}").arm
        heard.setdefault((user, arm), []).append((value - 20.0) / 5.0)
    expected = 0.0
    for values in heard.values():
        peak = np.mean(values)
        area, _ = quad(lambda mean, v=values: np.prod(norm.pdf(v, mean, 0.1)), -2, 2, points=[peak])
        expected += math.log(area / 4.0)
    np.testing.assert_allclose(actual, expected, rtol=1e-9)


@pytest.mark.parametrize(
    "policy", [GIVEN, HierTS(0.1, 0.6, 0.4, prior_users=None)], ids=["mtts", "hierts"]
)
def test_mixed_model_in_use_is_held_to_its_own_predictions(policy):
    """The evidence is the product of the densities it gave every reward before it came."""
    study = make_study(policy, steps=[])
    expected = 0.0
    for user, value in REWARDS:
        arm = study.design.arms.index(study.decide(user).arm)
        context, statistics = users_of(study).of(study.users.index(user))
        belief = study._learner.policy._belief(study._learner.state, (context, statistics))
        reward = study.design.rewards.standardise(value)
        expected += math.log(belief.predictive(jnp.array([reward]))[arm, 0])
        study.reward(study.decide(user).id, value)
    found = compare(study.design, users_of(study), {"nonparametric": 0.0}).log_evidences["gaussian"]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("policy", ["npm-ts", "ind-ts", "uniform"])
def test_gaussian_that_nobody_was_told_is_an_average(policy):
    study = make_study("uniform")
    problem = study.design.problem()
    tensor = jnp.asarray(MTTS().tensor(problem))
    logs = [
        float(
            mixed_model_log_evidence(
                LinearMixedModel(tensor, 0.0, 1.0, deviation, 0.1, problem.features),
                users_of(study),
            )
        )
        for deviation in USER_DEVIATIONS
    ]
    design = replace(study.design, policy=POLICIES[policy]())
    found = compare(design, users_of(study), {"nonparametric": 0.0}).log_evidences["gaussian"]
    np.testing.assert_allclose(found, math.log(np.mean(np.exp(logs))), rtol=1e-12)


def test_differences_do_not_depend_on_units():
    """The same rewards times a power of two, which rounds nothing."""
    assert diagnose_study(make_study(GIVEN, 1024.0)) == diagnose_study(make_study(GIVEN))


def test_learned_evidence_of_a_fixed_population_is_exact():
    """Particles without parameters have nothing to learn, and nothing to get wrong."""
    study = make_study("ind-ts")
    flat = FlatModel(2, -2.0, 2.0, 0.1)
    learned = learn_log_evidence(jax.random.key(3), flat, users_of(study), SMALL.inference())
    expected = compare(study.design, users_of(study), {"nonparametric": 0.0}).log_evidences[
        "no-sharing"
    ]
    np.testing.assert_allclose(learned, expected, rtol=1e-12)


def test_learned_evidence_matches_plain_averaging_over_the_prior():
    """Three users say little enough that twenty thousand draws from the prior are an oracle."""
    study = make_study("ind-ts")
    table = users_of(study)
    model = GRID.model(study.design.problem(), 20)
    particles = jax.random.normal(jax.random.key(1), (20000, model.num_parameters))
    evidence = jax.jit(jax.vmap(model.log_evidence, in_axes=(0, None, None)))
    logs = sum(np.asarray(evidence(particles, *table.of(user))) for user in (0, 1, 3))
    expected = math.log(np.mean(np.exp(logs)))
    learned = [
        learn_log_evidence(jax.random.key(seed), model, table, SMALL.inference())
        for seed in (0, *range(60))
    ]
    assert learned[0] == learned[1]
    # The estimate is unbiased for the evidence, not for its logarithm.
    ratios = np.exp(np.array(learned[1:]) - expected)
    error = ratios.std(ddof=1) / math.sqrt(len(ratios))
    assert abs(ratios.mean() - 1.0) < 4 * error
    # Sharp enough to see an evidence that is wrong by half.
    assert 4 * error < 0.5


def test_particles_in_use_are_taken_at_their_word():
    study = make_study(small("npm-ts", population=GRID, num_particles=20))
    found = diagnose_study(study)
    assert found.log_evidences["nonparametric"] == study.log_evidence
    assert (found.policy, found.in_use) == ("npm-ts", "nonparametric")
    assert (found.num_users, found.num_rewards) == (3, 5)


def test_other_model_is_learned_beside_the_one_in_use():
    """Against learning it directly, with the key that the other model gets."""
    study = make_study(SMALL)
    key = jax.random.key(5)
    users = users_of(study)
    found = diagnose(key, study.design, users, 0.0, has_other_model=True)
    model = Mixture().model(study.design.problem(), 20)
    expected = learn_log_evidence(jax.random.fold_in(key, 1), model, users, SMALL.inference())
    assert found.log_evidences["mixture"] == pytest.approx(expected, abs=1e-9)
    assert list(found.log_evidences)[:2] == ["nonparametric", "mixture"]
    assert "mixture" in str(found)


def test_log_density_is_the_other_model_beside_the_default(monkeypatch):
    """Likewise; a small one stands for the usual log-density."""
    monkeypatch.setattr(CoIDS, "log_density", GRID)
    study, key = make_study(CoIDS(num_particles=20)), jax.random.key(5)
    users = users_of(study)
    found = diagnose(key, study.design, users, 0.0, has_other_model=True)
    model = GRID.model(study.design.problem(), 20)
    config = study.design.policy.inference()
    expected = learn_log_evidence(jax.random.fold_in(key, 1), model, users, config)
    assert found.log_evidences["log-density"] == pytest.approx(expected, abs=1e-9)
    assert list(found.log_evidences)[:2] == ["nonparametric", "log-density"]


def test_yes_or_no_has_no_other_model():
    study = Study(["a", "b"], {}, Bernoulli(), "uniform", seed=0)
    with pytest.raises(UnsupportedError, match=r"Gaussian.*got rewards='bernoulli'.*Ask without"):
        study.diagnose(has_other_model=True)


def test_diagnosis_leaves_the_study_alone():
    """It decides as a study that was never asked."""
    asked, other = make_study(GIVEN), make_study(GIVEN)
    assert asked.diagnose() == asked.diagnose()
    assert asked.decide("carl") == other.decide("carl")


def test_nothing_is_lost_before_the_first_reward():
    found = diagnose_study(make_study(GIVEN, steps=[]))
    assert set(found.log_evidences.values()) == {0.0}
    assert (found.deficit, found.is_losing, found.warning) == (0.0, False, None)
    assert (found.num_users, found.num_rewards) == (0, 0)


def test_withdrawn_users_are_not_counted():
    study = make_study("ind-ts")
    study.withdraw("anna")
    found = diagnose_study(study)
    assert (found.num_users, found.num_rewards) == (2, 2)


@pytest.mark.parametrize(("ahead", "is_losing"), [(-50.0, False), (10.0, False), (10.5, True)])
def test_losing_is_more_than_ten_nats(ahead, is_losing):
    found = diagnosis_of("mtts", -100.0 + ahead, -100.0, -300.0)
    assert found.deficit == max(ahead, 0.0)
    assert found.is_losing is is_losing
    assert (found.warning is not None) is is_losing
    assert found.best == ("nonparametric" if ahead > 0 else "gaussian")


@pytest.mark.parametrize("policy", ["oracle-ts", "uniform"])
def test_policies_that_assume_none_of_them_cannot_lose(policy):
    found = diagnosis_of(policy, -10.0, -500.0, -300.0)
    assert found.best == "nonparametric"
    assert (found.in_use, found.deficit, found.is_losing, found.warning) == (
        None,
        None,
        False,
        None,
    )
    assert "in use" not in str(found)


@pytest.mark.parametrize(
    ("policy", "values", "words"),
    [
        (
            "mtts",
            (-100.0, -700.0, -300.0),
            "policy='mtts' assumes users with Gaussian deviations from a line, but the rewards so "
            "far are 600 nats more probable under a population of any shape. Check the "
            "settings of the policy, above all the user_deviation; if all is right, start a new "
            "study with policy='coids'.",
        ),
        (
            "gids",
            (-180.0, -100.0, -300.0),
            "policy='gids' assumes a population of any shape, but the rewards so far are 80 nats "
            "more probable under users with Gaussian deviations from a line. Check that arm means "
            "lie inside the range of rewards; if all is right, start a new study with "
            "policy='mtts'.",
        ),
        (
            "ind-ts",
            (-100.0, -200.0, -180.0),
            "policy='ind-ts' assumes users who have nothing in common, but the rewards so far are "
            "80 nats more probable under a population of any shape. Check that arm means lie "
            "inside the range of rewards; if all is right, start a new study with policy='coids'.",
        ),
        (
            "npm-ts",
            (-180.0, -200.0, -100.0),
            "policy='npm-ts' assumes a population of any shape, but the rewards so far are 80 nats "
            "more probable under users who have nothing in common. Check that arm means lie inside "
            "the range of rewards; if all is right, start a new study with policy='ind-ts'.",
        ),
    ],
)
def test_warning_says_what_to_do(policy, values, words):
    assert diagnosis_of(policy, *values).warning == words


def test_diagnosis_prints_as_a_table():
    found = diagnosis_of("ind-ts", -101.26, -95.0, -99.5)
    assert str(found) == (
        "population     log-evidence    behind\n"
        "nonparametric        -101.3       6.3\n"
        "gaussian              -95.0       0.0\n"
        "no-sharing            -99.5       4.5  in use\n"
        "in nats; 200 rewards of 40 users"
    )
    losing = diagnosis_of("ind-ts", -101.26, -75.0, -99.5)
    assert str(losing).splitlines()[-1] == losing.warning


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_evidence_that_is_not_finite_is_refused(value):
    study = make_study("ind-ts")
    with pytest.raises(NumericalError, match=r"finite log-evidences; got {'nonparametric'"):
        compare(study.design, users_of(study), {"nonparametric": value})


@pytest.mark.parametrize(
    ("name", "plan", "is_losing"),
    [
        ("lmm-misspecified", Recruitment.batches(8, 5, steps_per_user=5), True),
        ("lmm", Recruitment.all_at_once(50, steps_per_user=5), False),
    ],
)
def test_monitor_tells_a_wrong_mixed_model_from_a_right_one(name, plan, is_losing):
    """MTTS is given the truth in one, and the right mean and variance of two modes in the other."""
    environment = find_environment(name).recruiting(plan)
    world = draw_world(environment, 0)
    study = open_study("mtts", environment, world, 0)
    for _ in serve(study, environment, world):
        pass
    found = diagnose_study(study)
    assert (found.in_use, found.num_rewards) == ("gaussian", 5 * plan.num_users)
    assert found.is_losing is is_losing
    assert (found.best == "gaussian") is not is_losing
