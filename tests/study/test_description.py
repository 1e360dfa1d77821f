"""What a study says of itself: arms, features, rewards, population, and how far it has come."""

import pytest

from cocobandits import CocoSettings, SmcConfig, Study, policy_names
from cocobandits.models.gaussian_mixture import ConditionalMixture
from cocobandits.policies.registry import describe_model
from cocobandits.study import Description

SMALL = CocoSettings(
    nodes_per_arm=4,
    num_modes=8,
    num_components=2,
    inference=SmcConfig(num_particles=8, max_blocks=1),
)
PRIOR = ConditionalMixture.from_arrays([[0.0]], [[[0.5], [0.1]]], [[[[0.2]], [[0.1]]]])


def make_study() -> Study:
    context = {"age": (18, 90), "sex": ["f", "m"], "smoker": bool}
    study = Study(
        ["walk", "swim", "rest"],
        context,
        (0, 10),
        0.5,
        policy="ind-ts",
        maximise=False,
        floor={"walk": 0.05},
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
so far      2 users, 2 decisions, 1 rewards"""


def test_description_by_hand():
    told = make_study().describe()
    assert isinstance(told, Description)
    assert str(told) == TOLD
    assert told.arms[2] == ("rest", "suspended", "too cold", 0.0)
    assert told.features[1] == ("sex", "categories", "one of f, m", 1)
    assert (told.num_users, told.num_decisions, told.num_rewards) == (2, 2, 1)
    assert told.model.name == "none"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rewards": "bernoulli"}, "bernoulli, 0 or 1, higher is better"),
        (
            {"reward_range": (-1, 1), "rewards": "bounded"},
            "bounded, -1 to 1, noise learned, higher is better",
        ),
        (
            {"reward_range": (0, 2.5), "reward_noise": 0.25},
            "gaussian, 0 to 2.5, noise 0.25, higher is better",
        ),
    ],
)
def test_rewards_in_words(changes, words):
    told = str(Study(["a", "b"], {}, policy="uniform", **changes).describe())
    assert f"rewards     {words}\n" in told
    assert "feature" not in told


@pytest.mark.parametrize("policy", policy_names())
def test_population_is_the_one_that_the_policy_learns(policy):
    settings = CocoSettings(prior=PRIOR, steps_per_user=3)
    study = Study(["a", "b"], {}, (0, 1), 0.1, policy=policy, settings=settings)
    told = study.describe().model
    assert told == describe_model(study.design.problem(), settings, policy)
    assert (told.name == "none") == (policy not in ("coids", "npm-ts", "gids"))
    assert told.reason


def test_added_arm_is_described():
    study = make_study()
    study.add_arm("dance")
    assert study.describe().arms[3] == ("dance", "active", "", 0.0)


def test_the_choice_of_a_model_is_logged(caplog):
    """At the start, and when another arm asks for another model."""
    caplog.set_level("INFO", logger="cocobandits")
    study = Study(["a", "b", "c"], {}, (0.0, 10.0), 0.5, "npm-ts", settings=SMALL)
    assert caplog.messages[-1].startswith("Population model: log-density, since a grid fits 3 arms")
    study.add_arm("d")
    assert caplog.messages[-1].startswith("Population model: mixture, since a grid of 4 arms")
    study.add_arm("e")
    assert len(caplog.messages) == 2
