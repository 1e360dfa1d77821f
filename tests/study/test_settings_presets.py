"""Presets by name, the default policy, and what a study tells of its hyperparameters."""

from dataclasses import replace

import numpy as np
import pytest

from cocobandits import CocoSettings, SmcConfig, Study
from cocobandits.errors import UnknownNameError
from cocobandits.policies.registry import policy_names
from cocobandits.policies.settings import PRESETS, default_settings, preset

DESIGN = {
    "arms": ["a", "b"],
    "context": {"age": (20, 80), "sex": ["f", "m"]},
    "reward_range": (10.0, 30.0),
    "reward_noise": 0.5,
}
SMALL = {"nodes_per_arm": 5, "num_modes": 12, "inference": SmcConfig(num_particles=20)}


def test_default_policy_is_coids_with_learned_hyperparameters():
    study = Study(**DESIGN)
    assert study.design.policy == "coids"
    assert study.design.settings == PRESETS["learned"] == CocoSettings()


@pytest.mark.parametrize("policy", policy_names())
def test_the_papers_policies_have_the_papers_preset(policy):
    expected = "paper" if policy in ("npm-ts", "gids") else "learned"
    assert default_settings(policy) == PRESETS[expected]


def test_presets_can_be_named():
    for name, settings in PRESETS.items():
        assert preset(name) == settings
        assert Study(**DESIGN, settings=name).design.settings == settings
    paper = Study(**DESIGN, policy="npm-ts").design.settings
    assert paper == PRESETS["paper"]


def test_unknown_preset_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"settings='quick'. Known: learned, paper. Choose"):
        Study(**DESIGN, settings="quick")
    with pytest.raises(UnknownNameError, match=r"settings='quick'"):
        preset("quick")


def test_paper_preset_is_the_papers():
    """Its grid, basis and number of particles; the moves are those that mix."""
    paper = PRESETS["paper"]
    assert (paper.nodes_per_arm, paper.nodes_per_feature, paper.num_modes) == (20, 10, 80)
    assert (paper.arm_lengthscale, paper.context_lengthscale, paper.amplitude) == (0.7, 0.7, 2.0)
    assert (paper.basis, paper.kernel) == ("karhunen-loeve", "squared-exponential")
    assert (paper.inference.num_particles, paper.inference.moves) == (200, "information")


def served(basis) -> Study:
    settings = replace(CocoSettings(**SMALL), basis=basis)
    study = Study(**DESIGN, settings=settings)
    study.enrol("anna", {"age": 30, "sex": "f"})
    for value in (24.0, 23.0, 18.0):
        study.reward(study.decide("anna").id, value)
    return study


def test_hyperparameters_are_in_the_units_of_the_study():
    """Weigh the particles by hand: ages span 60 years instead of 2, rewards 20 instead of 4."""
    study = served("hilbert")
    found = study.hyperparameters()
    assert set(found) == {"arm lengthscale", "age lengthscale", "sex lengthscale", "amplitude"}
    log_weights, learned = study._policy.hyperparameters(study._state)
    columns = {
        "arm lengthscale": 5.0 * np.asarray(learned.arm_lengthscale),
        "age lengthscale": 30.0 * np.asarray(learned.context_lengthscales)[:, 0],
        "sex lengthscale": np.asarray(learned.context_lengthscales)[:, 1],
        "amplitude": np.asarray(learned.amplitude),
    }
    weights = np.exp(np.asarray(log_weights))
    for name, values in columns.items():
        for point, share in zip(found[name], (0.05, 0.5, 0.95), strict=True):
            # The smallest value with at least that share of the weight at or below it.
            assert weights[values <= point].sum() >= share - 1e-12
            assert weights[values < point].sum() <= share + 1e-12


def test_fixed_hyperparameters_are_not_reported():
    assert served("karhunen-loeve").hyperparameters() == {}


def test_study_diagnoses_itself():
    """Its own particles are taken at their word, and asking twice gives the same answer."""
    study = served("hilbert")
    found = study.diagnose()
    assert found.log_evidences["nonparametric"] == study.log_evidence
    assert (found.policy, found.in_use, found.num_rewards) == ("coids", "nonparametric", 3)
    assert study.diagnose() == found
    alone = Study(**DESIGN, policy="ind-ts", settings=CocoSettings(**SMALL))
    alone.enrol("anna", {"age": 30, "sex": "f"})
    alone.reward(alone.decide("anna").id, 24.0)
    first, second = alone.diagnose(), alone.diagnose()
    assert first == second
    assert alone.log_evidence is None
