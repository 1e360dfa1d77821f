"""The files that newcomers copy work as they stand, and do what they say."""

import importlib.util
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from doc_pages import ROOT, code_names, read, section
from scipy.stats import multivariate_normal, norm

from cocobandits import Gaussian, Study, simulate
from cocobandits.errors import ConfigurationError
from cocobandits.inference.smc import SmcConfig
from cocobandits.policies.base import Problem
from cocobandits.policies.coco.npm_ts import ThompsonSampling
from cocobandits.policies.coco.policy import CocoPolicy
from cocobandits.simulation.loop import open_study
from cocobandits.simulation.world import draw_world
from cocobandits.users.statistics import Statistics
from support.sessions import Session

PROBLEM = Problem(3, (None,), (-2.0, 2.0), 0.3)
FOLDER = ROOT / "docs" / "skeletons"


def load(name):
    """Import a file of the folder by its path."""
    spec = importlib.util.spec_from_file_location(f"skeleton_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


policies, models, environments = load("policy"), load("model"), load("environment")
POLICY = Session(policies.Follow(0.3).build(PROBLEM))
MODEL = models.OneMeanModel(3, PROBLEM.reward_range, PROBLEM.reward_noise, 0.9, 0.6)
ENVIRONMENT = environments.TwoKindsEnvironment()


@pytest.mark.parametrize("kind", ["policy", "model", "environment"])
def test_first_step_of_a_recipe_names_its_skeleton(kind):
    """And every file of the folder is named."""
    article = "an" if kind == "environment" else "a"
    recipe = section(read("CONTRIBUTING.md"), f"Add {article} {kind} in five steps")
    first = re.split(r"^2\. ", recipe, flags=re.M)[0]
    assert f"docs/skeletons/{kind}.py" in code_names(first)
    assert {path.name for path in FOLDER.glob("*.py")} == {
        "policy.py",
        "model.py",
        "environment.py",
    }


# The policy.

# (user, arm, reward), served in turn; the average of arm 2 is best, and user 1 got it twice.
STEPS = [(0, 0, 0.4), (1, 1, 0.9), (0, 2, -0.3), (1, 1, 0.5), (2, 0, 0.7)]


def served(policy, steps, num_users=3):
    state = policy.init(jax.random.key(0))
    for user in range(num_users):
        state = policy.enrol(state, jnp.array([0.3 * user - 0.4]))
    for user, arm, reward in steps:
        statistics = state.users.of(user)[1].add(arm, reward)
        state, _ = policy.update(jax.random.key(1), state, user, statistics)
    return state


def literal_follow(steps, arms, exploration):
    """Average by hand; who was never given is as good as can be, and ties share."""
    averages = []
    for arm in arms:
        values = [reward for _, given, reward in steps if given == arm]
        averages.append(sum(values) / len(values) if values else float("inf"))
    winners = [average == max(averages) for average in averages]
    return [exploration / len(arms) + (1 - exploration) * wins / sum(winners) for wins in winners]


@pytest.mark.parametrize("num_steps", [0, 1, 2, 5])
def test_policy_follows_its_rule(num_steps):
    state = served(POLICY, STEPS[:num_steps])
    for user in range(3):
        for arms in (None, (0, 1), (0, 2)):
            expected = literal_follow(STEPS[:num_steps], arms or range(3), 0.3)
            found = POLICY.probabilities(state, user, arms)
            np.testing.assert_allclose(found, expected, atol=1e-12)


def test_policy_keeps_the_contract():
    """A correction and a withdrawal leave no trace; contexts are replaced, shapes are not."""
    state = served(POLICY, STEPS)
    corrected, _ = POLICY.update(
        jax.random.key(0), state, 1, state.users.of(1)[1].remove(1, 0.5).add(2, 1.9)
    )
    steps = [*STEPS[:3], STEPS[4], (1, 2, 1.9)]
    np.testing.assert_allclose(
        POLICY.probabilities(corrected, 0), literal_follow(steps, range(3), 0.3), atol=1e-12
    )
    withdrawn, _ = POLICY.update(jax.random.key(0), corrected, 1, Statistics.empty(3))
    others = [step for step in STEPS if step[0] != 1]
    np.testing.assert_allclose(
        POLICY.probabilities(withdrawn, 0), literal_follow(others, range(3), 0.3), atol=1e-12
    )
    moved, _ = POLICY.update(jax.random.key(0), state, 2, state.users.of(2)[1], jnp.array([0.9]))
    assert float(moved.users.of(2)[0][0]) == 0.9
    shapes = [[leaf.shape for leaf in jax.tree.leaves(each)] for each in (state, withdrawn, moved)]
    assert shapes[0] == shapes[1] == shapes[2]


def test_policy_takes_another_arm():
    """Nobody was given it, so it comes first; then it is one of four."""
    wider, state = POLICY.add_arm(jax.random.key(0), served(POLICY, STEPS))
    np.testing.assert_allclose(
        wider.probabilities(state, 0), literal_follow(STEPS, range(4), 0.3), atol=1e-12
    )
    np.testing.assert_allclose(
        wider.probabilities(state, 0, (0, 1, 2)), literal_follow(STEPS, range(3), 0.3), atol=1e-12
    )
    state, _ = wider.update(jax.random.key(0), state, 0, state.users.of(0)[1].add(3, -1.0))
    steps = [*STEPS, (0, 3, -1.0)]
    np.testing.assert_allclose(
        wider.probabilities(state, 0), literal_follow(steps, range(4), 0.3), atol=1e-12
    )


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_settings_of_the_policy_are_refused(share):
    with pytest.raises(ConfigurationError, match=f"got exploration={share}"):
        policies.Follow(share)


def test_policy_runs_in_a_study_and_survives_the_disk(tmp_path):
    study = Study(["a", "b"], {}, Gaussian(0, 10, noise=0.5), policies.Follow(0.3), seed=2)
    study.enrol("anna")
    study.reward(study.decide("anna").id, 4.0)
    study.save(tmp_path / "one.study")
    loaded = Study.load(tmp_path / "one.study", policies=[policies.Follow])
    assert loaded.design == study.design
    assert loaded.decide("anna") == study.decide("anna")


# The model.

PARAMETERS = np.array([0.7, -1.1, 0.2])
PULLS = [(0, 0.9), (2, -0.4), (0, 0.3), (0, 0.8)]


def dense_evidence(parameters):
    """One Gaussian of all rewards: the covariance from what two of them share."""
    arms = np.array([arm for arm, _ in PULLS])
    covariance = 0.6**2 * (arms[:, None] == arms) + 0.3**2 * np.eye(len(PULLS))
    rewards = [reward for _, reward in PULLS]
    return multivariate_normal.logpdf(rewards, 0.9 * parameters[arms], covariance)


def statistics_of(pulls):
    statistics = Statistics.empty(3)
    for arm, reward in pulls:
        statistics = statistics.add(arm, reward)
    return statistics


def test_evidence_of_the_model_and_its_gradient_match_the_dense_gaussian():
    found, gradient = jax.jit(MODEL.log_evidence_and_gradient_at)(
        jnp.asarray(PARAMETERS), jnp.zeros(1), statistics_of(PULLS)
    )
    np.testing.assert_allclose(found, dense_evidence(PARAMETERS), rtol=1e-10)
    steps = 1e-5 * np.eye(3)
    slopes = [
        (dense_evidence(PARAMETERS + step) - dense_evidence(PARAMETERS - step)) / 2e-5
        for step in steps
    ]
    np.testing.assert_allclose(gradient, slopes, atol=1e-6)


def test_posterior_of_the_model_matches_the_precisions():
    """Arm by arm: precisions add up, means are weighted by them."""

    @jax.jit
    def moments(parameters, statistics):
        belief = MODEL.posterior_at(parameters, jnp.zeros(1), statistics)
        return belief.mean(), belief.variance()

    means, variances = moments(jnp.asarray(PARAMETERS), statistics_of(PULLS))
    for arm in range(3):
        rewards = [reward for given, reward in PULLS if given == arm]
        precision = 1 / 0.6**2 + len(rewards) / 0.3**2
        mean = (0.9 * PARAMETERS[arm] / 0.6**2 + sum(rewards) / 0.3**2) / precision
        np.testing.assert_allclose(means[arm], mean, rtol=1e-10)
        np.testing.assert_allclose(variances[arm], 1 / precision, rtol=1e-9)


def test_model_refuses_what_is_not_positive():
    with pytest.raises(ConfigurationError, match=r"got user_deviation=0.0"):
        models.OneMeanModel(3, (-2.0, 2.0), 0.3, user_deviation=0.0)


def exact_best(steps, num_users):
    """Condition m and all users' means on all rewards, arm by arm; then integrate who is best."""
    moments = []
    for arm in range(3):
        users = [user for user, given, _ in steps if given == arm]
        rewards = np.array([reward for _, given, reward in steps if given == arm])
        covariance = 0.9**2 + 0.6**2 * np.eye(num_users)
        seen = covariance[users][:, users] + 0.3**2 * np.eye(len(users))
        gain = np.linalg.solve(seen, covariance[users]).T
        variances = np.diagonal(covariance - gain @ covariance[users])
        moments.append((gain @ rewards, np.sqrt(variances)))
    values = np.linspace(-6.0, 6.0, 4001)
    shares = np.zeros((num_users, 3))
    for user in range(num_users):
        laws = [norm(mean[user], deviation[user]) for mean, deviation in moments]
        for arm in range(3):
            density = laws[arm].pdf(values)
            others = [laws[other].cdf(values) for other in range(3) if other != arm]
            shares[user, arm] = np.trapezoid(density * others[0] * others[1], values)
    return shares


def test_learned_model_serves_users_of_the_environment():
    """Particles against the exact posterior, after twelve rewards of five users in turn.

    This many particles need no moves, which would take longest to compile.
    """
    world, generator = draw_world(ENVIRONMENT, 0), np.random.default_rng(5)
    config = SmcConfig(num_particles=4000, ess_threshold=0.02, stage_threshold=0.01)
    policy = Session(CocoPolicy(PROBLEM, MODEL, ThompsonSampling(), config))
    state, steps = policy.init(jax.random.key(3)), []
    for user in range(5):
        state = policy.enrol(state, jnp.array([world.cohort.contexts[user]["x"]]))
    for number in range(12):
        user, arm = number % 5, int(generator.integers(3))
        # From [0, 10] to [-2, 2].
        reward = 0.4 * (world.rewards[user, number // 5, arm] - 5.0)
        statistics = state.users.of(user)[1].add(arm, reward)
        state, info = policy.update(jax.random.key(number), state, user, statistics)
        steps.append((user, arm, reward))
        assert not info.is_rejuvenated
    found = [policy.probabilities(state, user) for user in range(5)]
    np.testing.assert_allclose(found, exact_best(steps, 5), atol=0.04)
    assert np.ptp(found, axis=0).max() > 0.3


def test_model_takes_another_arm():
    """Its particles keep their parameters, and the new arm has its prior."""
    wider = MODEL.with_arm()
    particles = jax.random.normal(jax.random.key(0), (5000, 3))
    more = MODEL.extend(jax.random.key(1), particles)
    assert more.shape == (5000, wider.num_parameters) == (5000, 4)
    np.testing.assert_array_equal(more[:, :3], particles)
    assert abs(float(jnp.mean(more[:, 3]))) < 4 / np.sqrt(5000)


# The environment.

NUM_USERS = 100_000


def test_population_of_the_environment_is_that_of_its_users():
    """Means and covariances, near two contexts and overall; within four standard errors."""
    cohort = ENVIRONMENT.draw_users(np.random.default_rng(7), NUM_USERS)
    mixture = ENVIRONMENT.population()
    x = np.array([context["x"] for context in cohort.contexts])
    terms = np.stack([np.ones(NUM_USERS), x], axis=1)
    logits = terms @ np.array(mixture.logits).T
    weights = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    means = np.einsum("jax,nx->nja", np.array(mixture.means), terms)
    factors = np.einsum("jarx,nx->njar", np.array(mixture.factors), terms)
    average = np.einsum("nj,nja->na", weights, means)
    off = means - average[:, None, :]
    second = factors @ factors.transpose(0, 1, 3, 2) + off[..., None] * off[..., None, :]
    centred = cohort.arm_means - average
    products = centred[:, :, None] * centred[:, None, :]
    products -= np.einsum("nj,njab->nab", weights, second)
    errors = np.concatenate([centred, products.reshape(NUM_USERS, -1)], axis=1)
    for centre, width in ((-0.6, 0.2), (0.5, 0.2), (0.0, np.inf)):
        weighted = np.exp(-(((x - centre) / width) ** 2) / 2)[:, None] * errors
        scale = weighted.std(axis=0) / np.sqrt(NUM_USERS)
        assert np.max(np.abs(weighted.mean(axis=0)) / scale) < 4


def test_environment_is_run_to_its_end():
    """A study takes its contexts and rewards, and an oracle knows the truth in its units."""
    world, again = draw_world(ENVIRONMENT, 1), draw_world(ENVIRONMENT, 1)
    np.testing.assert_array_equal(world.rewards, again.rewards)
    informed = open_study("oracle-ts", ENVIRONMENT, world, 0).design.policy
    # 7 of [0, 10] is 0.8 of [-2, 2].
    np.testing.assert_allclose(informed.population.means[0][0][0], 0.8)
    records = list(simulate("uniform", ENVIRONMENT, 1))
    assert len(records) == ENVIRONMENT.recruitment.num_steps == 60
    assert min(record.regret for record in records) >= 0
    assert {record.arm for record in records} == {0, 1, 2}
