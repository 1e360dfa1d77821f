"""Arms that succeed or fail, with Beta-distributed success probabilities."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax.scipy.special import betaln
from jaxtyping import Array, Bool, Float

from cocobandits.populations.base import FAR_BELOW
from cocobandits.populations.mixture.arms import (
    LEAST_VARIANCE,
    REACH,
    ComponentArms,
    ComponentValues,
    Contest,
)
from cocobandits.types import ArmVector, Scalar, Values
from cocobandits.users.statistics import Statistics

# Nodes in logits of success probabilities, in tails and beyond, and how many times 1/α and 1/β
# tails reach.
_NUM_TAIL, _NUM_CORE, _TAIL = 24, 48, 8.0
LEAST_PROBABILITY = 1e-15


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BetaArms:
    """Beta-distributed success probabilities; a reward is the top or the bottom of the range."""

    successes: Float[Array, "*each component arm"]  # α
    failures: Float[Array, "*each component arm"]  # β
    range: tuple[float, float] = field(metadata={"static": True})
    is_eligible: Bool[Array, "*each component arm"] | None = None  # all, if None

    @property
    def width(self) -> float:
        """From failure to success, in units of reward."""
        return self.range[1] - self.range[0]

    @property
    def support(self) -> tuple[float, float]:
        """From sure failure to sure success."""
        return self.range

    def mean(self) -> ComponentArms:
        """Compute E[μ_a]."""
        mean = self.range[0] + self.width * self.successes / (self.successes + self.failures)
        return self._of_eligible(mean, FAR_BELOW)

    def variance(self) -> ComponentArms:
        """Compute Var(μ_a)."""
        return self.width**2 * _beta_variance(self.successes, self.failures)

    def noise_variance(self) -> Float[Array, " component"]:
        """Average p(1 - p) over the belief, and over arms."""
        total = self.successes + self.failures
        spread = self.successes * self.failures / (total * (total + 1))
        return self.width**2 * jnp.mean(spread, axis=1)

    def contest(self) -> Contest:
        """Integrate as for Gaussian arms, over the logit, in which all Beta laws are smooth.

        Integrals over a step take values and slopes at both its ends. Distribution functions are
        summed up so too, since the incomplete Beta function takes ten times as long. The density
        of the best mean, where it is arm a, is f_a ∏ F_b, whose slope is that times
        f_a'/f_a + Σ_{b≠a} f_b/F_b.
        """
        alpha, beta = self.successes.astype(float), self.failures.astype(float)
        logits = _contest_logits(alpha, beta)
        density, slope = _beta_density(alpha[:, :, None], beta[:, :, None], logits[:, None, :])
        steps = _integrals(jnp.diff(logits, axis=1)[:, None, :], density, density * slope)
        above = jnp.cumsum(steps[..., ::-1], axis=2)[..., ::-1]
        below = jnp.clip(1 - jnp.pad(above, ((0, 0), (0, 0), (0, 1))), LEAST_VARIANCE, 1.0)
        below, hazard = self._of_eligible(below, 1.0), self._of_eligible(density / below, 0.0)
        best = hazard * jnp.prod(below, axis=1)[:, None, :]
        bend = best * (slope + jnp.sum(hazard, axis=1)[:, None, :] - hazard)
        contest = self._settled(logits, best, bend)
        return jax.tree.map(lambda part: part.astype(self.successes.dtype), contest)

    def _of_eligible(
        self, values: Float[Array, "component arm *value"], otherwise: float
    ) -> Float[Array, "component arm *value"]:
        """Replace the values of arms that are not eligible."""
        if self.is_eligible is None:
            return values
        axes = tuple(range(self.is_eligible.ndim, values.ndim))
        return jnp.where(jnp.expand_dims(self.is_eligible, axes), values, otherwise)

    def _settled(
        self, logits: Float[Array, "component node"], best: ComponentValues, bend: ComponentValues
    ) -> Contest:
        """Sum over logits at which the largest mean may be, arm by arm."""
        gaps = jnp.diff(logits, axis=1)
        wins = jnp.sum(_integrals(gaps[:, None, :], best, bend), axis=2)
        total = jnp.sum(wins, axis=1)
        chance = jax.nn.sigmoid(logits)
        # Probabilities and their squares change with the logit at the rates p(1-p) and 2p²(1-p).
        density, slope = jnp.sum(best, axis=1), jnp.sum(bend, axis=1)
        rate = chance * (1 - chance)
        moments = [
            jnp.sum(_integrals(gaps, density * value, slope * value + density * growth), axis=1)
            / total
            for value, growth in ((chance, rate), (chance**2, 2 * chance * rate))
        ]
        variance = jnp.maximum(moments[1] - moments[0] ** 2, 0.0)
        return Contest(
            wins / total[:, None],
            self.range[0] + self.width * moments[0],
            self.width**2 * variance,
        )

    def joint(self, shares: Float[Array, " component"], rewards: Values) -> ComponentValues:
        """Compute the probability of failure or success."""
        chance = self.successes / (self.successes + self.failures)
        is_success = (rewards > sum(self.range) / 2)[None, None, :]
        outcome = jnp.where(is_success, chance[:, :, None], 1 - chance[:, :, None])
        return shares[:, None, None] * self._of_eligible(outcome, 0.0)

    def after(self, rewards: Values) -> tuple[ComponentValues, ComponentValues]:
        """Count one more success or failure."""
        success = (rewards > sum(self.range) / 2).astype(self.successes.dtype)[None, None, :]
        alpha = self.successes[:, :, None] + success
        beta = self.failures[:, :, None] + 1 - success
        mean = self.range[0] + self.width * alpha / (alpha + beta)
        return mean, self.width**2 * _beta_variance(alpha, beta)

    def cumulative(self, values: Values) -> ComponentValues:
        """Sum up the density of the logit, and read it in between."""
        shares = (values.astype(float) - self.range[0]) / self.width
        inside = jnp.clip(shares, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        places = jnp.log(inside) - jnp.log1p(-inside)

        def read(alpha: Scalar, beta: Scalar) -> Values:
            logits = _own_logits(alpha, beta)
            density, slope = _beta_density(alpha, beta, logits)
            steps = _integrals(jnp.diff(logits), density, density * slope)
            reached = jnp.pad(jnp.cumsum(steps), (1, 0))
            return jnp.interp(places, logits, reached / reached[-1])

        counts = self.successes.astype(float), self.failures.astype(float)
        reached = jax.vmap(jax.vmap(read))(*counts)
        ends = (shares >= 1).astype(float)[None, None, :]
        return jnp.where(((shares <= 0) | (shares >= 1))[None, None, :], ends, reached)

    def condition(self, statistics: Statistics) -> tuple["BetaArms", Float[Array, " component"]]:
        """Count successes and failures."""
        successes, failures = count_outcomes(statistics, self.range)
        log_evidence = beta_log_evidence(self.successes, self.failures, successes, failures)
        counts = self.successes + successes[None, :], self.failures + failures[None, :]
        return BetaArms(*counts, self.range, self.is_eligible), log_evidence

    def among(self, is_eligible: Bool[Array, " arm"]) -> "BetaArms":
        """Put the other arms out of the contest."""
        # A copy of an eligible arm stands in for each other one where nodes are laid out.
        first = jnp.argmax(is_eligible)
        alpha, beta = (
            jnp.where(is_eligible, count, count[:, first][:, None])
            for count in (self.successes, self.failures)
        )
        return BetaArms(alpha, beta, self.range, jnp.broadcast_to(is_eligible, alpha.shape))

    def expanded(
        self, log_weights: Float[Array, " component"]
    ) -> tuple[Float[Array, " place"], "BetaArms"]:
        """Return them as they are."""
        return log_weights, self


def beta_log_evidence(
    alpha: ComponentArms, beta: ComponentArms, successes: ArmVector, failures: ArmVector
) -> Float[Array, " component"]:
    """Sum log B(α + s, β + f) - log B(α, β) over arms."""
    total = alpha + beta
    return jnp.sum(
        log_rising(alpha, successes[None, :])
        + log_rising(beta, failures[None, :])
        - log_rising(total, (successes + failures)[None, :]),
        axis=1,
    )


def log_rising(base: Array, steps: Array) -> Array:
    """Compute log Γ(base + steps) - log Γ(base), to eight digits.

    By Stirling's series four steps further up, where it is good to that, and the product that leads
    back. Faster by an order than the library's functions, above all in the gradient.
    """
    return _stirling(base + steps) - _stirling(base)


def _stirling(value: Array) -> Array:
    climbed = value + 4
    inverse = 1 / climbed
    series = inverse * (1 / 12 - inverse**2 * (1 / 360 - inverse**2 / 1260))
    product = value * (value + 1) * (value + 2) * (value + 3)
    return (climbed - 0.5) * jnp.log(climbed) - climbed + series - jnp.log(product)


def count_outcomes(
    statistics: Statistics, reward_range: tuple[float, float]
) -> tuple[Float[Array, "*user arm"], Float[Array, "*user arm"]]:
    """Turn sums of rewards at the two ends of the range into numbers of successes and failures."""
    low, high = reward_range
    successes = (statistics.total - low * statistics.count) / (high - low)
    return successes, statistics.count - successes


def _contest_logits(alpha: ComponentArms, beta: ComponentArms) -> Float[Array, "component node"]:
    """Lay out logits from an anchor to both sides, at distances that grow with their own.

    Below the anchor some arm is better, unless it is in the tail e^(α·logit) of few successes:
    laws have a core of at most a few logits, and tails that may be far longer. Narrow cores that
    can win lie next to the anchor, as for Gaussian arms; tails need few nodes.
    """
    centre, width = _core(alpha, beta)
    anchor = jnp.max(centre - REACH * width, axis=1, keepdims=True)
    tops = centre + REACH * width + _TAIL / beta
    low = jnp.max(centre - REACH * width - _TAIL / alpha, axis=1, keepdims=True)
    scale = jnp.min(jnp.where(tops >= low, width, jnp.inf), axis=1, keepdims=True)
    return jnp.concatenate(
        [
            anchor - _growing(anchor - low, scale, _NUM_TAIL)[:, :0:-1],
            anchor + _growing(jnp.max(tops, axis=1, keepdims=True) - anchor, scale, _NUM_CORE),
        ],
        axis=1,
    )


def _own_logits(alpha: Scalar, beta: Scalar) -> Values:
    """Lay out logits for one law alone, from its core to both sides."""
    centre, width = _core(alpha, beta)
    reaches = REACH * width + _TAIL / alpha, REACH * width + _TAIL / beta
    left, right = (_growing(reach, width, _NUM_CORE) for reach in reaches)
    return jnp.concatenate([centre - left[:0:-1], centre + right])


def _growing(reach: Array, scale: Array, num_nodes: int) -> Array:
    """Go from zero to a reach in steps that grow with the distance."""
    even = jnp.linspace(0.0, 1.0, num_nodes).reshape((1,) * (reach.ndim - 1) + (-1,))
    return scale * jnp.sinh(jnp.arcsinh(reach / scale) * even)


def _core(alpha: Array, beta: Array) -> tuple[Array, Array]:
    """Say about where the logit lies, and how widely, tails apart."""
    up, down = alpha + 0.5, beta + 0.5
    return jnp.log(up / down), jnp.sqrt(1 / up + 1 / down)


def _integrals(gaps: Array, values: Array, slopes: Array) -> Array:
    """Integrate over every step the cubic that has these values and slopes at its ends."""
    ends = (values[..., :-1] + values[..., 1:]) / 2
    return gaps * ends + gaps**2 * (slopes[..., :-1] - slopes[..., 1:]) / 12


def _beta_density(alpha: Array, beta: Array, logits: Array) -> tuple[Array, Array]:
    """Compute the density of the logit of a Beta-distributed chance, and its logarithm's slope."""
    norm = betaln(alpha, beta)
    density = jnp.exp(
        alpha * jax.nn.log_sigmoid(logits) + beta * jax.nn.log_sigmoid(-logits) - norm
    )
    return density, alpha - (alpha + beta) * jax.nn.sigmoid(logits)


def _beta_variance(alpha: Array, beta: Array) -> Array:
    total = alpha + beta
    return alpha * beta / (total**2 * (total + 1))
