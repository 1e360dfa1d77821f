"""Every policy's settings class is its record, and one from outside the package is as good."""

import json
import re
from dataclasses import FrozenInstanceError, asdict, dataclass, fields, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits import (
    GIDS,
    MTTS,
    CoIDS,
    Gaussian,
    GradBand,
    LogDensity,
    Mixture,
    NpmTS,
    OraclePlan,
    OracleTS,
    PaperLogDensity,
    RobustAgg,
    Study,
    policy_names,
    simulate,
)
from cocobandits.environments.base import NOTHING_SHARED, Cohort, Environment
from cocobandits.environments.recruitment import Recruitment
from cocobandits.errors import (
    ConfigurationError,
    InputError,
    UnknownNameError,
    UnsupportedError,
)
from cocobandits.inference.smc import SmcConfig
from cocobandits.policies.base import PlainPolicy, Problem
from cocobandits.policies.coco.populations import POPULATIONS
from cocobandits.policies.description import Line, PolicySettings, build
from cocobandits.policies.plain import from_plain, to_plain
from cocobandits.policies.registry import POLICIES, find_policy
from cocobandits.populations.known.beta_mixture import BetaMixture
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture

LEARNERS = (CoIDS, NpmTS, GIDS)
PROBLEM = Problem(2, (None,), (-2.0, 2.0), 0.2)


# The record of every policy.


@pytest.fixture(params=POLICIES)
def kind(request):
    return POLICIES[request.param]


def test_record_is_complete(kind):
    assert re.fullmatch(r"[a-z-]+", kind.name)
    assert kind.label
    assert isinstance(kind.line, Line)
    assert set(kind.rewards) <= {"gaussian", "bernoulli"} != set()
    assert kind.assumes in (None, "nonparametric", "gaussian", "no-sharing")
    for row in (kind.table_one, kind.published):
        assert re.fullmatch(r"([+/-]{6})?", row)


def test_labels_and_lines_differ():
    assert len({kind.label for kind in POLICIES.values()}) == len(POLICIES)
    assert len({(kind.line.color, kind.line.dashes) for kind in POLICIES.values()}) == len(POLICIES)


def test_settings_are_frozen_and_hashable(kind):
    settings = kind()
    assert hash(settings) == hash(kind())
    assert settings == kind()
    for each in fields(settings):
        with pytest.raises(FrozenInstanceError):
            setattr(settings, each.name, getattr(settings, each.name))


def test_name_selects_the_default_settings(kind):
    assert find_policy(kind.name) == kind()
    assert find_policy(kind()) == kind()


def test_study_takes_a_name():
    study = Study(["a", "b"], {}, Gaussian(0, 1, noise=0.1), "mtts", seed=0)
    assert study.design.policy == MTTS()


@pytest.mark.parametrize("rewards", ["gaussian", "bernoulli"])
def test_policy_says_which_rewards_it_learns_from(kind, rewards):
    """A policy that names a kind of rewards is built for it, and refused for others."""
    noise = 0.2 if rewards == "gaussian" else None
    problem = replace(PROBLEM, rewards=rewards, reward_noise=noise)
    if rewards not in kind.rewards:
        with pytest.raises(ConfigurationError, match=f"rewards for {kind.name}; got {rewards} one"):
            build(kind(), problem)
    elif kind not in (OracleTS, OraclePlan):
        settings = kind() if kind not in LEARNERS else kind(Mixture(2), num_particles=4)
        assert build(settings, problem).problem == problem


# To plain values, and back.


def through_json(settings):
    return from_plain(json.loads(json.dumps(to_plain(settings))))


def changed(kind):
    """Change every number and choice of a class of settings."""

    def other(value):
        if isinstance(value, str):
            return {"rewards": "contexts", "single": "double"}[value]
        return value if value is None else value + 1 if type(value) is int else 0.9 * value + 0.01

    return kind(**{each.name: other(getattr(kind(), each.name)) for each in fields(kind)})


CONDITIONAL = ConditionalMixture.from_arrays(
    [[0.1, 0.2]], [[[0.5, -0.1], [0.1, 0.3]]], [[[[0.2, 0.0]], [[0.1, 0.4]]]]
)
CHANCES = BetaMixture([[0.0], [0.5]], [[2, 1], [1, 4]], [[1, 3], [2, 2]])
WITH_PARTS = [
    CoIDS(Mixture(3, 1, "double"), move_every=4, steps_per_user=5),
    NpmTS(LogDensity(nodes_per_arm=5, context_points=None)),
    GIDS(PaperLogDensity(nodes_per_arm=None, precision="double")),
    MTTS([[[1.0, 0.5]], [[0.1, 1 / 3]]], prior_users=3.0),
    OracleTS(CONDITIONAL),
    OracleTS(CHANCES),
    OraclePlan(CONDITIONAL, 5),
]


@pytest.mark.parametrize(
    "settings",
    [
        *[kind() for kind in (*POLICIES.values(), *POPULATIONS.values())],
        *[changed(kind) for kind in (*POLICIES.values(), *POPULATIONS.values())],
        *WITH_PARTS,
    ],
    ids=lambda settings: settings.name,
)
def test_settings_come_back_from_json(settings):
    copy = through_json(settings)
    assert copy == settings
    assert type(copy) is type(settings)
    assert hash(copy) == hash(settings)


def test_unknown_kind_names_the_remedy():
    with pytest.raises(UnknownNameError, match=r"'mine'.*Study.load\(path, policies="):
        from_plain({"kind": "mine"})


# Values that are refused.

# What JSON, a command line or a typing slip may bring.
WRONG = (None, object(), "three", "0.5", [], [None], {}, float("nan"), float("inf"), -1e300)
FURTHER = (10**400, 1j, Mixture)
OPTIONAL = ("population", "move_every", "steps_per_user", "prior_users", "rank")
OPTIONAL += ("nodes_per_arm", "context_points")
# None stands for what a simulation knows.
KNOWN = {
    GradBand: ("horizon",),
    RobustAgg: ("horizon",),
    MTTS: ("coefficient_mean", "coefficient_deviation", "user_deviation"),
}
INFERENCE = {each.name for each in fields(SmcConfig)}
FIELDS = [
    # A learner hands the fields of its inference on, and annotations are checked there in tests.
    pytest.param(
        SmcConfig if issubclass(kind, LEARNERS) and each.name in INFERENCE else kind,
        each.name,
        id=f"{name}, {each.name}",
    )
    for name, kind in (POLICIES | POPULATIONS).items()
    for each in fields(kind)
    if each.name != "design"  # checked against the arms and terms of a problem
]


def with_value(kind, name, value):
    """Build settings with one value; annotations are checked in tests alone, so not here."""
    settings = kind()
    object.__setattr__(settings, name, value)
    settings.__post_init__()
    return settings


def may_be(kind, name, value):
    """Check which of these are right after all."""
    if value is None:
        return name in (*OPTIONAL, *KNOWN.get(kind, ()))
    return isinstance(value, float) and value == -1e300 and name.endswith("_mean")


@pytest.mark.parametrize(("kind", "name"), FIELDS)
def test_wrong_values_are_refused_by_name(kind, name):
    """The message has the value, and a remedy after it."""
    for value in (*WRONG, *FURTHER):
        if may_be(kind, name, value):
            assert getattr(with_value(kind, name, value), name) == value
        else:
            with pytest.raises(ConfigurationError, match=rf"(?s)Expected .*{name}=.*\. [A-Z].*\.$"):
                with_value(kind, name, value)


@pytest.mark.parametrize("value", ["three", [], [None], {}, [[1.0, 2.0]], 5])
def test_wrong_designs_are_refused_by_name(value):
    with pytest.raises(ConfigurationError, match="design"):
        with_value(MTTS, "design", value).tensor(PROBLEM)


@pytest.mark.parametrize("kind", [Mixture, LogDensity, PaperLogDensity])
def test_there_is_no_half_precision(kind):
    message = r"precision in \('single', 'double'\); got precision='half'. Choose one"
    with pytest.raises(ConfigurationError, match=message):
        with_value(kind, "precision", "half")


def test_common_factors_are_none_or_one():
    for rank in (-1, 2):
        with pytest.raises(ConfigurationError, match=f"from 0 to 1; got rank={rank}"):
            Mixture(rank=rank)


@pytest.mark.parametrize("policy", [None, 3, CoIDS, Mixture(), ("coids",), {"kind": "coids"}])
def test_other_things_are_no_policy(policy):
    with pytest.raises(ConfigurationError, match=r"name of a policy.*got policy=.*Write for"):
        find_policy(policy)


def test_unknown_policy_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"policy='best'.*coids, npm-ts.*Choose one"):
        find_policy("best")


# Settings of learners.


@pytest.mark.parametrize("kind", LEARNERS)
def test_number_of_particles_changes_nothing_else(kind):
    """Each field has its own default: when to move and for how long stay as they are."""
    for name, value in (("num_particles", 7), ("max_blocks", 3), ("ess_threshold", 0.3)):
        settings = kind(**{name: value})
        assert settings == replace(kind(), **{name: value})
        assert settings.inference() == replace(kind().inference(), **{name: value})


def test_thresholds_of_a_learner_are_checked_together():
    with pytest.raises(ConfigurationError, match=r"stage_threshold=0.25, ess_threshold=0.2. Lower"):
        CoIDS(ess_threshold=0.2)
    with pytest.raises(ConfigurationError, match=r"got num_particles=0. Change it"):
        GIDS(num_particles=0)


def problem_of(num_arms, features, rewards="gaussian"):
    return Problem(num_arms, features, (-2.0, 2.0), None, rewards)


# With what the reason says where the grid of the paper's policies does not fit.
SIZES = [
    (problem_of(3, (None, 2)), None),
    (problem_of(4, ()), "4 arms would have 10^4 cells"),
    (problem_of(2, (None, 2, 2)), "3 features are more than a grid is for"),
    (problem_of(2, (), "bernoulli"), "bernoulli rewards have no grid"),
]


@pytest.mark.parametrize(("problem", "words"), SIZES)
def test_the_mixture_is_the_default_except_of_the_papers_policies(problem, words):
    """Theirs is the paper's log-density where its grid fits."""
    found = CoIDS().chosen(problem)
    assert (found.settings, found.name) == (Mixture(), "mixture")
    assert found.reason == "it is the default, for any number of arms and features"
    for policy in (NpmTS(), GIDS()):
        found = policy.chosen(problem)
        assert found.settings == (Mixture() if words else PaperLogDensity())
        assert (words or "it is the paper's, and its grid fits 3 arms and 2 fe") in found.reason


def test_a_population_that_was_asked_for_is_taken_at_any_size():
    for policy in (CoIDS, GIDS):
        for settings in (LogDensity(num_modes=7), Mixture(3)):
            for problem, _ in SIZES:
                asked = policy(settings).chosen(problem)
                assert (asked.settings, asked.reason) == (settings, "it was asked for")


def test_the_other_population_is_the_one_that_was_not_chosen():
    small, large = SIZES[0][0], SIZES[1][0]
    assert CoIDS().not_chosen(small) == CoIDS(Mixture(3)).not_chosen(small) == LogDensity()
    assert CoIDS(LogDensity()).not_chosen(small) == GIDS().not_chosen(small) == Mixture()
    assert GIDS().not_chosen(large) == GIDS(Mixture()).not_chosen(small) == PaperLogDensity()


# A policy and an environment from outside the package.


@dataclass(frozen=True)
class FavouriteArm(PolicySettings):
    """Give the arm with most rewards a share of all decisions, and the others the rest."""

    share: float = 0.7

    def __post_init__(self):
        if not 0 < self.share < 1:
            raise ConfigurationError(f"Expected a share; got share={self.share}. Use 0.7.")

    def build(self, problem):
        """Build the policy for a problem."""
        return FavouritePolicy(problem, self)


class FavouritePolicy(PlainPolicy):
    """Decide from the counts of all users."""

    def probabilities(self, state, users, user, arms=None):
        """Share decisions out by counts."""
        del state, user
        counts = jnp.sum(users.statistics.count, axis=0)
        counts = counts if arms is None else counts[jnp.asarray(arms)]
        rest = (1 - self.settings.share) / max(len(counts) - 1, 1)
        weights = jnp.full(len(counts), rest).at[jnp.argmax(counts)].set(self.settings.share)
        return weights / weights.sum()


class CoinEnvironment(Environment):
    """Heads or tails, each with one mean for everybody."""

    name = "coin"
    arms = ("heads", "tails")
    context = {"x": (-1.0, 1.0)}  # noqa: RUF012 - a declaration, never changed
    rewards = Gaussian(0.0, 10.0, noise=0.5)
    recruitment = Recruitment.batches(num_batches=3, batch_size=2, steps_per_user=4)

    def draw_users(self, generator, num_users, shared=NOTHING_SHARED):
        """Draw contexts; arm means are the same."""
        del shared
        contexts = [{"x": float(x)} for x in generator.uniform(-1.0, 1.0, num_users)]
        return Cohort(contexts, np.tile([7.0, 3.0], (num_users, 1)))

    def population(self, shared=NOTHING_SHARED):
        """One component without spread."""
        del shared
        means = [[[7.0, 0.0], [3.0, 0.0]]]
        return ConditionalMixture.from_arrays(np.zeros((1, 2)), means, np.zeros((1, 2, 1, 2)))


def favourite_study():
    study = Study(["a", "b", "c"], {}, Gaussian(0, 10), FavouriteArm(share=0.9), seed=3)
    study.enrol("anna")
    for _ in range(4):
        study.reward(study.decide("anna").id, 5.0)
    return study


def test_record_of_a_policy_from_outside_has_defaults():
    assert (FavouriteArm.name, FavouriteArm.label) == ("favourite-arm", "FavouriteArm")
    assert asdict(FavouriteArm()) == {"share": 0.7}
    assert not FavouriteArm.is_learner
    assert FavouriteArm.name not in policy_names()


def test_policy_from_outside_runs_in_a_study():
    study = favourite_study()
    study.suspend("a", "out of stock")
    assert max(study.decide("anna").probabilities.values()) == pytest.approx(0.9)
    study.add_arm("d")
    assert study.describe().model.reason == "favourite-arm does not learn a population"
    with pytest.raises(UnsupportedError, match="holds beliefs; got policy='favourite-arm'"):
        study.explain("anna")
    with pytest.raises(InputError, match="from -5 to 15"):
        study.reward(study.decide("anna").id, 16.0)
    found = study.diagnose()
    assert (found.policy, found.in_use, found.warning) == ("favourite-arm", None, None)


def test_policy_from_outside_survives_the_disk(tmp_path):
    study, path = favourite_study(), tmp_path / "one.study"
    study.save(path)
    loaded = Study.load(path, policies=[FavouriteArm])
    assert loaded.design == study.design
    assert loaded.decide("anna") == study.decide("anna")
    with pytest.raises(UnknownNameError, match=r"'favourite-arm'.*Study.load\(path, policies="):
        Study.load(path)


def test_policy_and_environment_from_outside_are_simulated():
    environment = CoinEnvironment()
    records = list(simulate(FavouriteArm(), environment, 0))
    assert len(records) == environment.recruitment.num_steps == 24
    assert records == list(simulate(FavouriteArm(), environment, 0))
    assert records != list(simulate(FavouriteArm(), environment, 1))
    assert {record.regret for record in records} == {0.0, 4.0}
    best = list(simulate("oracle-ts", environment, 0))
    assert sum(record.regret for record in best) == 0.0


def test_unknown_environment_is_refused():
    with pytest.raises(UnknownNameError, match="environment='moon'"):
        simulate("uniform", "moon", 0)


@dataclass(frozen=True)
class Impostor(PolicySettings):
    """Has the name of a policy of the package."""

    name = "uniform"


@dataclass(frozen=True)
class Homeless(PolicySettings):
    """Has no policy."""

    share: Any = 0.5


class Unstored(PolicySettings):
    """Is no dataclass."""


def test_names_of_the_package_are_not_for_others():
    with pytest.raises(ConfigurationError, match=r"got name='uniform' of Impostor"):
        find_policy(Impostor())


def test_settings_without_a_policy_are_refused():
    with pytest.raises(ConfigurationError, match="got Homeless without one"):
        Study(["a", "b"], {}, Gaussian(0, 1, noise=0.1), Homeless(), seed=0)


def test_settings_that_cannot_be_stored_are_refused():
    with pytest.raises(ConfigurationError, match="can be stored; got Unstored"):
        to_plain(Unstored())
    assert json.dumps(to_plain(Homeless(np.float32(0.5)))["share"]) == "0.5"


@pytest.mark.parametrize("policies", [Homeless, [Homeless()], "uniform"])
def test_classes_are_what_a_load_takes(policies, tmp_path):
    with pytest.raises(ConfigurationError, match="list of classes of policies"):
        Study.load(tmp_path / "any", policies=policies)
