"""Contexts of which not all is known: what is taken, filled in later, and shown again."""

import jax
import numpy as np
import pytest

from cocobandits import Gaussian, LogDensity, Study
from cocobandits.errors import ConfigurationError, ConflictError, InputError, UnknownNameError
from cocobandits.study.context import Feature
from cocobandits.study.users import NUM_POINTS
from support.designs import small

SMALL = {
    # In double precision, since log-evidences are compared.
    "population": LogDensity(nodes_per_arm=5, num_modes=12, precision="double"),
    "num_particles": 20,
    "ess_threshold": 0.02,
    "stage_threshold": 0.01,
}
CONTEXT = {"age": (20.0, 60.0), "sex": ["f", "m", "x"], "smoker": bool}
ANNA = {"age": 34.1, "sex": "m", "smoker": True}


def make_study(policy="mtts", context=CONTEXT) -> Study:
    return Study(["a", "b"], context, Gaussian(0, 4, noise=0.3), small(policy, **SMALL), seed=3)


def table_of(study):
    return study._learner.users


def leaves_of(study):
    return [
        np.asarray(leaf) for leaf in jax.tree.leaves((study._learner.users, study._learner.state))
    ]


def assert_same_bits(left, right):
    for one, other in zip(leaves_of(left), leaves_of(right), strict=True):
        assert one.tobytes() == other.tobytes()


def serve(study, user, value):
    study.reward(study.decide(user).id, value)


def test_truth_value_is_a_feature_of_two_categories():
    feature = Feature.declare("smoker", bool)
    assert feature.num_categories == 2
    for given in (True, np.True_):
        assert feature.read(given) == feature.standardise(feature.read(given)) == 1.0
    assert feature.read(np.bool_(False)) == 0.0
    assert feature.show(1.0) is True
    for wrong in (1, 0.0, "True", [True]):
        with pytest.raises(InputError, match="Expected True or False; got smoker="):
            feature.read(wrong)
    assert make_study("uniform").design.problem().features == (None, 3, 2)


@pytest.mark.parametrize("declared", [int, "bool", True, [True, False], (True, False), None])
def test_other_types_are_no_declaration(declared):
    with pytest.raises(ConfigurationError, match="or bool; got smoker="):
        Feature.declare("smoker", declared)


def test_context_is_shown_as_it_was_given():
    study = make_study("uniform")
    study.enrol("anna", ANNA)
    assert study.context("anna") == ANNA
    assert study.context("anna")["smoker"] is True
    study.enrol("bob", {"sex": None, "age": 20})
    assert study.context("bob") == {"age": 20.0, "sex": None, "smoker": None}
    study.enrol("carl")
    assert study.context("carl") == dict.fromkeys(CONTEXT)
    with pytest.raises(UnknownNameError, match="user='dora'"):
        study.context("dora")


def test_missing_values_reach_the_policy_as_points():
    """Ages seen: 34.1 alone, with half of the weight; sexes 1.33, 5.33, 1.33 of eight points."""
    study = make_study("uniform")
    study.enrol("anna", ANNA)
    np.testing.assert_allclose(table_of(study).of(0)[0], [-0.295, 1.0, 1.0], rtol=1e-15)
    study.enrol("bob", {"smoker": False})
    points = np.asarray(table_of(study).of(1)[0])
    assert points.shape == (NUM_POINTS, 3)
    assert np.count_nonzero(np.isclose(points[:, 0], -0.295)) >= 4
    counts = np.bincount(points[:, 1].astype(int), minlength=3)
    assert np.abs(counts - np.array([4, 16, 4]) / 3).max() < 1
    np.testing.assert_array_equal(points[:, 2], 0.0)
    # Whoever is known is the same at every point.
    known = np.asarray(table_of(study).of(0)[0])
    np.testing.assert_allclose(known, [[-0.295, 1.0, 1.0]] * NUM_POINTS, rtol=1e-15)


def test_completion_follows_what_is_seen_at_the_users_own_updates():
    study = make_study()
    study.enrol("bob", {"sex": "f", "smoker": True})
    before = np.asarray(table_of(study).of(0)[0])
    for number in range(30):
        study.enrol(f"old-{number}", ANNA | {"age": 55})
    study.enrol("gone", ANNA | {"age": 21})
    study.withdraw("gone")
    np.testing.assert_array_equal(table_of(study).of(0)[0], before)
    serve(study, "bob", 2.0)
    after = np.asarray(table_of(study).of(0)[0])
    # One of eight points may be left to the prior's user.
    assert np.median(after[:, 0]) == pytest.approx(0.75)
    assert np.mean(after[:, 0]) > 0.6 > np.mean(before[:, 0]) + 0.5
    np.testing.assert_array_equal(after[:, 1:], before[:, 1:])
    serve(study, "old-3", 2.0)
    np.testing.assert_array_equal(table_of(study).of(0)[0], after)


def test_only_contexts_with_missing_values_are_completed_for_an_update(monkeypatch):
    study = make_study("uniform")
    completed = []
    find_context = study._state._context

    def watch(user):
        completed.append(find_context(user))
        return completed[-1]

    monkeypatch.setattr(study._state, "_context", watch)
    study.enrol("anna", ANNA)
    study.enrol("bob", {"age": 30})
    serve(study, "anna", 1.0)
    serve(study, "bob", 1.0)
    study.update_context("bob", {"sex": "f", "smoker": False})
    serve(study, "bob", 1.0)
    first, second, third = completed
    assert first is third is None
    assert second.shape == (NUM_POINTS, 3)


def test_late_values_give_what_knowing_them_would_have_given():
    """The posterior of mtts is exact: it must not depend on when a context became known."""
    late, prompt = make_study(), make_study()
    late.enrol("anna", {"age": 34.1})
    prompt.enrol("anna", ANNA)
    for study in (late, prompt):
        study._learner.policy.probabilities = lambda *_: np.array([0.5, 0.5])  # the same arms
        for value in (3.0, 1.5):
            serve(study, "anna", value)
    assert not np.allclose(late._learner.state.sums.shift, prompt._learner.state.sums.shift)
    late.update_context("anna", {"sex": "m", "smoker": None})
    late.update_context("anna", {"smoker": True})
    np.testing.assert_allclose(
        late._learner.state.sums.shift, prompt._learner.state.sums.shift, atol=1e-9
    )
    np.testing.assert_allclose(
        late._learner.state.sums.precision, prompt._learner.state.sums.precision, atol=1e-9
    )
    assert late.context("anna") == prompt.context("anna")


def test_evidence_is_an_average_over_points_and_changes_exactly():
    """Weigh the particles by hand: after rewards, and once a late value is known."""
    study = make_study("npm-ts", context={"age": (20.0, 60.0)})
    study.enrol("old", {"age": 50})
    study.enrol("anna", {})
    points, _ = table_of(study).of(1)
    serve(study, "anna", 3.0)
    table, particles = table_of(study), study._learner.state.particles
    np.testing.assert_array_equal(table.of(1)[0], points)
    evidence = jax.jit(jax.vmap(study._learner.policy.model.log_evidence_at, (0, None, None)))
    each = np.array([evidence(particles, point, table.of(1)[1]) for point in points])
    expected = np.logaddexp.reduce(each, axis=0) - np.log(NUM_POINTS)
    found = study._learner.state.log_weights
    np.testing.assert_allclose(found, expected - np.logaddexp.reduce(expected), atol=1e-8)
    study.update_context("anna", {"age": 25})
    # Learned again from the prior, which plain averages over many draws from it agree with.
    draws = jax.random.normal(jax.random.key(1), (20000, particles.shape[1]))
    known = np.array(evidence(draws, np.array([-0.75]), table.of(1)[1]))
    expected = np.logaddexp.reduce(known) - np.log(len(draws))
    assert abs(study.log_evidence - expected) < 0.7


def test_questions_about_newcomers_average_over_what_is_missing():
    """The mean of a mixture of eight beliefs, each at one point."""
    study = make_study("npm-ts", context={"age": (20.0, 60.0)})
    for user, age in (("anna", 30), ("bob", 55)):
        study.enrol(user, {"age": age})
        serve(study, user, 3.0 if user == "anna" else 1.0)
    points = study._state.users.complete(np.array([np.nan]))
    ages = 40 + 20 * points[:, 0]
    expected = np.mean([study.prior({"age": age}).mean() for age in ages], axis=0)
    for asked in ({}, {"age": None}, None):
        np.testing.assert_allclose(study.prior(asked).mean(), expected, atol=1e-6)
    densities = [study.population({"age": age}).marginal["a"] for age in ages]
    found = study.population().marginal["a"]
    np.testing.assert_allclose(found, np.mean(densities, axis=0), atol=1e-6)
    study.enrol("dora")
    explained = study.explain("dora")
    assert sum(arm.best_probability for arm in explained.arms.values()) == pytest.approx(1.0)


def test_enrolment_again_is_harmless_while_nothing_contradicts():
    study = make_study()
    study.enrol("bob", {"age": 30})
    serve(study, "bob", 1.0)
    before = leaves_of(study)
    study.enrol("bob", {"age": 30, "sex": None})
    study.update_context("bob", {})
    study.update_context("bob", {"age": 30, "sex": None})
    assert all(map(np.array_equal, before, leaves_of(study)))
    study.update_context("bob", {"sex": "x"})
    study.update_context("bob", {"smoker": False})
    after = leaves_of(study)
    for again in (
        {"age": 30},
        {"age": 30, "sex": "x"},
        {"age": 30, "sex": "x", "smoker": False},
    ):
        study.enrol("bob", again)
    study.update_context("bob", {"smoker": False})
    assert all(map(np.array_equal, after, leaves_of(study)))
    assert study.users == ("bob",)


CALL_ERRORS = [
    (
        lambda s: s.enrol("bob", {"age": 30, "sex": "f"}),
        ConflictError,
        r"user='bob' enrolled with; got .*'sex': 'f'.*update_context\('bob', ...\)",
    ),
    (lambda s: s.enrol("bob", {}), ConflictError, r"got \{'age': None, .*another id"),
    (lambda s: s.enrol("bob", {"age": 31}), ConflictError, r"got \{'age': 31.0"),
    (
        lambda s: s.update_context("bob", {"age": 31, "sex": "f"}),
        ConflictError,
        r"missing so far; got age=31 for user='bob', for which 30.0 is recorded. Enrol a second .*"
        r"or withdraw",
    ),
    (lambda s: s.update_context("bob", {"sex": "y"}), InputError, r"got sex='y'"),
    (lambda s: s.update_context("bob", {"sex": float("nan")}), InputError, r"got sex=nan"),
    (lambda s: s.update_context("bob", {"smoker": 1}), InputError, r"got smoker=1"),
    (lambda s: s.update_context("bob", {"height": 3}), UnknownNameError, r"feature='height'"),
    (lambda s: s.update_context("bob", None), InputError, r"mapping from feature to value"),
    (lambda s: s.update_context("nobody", {"age": 30}), UnknownNameError, r"user='nobody'"),
    (lambda s: s.update_context("gone", {"age": 30}), UnknownNameError, r"user='gone'"),
    (lambda s: s.population({"age": 61}), InputError, r"20 to 60; got age=61"),
]


@pytest.mark.parametrize(("call", "error", "message"), CALL_ERRORS)
def test_call_is_refused_and_changes_nothing(call, error, message):
    study = make_study()
    study.enrol("bob", {"age": 30})
    study.enrol("gone", {"age": 30})
    study.withdraw("gone")
    serve(study, "bob", 1.0)
    before, updates = leaves_of(study), study._learner.num_updates
    with pytest.raises(error, match=message):
        call(study)
    assert all(map(np.array_equal, before, leaves_of(study)))
    assert study.context("bob") == {"age": 30.0, "sex": None, "smoker": None}
    assert study._learner.num_updates == updates


def test_late_value_has_an_update_of_its_own(tmp_path):
    study = make_study("coids", context={"age": (20.0, 60.0)})
    study.enrol("bob", {})
    serve(study, "bob", 1.0)
    study.update_context("bob", {"age": 30})
    assert study._learner.num_updates == 2
    study.save(tmp_path / "one.study")
    loaded = Study.load(tmp_path / "one.study")
    assert loaded.context("bob") == {"age": 30.0}
    assert_same_bits(loaded, study)
    loaded.enrol("bob", {})
    assert loaded.decide("bob") == study.decide("bob")


def test_users_who_are_missing_values_survive_the_disk(tmp_path):
    """Also those who have withdrawn, and the distributions that the others' values make."""
    study = make_study("mtts")
    for number, context in enumerate([ANNA, {"age": 30}, {}, {"sex": "f"}, ANNA | {"age": 59}]):
        study.enrol(f"user-{number}", context)
        serve(study, f"user-{number}", 1.0 + number / 2)
    study.withdraw("user-4")
    study.save(tmp_path / "one.study")
    loaded = Study.load(tmp_path / "one.study")
    for copy in (study, loaded):
        copy.enrol("new", {"smoker": False})
        serve(copy, "new", 2.0)
        serve(copy, "user-2", 2.0)
    assert_same_bits(loaded, study)
    assert loaded.decide("new") == study.decide("new")
    assert loaded.context("user-2") == study.context("user-2")
