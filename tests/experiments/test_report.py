import base64
import html
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import typer
from synthetic_run import STRESS, Scenario, write_json, write_run

import cocobandits.experiments.pictures as pictures_module
import cocobandits.experiments.report as report_module
from cocobandits.cli.main import app
from cocobandits.errors import StorageError
from cocobandits.experiments.markdown import table
from cocobandits.experiments.presets import QUICK, Experiment
from cocobandits.experiments.reading import load_run
from cocobandits.experiments.report import write_report
from cocobandits.experiments.report_text import _STANDING, command
from cocobandits.experiments.tables import Table

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """Collect identifiers, sources and tags, and check that tags are closed in order."""

    VOID = frozenset({"meta", "img", "br", "link", "input", "hr"})

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.sources, self.tags, self.images = [], [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.sources += [given[name] for name in ("src", "href") if name in given]
        if tag == "img":
            self.images.append(given)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = write_run(tmp_path_factory.mktemp("run"))
    write_report(folder)
    return folder


@pytest.fixture(scope="module")
def text(folder):
    return (folder / "report" / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def twin(folder):
    return (folder / "report" / "reproduction.md").read_text(encoding="utf-8")


@pytest.fixture
def sketchy(monkeypatch):
    """Save stand-ins for figures, since saving takes seconds, where a test is about words."""

    def save(figure, folder, name):
        assert figure.axes
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.svg"
        path.write_text("<svg/>")
        return {"svg": path}

    monkeypatch.setattr(pictures_module.drawing, "save", save)


def build(folder, scenario):
    page = write_report(write_run(folder, scenario)).page.read_text(encoding="utf-8")
    return page, (folder / "report" / "reproduction.md").read_text(encoding="utf-8")


def test_all_files_are_written(folder):
    """One page, its twin, and six figures."""
    report = folder / "report"
    assert {path.name for path in report.iterdir()} == {"index.html", "reproduction.md", "figures"}
    names = ("regret", "cumulative", "third-arm", "density", "diet", "health")
    expected = {f"{name}.svg" for name in names}
    assert {path.name for path in (report / "figures").iterdir()} == expected


def test_page_stands_alone(text, folder):
    """No script, no address, nothing to load; six pictures inside, each with words for it."""
    page = Page(text)
    assert "http" not in text
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert "url(" not in text
    assert "@import" not in text
    assert len(page.images) == 6
    for image in page.images:
        assert len(image["alt"]) > 40
    head = "data:image/svg+xml;base64,"
    assert all(source.startswith(head) for source in page.sources)
    inside = [base64.b64decode(source.removeprefix(head)) for source in page.sources]
    assert (folder / "report" / "figures" / "regret.svg").read_bytes() in inside
    for content in inside:
        addresses = set(re.findall(rb"https?://[^\"]*", content))
        assert addresses <= {
            b"http://www.w3.org/2000/svg",
            b"http://www.w3.org/1999/xlink",
            b"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd",
        }


def test_identifiers_are_unique(text):
    """Claims, sections and figures."""
    ids = Page(text).ids
    assert len(ids) == len(set(ids))
    assert {f"claim-{number}" for number in range(1, 9)} <= set(ids)


def test_page_and_twin_tell_the_same_numbers(text, twin):
    """Total regret of Ind-TS: 50 and 0.3 per seed more; seconds: 60 to 240."""
    for shown in (text, twin):
        assert "it agrees with 8 (1, 2, 3, 4, 5, 6, 7, 8)." in shown
        assert "50.5 ± 0.2" in shown
        assert "150.0 ± 38.7" in shown
        assert "0 to 3 (4)" in shown
        assert "lmm-misspecified (100 steps in 10 rounds)" in shown


def test_paired_difference_by_hand(twin):
    """GIDS minus Ind-TS in the mixture: -0.4 per step, 0.4 · 0.9^t, -0.001 per seed."""
    mean = -40 + 4 * (1 - 0.9**100) - 0.1 * 1.5
    [row] = [line for line in twin.splitlines() if line.startswith("| mixture | GIDS | −")]
    assert f"−{-mean:.1f} ± 0.1" in row


@pytest.mark.usefixtures("sketchy")
def test_verdict_is_shown_without_colour(tmp_path):
    """A word and a symbol for each; a claim that fails is part of the answer."""
    scenario = Scenario().with_curve("mixture", "gids", start=0.9, drift=0.001)
    page, twin = build(tmp_path, scenario)
    for shown in (page, twin):
        assert "agrees with 7 (1, 3, 4, 5, 6, 7, 8) and disagrees with 1 (2)." in shown
        assert "Claim 2 disagrees: GIDS loses 19.1, NPM-TS 14.8: 4.3 [4.3, 4.3]." in shown
    assert '<span aria-hidden="true">✗</span> disagrees' in page
    assert "| ✗ disagrees |" in twin


@pytest.mark.usefixtures("sketchy")
def test_large_run_decides(tmp_path):
    """The same curves on the paper's scale, with five seeds."""
    scenario = Scenario(seeds=(0, 1, 2, 3, 4)).with_curve("mixture", "gids", start=0.9, drift=0.001)
    folder = write_run(tmp_path, scenario)
    config = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", config | {"scale": "paper"})
    written = write_report(folder)
    page = html.unescape(written.page.read_text(encoding="utf-8"))
    lead = "Mostly. Of the paper's 8 claims, 7 hold (1, 3, 4, 5, 6, 7, 8) and 1 does not (2)."
    assert lead in page
    assert "Claim 2 does not hold: GIDS loses 19.2" in page
    assert "Read strictly, 7 hold (1, 3, 4, 5, 6, 7, 8) and 1 does not (2)." in page
    assert "too small to tell" not in page.split("<main>")[1]
    assert "docs/reproduction.md" not in page
    assert "we settled them after we had seen the first results" in page
    assert written.summary[0] == lead
    assert written.summary[2] == "  ✗ 2 does not hold      GIDS beats NPM-TS (mixture)"
    assert len(written.summary) == 9


@pytest.mark.usefixtures("sketchy")
def test_small_run_leads_to_the_ten_seed_page(tmp_path):
    """A link in a clone, its name elsewhere."""
    clone = tmp_path / "clone"
    (clone / "docs").mkdir(parents=True)
    (clone / "docs" / "reproduction.md").write_text("ten seeds")
    small = Scenario().only(("mixture",), ("npm-ts", "gids", "oracle-ts"))
    inside = write_report(write_run(clone / "runs" / "quick", small)).page
    assert '<a href="../../../docs/reproduction.md">' in inside.read_text(encoding="utf-8")
    outside = write_report(write_run(tmp_path / "quick", small)).page
    assert "<code>docs/reproduction.md</code>" in outside.read_text(encoding="utf-8")


@pytest.mark.usefixtures("sketchy")
def test_markdown_goes_where_it_is_asked_for(tmp_path):
    """Its pictures are found from there."""
    twin = tmp_path / "docs" / "page.md"
    small = Scenario().only(("mixture",), ("npm-ts", "gids", "oracle-ts"))
    write_report(write_run(tmp_path / "results" / "run", small), twin=twin)
    links = re.findall(r"\]\(([^)]+)\)", twin.read_text(encoding="utf-8"))
    assert "../results/run/report/figures/regret.svg" in links
    assert all((twin.parent / link).is_file() for link in links)


def test_what_a_run_says_is_escaped(text):
    """The machine of the synthetic run has brackets in its name."""
    assert "x86_64 &lt;test&gt;" in text
    assert "<test>" not in text


def test_settings_unlike_the_papers_are_listed(text, twin):
    """Eight nodes, four seeds; what is as in the paper is not listed."""
    for shown in (text, twin):
        assert "nodes_per_arm is 8; the paper has 20." in shown
        assert "Number of seeds: 4; the paper has 10." in shown
        assert "MTTS also runs in mixture and partial" in shown
        assert "num_modes is" not in shown


def test_reasons_are_pages_that_exist():
    """Look up every decision that the report names."""
    for departure in _STANDING:
        assert (ROOT / departure.why).is_file(), departure.why


def test_figures_are_linked_and_commands_given(twin):
    """The first two are shown, the others linked."""
    shown = re.findall(r"!\[[^]]+\]\(figures/(\S+)\.svg\)", twin)
    assert shown == ["regret", "cumulative"]
    for name in ("third-arm", "density", "diet", "health"):
        assert f"](figures/{name}.svg)" in twin
    assert "`coco reproduce --quick" in twin


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        (
            Scenario(),
            "coco reproduce --quick --policy npm-ts --policy gids --policy mtts --policy ind-ts "
            "--policy oracle-ts --policy uniform --seeds 4 --out DIR",
        ),
        (
            Scenario.of_coids().only(("lmm", *STRESS), ("coids", "oracle-ts")),
            "coco reproduce --quick --env lmm --env stress --policy coids --policy oracle-ts "
            "--seeds 4 --out DIR",
        ),
        (
            Scenario(seeds=(0,)).only(("lmm",), ("gids", "oracle-ts")),
            "coco reproduce --quick --env lmm --policy gids --policy oracle-ts --seeds 1 --out DIR",
        ),
    ],
)
def test_command_makes_the_same_run(tmp_path, scenario, expected):
    """Let the command line read what the report says was typed."""
    run = load_run(write_run(tmp_path, scenario))
    assert command(run) == expected
    verb = typer.main.get_command(app).commands["reproduce"]
    read = verb.make_context("reproduce", expected.split()[2:]).params
    assert read["quick"]
    assert read["seeds"] == len(scenario.seeds)
    declared = Experiment.declare(QUICK, read["env"], read["policy"])
    assert set(declared.environments) == set(scenario.environments)
    assert set(declared.policies) == set(scenario.policies)


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ({"settings": "auto", "learned": "mixture"}, ""),
        ({"settings": "mixture", "learned": "mixture"}, " --model mixture"),
        ({"settings": "auto", "learned": "auto"}, " --model auto"),
    ],
)
def test_command_names_the_model_where_it_is_not_the_default(tmp_path, models, expected):
    """A quick run learns the mixture for coids, and only for coids."""
    run = load_run(write_run(tmp_path, Scenario(seeds=(0,)).only(("lmm",), ("gids", "oracle-ts"))))
    for name, model in models.items():
        run.config[name]["model"] = model
    assert f"--policy oracle-ts{expected} --seeds 1" in command(run)


def test_same_run_gives_the_same_bytes(folder, tmp_path):
    """Write the same run to another folder, and report it in this process once more."""
    other = write_run(tmp_path / "elsewhere")
    write_report(other)
    for path in sorted((folder / "report").rglob("*.*")):
        same = other / path.relative_to(folder)
        assert path.read_bytes() == same.read_bytes(), path.name


@pytest.mark.usefixtures("sketchy")
def test_where_the_paper_ran_nothing_it_has_no_say(tmp_path):
    """Four populations beyond the paper: targets, but no claims, figures or departures of it."""
    scenario = Scenario.of_coids().only(STRESS, ("coids", "ind-ts", "oracle-ts"))
    page, twin = build(tmp_path, scenario)
    for shown in (page, twin):
        assert "Simulated studies" in shown
        assert "Of 1 target, this run agrees with 1 (6)." in shown
        for absent in ("paper's 8 claims", "the paper has", "hird arm", "not in this run", "diet"):
            assert absent not in shown, absent
    assert {"targets", "target-6"} <= set(Page(page).ids)
    assert not {"claims", "third-arm", "density", "diet"} & set(Page(page).ids)


@pytest.mark.usefixtures("sketchy")
def test_second_report_replaces_the_first(tmp_path):
    """Other data in the same folder gives another page."""
    small = Scenario().only(("mixture",), ("npm-ts", "gids", "oracle-ts"))
    first, _ = build(tmp_path, small)
    second, _ = build(tmp_path, small.with_curve("mixture", "gids", floor=0.9))
    assert "GIDS loses 14.3, NPM-TS 14.8" in first
    assert "GIDS loses 14.3, NPM-TS 14.8" not in second


@pytest.mark.usefixtures("sketchy")
def test_poor_run_says_what_it_lacks(tmp_path):
    """One seed, one environment, two policies, no oracle, no densities, no particles."""
    scenario = Scenario(seeds=(0,), has_densities=False).only(("lmm",), ("ind-ts", "uniform"))
    page, twin = build(tmp_path, scenario)
    for shown in (page, twin):
        assert "One seed: no standard errors, no intervals and no verdicts." in shown
        assert "Environments not in this run: mixture, partial, lmm-misspecified." in shown
        assert "Policies not in this run: NPM-TS, GIDS, MTTS, OraclePrior-TS." in shown
        assert "Without OraclePrior-TS there is no multi-task regret." in shown
        assert "No densities were stored" in shown
        assert "50.0 ± –" in shown
        assert "What the paper claims" not in shown
        assert "Total regret in lmm: Ind-TS 50.0, Uniform 100.0." in shown
    assert page.index("Regret</h2>") < page.index("Total regret in lmm")
    assert "No policy of this run moved particles." in page
    assert not re.search(r"\bnan\b", twin)
    assert len(Page(page).images) == 4


@pytest.mark.usefixtures("sketchy")
def test_policies_that_lose_nothing_have_no_shares(tmp_path):
    """Ind-TS and the oracle never lose: ratios to them are dashes, and nothing is decided."""
    scenario = Scenario()
    for name in scenario.environments:
        for policy in ("ind-ts", "oracle-ts"):
            scenario = scenario.with_curve(name, policy, floor=0.0, drift=0.0)
    page, twin = build(tmp_path, scenario)
    for shown in (page, twin):
        assert "GIDS – %" in shown
        assert not re.search(r"\b(nan|inf)\b", shown)


@pytest.mark.usefixtures("sketchy")
def test_whole_run_has_no_complaints(tmp_path):
    """The box about what is missing is not there."""
    page, _ = build(tmp_path, Scenario())
    assert 'class="gaps"' not in page


def test_stream_that_cannot_show_a_tick_is_no_error(tmp_path):
    """As redirected output on Windows; the run has claims, so there are ticks to show."""
    folder = write_run(tmp_path, Scenario().only(("mixture",), ("npm-ts", "gids", "oracle-ts")))
    shown = subprocess.run(
        [Path(sys.executable).with_name("coco"), "report", folder],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    assert "  ? 2 agrees " in shown.stdout


def test_unfinished_run_is_refused(tmp_path):
    """Nothing is written."""
    write_run(tmp_path)
    write_json(tmp_path / "summary.json", [])
    with pytest.raises(StorageError, match="--resume"):
        write_report(tmp_path)
    assert not (tmp_path / "report").exists()


def test_folder_that_cannot_be_written(tmp_path):
    """A file stands where the report should go."""
    write_run(tmp_path, Scenario().only(("lmm",), ("ind-ts",)))
    (tmp_path / "report").write_text("in the way")
    with pytest.raises(StorageError, match="Expected a folder that can be written"):
        write_report(tmp_path)


def test_template_lies_in_the_package():
    """So that a wheel holds it."""
    for name in ("report.html", "reproduction.md"):
        assert (report_module._TEMPLATES / name).is_file()
    assert report_module._TEMPLATES.is_relative_to(ROOT / "src" / "cocobandits")


def test_markdown_table_keeps_bars_inside_cells():
    """Names to the left, numbers to the right."""
    made = table(Table(("a", "b"), [("x|y", "1")], num_names=1))
    assert made == "| a | b |\n| --- | ---: |\n| x\\|y | 1 |"
