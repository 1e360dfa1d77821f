"""A saved study: what is damaged is found or harmless, and a forged file does no harm."""

import fcntl
import hashlib
import io
import json
import logging
import os
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cocobandits import Gaussian, Study
from cocobandits.errors import InputError, StorageError
from cocobandits.persistence import archive
from support.designs import small

DESIGN = {
    "arms": ["a", "b"],
    "context": {"age": (18, 90), "sex": ["f", "m"]},
    "rewards": Gaussian(0.0, 1.0, noise=0.05),
    "seed": 0,
}
GOOD = {"age": 34, "sex": "f"}


def make_study(policy="ind-ts"):
    study = Study(**DESIGN, policy=small(policy))
    study.enrol("anna", GOOD)
    study.enrol("gone", GOOD)
    study.enrol("ben", {"age": 50})
    study.reward(study.decide("anna").id, 0.5)
    study.withdraw("gone")
    study.decide("anna")
    return study


@pytest.fixture
def study():
    return make_study()


@pytest.fixture
def path(study, tmp_path):
    place = tmp_path / "one.study"
    study.save(place)
    return place


def members(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def rewrite(path, changed, is_sealed=True):
    """Replace members, and their hashes as if the file had been written so."""
    before = members(path)
    kept, text = before | changed, json.loads(before["study.json"])
    if is_sealed and "study.json" not in changed:
        text["sha256"] |= {n: hashlib.sha256(content).hexdigest() for n, content in changed.items()}
        kept["study.json"] = json.dumps(text).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in kept.items():
            file.writestr(name, content)


def forge(path, change):
    """Change the events of a file, sealed as if they had been recorded so."""
    events = [json.loads(line) for line in members(path)["events.jsonl"].splitlines()]
    change(events)
    lines = "".join(json.dumps(event) + "\n" for event in events)
    rewrite(path, {"events.jsonl": lines.encode()})


def test_what_is_no_saved_study_is_refused(path, tmp_path):
    with pytest.raises(StorageError, match=r"does not exist\. Check the path"):
        Study.load(tmp_path / "none.study")
    np.savez(tmp_path / "foreign.npz", a=np.zeros(3))
    (tmp_path / "text.study").write_bytes(b"hello")
    for name in ("text.study", "foreign.npz"):
        with pytest.raises(StorageError, match=r"not an archive with a study.json"):
            Study.load(tmp_path / name)
    with pytest.raises(StorageError, match=r"got path="):
        Study.load(tmp_path)
    rewrite(path, {"study.json": b'{"format": "other"}'})
    with pytest.raises(StorageError, match="another program"):
        Study.load(path)
    with pytest.raises(StorageError, match="got path="):
        Study.load("a" * 5000)
    for wrong in (None, 5, b"one.study"):
        with pytest.raises(InputError, match="path="):
            Study.load(wrong)


def test_another_version_is_refused(path):
    text = json.loads(members(path)["study.json"])
    rewrite(path, {"study.json": json.dumps(text | {"version": 99}).encode()})
    with pytest.raises(StorageError, match=r"version 7 of the format; got version=99"):
        Study.load(path)


def test_changed_events_are_found(path):
    events = members(path)["events.jsonl"].replace(b"0.5", b"0.6")
    rewrite(path, {"events.jsonl": events}, is_sealed=False)
    with pytest.raises(StorageError, match=r"events.jsonl was changed"):
        Study.load(path)


@pytest.mark.parametrize(
    "damage",
    [
        {"snapshot.json": b"{}"},
        {"snapshot.json": b"[[["},
        {"0.npy": b"nothing"},
        {
            "0.npy": b"\x93NUMPY\x01\x00\x76\x00"
            + b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,), }".ljust(118)
        },
    ],
    ids=["no fields", "no JSON", "no array", "80 TB"],
)
def test_a_study_is_learned_again_where_its_snapshot_cannot_be_used(study, path, damage, caplog):
    rewrite(path, damage)
    with caplog.at_level(logging.WARNING):
        loaded = Study.load(path)
    assert "cannot be used: learning again" in caplog.text
    assert loaded.decide("ben") == study.decide("ben")
    rewrite(path, {"snapshot.json": members(path)["snapshot.json"] + b" "}, is_sealed=False)
    assert Study.load(path).decide("ben") == study.decide("ben")


def change(number, **values):
    return lambda events: events[number].update(values)


@pytest.mark.parametrize(
    "change",
    [
        change(0, event="Erased"),
        change(0, moves="sideways"),
        lambda events: events[0]["design"].update(arms=["a"]),
        lambda events: events[0]["design"].pop("floor"),
        change(1, user="gone"),
        change(1, context=[34.0]),
        change(1, context=[1e400, "f"]),
        change(1, context=[[34.0], "f"]),
        change(4, arm="z"),
        change(4, decision="d7"),
        change(4, probabilities=[1.0]),
        change(5, value=None),
        change(5, value=1e9),
        change(5, decision="d5"),
        change(5, seq=3),
        lambda events: events.append(dict(events[5], seq=len(events))),
        lambda events: events.clear(),
        lambda events: events.__setitem__(2, 7),
    ],
)
def test_forged_events_are_refused(path, change):
    forge(path, change)
    with pytest.raises(StorageError, match="its content cannot be used"):
        Study.load(path)


_LOAD_BOMB = """
import resource, sys
from cocobandits import Study
from cocobandits.errors import StorageError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    Study.load(sys.argv[1])
except StorageError as error:
    print("refused", error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("name", ["events.jsonl", "study.json", "further.npy"])
def test_a_small_file_cannot_fill_the_memory(path, name):
    """A member of 200 MB, packed to 200 kB: unknown ones are not read, others to a limit."""
    rewrite(path, {name: bytes(200_000_000)})
    assert path.stat().st_size < 1_000_000
    command = [sys.executable, "-c", _LOAD_BOMB, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    *words, kilobytes = done.stdout.strip().splitlines()
    assert any(word.startswith("refused") for word in words) == (name != "further.npy")
    assert int(kilobytes) < 150_000


def test_a_truncated_file_is_found(path):
    whole = path.read_bytes()
    for share in (0.1, 0.5, 0.99):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(StorageError, match="Restore it from a backup"):
            Study.load(path)


def test_any_flipped_bit_is_found_or_harmless(study, path):
    """Damage the file at 200 places, one at a time: it loads the same study, or says so."""
    whole, expected, refused = path.read_bytes(), study.decide("ben"), 0
    for place in np.random.default_rng(0).integers(len(whole), size=200):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        try:
            loaded = Study.load(path)
        except StorageError:
            refused += 1
        else:
            assert loaded.decide("ben") == expected
            assert loaded.events[:-1] == study.events[:-1]
    assert refused > 50


def test_failed_save_leaves_the_old_file(study, path, monkeypatch):
    old = path.read_bytes()

    def fail(*_args, **_kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    with pytest.raises(StorageError, match=r"can be written; got path=.*disk full.*free the disk"):
        study.save(path)
    assert path.read_bytes() == old
    assert list(path.parent.iterdir()) == [path]


def test_saving_through_a_link_keeps_the_link(study, path):
    link = path.with_name("link.study")
    link.symlink_to(path.name)
    study.enrol("carl")
    study.save(link)
    assert link.is_symlink()
    assert Study.load(path).users == study.users == ("anna", "ben", "carl")


def test_what_a_killed_process_left_is_removed(study, path):
    """Files that another process still writes are locked, and stay."""
    names = (f".cocobandits-study-{name}.partial" for name in ("left", "busy"))
    left, busy = map(path.with_name, names)
    left.write_bytes(b"data of users")
    busy.write_bytes(b"being written")
    with busy.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for call in (study.save, Study.load):
            left.write_bytes(b"data of users")
            call(path)
            assert not left.exists()
            assert busy.exists()


def test_files_of_others_stay_and_are_not_waited_for(study, path):
    notes = path.with_name(".study-notes.txt")
    notes.write_text("mine")
    os.mkfifo(path.with_name(".cocobandits-study-pipe.partial"))
    study.save(path)
    assert Study.load(path).users == study.users
    assert notes.read_text() == "mine"


def test_many_writers_of_one_folder_do_not_meet(study, path):
    """Each removes what others left, and never what they write."""

    def write(number):
        for _ in range(15):
            plain = archive.read(path)
            archive.write(path.with_name(f"{number}.study"), plain)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert Study.load(path.with_name("3.study")).users == study.users
    assert list(path.parent.glob(".cocobandits*")) == []


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\n", "\x1c"])
def test_names_with_ends_of_lines_come_back(mark, tmp_path):
    study = Study(["a", "b"], {"sex": ["f", f"m{mark}n"]}, DESIGN["rewards"], "uniform", seed=0)
    study.enrol(f"ben{mark}jo", {"sex": f"m{mark}n"}, at=f"day{mark}1", request_id=f"r{mark}1")
    study.suspend("a", f"see{mark}below")
    study.save(tmp_path / "one.study")
    assert Study.load(tmp_path / "one.study").events == study.events


@pytest.mark.parametrize("rows", [0, 100])
def test_a_snapshot_of_another_size_is_not_used(study, path, rows):
    array = np.load(io.BytesIO(members(path)["0.npy"]))
    buffer = io.BytesIO()
    np.save(buffer, array[:rows])
    rewrite(path, {"0.npy": buffer.getvalue()})
    assert Study.load(path).decide("ben") == study.decide("ben")


def test_only_the_owner_can_read_the_file(path):
    assert path.stat().st_mode & 0o077 == 0
    assert os.getuid() == path.stat().st_uid


def test_health_is_kept(tmp_path):
    study = make_study("npm-ts")
    assert study.health is not None
    study.save(tmp_path / "one.study")
    assert str(Study.load(tmp_path / "one.study").health) == str(study.health)


def test_a_saved_study_holds_no_pickle(path):
    with np.load(path, allow_pickle=False) as file:
        arrays = [file[name] for name in file.files if name.isdigit()]
    assert len(arrays) == len([name for name in members(path) if name.endswith(".npy")])


def test_limits_are_far_above_what_studies_need(path):
    sizes = {name: len(content) for name, content in members(path).items()}
    for name, most in archive.MOST_BYTES.items():
        assert sizes[name] < most / 10
