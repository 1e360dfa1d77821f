"""Run folders: loose and packed cells, the lock, and what is refused."""

import multiprocessing
import os
import time
from pathlib import Path

import pytest
from sample_cells import sample_info, sample_table

from cocobandits.errors import ConflictError, StorageError
from cocobandits.runs import store
from cocobandits.runs.info import CellKey
from cocobandits.runs.results import read_results
from cocobandits.runs.store import open_folder


def save(folder, name: str = "coids", seed: int = 0, **changes) -> None:
    info = sample_info(name, seed, **changes)
    folder.save(info.key, sample_table(name, seed, **changes), info.made)


def loose(path: Path) -> list[Path]:
    return sorted(path.rglob("seed-*.parquet"))


def test_packed_and_loose_cells_are_read_alike(tmp_path):
    with open_folder(tmp_path) as folder:
        save(folder)
        apart = read_results(tmp_path)
        folder.pack()
        packed = tmp_path / "cells.parquet"
        assert not loose(tmp_path)
        assert read_results(tmp_path).cells == apart.cells
        before = packed.read_bytes()
        save(folder, "gids")
        assert packed.read_bytes() == before
        assert read_results(tmp_path).policies == ("gids", "coids")
        folder.pack()
    assert read_results(tmp_path).policies == ("gids", "coids")
    assert sorted(each.name for each in tmp_path.iterdir()) == [".lock", "cells.parquet"]


@pytest.mark.parametrize("read", ["made", "cells"])
def test_reading_goes_on_while_another_process_packs(tmp_path, monkeypatch, read):
    """Files are packed and removed between listing and reading the first one."""
    with open_folder(tmp_path) as folder:
        for seed in range(3):
            save(folder, seed=seed)
        listed = store._loose_files

        def list_then_pack(path: Path) -> list[Path]:
            found = listed(path)
            monkeypatch.undo()
            folder.pack()
            return found

        monkeypatch.setattr(store, "_loose_files", list_then_pack)
        found = folder.made() if read == "made" else read_results(tmp_path).cells
    assert sorted(key.seed for key in found) == [0, 1, 2]
    assert not loose(tmp_path)


def test_the_order_of_saving_does_not_change_the_packed_file(tmp_path):
    for place, seeds in (("first", (0, 1)), ("second", (1, 0))):
        with open_folder(tmp_path / place) as folder:
            for seed in seeds:
                save(folder, seed=seed)
            folder.pack()
    first, second = (tmp_path / place / "cells.parquet" for place in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()


def test_a_loose_cell_replaces_a_packed_one(tmp_path):
    with open_folder(tmp_path) as folder:
        save(folder)
        folder.pack()
        save(folder, provenance={"source_sha256": "new"})
        for _ in range(2):
            made = folder.made()[CellKey("mixture", "coids", 0)]
            assert made.provenance == {"source_sha256": "new"}
            folder.pack()


def test_further_tables_are_kept(tmp_path):
    with open_folder(tmp_path) as folder:
        save(folder)
        folder.save("densities", sample_table(), sample_info().made)
        assert folder.made()["densities"] == sample_info().made
    assert read_results(tmp_path).tables["densities"].num_rows == 6


@pytest.mark.parametrize("name", ["thesis.tex", "cells/notes.txt"])
def test_a_folder_with_other_files_is_refused(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(ConflictError, match="holds other files"), open_folder(tmp_path):
        pass
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / name]


def test_strange_files_among_cells_are_left_alone(tmp_path):
    strangers = [tmp_path / "cells" / ".DS_Store", tmp_path / "cells" / "mixture" / "notes.txt"]
    with open_folder(tmp_path) as folder:
        save(folder)
        for path in strangers:
            path.write_text("mine")
        folder.pack()
        assert folder.num_seeds() == 1
        assert not loose(tmp_path)
        assert not (tmp_path / "cells" / "mixture" / "coids").exists()
    assert all(path.read_text() == "mine" for path in strangers)
    assert len(read_results(tmp_path).cells) == 1


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StorageError, match="can be written"),
        open_folder(tmp_path / "file" / "run"),
    ):
        pass


def hold(path: Path, ready) -> None:
    """Hold a folder with a file that is being written, until the process is killed."""
    with open_folder(path):
        (path / ".partial-cells.parquet").write_text("half")
        ready.set()
        time.sleep(600)


@pytest.fixture
def holder(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=hold, args=(tmp_path, ready))
    process.start()
    assert ready.wait(60)
    yield process
    process.kill()
    process.join()


def test_a_folder_in_use_is_refused_and_left_alone(tmp_path, holder):
    with pytest.raises(ConflictError, match="in use by another run"), open_folder(tmp_path):
        pass
    assert (tmp_path / ".partial-cells.parquet").exists()
    holder.kill()
    holder.join()
    with open_folder(tmp_path):
        assert not (tmp_path / ".partial-cells.parquet").exists()


def test_a_full_disk_is_one_sentence_and_leaves_the_packed_file(tmp_path, monkeypatch):
    def fail(path: Path, table) -> None:
        del table
        path.write_text("half")
        raise OSError(28, os.strerror(28))

    with open_folder(tmp_path) as folder:
        save(folder)
        folder.pack()
        before = (tmp_path / "cells.parquet").read_bytes()
        monkeypatch.setattr(store, "write_table", fail)
        with pytest.raises(StorageError, match=r"No space left.*free space, then run the same"):
            save(folder, seed=1)
    assert (tmp_path / "cells.parquet").read_bytes() == before


def test_a_damaged_table_is_one_sentence(tmp_path):
    with open_folder(tmp_path) as folder:
        save(folder)
        (tmp_path / "tables").mkdir()
        (tmp_path / "tables" / "diet.parquet").write_text("?")
        with pytest.raises(StorageError, match=r"diet.parquet', but it cannot be read"):
            folder.made()
