"""Other libraries behind our contract: their choices against closed forms, and whole runs."""

import math

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
from peers.libraries import LIBRARIES, BayesianBandit, Task, encode  # noqa: E402
from peers.run import PEERS, PeerStudy, peer_suite  # noqa: E402

from cocobandits.environments.registry import find_environment  # noqa: E402
from cocobandits.runs.info import Source  # noqa: E402
from cocobandits.runs.pool import fill, plan  # noqa: E402
from cocobandits.runs.results import read_results  # noqa: E402
from cocobandits.runs.store import open_folder  # noqa: E402

FEATURES = np.array([1.0, -0.5])
NUM_DRAWS = 1500
# Taught to the first of two arms; the other keeps its prior.
REWARDS = (3.4, 3.1)


def make_task(sharing="per user", is_yes_no=False, noise=0.5):
    """Two arms and one feature, rewards on [1, 4], or yes and no."""
    middle, width = (0.5, 1.0) if is_yes_no else (2.5, 3.0)
    return Task(sharing, 2, 2, 2, middle, width, noise, is_yes_no)


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
    bandit = LIBRARIES[library](task, 11)
    for reward in REWARDS:
        bandit.learn(FEATURES, 0, reward)
    mean, variance = posterior(REWARDS, task.deviation, noise, task.middle)
    none = task.deviation**2 * FEATURES @ FEATURES
    check_frequency(bandit, norm.cdf(mean / math.sqrt(variance + none)))


def test_learned_noise_gives_student_laws():
    """Normal-inverse-gamma by hand: a = 2, b = noise², then t laws with 2a degrees of freedom."""
    task = make_task("pooled", noise=0.8)
    bandit = BayesianBandit(task, 12)
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


@pytest.mark.parametrize("library", LIBRARIES)
def test_yes_and_no_are_counted_per_user(library):
    """P(Beta(3, 1) > Beta(1, 1)) = 3 / 4 after two yeses; a no brings it to 3 / 5."""
    bandit = LIBRARIES[library](make_task(is_yes_no=True), 13)
    for _ in range(2):
        bandit.learn(FEATURES, 0, 1.0)
    check_frequency(bandit, 3 / 4)
    bandit.learn(FEATURES, 0, 0.0)
    check_frequency(bandit, 3 / 5)


def test_pooled_chances_are_logistic():
    """Laplace's law of one yes by hand; logits of both arms are compared."""
    task = make_task("pooled", is_yes_no=True)
    bandit = BayesianBandit(task, 14)
    bandit.learn(FEATURES, 0, 1.0)
    variance = task.logit_deviation**2 * FEATURES @ FEATURES
    mode = brentq(lambda logit: logit - variance * (1 - expit(logit)), 0, 10)
    curvature = expit(mode) * (1 - expit(mode))
    both = 1 / (1 / variance + curvature) + variance
    check_frequency(bandit, norm.cdf(mode / math.sqrt(both)))


@pytest.mark.parametrize("environment", ["mixture", "yes-no"])
@pytest.mark.parametrize("peer", PEERS)
def test_sharing_decides_which_users_learn(peer, environment):
    """After one user's twenty good rewards of an arm, ask for another user with the same context.

    Alone, that user draws every arm alike; together, the arm that was good, less often with
    effects of users.
    """
    described = find_environment(environment)
    served = PeerStudy(peer, described, 5)
    for user in ("user-0", "user-1"):
        served.enrol(user, {"x": 0.3})
    for _ in range(20):
        served.reward(("user-0", 1), described.rewards.range[1])
    arms = [[served.decide(user).arm for _ in range(200)] for user in ("user-0", "user-1")]
    shares = [drawn.count(described.arms[1]) / 200 for drawn in arms]
    alone = 1 / len(described.arms)
    assert shares[0] > 1.5 * alone
    if "per user" in peer:
        assert abs(shares[1] - alone) < 4 * math.sqrt(alone * (1 - alone) / 200)
    else:
        assert shares[1] > 1.5 * alone
    if "user effects" in peer:
        assert shares[1] < shares[0]


def test_contexts_are_written_by_hand():
    """Numbers, one-hot categories, truths; a missing value is zero."""
    survey = find_environment("survey-missing")
    sex = survey.context["sex"][1]
    full = encode(survey, {"age": 0.5, "motivation": -1.0, "sex": sex, "smoker": False})
    np.testing.assert_array_equal(full, [1.0, 0.5, -1.0, 0.0, 1.0, -1.0])
    np.testing.assert_array_equal(encode(survey, {"sex": None}), [1.0, 0, 0, 0, 0, 0])


def test_tasks_follow_from_what_is_declared():
    """Coefficients fill the range together; the noise is the declared one."""
    survey = find_environment("survey")
    alone, pooled, effects = (
        Task.of(survey, name) for name in ("per user", "pooled", "user effects")
    )
    spread = 4.0 / math.sqrt(12)
    assert alone.deviation * math.sqrt(5) == pytest.approx(spread)
    assert effects.deviation * math.sqrt(6) == pytest.approx(spread)
    assert pooled.deviation == alone.deviation
    assert (alone.noise, pooled.noise, effects.noise) == (0.3, 0.3, 0.3)
    assert (alone.num_columns, effects.num_columns) == (6, 156)
    assert Task.of(find_environment("yes-no"), "pooled").noise == 0.5


@pytest.mark.parametrize("peer", PEERS)
def test_same_seed_gives_the_same_cell(peer):
    """All of a cell but its time."""
    suite = peer_suite(["diet"], [peer], 2)
    (first, _), source = suite.cells(), Source({}, [])
    tables = [cell.run(source) for cell in (first, first, suite.cells()[1])]
    regrets = [table["regret"].drop_null().to_pylist() for table in tables]
    assert len(regrets[0]) == 240
    assert regrets[0] == regrets[1] != regrets[2]


def test_peers_are_added_to_a_comparison(tmp_path):
    """Two seeds after one: only the second is run, in other processes."""
    ran = []
    for num_seeds in (1, 2):
        source = Source.here(1)
        with open_folder(tmp_path) as folder:
            tasks = peer_suite(["diet"], ["mabwiser pooled"], num_seeds).cells()
            todo = plan(folder, tasks, source).todo
            ran.append([task.key.seed for task, _ in fill(folder, todo, source, 1)])
    assert ran == [[0], [1]]
    assert read_results(tmp_path).total_regret("diet", "mabwiser pooled").all()
