"""The same checks for every environment in the registry."""

import numpy as np
import pytest

from cocobandits import CocoSettings
from cocobandits.environments.registry import build_environment, environment_names
from cocobandits.errors import UnknownNameError
from cocobandits.simulation.loop import draw_world, open_study, simulate


@pytest.fixture(params=environment_names())
def environment(request):
    return build_environment(request.param)


def test_users_fit_the_declaration(environment):
    """Every context drawn is one that a study of this environment accepts."""
    study = open_study(environment, "uniform", 0, CocoSettings())
    cohort = environment.draw_users(np.random.default_rng(0), 200)
    assert cohort.arm_means.shape == (200, len(environment.arms))
    for number, context in enumerate(cohort.contexts):
        study.enrol(str(number), context)


def test_seed_fixes_the_world(environment):
    first, again, other = (draw_world(environment, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.cohort.arm_means, again.cohort.arm_means)
    np.testing.assert_array_equal(first.noise, again.noise)
    assert not np.array_equal(first.noise, other.noise)


def test_a_whole_run_yields_one_record_per_interaction(environment):
    study = open_study(environment, "uniform", 0, CocoSettings())
    records = list(simulate(study, environment, draw_world(environment, 0)))
    plan = environment.recruitment
    assert [record.step for record in records] == list(range(plan.num_steps))
    served = np.bincount([record.user for record in records])
    np.testing.assert_array_equal(served, np.full(plan.num_users, plan.steps_per_user))
    assert min(record.regret for record in records) >= 0


def test_unknown_environment_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"environment='moon'. Known: diet, mixture"):
        build_environment("moon")
