"""Logs to be evaluated: a small one by hand, and simulated ones whose truth is known."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from cocobandits.logs.table import LogRow, build_log

ARMS = ("a", "b", "c")
NAMES = ("ips", "snips", "dr")
# user, arm, probabilities of a and b, reward
SMALL = [
    ("u1", "a", (0.5, 0.5), 1.0),
    ("u1", "b", (0.75, 0.25), 2.0),
    ("u2", "a", (0.8, 0.2), 3.0),
    ("u2", "b", (0.5, 0.5), 4.0),
    ("u3", "a", (0.4, 0.6), 2.0),
]


def make_row(user, arm, probabilities, reward, context=None, **changes) -> LogRow:
    chosen = probabilities["ab".index(arm)]
    row = LogRow(
        "d",
        user,
        0,
        arm,
        chosen,
        0.5,
        reward,
        "rewarded",
        False,
        probabilities,
        probabilities,
        tuple(probability > 0 for probability in probabilities),
        context or {},
    )
    return row._replace(**changes)


def make_log(decisions=SMALL, features=(), **changes):
    rows = [make_row(*decision, **changes) for decision in decisions]
    return build_log(["a", "b"], features, rows, {})


def values_of(report) -> list[float]:
    return [getattr(report, name).value for name in NAMES]


def errors_of(report) -> list[float]:
    return [getattr(report, name).standard_error for name in NAMES]


INTERCEPTS = np.array([0.3, 0.8, -0.2])
SLOPES = np.array([0.5, -0.7, 0.1])
EDGE = 0.5


def linear(x):
    return x


def wavy(x):
    """A response of mean zero that no line fits."""
    return np.cos(2 * x) - math.exp(-2)


def bent(x):
    """A response of mean zero with a long tail: some arm is very bad for few users."""
    return x**2 - 1


def split(context):
    """A target that looks at the context."""
    return {"a": 0.8, "b": 0.2} if context["x"] > EDGE else "b"


def truth_of(target, response) -> float:
    """Integrate Σ π(a|x) μ_a(x) over x ~ N(0, 1)."""

    def mean(x):
        shares = {target: 1.0} if isinstance(target, str) else as_mix(target({"x": x}))
        means = INTERCEPTS + SLOPES * response(x)
        return norm.pdf(x) * sum(shares.get(arm, 0) * means[n] for n, arm in enumerate(ARMS))

    return quad(mean, -9, EDGE)[0] + quad(mean, EDGE, 9)[0]


def as_mix(answer):
    return {answer: 1.0} if isinstance(answer, str) else answer


class World(NamedTuple):
    """Users in random order, served by a policy that follows the user's and everybody's rewards."""

    num_users: int = 60
    num_steps: int = 4
    response: Callable = linear
    user_deviation: float = 0.4
    is_adaptive: bool = True

    def simulate(self, rng, num_logs):
        """Simulate many logs, one decision of each at a time."""
        logs, num_decisions = np.arange(num_logs), self.num_users * self.num_steps
        order = np.tile(np.repeat(np.arange(self.num_users), self.num_steps), (num_logs, 1))
        order = rng.permuted(order, axis=1)
        x = rng.normal(size=(num_logs, self.num_users))
        means = INTERCEPTS + SLOPES * self.response(x)[..., None]
        means += self.user_deviation * rng.normal(size=means.shape)
        sums, counts = np.zeros(means.shape), np.zeros(means.shape)
        probabilities = np.zeros((num_logs, num_decisions, 3))
        chosen = np.zeros((num_logs, num_decisions), int)
        rewards = np.zeros((num_logs, num_decisions))
        for step in range(num_decisions):
            user = order[:, step]
            probability = self._probabilities(sums, counts, (logs, user))
            draw = rng.random((num_logs, 1))
            arm = np.minimum(np.sum(np.cumsum(probability, axis=1) <= draw, axis=1), 2)
            reward = means[logs, user, arm] + 0.5 * rng.normal(size=num_logs)
            sums[logs, user, arm] += reward
            counts[logs, user, arm] += 1
            probabilities[:, step], chosen[:, step], rewards[:, step] = probability, arm, reward
        return [
            as_columns(order[n], probabilities[n], chosen[n], rewards[n], x[n, order[n]])
            for n in range(num_logs)
        ]

    def _probabilities(self, sums, counts, place):
        pooled = sums.sum(axis=1) / np.maximum(counts.sum(axis=1), 1)
        believed = (sums[place] + pooled) / (counts[place] + 1)
        wanted = (
            np.exp(3 * believed) if self.is_adaptive else np.tile([3.0, 1.0, 2.0], (len(pooled), 1))
        )
        return 0.1 + 0.7 * wanted / wanted.sum(axis=1, keepdims=True)


def as_columns(users, probabilities, chosen, rewards, x):
    num = len(users)
    columns = {
        "user": [f"u{user}" for user in users],
        "arm": [ARMS[arm] for arm in chosen],
        "probability": probabilities[np.arange(num), chosen],
        "reward": np.asarray(rewards, float),
        "status": ["rewarded"] * num,
        "is_withdrawn": [False] * num,
        "context.x": x,
    }
    for number, arm in enumerate(ARMS):
        columns |= {f"probability.{arm}": probabilities[:, number], f"eligible.{arm}": [True] * num}
    return columns


def simulate_log(seed, **world):
    return World(**world).simulate(np.random.default_rng(seed), 1)[0]
