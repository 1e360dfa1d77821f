import contextlib
import io
import re
import tomllib

import pytest
from doc_pages import ROOT, code_names, executed, read, section, tables

from cocobandits import GIDS, CoIDS, LogDensity, NpmTS, PaperLogDensity, rewards
from cocobandits.environments.registry import find_environment
from cocobandits.experiments import claims, density, suites
from cocobandits.inference import moves, smc
from cocobandits.numerics import orthant
from cocobandits.persistence import archive
from cocobandits.policies.baselines import mtts
from cocobandits.policies.coco import populations
from cocobandits.populations import gaussian_belief
from cocobandits.populations.log_density import LogDensityConfig, hilbert
from cocobandits.study import diagnosis

FOLDER = ROOT / "docs" / "decisions"
PAGES = sorted(FOLDER.glob("[0-9]*.md"))
EXAMPLES = [
    pytest.param(code, output, id=page.stem)
    for page in PAGES
    for code, output in executed(page.read_text(encoding="utf-8"))
]


def page(number):
    [found] = FOLDER.glob(f"{number:04d}-*.md")
    return found.read_text(encoding="utf-8")


def test_numbers_have_no_gaps():
    """Count from one."""
    numbers = [int(path.name[:4]) for path in PAGES]
    assert numbers == list(range(1, len(PAGES) + 1))


def test_index_lists_every_decision():
    """Compare file names and titles, in order."""
    listed = re.findall(r"^\d+\. \[([^\]]+)\]\(([^)]+)\)", read("docs/decisions/README.md"), re.M)
    titles = [
        re.match(r"# \d+\. (.*)\n", path.read_text(encoding="utf-8")).group(1) for path in PAGES
    ]
    assert listed == list(zip(titles, [path.name for path in PAGES], strict=True))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_has_its_form(path):
    """Context, decision and consequences, on one page."""
    text = path.read_text(encoding="utf-8")
    assert int(re.match(r"# (\d+)\. ", text).group(1)) == int(path.name[:4])
    assert re.findall(r"^## (.*)$", text, re.M) == ["Context", "Decision", "Consequences"]
    assert 15 <= sum(bool(line.strip()) for line in text.splitlines()) <= 42


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_files_and_tests_named_exist(path):
    """Look up every path, and every test in its file."""
    for name in code_names(path.read_text(encoding="utf-8")):
        if not re.match(r"(src|tests|docs|requirements)/", name):
            continue
        file, _, test = name.partition("::")
        assert (ROOT / file).exists(), file
        if test:
            assert re.search(rf"^def {test}\(", read(file), re.M), name


@pytest.mark.parametrize(("code", "expected"), EXAMPLES)
def test_examples_print_what_stands_below_them(code, expected):
    """Execute them in this process."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "example", "exec"), {})
    assert printed.getvalue() == expected


def test_defaults_named_are_those_of_the_code():
    """Compare the constants of decisions 4, 5 and 7."""
    text, config = page(7), smc.SmcConfig()
    assert f"acceptance of {moves.TARGET_ACCEPTANCE:.1%}".replace("%", " %") in text
    assert f"starts at {config.first_step_size}" in text
    assert f"below {config.correlation_target}" in text
    assert f"blocks of {config.moves_per_block}" in text
    assert f"most {config.max_blocks} blocks" in text
    for paper in (NpmTS(), GIDS()):
        assert (paper.moves_per_block, f"up to {paper.max_blocks}" in text) == (1, True)
        assert paper.move_every is None
    assert config.move_every is None
    assert PaperLogDensity().amplitude == LogDensityConfig(3).amplitude == 2.0
    assert PaperLogDensity().num_modes == LogDensityConfig(3).num_modes == 80


def test_limits_and_formats_named_are_those_of_the_code():
    """Compare the constants of decisions 3 and 14."""
    assert f"the range and {rewards.MOST_DEVIATIONS:g} noise deviations" in page(3)
    for name in ("mixture", "lmm", "lmm-misspecified"):
        limits = [round(limit) for limit in find_environment(name).rewards.limits]
        assert f"declare {limits}" in page(3)
    for name in ("partial", "diet"):
        assert find_environment(name).rewards.limits is None
    assert density.PAPER_RANGE == (-2.0, 2.0)
    for name in claims.PAPER:
        low, high = find_environment(name).rewards.range
        assert re.search(rf"`{name}`[^.]*? \[{low:g}, {high:g}\]", section(page(24), "Decision"))
    assert f"version of the format is {archive.VERSION}." in page(14)


def test_constants_of_the_experiments_are_those_of_the_code():
    """Compare the numbers of decisions 16 to 20."""
    assert f"with {orthant._NUM_ANGLES} nodes" in page(16)
    assert f"lattice of {orthant._NUM_LATTICE_POINTS} points" in page(16)
    mean, deviation, user_deviation = mtts._MOMENTS.values()
    assert (mean, deviation) == (0.0, 1.0)
    assert f"a user deviation of {user_deviation}" in page(17)
    whole = suites.paper_suite()
    batch = whole.newcomers
    assert batch == suites.paper_suite(is_quick=True).newcomers
    assert "A batch has {} newcomers and {} pulls".format(*batch) in page(18)
    assert f"over {whole.num_seeds} seeds they are {batch[0] * 10}" in page(18)
    assert f"{len(whole.cells())} independent cells" in page(19)
    *first, last = density.TIMES
    assert f"t = {', '.join(map(str, first))} and {last}." in page(20)


def test_constants_of_learning_are_those_of_the_code():
    """Compare the numbers of decisions 7 and 21 to 27."""
    policy, settings = CoIDS(), LogDensity()
    assert f"({policy.max_blocks} with `coids`)" in page(7)
    text = " ".join(page(21).split())
    medians = f"{settings.arm_lengthscale} (arms) and {settings.context_lengthscale} (features)"
    assert f"medians {medians} with log-deviation {settings.lengthscale_deviation}" in text
    assert f"amplitude {settings.amplitude:g} with {settings.amplitude_deviation}" in text
    assert f"asks for {settings.num_modes} modes" in text
    assert f"half-width L: {hilbert._ARM_PADDING} times" in text
    assert f"range, {hilbert._CONTEXT_PADDING:g} times" in text
    assert f"hyperparameters walk {hilbert._WALK_STEPS} steps" in page(22)
    assert f"`population_weight` is {policy.population_weight:g}." in page(23)
    assert f"about {populations._CELL_DEVIATIONS} noise deviations wide" in page(24)
    assert f"with {populations._FEWEST_NODES} to {populations._MOST_NODES} points per arm" in page(
        24
    )
    assert f"{policy.num_particles} particles" in page(24)
    assert f"log-deviation of {populations._NOISE_DEVIATION}" in page(25)
    assert populations._NOISE_SHARE == 1 / 20
    assert f"more than {diagnosis.LOSING_NATS:g} nats behind" in page(26)
    deviations = diagnosis.USER_DEVIATIONS
    assert (len(deviations), deviations[0], deviations[-1]) == (5, 0.05, 0.8)
    assert f"{gaussian_belief._NUM_REWARDS} even steps" in page(27)
    assert f"up to {gaussian_belief._REWARD_REACH:g} deviations" in page(27)


def test_stress_environments_are_those_described():
    """Compare the table of decision 29 with the registry."""
    [rows] = tables(page(29))
    assert tuple(row["name"].strip("`") for row in rows) == claims.STRESS
    for row in rows:
        environment = find_environment(row["name"].strip("`"))
        low, high = environment.rewards.range
        assert row["range"] == f"[{low:g}, {high:g}]"
        assert environment.recruitment.num_users == 100
        assert environment.recruitment.steps_per_user == 5


def test_every_dependency_has_its_reason():
    """Compare decision 13 with pyproject.toml."""
    project = tomllib.loads(read("pyproject.toml"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    declared = {re.match(r"[\w-]+", item).group() for group in groups for item in group}
    rows = [row for table in tables(section(page(13), "Decision")) for row in table]
    assert {name for row in rows for name in code_names(row["package"])} == declared


@pytest.mark.parametrize("name", ["dev", "peers"])
def test_pinned_packages_have_hashes_and_no_addresses(name):
    """Read the pinned file as text."""
    pinned = read(f"requirements/{name}.txt")
    assert "://" not in pinned
    packages = re.findall(r"^[\w.-]+(?:\[[\w,]+\])?==.*?(?=^\S|\Z)", pinned, re.M | re.S)
    assert len(packages) > 20
    assert all("--hash=sha256:" in package for package in packages)


def test_peers_change_no_pinned_version():
    """Installed on top of the pinned packages, they bring their own and leave the others alone."""
    pinned, added = (
        dict(re.findall(r"^([\w.-]+)==(\S+)", read(f"requirements/{name}.txt"), re.M))
        for name in ("dev", "peers")
    )
    assert {"mabwiser", "bayesianbandits"} <= set(added) - set(pinned)
    assert {name: added[name] for name in pinned if name in added}.items() <= pinned.items()


def test_only_tests_and_benchmarks_use_blackjax_and_peers():
    """Search the package for imports."""
    others = "blackjax|mabwiser|bayesianbandits"
    for path in (ROOT / "src").rglob("*.py"):
        assert not re.search(rf"^\s*(?:import|from) (?:{others})", read(str(path)), re.M), path
