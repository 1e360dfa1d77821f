"""The worth of a learned prior: a slow loop, and a study that notices nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits import LogDensity, Mixture
from cocobandits.environments.recruitment import Recruitment
from cocobandits.environments.registry import find_environment
from cocobandits.errors import UnsupportedError
from cocobandits.simulation.evaluation import Evaluation
from cocobandits.simulation.loop import open_study, serve
from cocobandits.simulation.world import draw_evaluation, draw_world
from cocobandits.users.statistics import Statistics
from support.designs import small

SEED = 6
ENVIRONMENT = find_environment("diet").recruiting(Recruitment.batches(2, 2, 2))
WORLD = draw_world(ENVIRONMENT, SEED)
GRID = LogDensity(nodes_per_arm=5, num_modes=12)
BATCH = draw_evaluation(ENVIRONMENT, SEED, num_users=10, num_pulls=4)


def trained(policy):
    """Serve four users, so that there is something to have learned."""
    settings = small(policy, population=GRID, num_particles=20)
    study = open_study(settings, ENVIRONMENT, WORLD, SEED)
    for _ in serve(study, ENVIRONMENT, WORLD):
        pass
    return study


def read_best(belief):
    return belief.best_probability()


def slow_probabilities(study, context, statistics):
    """Ask every particle, and weigh its answer by how well it explains the newcomer."""
    users = study._learner.users
    readings = study._learner.policy.read(
        study._learner.state, users, (context, statistics), read_best
    )
    logs = np.array(readings.log_weights)
    posterior = study._learner.state
    if posterior is not None:
        evidence = jax.vmap(study._learner.policy.model.log_evidence, (0, None, None))
        logs += np.asarray(jax.jit(evidence)(posterior.particles, context, statistics))
    shares = np.exp(logs - logs.max())
    return shares @ np.asarray(readings.values) / shares.sum()


def slow_evaluation(study, batch):
    """Pull by pull in reward units, with lists and loops."""
    low, high = ENVIRONMENT.rewards.range
    losses = []
    for user, context in enumerate(batch.cohort.contexts):
        encoded = jnp.array([float(ENVIRONMENT.context["age"].index(context["age"]))])
        means = batch.cohort.arm_means[user]
        statistics, lost = Statistics.empty(3), 0.0
        for pull in range(batch.draws.shape[1]):
            probabilities = slow_probabilities(study, encoded, statistics)
            arm, reached = 0, probabilities[0]
            while batch.draws[user, pull] >= reached and arm < 2:
                arm += 1
                reached += probabilities[arm]
            lost += max(means) - means[arm]
            reward = batch.rewards[user, pull, arm]
            statistics = statistics.add(arm, float((reward - (low + high) / 2) * 4 / (high - low)))
        losses.append(lost)
    return sum(losses) / len(losses)


@pytest.mark.parametrize("policy", ["ind-ts", "oracle-ts", "npm-ts"])
def test_evaluation_matches_a_slow_loop(policy):
    study = trained(policy)
    expected = slow_evaluation(study, BATCH)
    assert expected > 0
    assert Evaluation(BATCH).regret(study) == pytest.approx(expected, rel=1e-12)


def test_evaluation_orders_ignorance_and_truth():
    """The truth costs a newcomer much less than knowing nothing."""
    batch = draw_evaluation(ENVIRONMENT, 1, num_users=60, num_pulls=4)
    losses = {
        policy: Evaluation(batch).regret(open_study(policy, ENVIRONMENT, WORLD, 0))
        for policy in ("ind-ts", "oracle-ts")
    }
    assert losses["oracle-ts"] < 0.6 * losses["ind-ts"]


@pytest.mark.parametrize("policy", ["npm-ts", "mtts"])
def test_evaluation_changes_nothing(policy):
    """Two equal studies, one of them evaluated: the same state and decisions, bit for bit."""
    evaluated, left_alone = trained(policy), trained(policy)
    newcomers = Evaluation(BATCH)
    first = newcomers.regret(evaluated)
    assert newcomers.regret(evaluated) == first
    learned = ((study._learner.users, study._learner.state) for study in (evaluated, left_alone))
    for one, other in zip(*map(jax.tree.leaves, learned), strict=True):
        np.testing.assert_array_equal(one, other)
    assert evaluated.users == left_alone.users
    for study in (evaluated, left_alone):
        study.enrol("next", {"age": "old"})
        for value in (0.3, 2.4):
            study.reward(study.decide("next").id, value)
    assert evaluated.decide("next") == left_alone.decide("next")
    # The prior moved with those rewards, and is measured again.
    assert newcomers.regret(evaluated) != first
    assert newcomers.regret(left_alone) != first


def test_batch_is_fixed_by_the_seed_alone():
    again = draw_evaluation(ENVIRONMENT, SEED, 10, 4)
    other_plan = draw_evaluation(find_environment("diet"), SEED, 10, 4)
    for batch in (again, other_plan):
        for one, other in zip(jax.tree.leaves(BATCH), jax.tree.leaves(batch), strict=True):
            np.testing.assert_array_equal(one, other)
    other_seed = draw_evaluation(ENVIRONMENT, SEED + 1, 10, 4)
    assert not np.array_equal(other_seed.cohort.arm_means, BATCH.cohort.arm_means)
    assert not np.array_equal(other_seed.draws, BATCH.draws)
    assert BATCH.rewards.shape == (10, 4, 3)
    assert BATCH.draws.shape == (10, 4)


def test_newcomers_are_not_the_users_of_the_run():
    trained_on = {tuple(means) for means in WORLD.cohort.arm_means}
    assert trained_on.isdisjoint(tuple(means) for means in BATCH.cohort.arm_means)


def test_policy_without_beliefs_cannot_be_evaluated():
    study = open_study("uniform", ENVIRONMENT, WORLD, 0)
    with pytest.raises(UnsupportedError, match="holds beliefs; got policy='uniform'"):
        Evaluation(BATCH).regret(study)


def test_newcomers_with_gaps_are_served_like_anybody_else():
    """Gaps make beliefs of another shape: together, and one newcomer at a time."""
    environment = find_environment("survey-missing").recruiting(Recruitment.batches(1, 2, 2))
    mixture = Mixture(num_components=2, rank=0)
    settings = small("npm-ts", population=mixture, num_particles=10)
    study = open_study(settings, environment, draw_world(environment, SEED), SEED)
    batch = draw_evaluation(environment, SEED, num_users=8, num_pulls=3)
    gaps = {sum(value is None for value in each.values()) for each in batch.cohort.contexts}
    assert 0 in gaps
    assert len(gaps) > 1
    alone = []
    for user in range(8):
        cohort = batch.cohort._replace(
            contexts=[batch.cohort.contexts[user]],
            arm_means=batch.cohort.arm_means[user : user + 1],
        )
        rest = {"rewards": batch.rewards[user : user + 1], "draws": batch.draws[user : user + 1]}
        alone.append(Evaluation(batch._replace(cohort=cohort, **rest)).regret(study))
    assert Evaluation(batch).regret(study) == pytest.approx(np.mean(alone), rel=1e-6)
