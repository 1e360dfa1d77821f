"""Other libraries behind our contract: their choices against closed forms, and whole runs."""

import json
import math
from collections import Counter

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm, t

REASON = "MABWiser and bayesianbandits are not installed: make peers"
pytest.importorskip("mabwiser", reason=REASON)
pytest.importorskip("bayesianbandits", reason=REASON)

# The adapters import the libraries.
from peers import run, with_bayesianbandits, with_mabwiser  # noqa: E402
from peers.adapters import PEERS, build_peer  # noqa: E402
from peers.task import Encoder, Task  # noqa: E402

from cocobandits.environments.registry import build_environment  # noqa: E402

BUILDERS = {"mabwiser": with_mabwiser.build, "bayesianbandits": with_bayesianbandits.build}
FEATURES = np.array([1.0, -0.5])
NUM_DRAWS = 1500
# Taught to the first of two arms; the other keeps its prior.
REWARDS = (3.4, 3.1)


def make_task(sharing="per user", is_yes_no=False, noise=0.5):
    """Two arms and one feature, rewards on [1, 4], or yes and no."""
    middle, width = (0.5, 1.0) if is_yes_no else (2.5, 3.0)
    return Task(sharing, 2, 7, 2, 2, middle, width, noise, is_yes_no)


def check_frequency(bandit, expected):
    """Compare how often the first arm is drawn, within four standard errors."""
    share = np.mean([bandit.choose(FEATURES) == 0 for _ in range(NUM_DRAWS)])
    assert abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / NUM_DRAWS)


def posterior(rewards, deviation, noise, middle):
    """Normal law of features · coefficients, by hand: coefficients N(0, deviation²), iid noise.

    All rewards are at the same features, so only the mean at these is learned.
    """
    variance = deviation**2 * FEATURES @ FEATURES
    precision = 1 / variance + len(rewards) / noise**2
    return sum(np.array(rewards) - middle) / noise**2 / precision, 1 / precision


@pytest.mark.parametrize(
    ("library", "sharing"),
    [("mabwiser", "per user"), ("mabwiser", "pooled"), ("bayesianbandits", "per user")],
)
@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_normal_rewards_give_the_posterior_of_a_regression(library, sharing, noise):
    """P(N(m, v) > N(0, v')) of an arm with rewards against one that has none."""
    task = make_task(sharing, noise=noise)
    bandit = BUILDERS[library](task, 11)
    for reward in REWARDS:
        bandit.learn(FEATURES, 0, reward)
    mean, variance = posterior(REWARDS, task.deviation, noise, task.middle)
    none = task.deviation**2 * FEATURES @ FEATURES
    check_frequency(bandit, norm.cdf(mean / math.sqrt(variance + none)))


def test_learned_noise_gives_student_laws():
    """Normal-inverse-gamma by hand: a = 2, b = noise², then t laws with 2a degrees of freedom."""
    task = make_task("pooled", noise=0.8)
    bandit = with_bayesianbandits.build(task, 12)
    for reward in REWARDS:
        bandit.learn(FEATURES, 0, reward)
    y = np.array(REWARDS) - task.middle
    ratio = task.noise**2 / task.deviation**2
    form = FEATURES @ FEATURES / ratio  # of the mean at the features, over the noise variance
    kept = form / (1 + len(y) * form)
    a, b = 2 + len(y) / 2, task.noise**2 + (y @ y - kept * y.sum() ** 2) / 2
    taught = t(2 * a, loc=kept * y.sum(), scale=math.sqrt(b / a * kept))
    prior = t(4, scale=math.sqrt(task.noise**2 / 2 * form))
    expected, _ = quad(lambda value: taught.pdf(value) * prior.cdf(value), -10, 10)
    check_frequency(bandit, expected)


@pytest.mark.parametrize("library", BUILDERS)
def test_yes_and_no_are_counted_per_user(library):
    """P(Beta(3, 1) > Beta(1, 1)) = 3 / 4 after two yeses; a no brings it to 3 / 5."""
    bandit = BUILDERS[library](make_task(is_yes_no=True), 13)
    for _ in range(2):
        bandit.learn(FEATURES, 0, 1.0)
    check_frequency(bandit, 3 / 4)
    bandit.learn(FEATURES, 0, 0.0)
    check_frequency(bandit, 3 / 5)


def test_pooled_chances_are_logistic():
    """Laplace's law of one yes by hand; logits of both arms are compared."""
    task = make_task("pooled", is_yes_no=True)
    bandit = with_bayesianbandits.build(task, 14)
    bandit.learn(FEATURES, 0, 1.0)
    variance = task.logit_deviation**2 * FEATURES @ FEATURES
    mode = brentq(lambda logit: logit - variance * (1 - expit(logit)), 0, 10)
    curvature = expit(mode) * (1 - expit(mode))
    both = 1 / (1 / variance + curvature) + variance
    check_frequency(bandit, norm.cdf(mode / math.sqrt(both)))


@pytest.mark.parametrize("environment", ["mixture", "yes-no"])
@pytest.mark.parametrize("peer", PEERS)
def test_who_learns_from_whom(peer, environment):
    """After one user's twenty good rewards of an arm, ask for another user with the same context.

    Alone, that user draws every arm alike; together, the arm that was good, less often if users
    are told apart.
    """
    described = build_environment(environment)
    served = build_peer(peer, described, 5)
    context, good = Encoder(described).encode({"x": 0.3}), described.reward_range[1]
    served.choose(0, context)
    for _ in range(20):
        served.learn(0, context, 1, good)
    shares = [Counter(served.choose(user, context) for _ in range(200))[1] / 200 for user in (0, 1)]
    alone = 1 / len(described.arms)
    assert shares[0] > 1.5 * alone
    if "per user" in peer:
        assert abs(shares[1] - alone) < 4 * math.sqrt(alone * (1 - alone) / 200)
    else:
        assert shares[1] > 1.5 * alone
    if "user effects" in peer:
        assert shares[1] < shares[0]


def test_contexts_are_written_by_hand():
    """Numbers, one-hot categories, truths; what is missing is zero."""
    encoder = Encoder(build_environment("survey-missing"))
    sexes = build_environment("survey-missing").context["sex"]
    full = encoder.encode({"age": 0.5, "motivation": -1.0, "sex": sexes[1], "smoker": False})
    np.testing.assert_array_equal(full, [1.0, 0.5, -1.0, 0.0, 1.0, -1.0])
    np.testing.assert_array_equal(encoder.encode({"sex": None}), [1.0, 0, 0, 0, 0, 0])
    assert encoder.num_columns == 6


def test_tasks_follow_from_what_is_declared():
    """Coefficients fill the range together; the noise is the declared one."""
    survey = build_environment("survey")
    alone, pooled, told = (Task.of(survey, name) for name in ("per user", "pooled", "user effects"))
    spread = 4.0 / math.sqrt(12)
    assert alone.deviation * math.sqrt(5) == pytest.approx(spread)
    assert told.deviation * math.sqrt(6) == pytest.approx(spread)
    assert pooled.deviation == alone.deviation
    assert (alone.noise, pooled.noise, told.noise) == (0.3, 0.3, 0.3)
    assert (alone.num_columns, told.num_columns) == (6, 156)
    assert Task.of(build_environment("yes-no"), "pooled").noise == 0.5


@pytest.mark.parametrize("peer", PEERS)
def test_same_seed_gives_the_same_run(peer):
    """All of a cell but its time."""
    first, again, other = (run.run_cell("diet", peer, seed) for seed in (2, 2, 3))
    assert first.pop("seconds") > 0
    assert again.pop("seconds") > 0
    assert first == again
    assert list(first) == ["environment", "policy", "seed", "steps", "total_regret"]
    assert first["steps"] == 240
    assert first["total_regret"] != other["total_regret"]


def test_finished_cells_are_not_run_again(tmp_path, monkeypatch, capsys):
    """Two seeds after one: only the second is run, and nothing under other packages."""
    ran = []

    def run_cell(name, policy, seed):
        ran.append((name, policy, seed))
        names = {"environment": name, "policy": policy, "seed": seed}
        return names | {"steps": 10, "total_regret": 1.0, "seconds": 0.05}

    monkeypatch.setattr(run, "run_cell", run_cell)
    path = tmp_path / "compare" / "peers.json"
    run.run(["diet", "lmm"], ["mabwiser pooled"], 1, path)
    run.run(["diet", "lmm"], ["mabwiser pooled"], 2, path)
    assert ran == [(name, "mabwiser pooled", seed) for seed in (0, 1) for name in ("diet", "lmm")]
    assert "2/2 lmm / mabwiser pooled / 1: regret 1.0, 5.00 ms" in capsys.readouterr().out
    written = json.loads(path.read_text())
    assert [cell["seed"] for cell in written["cells"]] == [0, 0, 1, 1]
    path.write_text(json.dumps(written | {"packages": {"mabwiser": "0.1"}}))
    with pytest.raises(ValueError, match=r"Expected cells made with .* Choose another file"):
        run.run(["diet"], ["mabwiser pooled"], 3, path)
    path.write_text("[]")
    with pytest.raises(ValueError, match="Expected a file that this script wrote"):
        run.run(["diet"], ["mabwiser pooled"], 3, path)


def test_unknown_peers_are_refused():
    with pytest.raises(KeyError, match="Expected one of"):
        build_peer("mabwiser together", build_environment("diet"), 0)
