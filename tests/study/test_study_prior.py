"""What a study believes of somebody new, and settings that survive the disk."""

import json
import zipfile

import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits import MTTS, Gaussian, LogDensity, Study
from cocobandits.errors import InputError, UnknownNameError, UnsupportedError
from cocobandits.policies.plain import from_plain
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from support.designs import small

GENERATOR = np.random.default_rng(9)
# Terms: one, x, and two categories.
PRIOR = ConditionalMixture.from_arrays(
    GENERATOR.normal(size=(2, 4)),
    0.6 * GENERATOR.normal(size=(2, 2, 4)),
    0.3 * GENERATOR.normal(size=(2, 2, 3, 4)),
)
DESIGN = tuple(tuple(map(tuple, arm)) for arm in GENERATOR.normal(size=(2, 3, 4)).tolist())
# In double precision, since averages are compared to ten digits.
GRID = LogDensity(nodes_per_arm=5, num_modes=12, precision="double")
ANNA = {"x": 0.5, "sex": "m"}


def settings_of(policy):
    if policy == "mtts":
        return MTTS(DESIGN, 0.2, 0.7, 0.3)
    return small(policy, PRIOR, population=GRID, num_particles=20, user_deviation=0.4)


def make_study(policy) -> Study:
    context = {"x": (0.0, 4.0), "sex": ["f", "m"]}
    study = Study(["a", "b"], context, Gaussian(10.0, 30.0, noise=0.5), settings_of(policy), seed=0)
    study.enrol("anna", ANNA)
    study.enrol("bob", {"x": 3.0, "sex": "f"})
    for user, value in (("anna", 24.0), ("bob", 14.0), ("anna", 18.0)):
        study.reward(study.decide(user).id, value)
    return study


@pytest.mark.parametrize("policy", ["mtts", "hierts", "oracle-ts"])
def test_settings_with_prior_and_design_survive_the_disk(policy, tmp_path):
    study = make_study(policy)
    study.save(tmp_path / "one.study")
    loaded = Study.load(tmp_path / "one.study")
    assert loaded.design == study.design
    assert loaded.design.policy == settings_of(policy)
    assert hash(loaded.design.policy) == hash(settings_of(policy))
    for copy in (study, loaded):
        copy.reward(copy.decide("bob").id, 21.0)
    assert loaded.decide("bob") == study.decide("bob")
    np.testing.assert_array_equal(loaded.prior(ANNA).mean(), study.prior(ANNA).mean())


def test_saved_text_names_its_version_and_the_prior(tmp_path):
    make_study("oracle-ts").save(tmp_path / "one.study")
    with zipfile.ZipFile(tmp_path / "one.study") as archive:
        text = json.loads(archive.read("study.json"))
        started = json.loads(archive.read("events.jsonl").splitlines()[0])
    assert text["version"] == 7
    assert started["design"]["policy"]["kind"] == "oracle-ts"
    assert from_plain(started["design"]["policy"]["population"]) == PRIOR


@pytest.mark.parametrize("policy", ["npm-ts", "mtts"])
def test_population_shows_the_average_belief_about_newcomers(policy):
    """Bins of the density against the distribution function that every particle reports."""
    study = make_study(policy)
    population = study.population(ANNA)
    edges = jnp.linspace(*study._learner.policy.mean_range, len(population.edges))
    np.testing.assert_allclose(population.edges, 20.0 + 5.0 * np.asarray(edges), atol=1e-9)

    def read(belief):
        return belief.cumulative(edges)

    encoded = jnp.array([-0.75, 1.0])  # 0.5 on the scale from 0 to 4, and the second category
    empty = study._learner.users.of(200)[1]
    users = study._learner.users
    log_weights, cumulative = study._learner.policy.read(
        study._learner.state, users, (encoded, empty), read
    )
    shares = np.exp(log_weights) / np.exp(log_weights).sum()
    expected = np.diff(np.tensordot(shares, np.asarray(cumulative), axes=1), axis=1)
    for number, arm in enumerate(study.design.arms):
        width = population.edges[1] - population.edges[0]
        np.testing.assert_allclose(population.marginal[arm] * width, expected[number], atol=1e-10)
    np.testing.assert_allclose(
        study.prior(ANNA).cumulative(edges),
        np.tensordot(shares, np.asarray(cumulative), axes=1),
        atol=1e-10,
    )


def test_prior_is_a_snapshot():
    """Conditioning it teaches the study nothing, and the study's rewards do not reach it."""
    study = make_study("npm-ts")
    before = study.prior(ANNA)
    mean = np.array(before.mean())
    statistics = study._learner.users.of(0)[1]
    assert np.abs(np.asarray(before.condition(statistics).mean()) - mean).max() > 0.01
    np.testing.assert_array_equal(study.prior(ANNA).mean(), mean)
    study.reward(study.decide("bob").id, 29.0)
    assert not np.array_equal(study.prior(ANNA).mean(), mean)
    np.testing.assert_array_equal(before.mean(), mean)


@pytest.mark.parametrize("ask", [Study.prior, Study.population])
def test_questions_about_newcomers_are_refused(ask):
    study = make_study("ind-ts")
    with pytest.raises(InputError, match=r"from 0 to 4; got x=5.0"):
        ask(study, {"x": 5.0})
    with pytest.raises(UnknownNameError, match="feature='height'"):
        ask(study, ANNA | {"height": 3})
    with pytest.raises(UnsupportedError, match="holds beliefs; got policy='uniform'"):
        ask(make_study("uniform"), ANNA)
