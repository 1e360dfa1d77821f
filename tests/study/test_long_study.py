"""A long study in which everything happens: saved, moved or repeated, it decides as it did."""

import jax
import numpy as np
import pytest

from cocobandits import Gaussian, Mixture, Study
from cocobandits.study.events import MovesAdopted, MovesChanged
from cocobandits.study.learner import Learner
from support.designs import small

SMALL = {"population": Mixture(num_components=3), "num_particles": 30, "max_blocks": 2}
CONTEXT = {"age": (20.0, 60.0), "sex": ["f", "m", "x"], "smoker": bool}
PEOPLE = [
    {"age": 34, "sex": "m", "smoker": True},
    {"age": 55},
    {},
    {"sex": "f", "smoker": None},
    {"age": 21, "sex": "x", "smoker": False},
    {"smoker": False},
]


def make_study(policy="coids", moves="foreground", floor=0.04) -> Study:
    rewards = Gaussian(0, 4, noise=0.3, maximise=False)
    return Study(["a", "b"], CONTEXT, rewards, small(policy, **SMALL), floor, 7, moves)


def serve(study, user, value, eligible=None):
    decision = study.decide(user, eligible)
    study.reward(decision.id, value if decision.arm in ("a", "d") else 4 - value)
    return decision


def begin(study):
    """Enrol people of whom little is known, and reward them."""
    made = []
    for number, context in enumerate(PEOPLE):
        study.enrol(f"user-{number}", context)
        made += [serve(study, f"user-{number}", 0.5 + number / 2) for _ in range(2)]
    study.update_context("user-2", {"age": 40})
    made.append(serve(study, "user-2", 1.0, ["b"]))
    study.suspend("b", "out of stock")
    made.append(serve(study, "user-3", 1.0))
    return made


def change(study):
    """Add an arm, and let others come back or go."""
    made = [study.decide("user-4")]
    study.add_arm("c")
    study.reward(made[0].id, 2.0)
    made += [serve(study, f"user-{number}", 1.5) for number in (4, 5)]
    study.activate("b")
    study.update_context("user-3", {"age": 30})
    made += [serve(study, "user-3", 0.4, ["a", "c"]), serve(study, "user-1", 3.0)]
    study.correct(made[1].id, 0.2)
    study.correct(made[2].id, None)
    study.withdraw("user-0")
    return made


def finish(study):
    """Enrol more people, with yet another arm, and without the first."""
    made = []
    for number in range(6, 9):
        study.enrol(f"user-{number}", PEOPLE[number % 3])
        made += [serve(study, f"user-{number}", 0.3 * number) for _ in range(2)]
    study.withdraw_arm("a", "harmful")
    study.add_arm("d")
    study.update_context("user-8", {"sex": "f", "smoker": True})
    made += [serve(study, f"user-{number}", 0.9, ["b", "c", "d"]) for number in (2, 7, 8)]
    made.append(study.decide("user-5"))
    return made


def fingerprint(study):
    arrays = [
        np.asarray(leaf).tobytes()
        for leaf in jax.tree.leaves((study._learner.users, study._learner.state))
    ]
    return arrays, study.arms, study.users, study.log().to_pydict(), study.log_evidence


@pytest.mark.parametrize("policy", ["coids", "ind-ts", "mtts", "uniform"])
def test_saved_and_loaded_it_decides_as_if_it_had_not_been(policy, tmp_path):
    whole, saved = make_study(policy), make_study(policy)
    expected = [*begin(whole), *change(whole), *finish(whole)]
    found = []
    for number, part in enumerate((begin, change, finish)):
        found += part(saved)
        saved.save(tmp_path / f"{number}.study")
        saved = Study.load(tmp_path / f"{number}.study")
    assert found == expected
    assert fingerprint(saved) == fingerprint(whole)
    assert saved.design == whole.design
    assert saved.describe() == whole.describe()
    assert saved.context("user-3") == {"age": 30.0, "sex": "f", "smoker": None}
    assert [len(saved.decision(made.id).probabilities) for made in (found[0], found[-1])] == [2, 4]


def test_background_catches_up_with_the_foreground(monkeypatch):
    """The same arms are given in both, so that both meet the same rewards."""
    monkeypatch.setattr(Learner, "weights", blind_weights)
    studies = []
    for mode in ("foreground", "background"):
        study = make_study(moves=mode, floor=0.0)
        for part in (begin, change, finish):
            part(study)
        study.catch_up()
        studies.append(study)
    foreground, background = studies
    assert num_adoptions(background) > 0
    assert fingerprint(background) == fingerprint(foreground)


def blind_weights(learner, _, arms):
    """Let arms depend on nothing but the seed."""
    shares = np.zeros(learner.policy.problem.num_arms)
    shares[list(arms)] = 1 / len(arms)
    return shares


def num_adoptions(study):
    return sum(isinstance(event, MovesAdopted) for event in study.events)


def test_replay_repeats_moves_in_the_background_bit_for_bit(tmp_path):
    """Also from a file that was saved in the middle, and whatever its snapshot."""
    study = make_study(moves="background")
    begin(study)
    study.save(tmp_path / "one.study")
    num_events = len(study.events)
    change(study)
    finish(study)
    study.catch_up()
    assert num_adoptions(study) > 1
    again = Study.replay(study.events, moves="background")
    assert again.events == study.events
    assert fingerprint(again) == fingerprint(study)
    assert study.verify() == ()
    loaded = Study.load(tmp_path / "one.study", moves="background")
    assert loaded.events == study.events[:num_events]
    state = loaded._state
    for event in study.events[num_events:]:
        state.apply(event)
    assert fingerprint(loaded) == fingerprint(study)


@pytest.mark.parametrize("policy", ["coids", "ind-ts", "mtts"])
def test_replay_and_verification_agree_with_the_study(policy):
    study = make_study(policy)
    for part in (begin, change, finish):
        part(study)
    again = Study.replay(study.events)
    assert fingerprint(again) == fingerprint(study)
    assert again.events == study.events
    assert study.verify() == ()


def test_a_study_goes_on_elsewhere_after_it_was_loaded(tmp_path):
    """Where particles are moved is an event, so that a replay knows it."""
    study = make_study()
    begin(study)
    study.save(tmp_path / "one.study")
    loaded = Study.load(tmp_path / "one.study", moves="background")
    assert loaded.events[-1] == MovesChanged("background", seq=len(study.events))
    change(loaded)
    finish(loaded)
    loaded.catch_up()
    assert fingerprint(Study.replay(loaded.events)) == fingerprint(loaded)
    assert loaded.verify() == ()
