"""Mixtures written out with loops and scipy, for the tests of this folder."""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import betainc, betaincinv, betaln
from scipy.stats import multivariate_normal, norm

from cocobandits.populations.base import Belief
from cocobandits.populations.gaussian_belief import GaussianBelief
from cocobandits.populations.mixture import MixtureConfig, MixtureModel

RANGE = (-1.5, 2.0)
NOISE = 0.3

SHARED = {"num_components": 3, "mean_range": RANGE, "reward_noise": NOISE, "precision": "double"}
CONFIGS = {
    "no features": MixtureConfig(3, (), **SHARED),
    "features": MixtureConfig(3, (None, 3), **SHARED),
    "learned noise": MixtureConfig(3, (None,), noise_deviation=0.8, **SHARED),
    "one component": MixtureConfig(4, (2,), **(SHARED | {"num_components": 1})),
    "one factor": MixtureConfig(3, (None,), rank=1, **SHARED),
    "yes or no": MixtureConfig(3, (None, 3), rewards="bernoulli", **SHARED),
}
GAUSSIAN = tuple(name for name, config in CONFIGS.items() if config.rewards == "gaussian")
UNCORRELATED = tuple(name for name in GAUSSIAN if CONFIGS[name].rank == 0)


@functools.cache
def model_of(name: str) -> MixtureModel:
    """Build the model of a name."""
    return MixtureModel(CONFIGS[name])


def particles_of(name: str, count: int) -> jnp.ndarray:
    """Draw whitened parameters."""
    size = model_of(name).num_parameters
    return jnp.asarray(np.random.default_rng(size).normal(size=(count, size)))


def contexts_of(config: MixtureConfig, count: int, seed: int = 4) -> np.ndarray:
    """Draw contexts: numbers between -1 and 1, and numbers of categories."""
    generator = np.random.default_rng(seed)
    columns = [
        generator.uniform(-1, 1, count) if kind is None else generator.integers(kind, size=count)
        for kind in config.features
    ]
    return np.array(columns, dtype=float).reshape(len(columns), count).T


def rewards_of(config: MixtureConfig, counts: Sequence[int], seed: int = 6) -> list[list[float]]:
    """Draw so many rewards of each arm."""
    generator = np.random.default_rng(seed)
    if config.rewards == "bernoulli":
        return [[float(r) for r in generator.choice(config.mean_range, size=n)] for n in counts]
    return [[float(r) for r in generator.normal(0.2, 0.6, size=n)] for n in counts]


class ByHand(NamedTuple):
    """A population at one context."""

    weights: np.ndarray  # component
    means: np.ndarray  # component × arm
    spreads: np.ndarray  # component × arm
    factors: np.ndarray  # component × arm × source
    noise: float

    @property
    def covariances(self) -> np.ndarray:
        """Add what arms have of their own to what they share."""
        own = np.stack([np.diag(row**2) for row in self.spreads])
        return own + self.factors @ self.factors.transpose(0, 2, 1)

    def belief(self) -> GaussianBelief:
        """Hold all covariances, densely."""
        return GaussianBelief(
            jnp.log(self.weights),
            jnp.asarray(self.means),
            jnp.asarray(self.covariances),
            float(self.noise),
        )


def terms_by_hand(config: MixtureConfig, context: Sequence[float]) -> np.ndarray:
    """List 1, values and categories."""
    terms = [1.0]
    for value, kind in zip(context, config.features, strict=True):
        if kind is None:
            terms.append(value)
        else:
            terms += [float(category == value) for category in range(kind)]
    return np.array(terms)


def features_of_terms(config: MixtureConfig) -> list[int | None]:
    """Name the feature that each term belongs to; none for the constant."""
    features = [None]
    for number, kind in enumerate(config.features):
        features += [number] * (1 if kind is None else kind)
    return features


def population_by_hand(
    config: MixtureConfig, parameters: Sequence[float], context: Sequence[float]
) -> ByHand:
    """Read parameter after parameter: scales, sticks, spreads, noise, then a block per arm."""
    take = iter([float(p) for p in parameters])
    terms, features = terms_by_hand(config, context), features_of_terms(config)
    components, sources = range(config.num_components), range(config.rank)
    level = 0.9 * math.exp(0.5 * next(take))
    crowd = math.sqrt(max(len(config.features), 1))
    slopes = [0.45 / crowd * math.exp(0.8 * next(take)) for _ in config.features]
    loading = 0.15 * math.exp(0.8 * next(take)) if config.rank else 0.0
    shift, left, weights = next(take), 1.0, []
    for _ in components[:-1]:
        logit = shift + sum(
            next(take) * term / (1.0 if feature is None else crowd)
            for term, feature in zip(terms, features, strict=True)
        )
        weights.append(left / (1 + math.exp(-logit)))
        left *= 1 / (1 + math.exp(logit))
    common = 0.8 * next(take)
    own_spread = [0.4 * next(take) for _ in components]
    noise = config.reward_noise
    if config.noise_deviation > 0:
        noise *= math.exp(config.noise_deviation * next(take))
    shape = (config.num_components, config.num_arms)
    means, spreads, factors = np.zeros(shape), np.zeros(shape), np.zeros((*shape, config.rank))
    scale = [None if f is None else slopes[f] for f in features]
    for arm in range(config.num_arms):
        line = sum(
            (0.7 if s is None else s) * next(take) * t for s, t in zip(scale, terms, strict=True)
        )
        for component in components:
            means[component, arm] = line + sum(
                (level if s is None else 1.5 * s) * next(take) * t
                for s, t in zip(scale, terms, strict=True)
            )
        for component, source in itertools.product(components, sources):
            factors[component, arm, source] = sum(loading * next(take) * t for t in terms)
        arm_spread = 0.3 * next(take)
        for component in components:
            spreads[component, arm] = 0.15 * math.exp(common + own_spread[component] + arm_spread)
    assert next(take, None) is None
    return ByHand(np.array([*weights, left]), means, spreads, factors, noise)


def counts_by_hand(hand: ByHand) -> tuple[np.ndarray, np.ndarray]:
    """Turn means and spreads into the two counts of Beta laws."""
    chance = 1 / (1 + np.exp(-1.5 * hand.means))
    pulls = 15 * (0.15 / hand.spreads) ** 2
    return pulls * chance, pulls * (1 - chance)


def raw_log_density(hand: ByHand, rewards: Sequence[Sequence[float]]) -> float:
    """Take all rewards as one Gaussian vector, component by component (scipy)."""
    arms = [arm for arm, given in enumerate(rewards) for _ in given]
    values = [reward for given in rewards for reward in given]
    pick = np.eye(hand.means.shape[1])[arms]
    density = 0.0
    for weight, mean, covariance in zip(hand.weights, hand.means, hand.covariances, strict=True):
        joint = pick @ covariance @ pick.T + hand.noise**2 * np.eye(len(values))
        density += weight * multivariate_normal.pdf(values, pick @ mean, joint)
    return math.log(density)


def raw_log_probability(hand: ByHand, rewards: Sequence[Sequence[float]], high: float) -> float:
    """Integrate over the logit of every arm's chance of success, component by component."""
    alpha, beta = counts_by_hand(hand)

    def of_arm(component: int, arm: int) -> float:
        given, a, b = rewards[arm], alpha[component, arm], beta[component, arm]
        wins, losses = given.count(high), len(given) - given.count(high)
        # The step and the reach are those at which the sum over a smooth bump is exact.
        logits = np.arange(-40 / min(a, 1) - 40, 40 / min(b, 1) + 40, 0.01)
        logs = -np.logaddexp(0, -logits), -np.logaddexp(0, logits)
        terms = (a + wins) * logs[0] + (b + losses) * logs[1] - betaln(a, b)
        return 0.01 * float(np.exp(terms).sum())

    chances = [
        weight * math.prod(of_arm(component, arm) for arm in range(len(rewards)))
        for component, weight in enumerate(hand.weights)
    ]
    return math.log(sum(chances))


def gaussian_contest(means: np.ndarray, deviations: np.ndarray) -> tuple[np.ndarray, float]:
    """Integrate over all arms' values on a fine grid: P(best), and the mean of the best."""
    steps = np.linspace(-9, 9, 4001)
    grids = [mean + deviation * steps for mean, deviation in zip(means, deviations, strict=True)]
    points = np.unique(np.concatenate(grids))
    below = norm.logcdf((points[:, None] - means) / deviations)
    density = norm.logpdf((points[:, None] - means) / deviations) - np.log(deviations)
    wins = np.exp(density + below.sum(axis=1, keepdims=True) - below)
    chances = np.trapezoid(wins, points, axis=0)
    return chances, float(np.trapezoid(wins.sum(axis=1) * points, points))


def beta_contest(alpha: np.ndarray, beta: np.ndarray) -> tuple[np.ndarray, float]:
    """Average over 20,000 quantiles of each arm whether all others lie below."""
    shares = (np.arange(20_000) + 0.5) / 20_000
    chances, mean = [], 0.0
    for arm, (a, b) in enumerate(zip(alpha, beta, strict=True)):
        values = betaincinv(a, b, shares)
        others = [betainc(alpha[o], beta[o], values) for o in range(len(alpha)) if o != arm]
        below = np.prod(others, axis=0)
        chances.append(below.mean())
        mean += float(np.mean(below * values))
    return np.array(chances), mean


def mutual_information(joint: np.ndarray) -> np.ndarray:
    """Compute I(A*; r_a) for every arm from the joint law (best, arm, value)."""
    joint = joint / joint.sum(axis=(0, 2), keepdims=True)
    independent = joint.sum(axis=2, keepdims=True) * joint.sum(axis=0, keepdims=True)
    ratio = np.log(np.maximum(joint, 1e-300) / np.maximum(independent, 1e-300))
    return (joint * ratio).sum(axis=(0, 2))


def best_and_reward_by_hand(hand: ByHand, rewards: np.ndarray) -> np.ndarray:
    """Integrate over who is best and every reward, for independent arms within components."""
    num_arms = hand.means.shape[1]
    steps = np.linspace(-6, 6, 97)
    shares = norm.pdf(steps) * (steps[1] - steps[0])
    joint = np.zeros((num_arms, num_arms, len(rewards)))
    for weight, means, spreads in zip(hand.weights, hand.means, hand.spreads, strict=True):
        for pulled in range(num_arms):
            share = spreads[pulled] ** 2 / (spreads[pulled] ** 2 + hand.noise**2)
            after = means.copy()[:, None] + np.zeros(len(rewards))[None]
            after[pulled] += share * (rewards - means[pulled])
            deviations = spreads.copy()
            deviations[pulled] = math.sqrt(share) * hand.noise
            density = weight * norm.pdf(
                rewards, means[pulled], math.hypot(spreads[pulled], hand.noise)
            )
            for best in range(num_arms):
                values = after[best][:, None] + deviations[best] * steps[None, :]
                below = [
                    norm.cdf((values - after[b][:, None]) / deviations[b])
                    for b in range(num_arms)
                    if b != best
                ]
                joint[best, pulled] += density * (np.prod(below, axis=0) @ shares)
    return joint


def laws_of(belief: Belief, values: jnp.ndarray) -> dict[str, jnp.ndarray]:
    """Ask a belief what has a closed form, arm by arm."""
    return {
        "mean": belief.mean(),
        "variance": belief.variance(),
        "cumulative": belief.cumulative(values),
        "predictive": belief.predictive(values),
    }


def reordered(arms: Any, order: np.ndarray) -> Any:
    """Give the arms of all components other numbers."""

    def swap(part: jnp.ndarray) -> jnp.ndarray:
        return part[:, order] if part.ndim == 2 else part

    return jax.tree.map(swap, arms)
