import base64
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from synthetic_run import STRESS, Curve, Scenario

from cocobandits.errors import StorageError
from cocobandits.experiments import report
from cocobandits.experiments.claims import CLAIMS, PAPER, Judgement, Reading
from cocobandits.experiments.figures import drawing
from cocobandits.experiments.rules import Finding
from cocobandits.experiments.tables import Table
from cocobandits.runs.results import Results

ROOT = Path(__file__).parents[2]
SMALL = Scenario().only(("mixture",), ("npm-ts", "gids", "oracle-ts"))


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
def written(tmp_path_factory):
    place = tmp_path_factory.mktemp("report")
    report.write_report(Scenario().results(), place)
    return place


@pytest.fixture(scope="module")
def pages(written):
    """The page and its twin, as a reader sees them."""
    names = ("index.html", "reproduction.md")
    return [unescape((written / name).read_text(encoding="utf-8")) for name in names]


@pytest.fixture
def sketchy(monkeypatch):
    """Save stand-ins for figures, since saving takes seconds, where a test is about words."""

    def save(figure, path):
        assert figure.axes
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("<svg/>")

    monkeypatch.setattr(drawing, "save", save)


def build(place, scenario):
    page = report.write_report(scenario.results(), place).page.read_text(encoding="utf-8")
    return page, (place / "reproduction.md").read_text(encoding="utf-8")


def test_page_stands_alone(written):
    """No script, no address, nothing to load; six pictures inside, each with words for it."""
    text = (written / "index.html").read_text(encoding="utf-8")
    page = Page(text)
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert not [word for word in ("http", "url(", "@import") if word in text]
    assert len(page.images) == 6
    assert min(len(image["alt"]) for image in page.images) > 40
    head = "data:image/svg+xml;base64,"
    inside = [base64.b64decode(source.removeprefix(head)) for source in page.sources]
    files = {path.name: path.read_bytes() for path in (written / "figures").iterdir()}
    names = ("regret", "cumulative", "third-arm", "density", "diet", "health")
    assert set(files) == {f"{name}.svg" for name in names}
    assert set(inside) == set(files.values())
    for content in inside:
        addresses = re.findall(rb"https?://[^\"]*", content)
        assert all(address.startswith(b"http://www.w3.org/") for address in addresses)
    assert len(page.ids) == len(set(page.ids))
    assert {f"claim-{number}" for number in range(1, 9)} <= set(page.ids)


def test_page_and_twin_say_the_same(pages):
    """Total regret of Ind-TS: 50 and 0.3 per seed more; seconds: 60 to 240."""
    for shown in pages:
        for expected in (
            "it agrees with 8 (1, 2, 3, 4, 5, 6, 7, 8).",
            *("50.5 ± 0.2", "150.0 ± 38.7", "0 to 3 (4)", "coco reproduce --quick"),
            "lmm-misspecified (100 steps in 10 rounds)",
            *("nodes_per_arm is 8; the paper has 20.", "Number of seeds: 4; the paper has 10."),
            "MTTS also runs in mixture and partial",
            "Users with an arm mean outside it: mixture 20 %, partial 20 %",
            "NPM-TS: 160 rejuvenations with acceptance from 0.51 to 0.60, all in [0.3, 0.8]; 120 ",
        ):
            assert expected in shown, expected
        assert "num_modes is" not in shown


def test_numbers_of_tables_by_hand(pages):
    """GIDS minus Ind-TS in the mixture: -0.4 per step, 0.4 · 0.9^t, -0.001 per seed."""
    mean = -40 + 4 * (1 - 0.9**100) - 0.1 * 1.5
    rows = [line for line in pages[1].splitlines() if line.startswith("| mixture | GIDS | ")]
    assert any(f"−{-mean:.1f} ± 0.1" in row for row in rows)
    # 8 of the first twenty steps, one of the last twenty.
    assert "| mixture | GIDS | 9.0 ± 0.0 | 40.0 ± 0.0 | 5.0 ± 0.0 |" in rows
    health = "40 | 0.55 | 0.51 | 0.60 | yes | 0.55 | 0.70 | 30 | 87.0 | 30 |"
    assert f"| mixture | GIDS | {health}" in rows


def test_values_are_escaped(written):
    """The machine of the synthetic run has brackets in its name."""
    text = (written / "index.html").read_text(encoding="utf-8")
    assert "x86_64 &lt;test&gt;" in text
    assert "<test>" not in text


def test_reasons_are_pages_that_exist(pages):
    """Look up every decision that the page names."""
    named = set(re.findall(r"docs/decisions/\S+\.md", pages[1]))
    assert len(named) == 10
    assert all((ROOT / name).is_file() for name in named)


@pytest.mark.usefixtures("sketchy")
def test_verdict_is_shown_without_colour(tmp_path):
    """A word and a symbol for each; a claim that fails is part of the answer."""
    page, twin = build(tmp_path, Scenario().with_curve("mixture", "gids", start=0.9, drift=0.001))
    for shown in (page, twin):
        assert "agrees with 7 (1, 3, 4, 5, 6, 7, 8) and disagrees with 1 (2)." in shown
        assert "Claim 2 disagrees: GIDS loses 19.1, NPM-TS 14.8: 4.3 [4.3, 4.3]." in shown
    assert '<span aria-hidden="true">✗</span> disagrees' in page
    assert "| ✗ disagrees |" in twin


@pytest.mark.usefixtures("sketchy")
def test_large_run_decides(tmp_path):
    """The same curves on the paper's scale, with five seeds."""
    scenario = Scenario(seeds=(0, 1, 2, 3, 4), info={"is_quick": False})
    scenario = scenario.with_curve("mixture", "gids", start=0.9, drift=0.001)
    page, lines = report.write_report(scenario.results(), tmp_path)
    text = unescape(page.read_text(encoding="utf-8"))
    lead = "Mostly. Of the paper's 8 claims, 7 hold (1, 3, 4, 5, 6, 7, 8) and 1 does not (2)."
    assert lead in text
    assert "Claim 2 does not hold: GIDS loses 19.2" in text
    assert "Read strictly, 7 hold (1, 3, 4, 5, 6, 7, 8) and 1 does not (2)." in text
    assert "docs/reproduction.md" not in text
    assert lines[0] == lead
    assert lines[2] == "  ✗ 2 does not hold      GIDS beats NPM-TS (mixture)"
    assert len(lines) == 9


def judgement(number, holds, verdict):
    """Make a judgement with one finding per outcome."""
    findings = tuple(Finding(f"part {place}", each) for place, each in enumerate(holds))
    strict = Reading("", (Finding("", False),), "does not hold")
    return Judgement(replace(CLAIMS[0], number=number), Reading("", findings, verdict), strict)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["holds"] * 8, "Yes. Of the paper's 8 claims, 8 hold"),
        (["holds"] * 4 + ["in part"] * 3 + ["does not hold"], "Mostly. "),
        # Too few hold, or too few hold even in part.
        (["holds"] * 3 + ["in part"] * 5, "In part. "),
        (["holds"] * 5 + ["does not hold"] * 3, "In part. "),
        (["does not hold"] * 7 + ["not decided"], "No. Of the paper's 8 claims, 7 do not"),
        # A part of the claims answers no question about all of them.
        (["holds"], "This run can speak to 1 of the paper's 8 claims: 1 holds (1)."),
    ],
)
def test_lead_sums_up_the_verdicts(verdicts, expected):
    found = [judgement(place, [True], each) for place, each in enumerate(verdicts, start=1)]
    content = {"claims": found, "is_small": False, "is_whole": len(found) == len(CLAIMS)}
    assert report._render("summary.txt", content).startswith(expected)


def test_answer_separates_a_failed_part_from_an_open_one():
    """Claims 1 and 3 have open parts, claim 2 a part that fails, claim 4 fails."""
    outcomes = [[True, None], [True, False], [None, True], [None, False]]
    verdicts = ["in part"] * 3 + ["does not hold"]
    numbered = enumerate(zip(outcomes, verdicts, strict=True), start=1)
    found = [judgement(number, *each) for number, each in numbered]
    nothing = Results((), (), (0,), *({} for _ in range(7)))
    content = {"claims": found, "is_small": False, "is_whole": False, "results": nothing}
    text = report._JINJA.get_template("sentences.txt").make_module(content).answer()
    assert "No part of claims 1 and 3 fails; the rest is undecided there." in text
    assert "Claim 4 does not hold: part 1." in text
    assert text.strip().endswith("Read strictly, 4 do not (1, 2, 3, 4).")


@pytest.mark.usefixtures("sketchy")
def test_small_run_leads_to_the_ten_seed_page(tmp_path):
    """A link in a clone, its name elsewhere."""
    (tmp_path / "clone" / "docs").mkdir(parents=True)
    (tmp_path / "clone" / "docs" / "reproduction.md").write_text("ten seeds")
    inside, _ = build(tmp_path / "clone" / "runs" / "quick" / "report", SMALL)
    assert '<a href="../../../docs/reproduction.md">' in inside
    outside, _ = build(tmp_path / "quick", SMALL)
    assert "<code>docs/reproduction.md</code>" in outside


@pytest.mark.usefixtures("sketchy")
def test_markdown_goes_where_it_is_asked_for(tmp_path):
    """Its pictures are found from there; a second report replaces the first."""
    twin, place = tmp_path / "docs" / "page.md", tmp_path / "results" / "run" / "report"
    for scenario in (SMALL.with_curve("mixture", "gids", floor=0.9), SMALL):
        report.write_report(scenario.results(), place, twin)
    text = twin.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert "../results/run/report/figures/regret.svg" in links
    assert all((twin.parent / link).is_file() for link in links)
    assert "GIDS loses 14.3, NPM-TS 14.8" in text


def test_same_results_give_the_same_bytes(written, tmp_path):
    report.write_report(Scenario().results(), tmp_path)
    for path in sorted(written.rglob("*.*")):
        assert path.read_bytes() == (tmp_path / path.relative_to(written)).read_bytes(), path.name


@pytest.mark.usefixtures("sketchy")
def test_where_the_paper_ran_nothing_it_has_no_say(tmp_path):
    """Four populations beyond the paper: targets, but no claims, figures or departures of it."""
    shown = build(tmp_path, Scenario.of_coids().only(STRESS, ("coids", "ind-ts", "oracle-ts")))
    for text in shown:
        assert "Simulated studies" in text
        assert "Of 1 target, this run agrees with 1 (6)." in text
        for absent in ("paper's 8 claims", "the paper has", "hird arm", "not in this run", "diet"):
            assert absent not in text, absent
    assert {"targets", "target-6"} <= set(Page(shown[0]).ids)
    assert not {"claims", "third-arm", "density", "diet"} & set(Page(shown[0]).ids)


@pytest.mark.usefixtures("sketchy")
def test_poor_results_say_what_they_lack(tmp_path):
    """One seed, one environment, two policies, no oracle, no tables, no particles."""
    scenario = Scenario(seeds=(0,), has_tables=False).only(("lmm",), ("ind-ts", "uniform"))
    page, twin = build(tmp_path, scenario)
    for shown in (page, twin):
        assert "One seed: no standard errors, no intervals and no verdicts." in shown
        assert "Environments not in this run: mixture, partial, lmm-misspecified." in shown
        assert "Policies not in this run: npm-ts, gids, mtts, oracle-ts." in shown
        assert "Without OraclePrior-TS there is no multi-task regret." in shown
        assert "No densities were stored" in shown
        assert "50.0 ± –" in shown
        assert "What the paper claims" not in shown
        assert "Total regret in lmm: Ind-TS 50.0, Uniform 100.0." in shown
    assert "No policy of this run moved particles." in page
    assert not re.search(r"\bnan\b", twin)
    assert len(Page(page).images) == 3


@pytest.mark.usefixtures("sketchy")
@pytest.mark.parametrize(
    "lost", ["regrets", "arms", "evaluations", "health", "hyperparameters", "tables"]
)
def test_results_that_lack_a_part_still_have_a_page(tmp_path, lost):
    """Also where one policy alone has lost it, as a damaged run may have."""
    whole = Scenario().results()
    part = {key: value for key, value in getattr(whole, lost).items() if key[1] != "gids"}
    for number, kept in enumerate(({}, part)):
        results = replace(whole, **{lost: kept})
        assert report.write_report(results, tmp_path / str(number)).page.is_file()


@pytest.mark.parametrize("part", ["regrets", "evaluations"])
def test_results_that_are_not_finite_are_refused(tmp_path, part):
    results = SMALL.results()
    getattr(results, part)["mixture", "gids"][0, -1] = np.nan
    with pytest.raises(StorageError, match="Expected finite regrets; got others of policy='gids'"):
        report.write_report(results, tmp_path)


@pytest.mark.usefixtures("sketchy")
def test_moves_without_a_correlation_have_dashes(tmp_path):
    results = SMALL.results()
    for columns in results.health.values():
        columns["start_correlation"] = np.full(40, np.nan)
    report.write_report(results, tmp_path)
    shown = (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    assert "| mixture | GIDS | 40 | 0.55 | 0.51 | 0.60 | yes | – | – | 0 | 87.0 | 30 |" in shown


@pytest.mark.usefixtures("sketchy")
def test_own_figure_is_on_the_pages(tmp_path, monkeypatch):
    """One decorated function, whatever page it is for."""
    monkeypatch.setattr(drawing, "FIGURES", dict(drawing.FIGURES))
    for scope in ("split", "comparison"):

        @drawing.figure(f"mine-{scope}", f"Mine, {scope}", "Of {seeds}.", "cells", scope)
        def draw(results):
            drawn = drawing.new_figure(2, 2)
            drawn.subplots().set_title(results.environments[0])
            return drawn

    own = Scenario.of_coids().only(("lmm",), ("coids", "ind-ts"))
    page, twin = build(tmp_path, own)
    assert "figure-mine-split" in Page(page).ids
    assert "[Mine, split](figures/mine-split.svg)" in twin
    compared = report.write_comparison(own.results(), tmp_path).read_text(encoding="utf-8")
    assert "![Mine, comparison](figures/mine-comparison.svg)" in compared


@pytest.mark.usefixtures("sketchy")
def test_strangers_need_no_registry(tmp_path):
    """A policy and an environment that we do not know: default label and line, in every table."""
    curves = {("my-world", name): Curve(0.2, 0.1) for name in ("my-policy", "oracle-ts")}
    page, twin = build(tmp_path, Scenario(curves=curves, has_tables=False))
    for shown in (page, twin):
        assert "my-policy" in shown
        assert "Total regret in my-world: " in shown


@pytest.mark.usefixtures("sketchy")
def test_policies_that_lose_nothing_have_no_shares(tmp_path):
    """Ind-TS and the oracle never lose: ratios to them are dashes, and nothing is decided."""
    scenario = Scenario()
    for name in {environment for environment, _ in scenario.curves}:
        for policy in ("ind-ts", "oracle-ts"):
            scenario = scenario.with_curve(name, policy, floor=0.0, drift=0.0)
    for shown in build(tmp_path, scenario):
        assert "GIDS – %" in shown
        assert not re.search(r"\b(nan|inf)\b", shown)


@pytest.mark.usefixtures("sketchy")
def test_folder_that_cannot_be_written(tmp_path):
    """A file stands where the report should go."""
    (tmp_path / "report").write_text("in the way")
    with pytest.raises(StorageError, match="Expected places that can be written"):
        report.write_report(SMALL.results(), tmp_path / "report")


def with_log_density(results, name, *environments):
    """Let the cells of a name be those of CoIDS with the log-density."""
    settings = {"kind": "coids", "population": {"kind": "log-density"}}
    cells = {
        key: info._replace(settings=settings)
        if key.name == name and key.environment in environments
        else info
        for key, info in results.cells.items()
    }
    return replace(results, cells=cells)


@pytest.mark.parametrize(("grid", "mixture"), [("coids", "mine"), ("mine", "coids")])
def test_models_are_compared_where_both_ran_whatever_their_names(tmp_path, grid, mixture):
    """The mixture loses 5.15 where the log-density loses 7.15."""
    own = Scenario.of_coids().only(("lmm", "partial"), ("coids",))
    usual = own.curves["lmm", "coids"]
    curves = {("lmm", grid): usual, ("lmm", mixture): replace(usual, floor=0.02)}
    results = replace(own, curves=own.curves | curves).results()
    settings = {"kind": "coids", "population": {"kind": "mixture"}}
    cells = {key: info._replace(settings=settings) for key, info in results.cells.items()}
    results = with_log_density(replace(results, cells=cells), grid, "lmm", "partial")
    report.write_models(results, tmp_path / "models.md")
    page = (tmp_path / "models.md").read_text()
    assert "| lmm | 7.1 ± 0.1 | 5.1 ± 0.1 | 0.72 | [0.71, 0.73] | yes |" in page
    assert "\n| partial |" not in page


@pytest.mark.usefixtures("sketchy")
def test_pages_say_where_coids_has_another_population_than_its_default(tmp_path):
    """As stored: in no environment, in two of them, and in all."""
    usual = Scenario.of_coids().only(policies=("coids", "ind-ts", "oracle-ts")).results()
    since = "; since version 0.8.0 its default is the mixture."
    for names, words in (
        ((), ""),
        (("lmm", "partial"), f"CoIDS has the log-density in partial and lmm{since}"),
        (PAPER, f"CoIDS has the log-density here{since}"),
    ):
        results = with_log_density(usual, "coids", *names)
        written = report.write_report(results, tmp_path)
        pages = written.page, tmp_path / "reproduction.md"
        compared = report.write_comparison(results, tmp_path)
        for page in (*pages, compared):
            text = page.read_text(encoding="utf-8")
            assert words in text
            assert text.count(since) == bool(words)


def test_markdown_table_keeps_bars_inside_cells():
    """Names to the left, numbers to the right."""
    made = Table(("a", "b"), [("x|y", "1")]).markdown()
    assert made == "| a | b |\n| --- | ---: |\n| x\\|y | 1 |"
