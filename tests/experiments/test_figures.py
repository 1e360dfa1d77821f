import warnings
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from synthetic_run import POLICIES, STRESS, Scenario, write_run

from cocobandits.environments.diet import DietEnvironment
from cocobandits.experiments import drawing
from cocobandits.experiments.figure_one import diet_truth
from cocobandits.experiments.figures import (
    cumulative_figure,
    health_figure,
    regret_figure,
    third_arm_figure,
)
from cocobandits.experiments.learned_figures import (
    courses_of,
    has_courses,
    hyperparameter_figure,
    prior_medians,
)
from cocobandits.experiments.measures import POLICY_LABELS, group, measure
from cocobandits.experiments.population_figures import density_figure, diet_figure
from cocobandits.experiments.reading import load_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return load_run(write_run(tmp_path_factory.mktemp("run")))


@pytest.fixture(scope="module")
def measures(run):
    return measure(run)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A run of coids in eight environments."""
    return load_run(write_run(tmp_path_factory.mktemp("own"), Scenario.of_coids()))


def line_of(axes, policy):
    """Find the line of a policy by its colour."""
    color = drawing.POLICY_LINES[policy].color.lower()
    [line] = [line for line in axes.lines if to_hex(line.get_color()) == color]
    return line


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_regret_panels_show_the_curves(measures):
    """Second panel of each row: multi-task regret and evaluation of NPM-TS at the end."""
    axes = regret_figure(measures).axes
    assert len(axes) == 2 * 4
    geometric = 0.5 * (1 - 0.9**100) / (1 - 0.9)
    upper, lower = line_of(axes[1], "npm-ts"), line_of(axes[5], "npm-ts")
    assert (upper.get_xdata()[-1], upper.get_ydata()[-1]) == pytest.approx((100, geometric))
    assert (lower.get_xdata()[-1], lower.get_ydata()[-1]) == pytest.approx((10, 1.015 * 1.1))
    np.testing.assert_array_equal(line_of(axes[0], "oracle-ts").get_ydata(), 0)


def test_cumulative_panels_show_the_plain_sum(measures):
    """Ind-TS loses a half per step, and 0.003 more per seed; Uniform leaves the panel."""
    axes = cumulative_figure(measures).axes
    assert len(axes) == 4
    assert line_of(axes[1], "ind-ts").get_ydata()[-1] == pytest.approx(50.45)
    assert any("Uniform ↑ 100" in text for text in texts(axes[1]))


def test_axes_have_names_and_units(measures):
    """Steps above, rounds below."""
    axes = regret_figure(measures).axes
    assert [each.get_xlabel() for each in axes] == ["interaction step"] * 4 + ["round"] * 4
    assert "reward units" in axes[0].get_ylabel()
    assert "reward units" in axes[4].get_ylabel()


def test_one_legend_names_all_policies(measures):
    """As the paper names them."""
    [legend] = regret_figure(measures).legends
    expected = [POLICY_LABELS[policy] for policy in POLICIES]
    assert [text.get_text() for text in legend.get_texts()] == expected


@pytest.mark.parametrize("environments", [("lmm",), ("lmm", "mixture")])
def test_legend_fits_a_narrow_figure(measures, environments):
    """With one or two environments instead of four."""
    figure = regret_figure(replace(measures, environments=environments))
    figure.draw_without_rendering()
    [legend] = figure.legends
    box = legend.get_window_extent()
    assert box.x0 > 0
    assert box.x1 < figure.bbox.x1


def test_control_leaves_the_panel_with_a_note(measures):
    """Uniform ends at 90 beyond the oracle, Ind-TS at 40 and a little."""
    axes = regret_figure(measures).axes[0]
    top = axes.get_ylim()[1]
    assert 40 < top < 60
    assert "Uniform ↑ 90" in texts(axes)


def test_every_learner_stays_in_the_panel(measures):
    """MTTS, half as bad again as Ind-TS, sets the height; only the control leaves."""
    axes = regret_figure(measures).axes[3]
    assert texts(axes) == ["Uniform ↑ 90"]
    assert 60 < axes.get_ylim()[1] < 75


def test_without_an_oracle_the_panel_says_so(tmp_path):
    """The bottom row stays."""
    scenario = Scenario().only(("lmm",), ("gids", "ind-ts", "uniform"))
    axes = regret_figure(measure(load_run(write_run(tmp_path, scenario)))).axes
    assert texts(axes[0]) == ["no oracle-ts in this run"]
    assert len(axes[1].lines) == 2


def test_one_seed_has_no_bands(tmp_path):
    """Lines only."""
    scenario = Scenario(seeds=(3,)).only(("lmm",))
    axes = regret_figure(measure(load_run(write_run(tmp_path, scenario)))).axes
    assert [len(each.collections) for each in axes] == [0, 0]
    assert [len(each.lines) for each in axes] == [6, 5]


def test_third_arm_shares_are_in_percent(measures):
    """GIDS pulls it in 8 of the first twenty steps; the control is left out."""
    axes = third_arm_figure(measures).axes[0]
    np.testing.assert_allclose(line_of(axes, "gids").get_ydata(), [40, 0, 0, 0, 5], atol=1e-12)
    assert len(axes.lines) == 5


def test_health_is_averaged_over_seeds(run, measures):
    """Acceptance at steps 0, 10, ...; the correlation of four seeds on average."""
    axes = health_figure(run.health, measures).axes
    acceptance, correlation = line_of(axes[0], "gids"), line_of(axes[4], "gids")
    np.testing.assert_allclose(acceptance.get_ydata(), 0.6 - 0.01 * np.arange(10))
    np.testing.assert_allclose(correlation.get_ydata(), 0.55)


def test_coids_comes_first_and_the_limit_lies_below_all(own):
    """In the legend, and in the order of drawing."""
    figure = regret_figure(measure(own).within(STRESS))
    [legend] = figure.legends
    assert legend.get_texts()[0].get_text() == "CoIDS"
    axes = figure.axes[0]
    layers = {policy: line_of(axes, policy).get_zorder() for policy in own.config["policies"]}
    assert max(layers, key=layers.get) == "coids"
    assert min(layers, key=layers.get) == "oracle-plan"
    figure.draw_without_rendering()
    assert 0 < legend.get_window_extent().x0 < legend.get_window_extent().x1 < figure.bbox.x1
    # The limit loses less than the oracle, and is not cut off.
    assert axes.get_ylim()[0] < line_of(axes, "oracle-plan").get_ydata()[-1] < -7


def test_policy_that_did_not_run_somewhere_is_left_out_there(own):
    """CoIDS is taken out of one environment of two."""
    measures = measure(own).within(("lmm", "stress-ring"))
    del measures.regrets["lmm", "coids"], measures.evaluations["lmm", "coids"]
    for make, rows in ((regret_figure, 2), (third_arm_figure, 1)):
        axes = make(measures).axes
        counts = [len(each.lines) for each in axes]
        assert counts == [3, 4] * rows


def test_hyperparameters_are_averaged_over_what_each_seed_said_last(own):
    """Seed s moves at s, s + 10, ...; medians are powers of two times 1.5 to the s."""
    course = courses_of(group(own.hyperparameters)["lmm", "coids"])["amplitude"]
    factor = 1.5 ** np.mean([0, 1, 2, 3])
    # Steps are counted from one here; the last seed speaks first at step 3.
    assert course.steps[0] == 4
    assert course.median[0] == pytest.approx(factor)
    # At step 11 seeds 0 and 1 have doubled, seeds 2 and 3 have not.
    assert course.median[11 - 3] == pytest.approx(factor * 2**0.5)
    np.testing.assert_allclose(course.low, course.median / 2)
    np.testing.assert_allclose(course.high, course.median * 4)


def test_hyperparameter_panels_have_units_and_a_start(own, run, measures):
    """Two hyperparameters in four environments, each with its prior median."""
    assert not has_courses(run, measures)
    figure = hyperparameter_figure(own, measure(own).within(STRESS))
    axes = figure.axes
    assert len(axes) == 2 * 4
    assert axes[0].get_ylabel() == "arm lengthscale\n(reward units)"
    assert axes[4].get_ylabel() == "amplitude\n(nats)"
    assert [each.get_xlabel() for each in axes[4:]] == ["interaction step"] * 4
    assert {each.get_yscale() for each in axes} == {"log"}
    # The skewed population has a range of 4.5, a standard one has 4.
    starts = [line.get_ydata()[0] for line in axes[0].lines]
    assert starts == pytest.approx([0.8, 0.7 * 4.5 / 4])
    assert prior_medians(own.config, "mixture")["x lengthscale"] == 1.0
    assert prior_medians({}, "mixture") == {}


def test_densities_have_a_panel_per_time_and_context(run):
    """Two arms, learned and true, in each."""
    axes = density_figure(run.densities).axes
    assert len(axes) == 5 * 5
    assert [len(each.patches) for each in axes] == [4] * 25
    assert axes[0].get_title() == "context −1"
    assert axes[-5].get_ylabel() == "49 users\ndensity"
    learned, truth = (patch.get_data().values for patch in axes[-1].patches[:2])
    np.testing.assert_allclose(learned, truth)


def test_diet_figure_has_the_rows_of_the_paper():
    """Two hidden types above three age groups."""
    axes = diet_figure(*diet_truth()).axes
    titles = [each.get_title() for each in axes]
    assert titles[:2] == ["low metabolism", "high metabolism"]
    assert titles[2:] == ["age group: young", "age group: middle-aged", "age group: old"]
    assert [len(each.lines) for each in axes] == [3] * 5


def test_diet_densities_are_densities():
    """Integrate to one; low metabolism peaks at plan 2, in middle age both halves are alike."""
    rewards, by_type, by_age = diet_truth()
    for densities in (*by_type.values(), *by_age.values()):
        np.testing.assert_allclose(np.trapezoid(densities, rewards, axis=1), 1, atol=2e-3)
    assert rewards[by_type["low"][1].argmax()] == pytest.approx(2.5)
    assert rewards[by_type["high"][2].argmax()] == pytest.approx(2.5)
    average = (by_type["low"] + by_type["high"]) / 2
    np.testing.assert_allclose(by_age["middle-aged"], average)


@pytest.mark.parametrize("age", ["young", "old"])
def test_diet_densities_are_those_of_the_environment(age):
    """Compare mean and variance of noisy rewards with those of drawn users."""
    environment, generator = DietEnvironment(), np.random.default_rng(7)
    cohort = environment.draw_users(generator, 20_000)
    chosen = np.array([context["age"] == age for context in cohort.contexts])
    noise = environment.reward_noise * generator.normal(size=cohort.arm_means.shape)
    drawn = (cohort.arm_means + noise)[chosen]
    rewards, _, by_age = diet_truth()
    mean = np.trapezoid(by_age[age] * rewards, rewards, axis=1)
    square = np.trapezoid(by_age[age] * rewards**2, rewards, axis=1)
    for expected, values in ((mean, drawn), (square, drawn**2)):
        error = values.std(axis=0) / np.sqrt(len(values))
        assert (np.abs(values.mean(axis=0) - expected) / error < 4).all()


def test_files_are_the_same_bytes_again(measures, tmp_path):
    """Draw and save a figure twice, each time with another global salt and font."""
    small = replace(measures, environments=("lmm",))
    for folder, font in (("first", "DejaVu Sans"), ("second", "DejaVu Serif")):
        with mpl.rc_context({"svg.hashsalt": folder, "font.family": font}):
            drawing.save(regret_figure(small), tmp_path / folder, "regret")
            for kind in ("png", "pdf"):
                drawing.save_as(regret_figure(small), tmp_path / folder / f"regret.{kind}")
    for kind in ("png", "svg", "pdf"):
        first, second = (tmp_path / each / f"regret.{kind}" for each in ("first", "second"))
        assert first.read_bytes() == second.read_bytes(), kind


def test_files_say_nothing_about_when_and_with_what(measures, tmp_path):
    """No date, no program, no address but the names of SVG itself."""
    figure = regret_figure(measures)
    pictured = drawing.save(figure, tmp_path, "regret")["svg"].read_text()
    assert "metadata" not in pictured
    assert "<dc:" not in pictured
    assert ElementTree.fromstring(pictured).tag == "{http://www.w3.org/2000/svg}svg"
    for kind, word in (("pdf", b"CreationDate"), ("png", b"Software")):
        drawing.save_as(figure, tmp_path / f"regret.{kind}")
        assert word not in (tmp_path / f"regret.{kind}").read_bytes()


def test_drawing_leaves_global_settings_alone(measures, tmp_path):
    """Compare all settings before and after."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = dict(mpl.rcParams)
        drawing.save(regret_figure(measures), tmp_path, "regret")
        assert dict(mpl.rcParams) == before
