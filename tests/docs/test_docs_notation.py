import re

from doc_pages import PACKAGE, code_names, read, tables

[ROWS] = tables(read("docs/notation.md"))
AXES = {"particle", "parameter", "mode", "cell", "arm", "feature", "user", "value", "draw", "point"}
OWN_AXES = {"component", "term", "coefficient", "source", "node"}


def test_table_has_its_columns():
    """Every row fills every column."""
    assert list(ROWS[0]) == ["paper symbol", "code name", "axes", "convention", "file"]
    assert len(ROWS) >= 30
    assert all(cell for row in ROWS for cell in row.values())


def test_files_exist_and_contain_the_names():
    """Search each file for each name, as a whole word."""
    for row in ROWS:
        [file] = code_names(row["file"])
        source = (PACKAGE / file).read_text(encoding="utf-8")
        names = code_names(row["code name"])
        assert names, row
        for name in names:
            assert re.search(rf"(?<!\w){re.escape(name)}(?!\w)", source), (name, file)


def test_axes_are_those_of_the_one_list():
    """Compare with the list in the docstring of the array types, and those named above it."""
    source = (PACKAGE / "types.py").read_text(encoding="utf-8")
    [listed] = re.findall(r"One list of axes: ([\w,\s]+)\.", source)
    assert AXES <= set(re.split(r",\s+", listed)) <= AXES | OWN_AXES
    [own] = re.findall(r"axes of their own: ([\w, ]+)\.", read("docs/notation.md"))
    assert set(own.split(", ")) == OWN_AXES
    for row in ROWS:
        axes = row["axes"].removesuffix(" per arm")
        assert axes == "none" or set(axes.split(", ")) <= AXES | OWN_AXES, row


def test_own_axes_are_those_of_annotations():
    """Search the models and policies for an array with each of them."""
    sources = [
        path.read_text(encoding="utf-8")
        for folder in ("numerics", "users", "populations", "policies")
        for path in (PACKAGE / folder).rglob("*.py")
    ]
    annotated = set(" ".join(re.findall(r"Array, \"([^\"]*)\"", " ".join(sources))).split())
    assert annotated >= OWN_AXES


def test_symbols_are_unique():
    """One row per symbol."""
    symbols = [row["paper symbol"] for row in ROWS]
    assert len(set(symbols)) == len(symbols)
