"""What the papers' populations look like, in shares that can be computed by other means."""

import numpy as np
import pytest

from cocobandits.environments.registry import find_environment


def test_mixture_matches_its_moments_and_best_arms():
    """Arms 1 and 2 are best for about half of the users each, arm 3 for nobody."""
    cohort = find_environment("mixture").draw_users(np.random.default_rng(0), 40_000)
    x = np.array([context["x"] for context in cohort.contexts])
    share = 1 / (1 + np.exp(-x))
    expected = share * 1.8 + (1 - share) * 1.0
    error = (cohort.arm_means[:, 0] - expected).std() / np.sqrt(len(x))
    assert abs((cohort.arm_means[:, 0] - expected).mean()) < 4 * error
    best = np.bincount(cohort.arm_means.argmax(axis=1), minlength=3) / len(x)
    np.testing.assert_allclose(best, [0.496, 0.504, 0.0], atol=4 * 0.5 / np.sqrt(len(x)))


def test_mixture_spread_grows_with_the_context():
    cohort = find_environment("mixture").draw_users(np.random.default_rng(1), 40_000)
    x = np.array([context["x"] for context in cohort.contexts])
    kinds = np.array([-1.0, -1.8])
    nearest = np.abs(cohort.arm_means[:, 2][:, None] - kinds[None]).argmin(axis=1)
    residual = cohort.arm_means[:, 2] - kinds[nearest]
    assert residual[x < -0.9].std() < 0.13
    assert residual[x > 0.9].std() > 0.24


def test_plan_one_is_informative_but_hardly_ever_best():
    cohort = find_environment("diet").draw_users(np.random.default_rng(2), 20_000)
    means = cohort.arm_means
    assert (means.argmax(axis=1) == 0).mean() < 0.005
    is_high = means[:, 2] > means[:, 1]
    assert ((means[:, 0] > 1.5) == is_high).mean() > 0.999
    ages = np.array([context["age"] for context in cohort.contexts])
    middle = ages == "middle-aged"
    assert abs(is_high[middle].mean() - 0.5) < 0.03
    assert is_high[ages == "young"].mean() > 0.85
    # Trying plan 1 first costs a middle-aged person less than a guess between the other two.
    regret = means.max(axis=1, keepdims=True) - means
    assert regret[middle, 0].mean() < regret[middle, 1:].mean(axis=0).min() - 0.2


@pytest.mark.parametrize(
    ("name", "most"), [("mixture", 0.005), ("partial", 0.0), ("lmm-misspecified", 0.02)]
)
def test_hardly_anybody_is_outside_of_the_declared_range(name, most):
    """The paper's range of [-2, 2] would cut off a fifth to a quarter, but for `partial`."""
    environment = find_environment(name)
    means = environment.draw_users(np.random.default_rng(5), 100_000).arm_means
    low, high = environment.rewards.range
    assert np.mean(((means < low) | (means > high)).any(axis=1)) <= most
    assert (np.abs(means) > 2).any(axis=1).mean() > 0.2 or name == "partial"


def test_hardly_any_run_of_the_mixed_model_is_outside_of_the_declared_range():
    """Everybody of a run shares the coefficients; therefore many runs are drawn."""
    environment = find_environment("lmm")
    generator = np.random.default_rng(6)
    means = np.concatenate(
        [
            environment.draw_users(generator, 20, environment.draw_shared(generator)).arm_means
            for _ in range(5_000)
        ]
    )
    low, high = environment.rewards.range
    assert np.mean(((means < low) | (means > high)).any(axis=1)) < 0.025
    assert (np.abs(means) > 2).any(axis=1).mean() > 0.15
