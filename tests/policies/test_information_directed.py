"""The two-arm optimum and the gains of GIDS against slow, literal versions."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits.policies.coco.acquisition import best_mixture
from cocobandits.policies.coco.gids import GlobalInformationDirectedSampling
from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel
from cocobandits.users.statistics import Statistics


def _simplex(num_arms: int, steps: int) -> np.ndarray:
    return np.array(
        [
            point
            for point in itertools.product(range(steps + 1), repeat=num_arms)
            if sum(point) == steps
        ]
    ) / float(steps)


@pytest.mark.parametrize("seed", range(20))
def test_closed_form_is_at_least_as_good_as_a_fine_search(seed):
    """Search all mixtures of three arms on a grid of 1/200."""
    generator = np.random.default_rng(seed)
    regret = generator.uniform(0, 1, 3) * (generator.uniform(size=3) < 0.9)
    gain = generator.exponential(0.3, 3) * (generator.uniform(size=3) < 0.8)
    mixture = np.asarray(best_mixture(jnp.asarray(regret), jnp.asarray(gain)))
    searched = _simplex(3, 200)
    ratios = (searched @ regret) ** 2 / (searched @ gain + 1e-12)
    found = (mixture @ regret) ** 2 / (mixture @ gain + 1e-12)
    assert found <= ratios.min() + 1e-12
    # The grid comes close to the optimum, so the closed form cannot be far below it either.
    assert found >= ratios.min() - 0.02 * (1 + ratios.min())
    np.testing.assert_allclose(mixture.sum(), 1.0, rtol=1e-12)
    assert np.count_nonzero(mixture) <= 2


def test_mixture_of_two_arms_matches_a_hand_calculation():
    """Regrets 1 and 3, gains 1 and 6: q = 3/(1-3) - 2·6/(1-6) = 0.9 on the first arm."""
    mixture = best_mixture(jnp.array([1.0, 3.0]), jnp.array([1.0, 6.0]))
    np.testing.assert_allclose(mixture, [0.9, 0.1], atol=1e-9)


def test_without_information_the_smallest_regret_wins():
    mixture = best_mixture(jnp.array([0.3, 0.1, 0.2]), jnp.zeros(3))
    np.testing.assert_allclose(mixture, [0.0, 1.0, 0.0], atol=1e-12)


def test_an_arm_without_regret_is_played_always():
    mixture = best_mixture(jnp.array([0.3, 0.0, 0.2]), jnp.array([5.0, 0.1, 7.0]))
    np.testing.assert_allclose(mixture, [0.0, 1.0, 0.0], atol=1e-6)


MIXED = np.array([1.0, 3.0, 3.0, 5.0]), np.array([1.0, 6.0, 6.0, 1.0])
TIES = {
    "all arms": (np.ones(4), np.ones(4), [0.25] * 4),
    "two arms": (np.array([1.0, 2.0, 1.0, 2.0]), np.array([1.0, 0.0, 1.0, 0.5]), [0.5, 0, 0.5, 0]),
    "two pairs that share an arm": (*MIXED, [0.9, 0.05, 0.05, 0]),
    "nothing to learn": (np.array([0.2, 0.3, 0.2]), np.zeros(3), [0.5, 0, 0.5]),
    "nothing to lose": (np.zeros(3), np.array([0.1, 0.2, 0.0]), [1 / 3] * 3),
}
mixtures = jax.jit(jax.vmap(best_mixture))


@pytest.mark.parametrize("case", TIES)
def test_ties_are_shared_evenly_in_any_order_of_arms(case):
    regret, gain, expected = TIES[case]
    orders = np.array(list(itertools.permutations(range(len(regret)))))
    found = mixtures(jnp.asarray(regret[orders]), jnp.asarray(gain[orders]))
    np.testing.assert_allclose(found, np.array(expected)[orders], atol=1e-9)


@pytest.mark.parametrize("case", TIES)
def test_ties_but_for_rounding_are_shared_too(case):
    regret, gain, expected = TIES[case]
    noise = 1 + 2e-15 * np.random.default_rng(3).normal(size=(2, 200, len(regret)))
    found = mixtures(jnp.asarray(regret * noise[0]), jnp.asarray(gain * noise[1]))
    np.testing.assert_allclose(found, np.tile(expected, (200, 1)), atol=1e-9)


def test_a_tie_in_fifty_arms_is_shared_by_those_that_tie():
    generator = np.random.default_rng(8)
    regret, gain = generator.uniform(2, 3, 50), generator.uniform(0, 0.1, 50)
    regret[[7, 31, 44]], gain[[7, 31, 44]] = 0.5, 0.2
    found = np.asarray(best_mixture(jnp.asarray(regret), jnp.asarray(gain)))
    np.testing.assert_allclose(found[[7, 31, 44]], 1 / 3, rtol=1e-12)
    np.testing.assert_allclose(found.sum(), 1.0, rtol=1e-12)


def test_gids_gains_match_the_literal_sums():
    """Re-weight by each reward with loops, as the paper writes it, for two arms and 4 particles."""
    model = LogDensityModel(
        LogDensityConfig(2, (), Axis(-1.0, 1.5, 4), reward_noise=0.4, num_modes=6)
    )
    acquisition = GlobalInformationDirectedSampling(model.reward_grid)
    particles = jax.random.normal(jax.random.key(3), (4, 6))
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    statistics = Statistics.empty(2).add(0, 0.6).add(1, -0.3)
    rewards = model.reward_grid.values()
    read = jax.vmap(
        lambda p: acquisition.read(model.posterior(p, jnp.zeros(0), statistics), rewards)
    )
    readings = jax.jit(read)(particles)
    rewards = np.asarray(acquisition.rewards.values())
    predictive = np.asarray(readings.predictive)

    def entropy(w: np.ndarray) -> float:
        return -sum(p * np.log(p) for p in w if p > 0)

    expected = np.zeros((4, 2))
    for particle, arm in itertools.product(range(4), range(2)):
        after = 0.0
        total = predictive[particle, arm].sum()
        for number in range(len(rewards)):
            updated = weights * predictive[:, arm, number]
            after += predictive[particle, arm, number] / total * entropy(updated / updated.sum())
        expected[particle, arm] = max(entropy(weights) - after, 0.0)
    gains_of = jax.jit(acquisition._gains)
    gains = jnp.stack(
        [gains_of(jnp.log(weights), readings.predictive[:, arm]) for arm in range(2)], axis=1
    )
    np.testing.assert_allclose(gains, expected, rtol=1e-9, atol=1e-12)


def test_reward_grid_integrates_predictive_densities():
    """The sum over the rewards of GIDS is one to nine digits, in the paper's preset."""
    model = LogDensityModel(LogDensityConfig(2))
    acquisition = GlobalInformationDirectedSampling(model.reward_grid)
    statistics = Statistics.empty(2).add(0, 0.6)

    @jax.jit
    def predictive(parameters: jax.Array) -> jax.Array:
        belief = model.posterior(parameters, jnp.array([0.3]), statistics)
        return acquisition.read(belief, acquisition.rewards.values()).predictive

    densities = predictive(jax.random.normal(jax.random.key(0), (80,)))
    rewards = acquisition.rewards.values()
    totals = densities.sum(axis=1) * (rewards[1] - rewards[0])
    np.testing.assert_allclose(totals, 1.0, atol=1e-6)
