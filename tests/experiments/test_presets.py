"""What `coco reproduce` runs when nothing else is asked for."""

from dataclasses import replace

import pytest

from cocobandits.environments.registry import build_environment, environment_names
from cocobandits.errors import ConfigurationError, UnknownNameError
from cocobandits.experiments import presets
from cocobandits.experiments.presets import PAPER, QUICK, Experiment
from cocobandits.experiments.runner import DENSITIES, cells_of, expected_cost, tasks_of
from cocobandits.policies.mtts import MttsSettings


def test_default_is_the_whole_paper_and_coids():
    whole = Experiment.declare(PAPER)
    assert whole.environments == ("mixture", "partial", "lmm", "lmm-misspecified")
    assert whole.policies == presets.POLICIES
    assert set(presets.POLICIES) == {"coids", "oracle-plan", *presets.PAPER_POLICIES}
    assert whole.seeds == tuple(range(10))
    assert len(cells_of(whole)) == 4 * 8 * 10


def test_stress_is_the_name_of_four_environments():
    whole = Experiment.declare(PAPER, ["lmm", "stress", "stress-ring"])
    assert whole.environments == ("lmm", *presets.STRESS)
    named = tuple(name for name in environment_names() if name.startswith("stress-"))
    assert named == presets.STRESS


@pytest.mark.parametrize(
    ("environment", "policy", "is_paper"),
    [
        ("mixture", "ind-ts", True),
        ("lmm", "gids", True),
        ("mixture", "coids", False),
        ("lmm-misspecified", "oracle-plan", False),
        ("stress-skewed", "ind-ts", False),
        ("diet", "npm-ts", False),
    ],
)
def test_papers_range_is_for_the_papers_policies_in_its_environments(environment, policy, is_paper):
    declared = build_environment(environment).reward_range
    assert presets.PAPER_RANGE == (-2, 2) != declared
    expected = presets.PAPER_RANGE if is_paper else declared
    assert presets.range_for(environment, policy) == expected


@pytest.mark.parametrize("environment", presets.COMPARED_ENVIRONMENTS)
def test_in_a_comparison_all_have_the_declared_range(environment):
    experiment = Experiment.declare(presets.comparison(is_quick=False), [environment])
    declared = build_environment(environment).reward_range
    assert {experiment.range_for(environment, name) for name in presets.COMPARED} == {declared}


def test_mtts_is_told_the_truth_in_the_units_of_the_range():
    """On [-3, 3] a reward unit is two thirds of a standardised one; on [-2, 2] it is one."""
    paper = Experiment.declare(PAPER).settings_for("lmm", "mtts").mtts
    wide = Experiment.declare(presets.comparison(is_quick=False)).settings_for("lmm", "mtts").mtts
    assert (paper.coefficient_mean, paper.coefficient_deviation) == (1.0, 0.5)
    assert wide.design == paper.design
    assert wide.coefficient_mean == pytest.approx(2 / 3)
    assert wide.coefficient_deviation == pytest.approx(1 / 3)
    assert wide.user_deviation == pytest.approx(2 / 3 * paper.user_deviation)
    full = MttsSettings(user_covariance=((1.0, 0.5), (0.5, 1.0))).scaled(2.0)
    assert full.user_covariance == ((4.0, 2.0), (2.0, 4.0))


def test_variants_are_policies_with_a_setting_of_their_own():
    experiment = Experiment.declare(presets.comparison(is_quick=False), None, presets.COMPARED)
    assert set(experiment.policies) == set(presets.COMPARED)
    for name, variant in presets.VARIANTS.items():
        changed = getattr(experiment.settings_for("stress-ring", name), variant.settings)
        plain = getattr(experiment.settings_for("stress-ring", variant.policy), variant.settings)
        assert changed == replace(plain, **variant.values) != plain
    assert "mtts-fitted" not in experiment.policies_for("yes-no")
    assert "robustagg-0" in experiment.policies_for("yes-no")


def test_robustagg_is_told_the_decisions_and_has_units_of_rewards():
    """On [-3, 3] a reward unit is two thirds of a standardised one; MTTS keeps its own setting."""
    experiment = Experiment.declare(presets.comparison(is_quick=False), None, presets.COMPARED)
    for name, told in (("robustagg", 0.9), ("robustagg-0.2", 0.2), ("robustagg-0", 0.0)):
        settings = experiment.settings_for("lmm", name).robustagg
        assert settings.horizon == 250
        assert settings.dissimilarity == pytest.approx(2 / 3 * told)
    fitted, known = (experiment.settings_for("lmm", name).mtts for name in ("mtts-fitted", "mtts"))
    assert fitted == replace(known, prior_users=10.0)


def test_coids_learns_what_the_papers_policies_are_given():
    experiment = Experiment.declare(PAPER)
    assert experiment.settings_for("lmm", "gids").basis == "karhunen-loeve"
    assert experiment.settings_for("lmm", "coids").basis == "hilbert"
    for name in presets.STUDIES:
        assert experiment.settings_for(name, "gids") == experiment.settings_for(name, "coids")
    told = experiment.as_json()
    assert (told["settings"]["amplitude"], told["learned"]["amplitude"]) == (2, 4)
    for settings in (QUICK.settings, QUICK.learned):
        assert (settings.nodes_per_arm, settings.inference.num_particles) == (8, 60)


def test_paper_scale_is_the_papers_hyperparameters():
    settings = PAPER.settings
    assert (settings.nodes_per_arm, settings.nodes_per_feature) == (20, 10)
    assert (settings.num_modes, settings.inference.num_particles) == (80, 200)
    assert (settings.arm_lengthscale, settings.kernel) == (0.7, "squared-exponential")
    assert PAPER.evaluation_pulls == 10


@pytest.mark.parametrize(
    ("name", "users", "steps", "rounds"),
    [
        ("mixture", 150, 750, 34),
        ("partial", 150, 750, 34),
        ("lmm", 50, 250, 5),
        ("lmm-misspecified", 100, 500, 24),
    ],
)
def test_environments_have_the_papers_size(name, users, steps, rounds):
    plan = build_environment(name).recruitment
    assert (plan.num_users, plan.num_steps, plan.num_rounds) == (users, steps, rounds)


def test_oracle_always_takes_part():
    assert Experiment.declare(QUICK, ["lmm"], ["gids"]).policies == ("gids", "oracle-ts")


def test_mtts_is_told_the_truth_where_its_model_holds():
    told = Experiment.declare(PAPER).settings_for("lmm", "mtts").mtts
    assert told.design == (((0, 0.9), (1, 0)), ((0, -1.1), (1, 0)), ((0, 0.2), (1, 0)))
    assert (told.coefficient_mean, told.coefficient_deviation, told.user_deviation) == (
        1,
        0.5,
        0.05,
    )
    moments = Experiment.declare(PAPER).settings_for("lmm-misspecified", "mtts").mtts
    assert moments.coefficient_mean == 0
    assert moments.coefficient_deviation**2 == pytest.approx(1.25)
    assert Experiment.declare(PAPER).settings_for("stress-ring", "mtts").mtts == MttsSettings()


def test_unknown_names_list_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"environment='moon'. Known: mixture, partial"):
        Experiment.declare(QUICK, ["moon"])
    with pytest.raises(UnknownNameError, match=r"policy='best'. Known: coids, npm-ts, gids"):
        Experiment.declare(QUICK, None, ["best"])


def test_zero_seeds_are_refused():
    with pytest.raises(ConfigurationError, match=r"at least one seed; got seeds=0"):
        Experiment.declare(QUICK, num_seeds=0)


def test_other_grid():
    assert presets.scale(False, 12).settings.nodes_per_arm == 12
    assert presets.scale(False, 12).learned == PAPER.learned
    assert presets.scale(False) == PAPER
    assert presets.scale(True) == QUICK
    assert (QUICK.num_seeds, QUICK.learned.model, QUICK.settings.model) == (4, "mixture", "auto")
    assert presets.scale(True, model="log-density").learned.model == "log-density"
    with pytest.raises(ConfigurationError, match=r"two grid points; got nodes=1"):
        presets.scale(True, 1)


def test_longest_cells_of_a_seed_come_first():
    tasks = tasks_of(Experiment.declare(QUICK))
    assert {task.policy for task in tasks[:6]} == {"coids", "npm-ts", "gids"}
    assert [task.seed for task in tasks[:-1]] == sorted(task.seed for task in tasks[:-1])
    assert tasks[-1] == DENSITIES
    assert expected_cost(tasks[0]) > 10 * expected_cost(tasks[20])


def test_densities_need_mixture_and_its_policy():
    assert DENSITIES not in tasks_of(Experiment.declare(QUICK, ["lmm"]))
    assert DENSITIES not in tasks_of(Experiment.declare(QUICK, ["mixture"], ["gids"]))


def test_policies_that_cannot_deal_with_an_environment_are_left_out():
    """MTTS assumes normal rewards; the run says which cells there are not."""
    experiment = Experiment.declare(QUICK, ["yes-no", "lmm"], ["mtts", "uniform"], 1)
    assert experiment.policies_for("yes-no") == ("oracle-ts", "uniform")
    assert experiment.as_json()["left_out"] == [["yes-no", "mtts"]]
