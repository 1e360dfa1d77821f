from dataclasses import replace
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from synthetic_run import LABELS, LINES, POLICIES, STRESS, Curve, Scenario

from cocobandits.environments.diet import DietEnvironment
from cocobandits.experiments.density import DietTask
from cocobandits.experiments.figures import draw, drawing, figure
from cocobandits.experiments.figures.particles import (
    health_figure,
    hyperparameter_figure,
    prior_medians,
    traces_of,
)
from cocobandits.experiments.figures.population import density_figure, diet_figure
from cocobandits.experiments.figures.regret import (
    cumulative_figure,
    regret_figure,
    third_arm_figure,
)


@pytest.fixture(scope="module")
def results():
    return Scenario().results()


@pytest.fixture(scope="module")
def own():
    """Results of coids in eight environments."""
    return Scenario.of_coids().results()


def line_of(axes, policy):
    """Find the line of a policy by its colour."""
    color = LINES[policy].color.lower()
    [line] = [line for line in axes.lines if to_hex(line.get_color()) == color]
    return line


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_regret_panels_show_the_curves(results):
    """Second panel of each row: multi-task regret and evaluation of NPM-TS at the end."""
    drawn = regret_figure(results)
    axes = drawn.axes
    assert len(axes) == 2 * 4
    geometric = 0.5 * (1 - 0.9**100) / (1 - 0.9)
    upper, lower = line_of(axes[1], "npm-ts"), line_of(axes[5], "npm-ts")
    assert (upper.get_xdata()[-1], upper.get_ydata()[-1]) == pytest.approx((100, geometric))
    assert (lower.get_xdata()[-1], lower.get_ydata()[-1]) == pytest.approx((10, 1.015 * 1.1))
    np.testing.assert_array_equal(line_of(axes[0], "oracle-ts").get_ydata(), 0)
    assert [each.get_xlabel() for each in axes] == ["interaction step"] * 4 + ["round"] * 4
    [legend] = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == [LABELS[name] for name in POLICIES]


def test_cumulative_panels_show_the_plain_sum(results):
    """Ind-TS loses a half per step, and 0.003 more per seed; Uniform leaves the panel."""
    axes = cumulative_figure(results).axes
    assert len(axes) == 4
    assert line_of(axes[1], "ind-ts").get_ydata()[-1] == pytest.approx(50.45)
    assert any("Uniform ↑ 100" in text for text in texts(axes[1]))


@pytest.mark.parametrize("environments", [("lmm",), ("lmm", "mixture")])
def test_legend_fits_a_narrow_figure(results, environments):
    """With one or two environments instead of four."""
    drawn = regret_figure(results.within(environments))
    drawn.draw_without_rendering()
    box = drawn.legends[0].get_window_extent()
    assert 0 < box.x0 < box.x1 < drawn.bbox.x1


def test_only_the_control_leaves_its_panel(results):
    """Uniform ends at 90 beyond the oracle; MTTS, worse than Ind-TS, sets the last height."""
    axes = regret_figure(results).axes
    assert 40 < axes[0].get_ylim()[1] < 60
    assert texts(axes[0]) == texts(axes[3]) == ["Uniform ↑ 90"]
    assert 60 < axes[3].get_ylim()[1] < 75


def test_panels_without_an_oracle_say_so():
    scenario = Scenario().only(("lmm",), ("gids", "ind-ts", "uniform"))
    axes = regret_figure(scenario.results()).axes
    assert texts(axes[0]) == ["no oracle-ts in this run"]
    assert len(axes[1].lines) == 2


def test_one_seed_has_no_bands():
    axes = regret_figure(Scenario(seeds=(3,)).only(("lmm",)).results()).axes
    assert [len(each.collections) for each in axes] == [0, 0]
    assert [len(each.lines) for each in axes] == [6, 5]


def test_third_arm_shares_are_in_percent(results):
    """GIDS pulls it in 8 of the first twenty steps; the control is left out."""
    axes = third_arm_figure(results).axes[0]
    np.testing.assert_allclose(line_of(axes, "gids").get_ydata(), [40, 0, 0, 0, 5], atol=1e-12)
    assert len(axes.lines) == 5


def test_health_is_averaged_over_seeds(results):
    """Acceptance at steps 0, 10, ...; the correlation of four seeds on average."""
    axes = health_figure(results).axes
    acceptance, correlation = line_of(axes[0], "gids"), line_of(axes[4], "gids")
    np.testing.assert_allclose(acceptance.get_ydata(), 0.6 - 0.01 * np.arange(10))
    np.testing.assert_allclose(correlation.get_ydata(), 0.55)


def test_policy_that_did_not_run_somewhere_is_left_out_there():
    scenario = Scenario.of_coids().only(("lmm", "stress-ring"), ("coids", "gids", "oracle-ts"))
    del scenario.curves["lmm", "coids"]
    for make, rows in ((regret_figure, 2), (third_arm_figure, 1)):
        assert [len(each.lines) for each in make(scenario.results()).axes] == [2, 3] * rows


def test_hyperparameters_are_averaged_over_the_last_word_of_each_seed(own):
    """Seed s moves at s, s + 10, ...; medians are powers of two times 1.5 to the s."""
    trace = traces_of(own.hyperparameters["lmm", "coids"])["amplitude"]
    factor = 1.5 ** np.mean([0, 1, 2, 3])
    # Steps are counted from one here; the last seed speaks first at step 3.
    assert trace.steps[0] == 4
    assert trace.median[0] == pytest.approx(factor)
    # At step 11 seeds 0 and 1 have doubled, seeds 2 and 3 have not.
    assert trace.median[11 - 3] == pytest.approx(factor * 2**0.5)
    np.testing.assert_allclose(trace.low, trace.median / 2)
    np.testing.assert_allclose(trace.high, trace.median * 4)


def test_hyperparameter_panels_have_units_and_a_start(own, results):
    """Two hyperparameters in four environments, each with its prior median."""
    axes = hyperparameter_figure(own.within(STRESS)).axes
    assert len(axes) == 2 * 4
    assert axes[0].get_ylabel() == "arm lengthscale\n(reward units)"
    assert axes[4].get_ylabel() == "amplitude\n(nats)"
    assert {each.get_yscale() for each in axes} == {"log"}
    # The range has a width of 4.5, a standard one has 4.
    assert [line.get_ydata()[0] for line in axes[0].lines] == pytest.approx([0.8, 0.7 * 4.5 / 4])
    assert prior_medians(own, "mixture", "coids")["x lengthscale"] == 1.0
    assert prior_medians(results, "mixture", "gids") == {}


def test_densities_have_a_panel_per_time_and_context(results):
    """Two arms, learned and true, in each."""
    axes = density_figure(results).axes
    assert [len(each.patches) for each in axes] == [4] * 25
    assert axes[0].get_title() == "context −1"
    assert axes[-5].get_ylabel() == "49 users\ndensity"
    learned, truth = (patch.get_data().values for patch in axes[-1].patches[:2])
    np.testing.assert_allclose(learned, truth)


def test_diet_figure_has_the_rows_of_the_paper(results):
    """Two hidden types above three age groups, from the true densities."""
    axes = diet_figure(replace(results, tables={"diet": DietTask().run(None)})).axes
    titles = [each.get_title() for each in axes]
    assert titles[:2] == ["low metabolism", "high metabolism"]
    assert titles[2:] == ["age group: young", "age group: middle-aged", "age group: old"]
    assert [len(each.lines) for each in axes] == [3] * 5


@pytest.mark.parametrize("age", ["young", "old"])
def test_diet_densities_are_those_of_the_environment(age):
    """Compare mass, mean and square of noisy rewards with those of drawn users."""
    environment, generator = DietEnvironment(), np.random.default_rng(7)
    cohort = environment.draw_users(generator, 20_000)
    chosen = np.array([context["age"] == age for context in cohort.contexts])
    noise = environment.rewards.noise * generator.normal(size=cohort.arm_means.shape)
    drawn = (cohort.arm_means + noise)[chosen]
    rows = [row for row in DietTask().run(None).to_pylist() if row["name"] == age]
    rewards, densities = (
        np.reshape([row[name] for row in rows], (3, -1)) for name in ("reward", "density")
    )
    np.testing.assert_allclose(np.trapezoid(densities, rewards, axis=1), 1, atol=2e-3)
    for power in (1, 2):
        expected = np.trapezoid(densities * rewards**power, rewards, axis=1)
        error = (drawn**power).std(axis=0) / np.sqrt(len(drawn))
        assert (np.abs((drawn**power).mean(axis=0) - expected) / error < 4).all()


def test_files_are_the_same_bytes_again(results, tmp_path):
    """Draw and save a figure twice, each time with another global salt and font."""
    small = results.within(("lmm",))
    for folder, font in (("first", "DejaVu Sans"), ("second", "DejaVu Serif")):
        with mpl.rc_context({"svg.hashsalt": folder, "font.family": font}):
            for kind in ("png", "svg", "pdf"):
                drawing.save(regret_figure(small), tmp_path / folder / f"regret.{kind}")
    for kind, word in (("png", b"Software"), ("svg", b"<dc:"), ("pdf", b"CreationDate")):
        first, second = (tmp_path / each / f"regret.{kind}" for each in ("first", "second"))
        assert first.read_bytes() == second.read_bytes(), kind
        assert word not in first.read_bytes()
    root = ElementTree.parse(tmp_path / "first" / "regret.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"


def test_drawing_leaves_global_settings_alone(results, tmp_path):
    before = mpl.rcParams.copy()
    drawing.save(cumulative_figure(results.within(("lmm",))), tmp_path / "figure.svg")
    assert mpl.rcParams.copy() == before


def test_strangers_are_drawn_with_a_default_line():
    """A policy and an environment that we do not know."""
    curves = {("my-world", name): Curve(0.2, 0.1) for name in ("my-policy", "oracle-ts")}
    drawn = regret_figure(Scenario(curves=curves, has_tables=False).results())
    assert drawn.axes[0].get_title() == "My-World"
    assert "my-policy" in [text.get_text() for text in drawn.legends[0].get_texts()]
    assert len(drawn.axes[0].lines) == 2


def test_own_figure_is_one_decorated_function(results, tmp_path, monkeypatch):
    """It is drawn where results have its data, for stress environments apart; not elsewhere."""
    monkeypatch.setattr(drawing, "FIGURES", {})

    @figure("mine", "Mine", "Of {seeds}.", needs="arms")
    def mine(results):
        drawn = drawing.new_figure(2, 2)
        drawn.subplots().set_title(", ".join(results.environments))
        return drawn

    pictures = draw(results, tmp_path, "split", "paper")
    assert {name: each.title for name, each in pictures.items()} == {"mine": "Mine"}
    assert pictures["mine"].caption == "Of mean of 4 seeds, bands of one standard error."
    assert (tmp_path / "mine.svg").is_file()
    both = draw(Scenario.of_coids().results(), tmp_path, "split")
    assert [each.title for each in both.values()] == ["Mine", "Mine, under stress"]
    assert draw(replace(results, arms={}), tmp_path, "split") == {}
