"""From whitened parameters to a population: sticks, means, spreads, factors.

    weights   w_c(x)  stick-breaking with logits κ + t(x)·ω_c
    means     m_ca(x) = t(x)·(shared line of the arm + the component's deviation from it)
    spreads   s_ca    = median · exp(common + component's + arm's deviation)
    factors   F_ca(x) = t(x)·(loadings), arms within a component are N(m, diag(s²) + F Fᵀ)

with the terms t(x) of the context. Parameters are those that all arms share, then one block per
arm, so that a new arm is a new block at the end. The scales of the coefficients are learned: each
is a hyperparameter that multiplies a group of coefficients.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.populations.base import floored_noise
from cocobandits.populations.features import feature_vector
from cocobandits.populations.mixture.config import MixtureConfig
from cocobandits.types import Context, Parameters, RngKey, Scalar

# Prior medians, and deviations of their logarithms, in units in which rewards span four.
_BASE = 0.7  # of an arm's shared constant
_LEVEL, _LEVEL_DEVIATION = 0.9, 0.5  # of components' constants around it
_SLOPE, _SLOPE_DEVIATION = 0.45, 0.8  # of lines in each feature
_OWN_SLOPE = 1.5  # components' own lines, as a share of that
_LOADING, _LOADING_DEVIATION = 0.15, 0.8  # of factors
SPREAD, _SPREAD_DEVIATION = 0.15, 0.8
_COMPONENT_SPREAD, _ARM_SPREAD = 0.4, 0.3
_STICK, _STICK_SLOPE, _STICK_SHIFT = 1.0, 1.0, 1.0
# Of success probabilities: how many pulls a component's belief is worth, and logits per
# unit of mean.
PULLS, LOGITS = 15.0, 1.5

_WALK_STEPS = 8
_LONGEST_STEP, _SHORTEST_SHARE = 1.0, 0.05


class Population(NamedTuple):
    """A particle, undone: coefficients of the terms, and spreads.

    Coefficients stay apart from their scales, which terms are multiplied by: there are few terms.
    """

    sticks: Float[Array, "stick term"]
    line: Float[Array, "arm term"]
    line_scale: Float[Array, " term"]
    own: Float[Array, "arm component term"]
    own_scale: Float[Array, " term"]
    spreads: Float[Array, "component arm"]
    loadings: Float[Array, "arm component source term"]
    noise: Scalar

    def logits(self, terms: Float[Array, "*user term"]) -> Float[Array, "*user stick"]:
        """Compute the logits of the sticks."""
        return terms @ self.sticks.T

    def means(self, terms: Float[Array, "*user term"]) -> Float[Array, "*user component arm"]:
        """Add each component's deviation to the shared line of each arm."""
        shared = _times(terms, self.line_scale) @ self.line.T
        own = jnp.tensordot(_times(terms, self.own_scale), self.own, axes=(-1, 2))
        return jnp.swapaxes(own, -1, -2) + shared[..., None, :]

    def factors(
        self, terms: Float[Array, "*user term"]
    ) -> Float[Array, "*user component arm source"]:
        """Compute the loadings of common factors."""
        return jnp.swapaxes(jnp.tensordot(terms, self.loadings, axes=(-1, 3)), -2, -3)

    def astype(self, dtype: Any) -> "Population":
        """Hold everything but the noise in another precision."""
        lighter = jax.tree.map(lambda part: part.astype(dtype), self)
        return lighter._replace(noise=self.noise)


@dataclass(frozen=True)
class Layout:
    """Where each part stands among the parameters."""

    config: MixtureConfig

    @cached_property
    def num_hyper(self) -> int:
        """One scale for levels, one per feature, one for factors if there are any."""
        return 1 + len(self.config.features) + int(self.config.rank > 0)

    @cached_property
    def shared_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name the parameters that do not belong to an arm."""
        config = self.config
        return {
            "hyper": (self.num_hyper,),
            "shift": (1,),
            "sticks": (config.num_components - 1, config.num_terms),
            "spread": (1,),
            "component_spread": (config.num_components,),
            "noise": (int(config.is_noise_learned),),
        }

    @cached_property
    def arm_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name the parameters of one arm."""
        config = self.config
        return {
            "line": (config.num_terms,),
            "own": (config.num_components, config.num_terms),
            "loadings": (config.num_components, config.rank, config.num_terms),
            "arm_spread": (1,),
        }

    @cached_property
    def num_shared(self) -> int:
        """How many parameters do not belong to an arm."""
        return sum(map(math.prod, self.shared_shapes.values()))

    @cached_property
    def num_per_arm(self) -> int:
        """How many parameters an arm has."""
        return sum(map(math.prod, self.arm_shapes.values()))

    @cached_property
    def num_parameters(self) -> int:
        """All of them."""
        return self.num_shared + self.config.num_arms * self.num_per_arm

    @cached_property
    def groups(self) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """Number the scale that multiplies each parameter; `num_hyper` for those without."""
        config, free = self.config, self.num_hyper
        of_term = np.concatenate([[0], 1 + self._feature_of_term()])
        line = of_term.copy()
        line[0] = free
        arm = {
            "line": line,
            "own": np.tile(of_term, config.num_components),
            "loadings": np.full(
                config.num_components * config.rank * config.num_terms, self.num_hyper - 1
            ),
            "arm_spread": np.full(1, free),
        }
        block = np.concatenate([arm[name] for name in self.arm_shapes])
        return np.concatenate(
            [np.full(self.num_shared, free), np.tile(block, config.num_arms)]
        ).astype(int)

    def scales(self, hyper: Float[Array, "hyper *particle"]) -> Float[Array, "hyper *particle"]:
        """Undo the whitening of the scales: median · exp(deviation · parameter)."""
        medians, deviations = (_lifted(part, hyper.ndim) for part in self._hyper_prior)
        return medians * jnp.exp(deviations * hyper)

    def population(self, parameters: Float[Array, "parameter *particle"]) -> Population:
        """Scale the coefficients and add up their parts.

        Of one particle, or of many: they are the last axis then, of the parameters and of all that
        is returned.
        """
        config, ndim = self.config, parameters.ndim
        shared = _split(parameters[: self.num_shared], self.shared_shapes)
        each = (config.num_arms, self.num_per_arm, *parameters.shape[1:])
        arm = _split(parameters[self.num_shared :].reshape(each), self.arm_shapes, axis=1)
        scales = self.scales(shared["hyper"])
        of_term = scales[1:][self._feature_of_term()]
        line = jnp.concatenate([jnp.full_like(scales[:1], _BASE), of_term])
        own = jnp.concatenate([scales[:1], _OWN_SLOPE * of_term])
        log_spread = (
            _SPREAD_DEVIATION * shared["spread"][None]
            + _COMPONENT_SPREAD * shared["component_spread"][:, None]
            + _ARM_SPREAD * arm["arm_spread"][None, :, 0]
        )
        stick_scales = np.full(
            config.num_terms, _STICK_SLOPE / math.sqrt(max(len(config.features), 1))
        )
        stick_scales[0] = _STICK
        sticks = _lifted(stick_scales, ndim)[None] * shared["sticks"]
        return Population(
            sticks.at[:, 0].add(_STICK_SHIFT * shared["shift"]),
            arm["line"],
            line,
            arm["own"],
            own,
            SPREAD * jnp.exp(log_spread),
            scales[-1][None, None, None, None] * arm["loadings"],
            self._noise(shared["noise"]),
        )

    def terms(self, context: Context) -> Float[Array, " term"]:
        """Lay out (1, x, categories)."""
        return feature_vector(self.config.features, context)

    def interweave(self, rng_key: RngKey, parameters: Parameters) -> Parameters:
        """Walk in the scales while scale · coefficient, and so the population, stays.

        Given the products, scales are independent of each other, so each walks by itself and needs
        only the sum of squares and the number of its coefficients.
        """
        groups, free = jnp.asarray(self.groups), self.num_hyper
        deviations = jnp.asarray(self._hyper_prior[1])
        squares = jax.ops.segment_sum(parameters**2, groups, free + 1)[:free]
        sizes = jnp.asarray(np.bincount(self.groups, minlength=free + 1)[:free], dtype=float)
        start = parameters[:free]

        def log_density(hyper: Array) -> Array:
            shrinkage = deviations * (start - hyper)
            return -(hyper**2 + squares * jnp.exp(2 * shrinkage)) / 2 + sizes * shrinkage

        def walk(now: Array, key: RngKey) -> tuple[Array, None]:
            key_length, key_step, key_accept = jax.random.split(key, 3)
            length = _LONGEST_STEP * _SHORTEST_SHARE ** jax.random.uniform(key_length, now.shape)
            moved = now + length * jax.random.normal(key_step, now.shape)
            threshold = jnp.log(jax.random.uniform(key_accept, now.shape))
            is_accepted = threshold < log_density(moved) - log_density(now)
            return jnp.where(is_accepted, moved, now), None

        hyper, _ = jax.lax.scan(walk, start, jax.random.split(rng_key, _WALK_STEPS))
        stretch = jnp.append(jnp.exp(deviations * (start - hyper)), 1.0)
        return (parameters * stretch[groups]).at[:free].set(hyper)

    @cached_property
    def _hyper_prior(self) -> tuple["np.ndarray", "np.ndarray"]:
        num_features = len(self.config.features)
        factor = int(self.config.rank > 0)
        # Together, the lines of many features reach no further than that of one.
        slope = _SLOPE / math.sqrt(max(num_features, 1))
        medians = [_LEVEL] + [slope] * num_features + [_LOADING] * factor
        deviations = (
            [_LEVEL_DEVIATION] + [_SLOPE_DEVIATION] * num_features + [_LOADING_DEVIATION] * factor
        )
        return np.array(medians), np.array(deviations)

    def _noise(self, whitened: Float[Array, "noise *particle"]) -> Float[Array, "*particle"]:
        config = self.config
        median = jnp.asarray(config.reward_noise)
        if not config.is_noise_learned:
            return jnp.broadcast_to(median, whitened.shape[1:])
        learned = median * jnp.exp(config.noise_deviation * whitened[0])
        return floored_noise(learned, config.mean_range)

    def _feature_of_term(self) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """Number the feature that each term but the constant belongs to."""
        features = enumerate(self.config.features)
        numbers = [number for number, kind in features for _ in range(1 if kind is None else kind)]
        return np.array(numbers, dtype=int)


def _times(rows: Array, scales: Array) -> Array:
    return rows * scales.reshape((1,) * (rows.ndim - 1) + (-1,))


def _lifted(vector: "np.ndarray", ndim: int) -> Array:
    """Append axes of length one."""
    return jnp.asarray(vector.reshape(-1, *(1,) * (ndim - 1)))


def _split(array: Array, shapes: dict[str, tuple[int, ...]], axis: int = 0) -> dict[str, Array]:
    """Cut one axis into parts, and give each its shape."""
    parts, start = {}, 0
    before, after = array.shape[:axis], array.shape[axis + 1 :]
    for name, shape in shapes.items():
        end = start + math.prod(shape)
        part = jax.lax.slice_in_dim(array, start, end, axis=axis)
        parts[name] = part.reshape(*before, *shape, *after)
        start = end
    return parts
