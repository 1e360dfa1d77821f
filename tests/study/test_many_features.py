"""Studies of many features: nothing overflows, and everything can be asked."""

import resource

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits import Gaussian, Mixture, Study
from cocobandits.populations.mixture import MixtureConfig, MixtureModel
from cocobandits.users.statistics import Statistics
from support.designs import small

SMALL = {"population": Mixture(), "max_blocks": 1}
FEATURES = {f"f{number}": (0.0, 1.0) for number in range(20)}


@pytest.mark.parametrize("policy", ["coids", "gids"])
@pytest.mark.parametrize("noise", [0.05, 0.5])
def test_somebody_extreme_is_served(policy, noise):
    """All features at their ends: particles may expect rewards far beyond the range."""
    arms = [f"a{number}" for number in range(5)]
    study = Study(arms, FEATURES, Gaussian(0.0, 10.0, noise=noise), small(policy, **SMALL), seed=1)
    for user, value in (("low", 0.0), ("high", 1.0)):
        study.enrol(user, dict.fromkeys(FEATURES, value))
        probabilities = study.decide(user).probabilities
        assert sum(probabilities.values()) == pytest.approx(1.0)
        explained = study.explain(user).arms.values()
        for arm in explained:
            assert np.isfinite(arm.interval).all()
            if policy == "coids":
                assert np.isfinite(
                    [
                        arm.rationale.regret,
                        arm.rationale.about_person,
                        arm.rationale.about_population,
                    ]
                ).all()


def test_rewards_far_beyond_the_range_are_believed():
    """Limits allow what the range did not expect; the arm that gave it stays the best."""
    study = Study(
        ["a", "b"],
        {},
        Gaussian(0.0, 10.0, noise=0.5, limits=(-200.0, 200.0)),
        small("coids", **SMALL),
        seed=0,
    )
    study.enrol("anna")
    for reward in (9.0, 20.0, 60.0):
        study.reward(study.decide("anna", eligible=["a"]).id, reward)
    explained = study.explain("anna").arms["a"]
    assert explained.best_probability > 0.5
    assert np.isfinite(
        [explained.rationale.about_person, explained.rationale.about_population]
    ).all()


@pytest.mark.parametrize("rewards", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("num_features", [1, 4, 20])
def test_prior_does_not_widen_with_the_number_of_features(num_features, rewards):
    """At a corner, arm means of 2,000 particles: as wide for many features as for one, and finite.

    Lines of components and the shared one, at the ends of their features, and both constants.
    """
    config = MixtureConfig(2, (None,) * num_features, rewards=rewards, precision="double")
    model = MixtureModel(config)
    generator = np.random.default_rng(0)
    particles = jnp.asarray(generator.normal(size=(2000, model.num_parameters)))
    corner = jnp.ones(num_features)

    def ask(parameters):
        belief = model.posterior(parameters, corner, Statistics.empty(2))
        evidence = model.log_evidence(parameters, corner, Statistics.empty(2).add(0, 2.0))
        return belief.mean(), belief.variance(), belief.best_probability(), evidence

    means, variances, best, evidences = jax.jit(jax.vmap(ask))(particles)
    for found in (means, variances, best, evidences):
        assert np.isfinite(found).all()
    if rewards == "gaussian":
        assert 1.45 < float(np.std(means)) < 1.8


def test_explanations_with_a_gap_fit_the_memory():
    """Three arms with a common factor, at the default settings."""
    context = {"x": (0, 1), "y": (0, 1), "z": bool}
    study = Study(["a", "b", "c"], context, Gaussian(0, 10, noise=0.5), "npm-ts", seed=0)
    study.enrol("full", {"x": 0.5, "y": 0.5, "z": True})
    study.enrol("gap", {"x": 0.5})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for user in ("full", "gap"):
        low, high = study.explain(user).arms["a"].interval
        assert low < high
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"\nan explanation took {grown:.0f} MB")
    assert grown < 1000
