"""The log of decisions as a table: columns, types, and the way to disk and back."""

import csv
import json
import os
import stat
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from cocobandits.errors import ConfigurationError, InputError, StorageError
from cocobandits.logs.table import LogRow, build_log, write_log

ARMS = ["a", "b c", 'd, "e"']
FEATURES = ["age", "sex", "is_new", "other"]
FIRST = LogRow(
    "d0",
    "001",
    0,
    "a",
    0.75,
    0.5,
    1.25,
    "rewarded",
    False,
    (0.75, 0.25),
    (1.0, 0.0),
    (True, True),
    {"age": 34, "sex": "NA", "is_new": True},
)
SECOND = FIRST._replace(
    decision="d1",
    user="zoë\n=1",
    arm='d, "e"',
    probability=1 / 3,
    draw=0.9,
    reward=None,
    status="open",
    is_withdrawn=True,
    probabilities=(1 / 3, 1 / 3, 1 / 3),
    weights=(0.0, 0.0, 1.0),
    eligible=(True, True, True),
    context={"age": None, "sex": "f, or m", "is_new": False, "other": None},
)
THIRD = FIRST._replace(decision="d2", user_step=1, context={}, reward=0.1 + 0.2)
ROWS = [FIRST, SECOND, THIRD]


def make_log(rows=ROWS, features=FEATURES):
    return build_log(ARMS, features, rows, {"study": "diet", "seed": "3"})


def test_columns_are_the_rows():
    """Write the table out by hand; the third arm did not exist yet in the first row."""
    expected = {
        "decision": ["d0", "d1", "d2"],
        "user": ["001", "zoë\n=1", "001"],
        "user_step": [0, 0, 1],
        "arm": ["a", 'd, "e"', "a"],
        "probability": [0.75, 1 / 3, 0.75],
        "draw": [0.5, 0.9, 0.5],
        "reward": [1.25, None, 0.1 + 0.2],
        "status": ["rewarded", "open", "rewarded"],
        "is_withdrawn": [False, True, False],
        "probability.a": [0.75, 1 / 3, 0.75],
        "probability.b c": [0.25, 1 / 3, 0.25],
        'probability.d, "e"': [0.0, 1 / 3, 0.0],
        "weight.a": [1.0, 0.0, 1.0],
        "weight.b c": [0.0, 0.0, 0.0],
        'weight.d, "e"': [0.0, 1.0, 0.0],
        "eligible.a": [True, True, True],
        "eligible.b c": [True, True, True],
        'eligible.d, "e"': [False, True, False],
        "context.age": [34.0, None, None],
        "context.sex": ["NA", "f, or m", None],
        "context.is_new": [True, False, None],
        "context.other": [None, None, None],
    }
    table = make_log()
    assert table.to_pydict() == expected
    assert table.column_names == list(expected)


def test_only_rewards_and_context_may_be_missing():
    nullable = {field.name for field in make_log().schema if field.nullable}
    assert nullable == {"reward", *(f"context.{name}" for name in FEATURES)}


def test_metadata_explains_every_column():
    table = make_log()
    metadata = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    dictionary = json.loads(metadata.pop("data_dictionary"))
    assert metadata == {"study": "diet", "seed": "3"}
    assert list(dictionary) == table.column_names
    assert all(sentence.endswith(".") and sentence[0].isupper() for sentence in dictionary.values())
    assert dictionary["status"] == "One of open, closed, rewarded, retracted."


def test_empty_log_has_the_same_columns():
    empty = make_log([])
    assert len(empty) == 0
    assert empty.column_names == make_log().column_names
    typed = [name for name in empty.column_names if not name.startswith("context.")]
    assert [empty.schema.field(name) for name in typed] == [
        make_log().schema.field(name) for name in typed
    ]
    assert empty.schema.field("context.age").type == pa.float64()


def test_log_without_context():
    rows = [row._replace(context={}) for row in ROWS]
    assert not [name for name in make_log(rows, []).column_names if name.startswith("context.")]


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"age": "old"}, r"got feature='age' with number, text. Give"),
        ({"age": True}, r"got feature='age' with number, truth. Give"),
        ({"other": [1]}, r"feature='other' with something else. Give"),
    ],
)
def test_mixed_features_are_refused(context, message):
    with pytest.raises(InputError, match=message):
        make_log([FIRST, SECOND._replace(context=context)])


@pytest.mark.parametrize("rows", [ROWS, []], ids=["full", "empty"])
@pytest.mark.parametrize("name", ["log.parquet", "log.feather", "deeper/x=1/log.PARQUET"])
def test_typed_files_give_back_the_same_table(tmp_path, name, rows):
    table, path = make_log(rows), tmp_path / name
    write_log(table, path)
    is_feather = path.suffix == ".feather"
    found = feather.read_table(path) if is_feather else pq.ParquetFile(path).read()
    assert found.equals(table)
    assert found.schema.metadata == table.schema.metadata


def test_feather_is_arrow_ipc(tmp_path):
    write_log(make_log(), str(tmp_path / "log.feather"))
    with pa.ipc.open_file(tmp_path / "log.feather") as file:
        assert file.read_all().equals(make_log())


def test_csv_is_read_by_the_standard_library(tmp_path):
    table = make_log()
    write_log(table, tmp_path / "log.csv")
    with (tmp_path / "log.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == table.column_names
    assert rows[1]["user"] == "zoë\n=1"
    assert rows[1]["reward"] == ""
    assert float(rows[2]["reward"]) == 0.1 + 0.2
    assert [row["is_withdrawn"] for row in rows] == ["false", "true", "false"]
    # Texts are in quotes, also if they look like numbers; numbers and gaps are not.
    assert (
        (tmp_path / "log.csv")
        .read_text(encoding="utf-8")
        .splitlines()[1]
        .startswith('"d0","001",0,"a",0.75,')
    )


def test_csv_holds_no_formulas(tmp_path):
    """Texts alone are changed, also in the header; other formats keep them."""
    texts = ["=1+1", "+1", "-1", "@x", "\ta", "\ra", "a=1", "'=1", None]
    safe = ["'=1+1", "'+1", "'-1", "'@x", "'\ta", "'\ra", "a=1", "'=1", ""]
    table = pa.table({"=sum": texts, "number": [-1.5] * len(texts)})
    write_log(table, tmp_path / "log.csv")
    with (tmp_path / "log.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["'=sum", "number"]
    assert rows == [[text, "-1.5"] for text in safe]
    write_log(table, tmp_path / "log.parquet")
    assert pq.ParquetFile(tmp_path / "log.parquet").read().equals(table)


def test_dictionary_says_where_csv_differs():
    dictionary = json.loads(make_log().schema.metadata[b"data_dictionary"])
    changed = [name for name, sentence in dictionary.items() if "apostrophe" in sentence]
    assert changed == ["user", "arm", "context.sex"]


def test_csv_without_decisions_has_a_header(tmp_path):
    write_log(make_log([]), tmp_path / "log.csv")
    header = (tmp_path / "log.csv").read_text(encoding="utf-8").splitlines()
    assert next(csv.reader(header)) == make_log().column_names


def test_csv_and_parquet_are_read_by_pandas(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is missing: pip install pandas")
    write_log(make_log(), tmp_path / "log.csv")
    write_log(make_log(), tmp_path / "log.parquet")
    texts = dict.fromkeys(["user", "context.sex"], str)
    from_csv = pandas.read_csv(
        tmp_path / "log.csv", dtype=texts, keep_default_na=False, na_values=[""]
    )
    for frame in (from_csv, pandas.read_parquet(tmp_path / "log.parquet")):
        assert list(frame.columns) == make_log().column_names
        assert frame["user"].tolist() == ["001", "zoë\n=1", "001"]
        assert frame["reward"].isna().tolist() == [False, True, False]
        assert frame["reward"][2] == 0.1 + 0.2
        assert frame["is_withdrawn"].tolist() == [False, True, False]
        assert frame["context.sex"][0] == "NA"


def test_only_the_owner_can_read_a_log(tmp_path):
    write_log(make_log(), tmp_path / "log.csv")
    assert stat.S_IMODE((tmp_path / "log.csv").stat().st_mode) == 0o600


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    place = tmp_path / "log.parquet"
    write_log(make_log(), place)
    before = place.read_bytes()

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match=r"can be written; got path='.*log.parquet' \(disk full"):
        write_log(make_log([]), place)
    assert place.read_bytes() == before
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("name", ["log.xlsx", "log", "parquet"])
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(InputError, match=rf"ends in .parquet, .feather, .csv; got path='.*{name}'"):
        write_log(make_log(), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", [None, 7, b"log.csv", "log\0.csv", "\ud800.csv"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InputError, match=r"Expected a path as text in UTF-8.*; got path=.*Write"):
        write_log(make_log(), path)


def test_missing_extra_says_how_to_install_it(tmp_path, monkeypatch):
    table = make_log()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    install = r"Install it with: pip install 'cocobandits\[experiments\]'"
    with pytest.raises(
        ConfigurationError, match=rf"Missing optional dependency: pyarrow. {install}"
    ):
        make_log()
    with pytest.raises(ConfigurationError, match=install):
        write_log(table, tmp_path / "log.parquet")


def test_nothing_imports_the_extra_before_it_is_used():
    """Run it in a process of its own."""
    program = (
        "import sys; sys.modules['pyarrow'] = None; import cocobandits.logs.off_policy, "
        "cocobandits.logs.table"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
