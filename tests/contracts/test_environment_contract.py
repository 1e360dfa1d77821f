"""The same checks for every environment in the registry."""

import numpy as np
import pytest

from cocobandits import simulate
from cocobandits.environments.recruitment import Recruitment
from cocobandits.environments.registry import environment_names, find_environment
from cocobandits.errors import UnknownNameError
from cocobandits.simulation.loop import open_study
from cocobandits.simulation.world import draw_world


@pytest.fixture(params=environment_names())
def environment(request):
    return find_environment(request.param)


def test_users_fit_the_declaration(environment):
    """Every context drawn is one that a study of this environment accepts."""
    study = open_study("uniform", environment, draw_world(environment, 0), 0)
    generator = np.random.default_rng(0)
    cohort = environment.draw_users(generator, 200, environment.draw_shared(generator))
    assert cohort.arm_means.shape == (200, len(environment.arms))
    for number, context in enumerate(cohort.contexts):
        study.enrol(str(number), context)


def test_seed_fixes_the_world(environment):
    first, again, other = (draw_world(environment, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.cohort.arm_means, again.cohort.arm_means)
    np.testing.assert_array_equal(first.rewards, again.rewards)
    assert not np.array_equal(first.rewards, other.rewards)


def test_a_whole_run_yields_one_record_per_interaction(environment):
    records = list(simulate("uniform", environment, 0))
    plan = environment.recruitment
    assert [record.step for record in records] == list(range(plan.num_steps))
    served = np.bincount([record.user for record in records])
    np.testing.assert_array_equal(served, np.full(plan.num_users, plan.steps_per_user))
    assert min(record.regret for record in records) >= 0


def test_shared_draw_fits_users_and_population(environment):
    """Two seeds share the same population unless nature draws something once per run."""
    worlds = [draw_world(environment, seed) for seed in (1, 1, 2)]
    assert worlds[0].population == worlds[1].population
    has_shared = environment.draw_shared(np.random.default_rng(0)).size > 0
    assert (worlds[0].population != worlds[2].population) == has_shared
    assert worlds[0].population.num_arms == len(environment.arms)


def test_another_plan_leaves_the_registered_environment_alone(environment):
    plan = Recruitment.schedule([0, 4], 2)
    changed = environment.recruiting(plan)
    assert changed.recruitment == plan
    assert environment.recruitment != plan
    assert draw_world(changed, 3).cohort.arm_means.shape == (2, len(environment.arms))
    assert (changed.name, changed.arms) == (environment.name, environment.arms)


def test_unknown_environment_lists_the_known_ones():
    known = "Known: mixture, partial, lmm, lmm-misspecified, diet"
    with pytest.raises(UnknownNameError, match=f"environment='moon'. {known}"):
        find_environment("moon")
