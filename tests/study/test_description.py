"""What a study says of itself: arms, features, rewards, population, and how far it has come."""

import pytest

from cocobandits import Bernoulli, Bounded, Gaussian, Study, policy_names
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture
from cocobandits.study import Description
from support.designs import small, small_by_default

PRIOR = ConditionalMixture.from_arrays([[0.0]], [[[0.5], [0.1]]], [[[[0.2]], [[0.1]]]])


def make_study() -> Study:
    context = {"age": (18, 90), "sex": ["f", "m"], "smoker": bool}
    study = Study(
        ["walk", "swim", "rest"],
        context,
        Gaussian(0, 10, noise=0.5, maximise=False),
        "ind-ts",
        floor={"walk": 0.05},
        seed=0,
    )
    study.enrol("anna", {"age": 34, "sex": "f"})
    study.enrol("bob", {"age": 50})
    study.enrol("gone", {})
    study.withdraw("gone")
    first = study.decide("anna")
    study.reward(first.id, 3.0)
    study.correct(first.id, None)
    study.reward(study.decide("bob").id, 4.0)
    study.suspend("rest", "too cold")
    return study


TOLD = """\
arm   status     floor  reason
walk  active     0.05
swim  active     0
rest  suspended  0      too cold

feature  kind        values         missing
age      continuous  18 to 90       0
sex      categories  one of f, m    1
smoker   boolean     True or False  2

rewards     gaussian, 0 to 10, noise 0.5, lower is better
policy      ind-ts
population  none: ind-ts does not learn a population
so far      2 users, 2 decisions, 1 reward; 1 user withdrew"""


def test_description_by_hand():
    shown = make_study().describe()
    assert isinstance(shown, Description)
    assert str(shown) == TOLD
    assert shown.arms[2] == ("rest", "suspended", "too cold", 0.0)
    assert shown.features[1] == ("sex", "categories", "one of f, m", 1)
    assert (shown.num_users, shown.num_decisions, shown.num_rewards) == (2, 2, 1)
    assert shown.num_withdrawn == 1
    assert shown.model.name == "none"


def test_users_who_withdrew_count_for_nothing():
    """Decisions and rewards are those of the users that are counted."""
    study = make_study()
    study.withdraw("anna")
    shown = study.describe()
    assert (shown.num_users, shown.num_decisions, shown.num_rewards) == (1, 1, 1)
    study.withdraw("bob")
    assert str(study.describe()).endswith("0 users, 0 decisions, 0 rewards; 3 users withdrew")
    assert study.num_decisions == 2


@pytest.mark.parametrize(
    ("rewards", "words"),
    [
        (Bernoulli(), "bernoulli, 0 or 1, higher is better"),
        (Bounded(-1, 1), "bounded, -1 to 1, noise learned, higher is better"),
        (Gaussian(0, 2.5, noise=0.25), "gaussian, 0 to 2.5, noise 0.25, higher is better"),
    ],
)
def test_rewards_in_words(rewards, words):
    shown = str(Study(["a", "b"], {}, rewards, "uniform", seed=0).describe())
    assert f"rewards     {words}\n" in shown
    assert "feature" not in shown


@pytest.mark.parametrize("policy", policy_names())
def test_population_is_the_one_that_the_policy_learns(policy):
    settings = small(policy, PRIOR, steps_per_user=3)
    study = Study(["a", "b"], {}, Gaussian(0, 1, noise=0.1), settings, seed=0)
    shown = study.describe().model
    if policy in ("coids", "npm-ts", "gids"):
        assert shown == ("log-density", "it was asked for")
    else:
        assert shown == ("none", f"{policy} does not learn a population")


def test_default_population_says_why_it_was_chosen():
    shown = Study(["a", "b"], {}, Gaussian(0, 1, noise=0.1), seed=0).describe()
    words = "mixture: it is the default, for any number of arms and features"
    assert f"population  {words}\n" in str(shown)


def test_added_arm_is_described():
    study = make_study()
    study.add_arm("dance")
    assert study.describe().arms[3] == ("dance", "active", "", 0.0)


def test_the_choice_of_a_model_is_logged(caplog):
    """At the start, and when another arm asks for another model."""
    caplog.set_level("INFO", logger="cocobandits")
    settings = small_by_default("npm-ts", num_particles=8, max_blocks=1)
    study = Study(["a", "b", "c"], {}, Gaussian(0.0, 10.0, noise=0.5), settings, seed=0)
    assert caplog.messages[-1].startswith("Population model: log-density, since it is the paper's")
    study.add_arm("d")
    assert caplog.messages[-1].startswith("Population model: mixture, since a grid of 4 arms")
    study.add_arm("e")
    assert len(caplog.messages) == 2
