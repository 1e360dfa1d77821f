"""The default policy, the paper's settings, and hyperparameters in the units of a study."""

import numpy as np

from cocobandits import GIDS, CoIDS, Gaussian, LogDensity, Mixture, NpmTS, PaperLogDensity, Study
from support.designs import small

DESIGN = {
    "seed": 0,
    "arms": ["a", "b"],
    "context": {"age": (20, 80), "sex": ["f", "m"]},
    "rewards": Gaussian(10.0, 30.0, noise=0.5),
}


def test_default_policy_is_coids_with_the_mixture():
    study = Study(**DESIGN)
    assert study.design.policy == CoIDS()
    assert study.design.policy.chosen(study.design.problem()).settings == Mixture()


def test_the_papers_policies_have_the_papers_settings():
    """Its grid, basis and number of particles; the moves are those that mix."""
    for policy in (NpmTS(), GIDS()):
        paper = policy.chosen(Study(**DESIGN, policy=policy).design.problem()).settings
        assert paper == PaperLogDensity()
        assert (paper.nodes_per_arm, paper.nodes_per_feature, paper.num_modes) == (20, 10, 80)
        lengthscales = paper.arm_lengthscale, paper.context_lengthscale
        assert (*lengthscales, paper.amplitude) == (0.7, 0.7, 2.0)
        assert paper.basis == "karhunen-loeve"
        assert policy.num_particles == 200


def served(population) -> Study:
    study = Study(**DESIGN, policy=small("coids", population=population, num_particles=20))
    study.enrol("anna", {"age": 30, "sex": "f"})
    for value in (24.0, 23.0, 18.0):
        study.reward(study.decide("anna").id, value)
    return study


def test_hyperparameters_are_in_the_units_of_the_study():
    """Weigh the particles by hand: ages span 60 years instead of 2, rewards 20 instead of 4."""
    study = served(LogDensity(nodes_per_arm=5, num_modes=12))
    found = study.hyperparameters()
    assert set(found) == {"arm lengthscale", "age lengthscale", "sex lengthscale", "amplitude"}
    log_weights, learned = study._learner.policy.hyperparameters(study._learner.state)
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
    assert served(PaperLogDensity(nodes_per_arm=5, num_modes=12)).hyperparameters() == {}


def test_study_diagnoses_itself():
    """Its own particles are taken at their word, and asking twice gives the same answer."""
    study = served(LogDensity(nodes_per_arm=5, num_modes=12))
    found = study.diagnose()
    assert found.log_evidences["nonparametric"] == study.log_evidence
    assert (found.policy, found.in_use, found.num_rewards) == ("coids", "nonparametric", 3)
    assert study.diagnose() == found
    alone = Study(**DESIGN, policy="ind-ts")
    alone.enrol("anna", {"age": 30, "sex": "f"})
    alone.reward(alone.decide("anna").id, 24.0)
    first, second = alone.diagnose(), alone.diagnose()
    assert first == second
    assert alone.log_evidence is None
