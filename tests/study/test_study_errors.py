"""Bad input gets one clear error that names the value and the remedy, and changes nothing."""

import hashlib
import json
import math
import zipfile

import jax
import numpy as np
import pytest

from cocobandits import CocoError, Gaussian, LogDensity, NpmTS, PaperLogDensity, Study
from cocobandits.errors import (
    ConfigurationError,
    ConflictError,
    GridTooLargeError,
    InputError,
    NumericalError,
    StorageError,
    UnknownNameError,
    UnsupportedError,
)
from support.designs import small

GRID = LogDensity(nodes_per_arm=4, num_modes=6)
DESIGN = {
    "arms": ["a", "b"],
    "context": {"age": (18, 90), "sex": ["f", "m"]},
    "rewards": Gaussian(0.0, 1.0, noise=0.05),
    "policy": small("npm-ts", population=GRID, num_particles=10),
}
GOOD = {"age": 34, "sex": "f"}


@pytest.fixture
def study():
    made = Study(**DESIGN)
    made.enrol("anna", GOOD)
    made.enrol("gone", GOOD)
    made.reward(made.decide("anna").id, 0.5)
    made.withdraw("gone")
    made.decide("anna")
    return made


def _fingerprint(study: Study) -> list:
    arrays = [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(study._learner.remember()[:2])]
    log = study._log
    return [arrays, study.users, dict(study._open), list(log.rewards), list(log.statuses)]


DESIGN_ERRORS = [
    ({"arms": ["a"]}, ConfigurationError, r"at least two arms; got arms=\['a'\]. Add"),
    ({"arms": ["a", ""]}, ConfigurationError, r"name of 1 to 256 characters; got arm=''"),
    ({"arms": ["a", "b", "a"]}, ConfigurationError, r"different names; got arm=\['a'\]"),
    ({"arms": ["a", 3]}, ConfigurationError, r"got arm=3"),
    ({"context": {"age": (90, 18)}}, ConfigurationError, r"low < high; got age=\(90, 18\)"),
    (
        {"context": {"age": [18, 90]}},
        ConfigurationError,
        r"range \(low, high\), a list.*\(18, 90\)",
    ),
    ({"context": {"sex": ["f", "f"]}}, ConfigurationError, r"different categories; got sex"),
    ({"context": {"": (0, 1)}}, ConfigurationError, r"got feature=''"),
    (
        {"policy": "best"},
        UnknownNameError,
        r"policy='best'.*coids, npm-ts, gids, mtts, hierts, .*17 in all",
    ),
    ({"seed": -1}, ConfigurationError, r"whole number from zero to 2\^63 - 1; got seed=-1"),
    ({"seed": 1.5}, ConfigurationError, r"got seed=1.5"),
    ({"seed": 2**63}, ConfigurationError, r"zero to 2\^63 - 1; got seed=9223372036854775808"),
    ({"arms": "ab"}, ConfigurationError, r"list of arm names; got arms='ab'"),
    ({"arms": 5}, ConfigurationError, r"list of arm names; got arms=5"),
    ({"context": None}, ConfigurationError, r"mapping from feature.*got context=None"),
    ({"policy": {}}, ConfigurationError, r"name of a policy, or its settings; got policy=\{\}"),
    ({"policy": NpmTS}, ConfigurationError, r"its settings; got policy=<class .*CoIDS\(steps"),
    ({"rewards": (0, 1)}, ConfigurationError, r"or Bernoulli\(\); got rewards=\(0, 1\). Write"),
    ({"context": {"sex": ["f", ""]}}, ConfigurationError, r"category names, or bool; got sex"),
    (
        {"arms": list("abcdef"), "policy": NpmTS(population=PaperLogDensity())},
        GridTooLargeError,
        r"20\^6 = 64,000,000 cells x 200 particles = 307,200,000,000 bytes. Lower the nodes",
    ),
    (
        {"policy": NpmTS(population=PaperLogDensity(num_modes=10_000, nodes_per_arm=3))},
        ConfigurationError,
        r"at most .* modes on this grid; got num_modes=10000",
    ),
]


@pytest.mark.parametrize(("change", "error", "message"), DESIGN_ERRORS)
def test_design_is_refused(change, error, message):
    with pytest.raises(error, match=message) as caught:
        Study(**(DESIGN | change))
    assert isinstance(caught.value, CocoError)


CALL_ERRORS = [
    (lambda s: s.decide("nobody"), UnknownNameError, r"user='nobody'. Known: anna. Enrol"),
    (lambda s: s.decide("gone"), UnknownNameError, r"user='gone'"),
    (lambda s: s.explain("nobody"), UnknownNameError, r"user='nobody'"),
    (lambda s: s.withdraw("nobody"), UnknownNameError, r"user='nobody'"),
    (lambda s: s.withdraw("gone"), UnknownNameError, r"user='gone'"),
    (lambda s: s.enrol("", GOOD), InputError, r"id of 1 to 256 characters; got user=''"),
    (lambda s: s.enrol("u\ud800", GOOD), InputError, r"characters; got user="),
    (
        lambda s: s.enrol("u" * 257, GOOD),
        InputError,
        r"1 to 256 characters; got user='u+\.\.\.u+'\.",
    ),
    (lambda s: s.enrol(7, GOOD), InputError, r"got user=7"),
    (lambda s: s.enrol("anna", GOOD | {"age": 35}), ConflictError, r"user='anna'.*another id"),
    (lambda s: s.enrol("gone", GOOD), ConflictError, r"user='gone', who has withdrawn"),
    (lambda s: s.enrol("bob", GOOD | {"age": 17}), InputError, r"18 to 90; got age=17"),
    (lambda s: s.enrol("bob", GOOD | {"age": float("nan")}), InputError, r"got age=nan"),
    (lambda s: s.enrol("bob", GOOD | {"age": "34"}), InputError, r"a number; got age='34'"),
    (lambda s: s.enrol("bob", GOOD | {"age": True}), InputError, r"a number; got age=True"),
    (lambda s: s.enrol("bob", GOOD | {"sex": "x"}), InputError, r"\['f', 'm'\]; got sex='x'"),
    (lambda s: s.enrol("bob", GOOD | {"sex": 1}), InputError, r"got sex=1"),
    (lambda s: s.enrol("bob", GOOD | {"height": 1}), UnknownNameError, r"feature='height'"),
    (lambda s: s.enrol("bob", [34, "f"]), InputError, r"mapping from feature to value"),
    (lambda s: s.population({"height": 34}), UnknownNameError, r"feature='height'"),
    (lambda s: s.reward("d9", 0.5), UnknownNameError, r"decision='d9'.*the last is shown"),
    (lambda s: s.reward("x", 0.5), UnknownNameError, r"decision='x'"),
    (lambda s: s.reward(2, 0.5), UnknownNameError, r"decision=2"),
    (lambda s: s.reward("d01", 0.5), UnknownNameError, r"decision='d01'"),
    (lambda s: s.reward("d" + "1" * 5000, 0.5), UnknownNameError, r"decision='d111"),
    (lambda s: s.reward("d1", 10**400), InputError, r"finite number; got reward=1000"),
    (lambda s: s.decide(["anna"]), UnknownNameError, r"user=\['anna'\]"),
    (lambda s: s.reward("d1", float("nan")), InputError, r"finite number; got reward=nan"),
    (lambda s: s.reward("d1", float("inf")), InputError, r"finite number; got reward=inf"),
    (lambda s: s.reward("d1", None), InputError, r"finite number; got reward=None"),
    (lambda s: s.reward("d1", "0.5"), InputError, r"finite number; got reward='0.5'"),
    (lambda s: s.reward("d1", 1.51), InputError, r"from -0.5 to 1.5 .*got reward=1.51. Check"),
    (lambda s: s.reward("d1", -0.51), InputError, r"got reward=-0.51"),
    (lambda s: s.reward("d0", 0.6), ConflictError, r"has reward 0.5. Use correct\('d0', 0.6\)"),
    (lambda s: s.correct("d1", 0.6), ConflictError, r"which is open. Use reward\('d1', value\)"),
    (lambda s: s.correct("d0", 7.0), InputError, r"got reward=7.0"),
    (lambda s: s.close("d0"), ConflictError, r"open decision; got decision='d0', which has reward"),
]


def test_long_names_are_not_repeated_in_full(study):
    long = "u" * 1_000_000
    for call in (study.enrol, study.decide, study.add_arm, study.reward):
        arguments = (0.5,) if call == study.reward else ()
        with pytest.raises(CocoError, match=r"uuu\.\.\.uuu") as caught:
            call(long, *arguments)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize(("call", "error", "message"), CALL_ERRORS)
def test_call_is_refused_and_changes_nothing(study, call, error, message):
    before = _fingerprint(study)
    with pytest.raises(error, match=message) as caught:
        call(study)
    assert isinstance(caught.value, CocoError)
    assert _fingerprint(study) == before


def test_rewards_of_a_withdrawn_user_are_refused():
    study = Study(**DESIGN)
    study.enrol("anna", GOOD)
    decision = study.decide("anna")
    study.withdraw("anna")
    for call in (lambda: study.reward(decision.id, 0.5), lambda: study.close(decision.id)):
        with pytest.raises(ConflictError, match="'d0', whose user has withdrawn"):
            call()


def test_policy_without_beliefs_says_so():
    study = Study(**(DESIGN | {"policy": "uniform"}))
    study.enrol("anna", GOOD)
    with pytest.raises(UnsupportedError, match=r"holds beliefs; got policy='uniform'.*coids"):
        study.explain("anna")


def _rewrite(path, member: str, content: bytes) -> None:
    """Replace one member, and seal the text again as if it had been written so."""
    with zipfile.ZipFile(path) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()}
    if member == "study.json":
        kept["study.json.sha256"] = hashlib.sha256(content).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, old in (kept | {member: content}).items():
            archive.writestr(name, old)


def test_load_refuses_what_is_not_a_saved_study(study, tmp_path):
    path = tmp_path / "one.study"
    with pytest.raises(StorageError, match="does not exist"):
        Study.load(path)
    path.write_bytes(b"hello")
    with pytest.raises(StorageError, match=r"not an archive with a study.json"):
        Study.load(path)
    np.savez(tmp_path / "foreign.npz", a=np.zeros(3))
    with pytest.raises(StorageError, match=r"not an archive with a study.json"):
        Study.load(tmp_path / "foreign.npz")
    study.save(path)
    _rewrite(path, "study.json", b'{"format": "other"}')
    with pytest.raises(StorageError, match="another program"):
        Study.load(path)


def test_load_finds_changed_arrays(study, tmp_path):
    path = tmp_path / "one.study"
    study.save(path)
    with zipfile.ZipFile(path) as archive:
        content = bytearray(archive.read("rewards.npy"))
    content[-1] ^= 1
    _rewrite(path, "rewards.npy", bytes(content))
    with pytest.raises(StorageError, match="the array 'rewards' was changed"):
        Study.load(path)


def test_load_finds_a_truncated_file(study, tmp_path):
    path = tmp_path / "one.study"
    study.save(path)
    whole = path.read_bytes()
    for share in (0.1, 0.5, 0.99):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(StorageError, match="Restore it from a backup"):
            Study.load(path)


def test_load_refuses_a_later_version_and_a_broken_design(study, tmp_path):
    path = tmp_path / "one.study"
    study.save(path)
    with zipfile.ZipFile(path) as archive:
        text = json.loads(archive.read("study.json"))
    _rewrite(path, "study.json", json.dumps(text | {"version": 99}).encode())
    with pytest.raises(StorageError, match=r"version 6 of the format; got version=99"):
        Study.load(path)
    broken = text | {"design": text["design"] | {"arms": ["a"]}}
    _rewrite(path, "study.json", json.dumps(broken).encode())
    with pytest.raises(StorageError, match=r"its content cannot be used .Expected at least two"):
        Study.load(path)
    wider = text | {"design": text["design"] | {"arms": ["a", "b", "c"]}}
    _rewrite(path, "study.json", json.dumps(wider).encode())
    with pytest.raises(StorageError, match="its state does not fit its design"):
        Study.load(path)
    _rewrite(
        path, "study.json", json.dumps({k: v for k, v in text.items() if k != "users"}).encode()
    )
    with pytest.raises(StorageError, match="its content cannot be used"):
        Study.load(path)


def test_failed_save_leaves_the_old_file(study, tmp_path, monkeypatch):
    path = tmp_path / "one.study"
    study.save(path)
    old = path.read_bytes()

    def fail(*_args, **_kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    with pytest.raises(StorageError, match=r"can be written; got path=.*disk full.*free the disk"):
        study.save(path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_any_flipped_byte_is_found_or_harmless(study, tmp_path):
    """Damage the file at 150 places, one at a time: it loads the same study, or says so."""
    path = tmp_path / "one.study"
    study.save(path)
    whole = path.read_bytes()
    expected = study.decide("anna")
    refused = 0
    for place in np.random.default_rng(0).integers(len(whole), size=150):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        try:
            assert Study.load(path).decide("anna") == expected
        except StorageError:
            refused += 1
    assert refused > 100


def test_edited_text_is_found(study, tmp_path):
    path = tmp_path / "one.study"
    study.save(path)
    with zipfile.ZipFile(path) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()}
    kept["study.json"] = kept["study.json"].replace(b'"num_updates": 2', b'"num_updates": 7')
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in kept.items():
            archive.writestr(name, content)
    with pytest.raises(StorageError, match=r"study.json was changed"):
        Study.load(path)


def test_save_to_a_folder_is_refused(study, tmp_path):
    with pytest.raises(StorageError, match="place that can be written"):
        study.save(tmp_path)


def test_numpy_numbers_can_be_saved(tmp_path):
    rewards = Gaussian(np.int64(0), np.int64(1), noise=np.float32(0.05))
    study = Study(**(DESIGN | {"rewards": rewards}), seed=np.int64(3))
    study.save(tmp_path / "one.study")
    assert Study.load(tmp_path / "one.study").design == study.design


def test_probabilities_that_are_not_a_distribution_are_refused(study, monkeypatch):
    broken = jax.numpy.array([math.nan, 0.5])
    monkeypatch.setattr(study._policy, "probabilities", lambda *_: broken)
    study.close("d1")
    before = _fingerprint(study)
    with pytest.raises(NumericalError, match=r"sum to one; got \[nan, 0.5\] from policy='npm-ts'"):
        study.decide("anna")
    assert _fingerprint(study) == before


def test_saved_study_holds_no_pickle(study, tmp_path):
    path = tmp_path / "one.study"
    study.save(path)
    with np.load(path, allow_pickle=False) as archive:
        arrays = {
            name: archive[name] for name in archive.files if not name.startswith("study.json")
        }
    assert arrays["rewards"].shape == (2,)
