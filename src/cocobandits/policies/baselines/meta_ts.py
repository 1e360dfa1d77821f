"""Thompson sampling with a prior that is learned from earlier users (Meta-TS and AdaTS).

The systems are Meta-Thompson sampling (Kveton, Konobeev, Zaheer, Hsu, Mladenov, Boutilier and
Szepesvári, ICML 2021) and AdaTS (Basu, Kveton, Zaheer and Szepesvári, NeurIPS 2021), both Gaussian
and arm by arm:

    μ* ~ N(q, s_q²),   μ_i ~ N(μ*, s²),   r = μ_i + N(0, σ²)
    Λ = 1/s_q² + Σ_i n_i/(n_i s² + σ²),   μ̂ = (q/s_q² + Σ_i R_i/(n_i s² + σ²)) / Λ

A user with n_i rewards that sum to R_i adds the i-th terms. At the start of a task Meta-TS draws
μ̃ ~ N(μ̂, 1/Λ) and serves the user by Thompson sampling with the prior N(μ̃, s²); AdaTS takes the
prior N(μ̂, s² + 1/Λ), which is the same with the draw averaged out.

Their authors assume that tasks come one after the other, that s and σ are known, and that arms are
independent. The source of these formulas (Azizimj/Meta-SRM, derived from the authors' code) plays
every arm once at the start of a task; here, with a few rewards per user, none is forced. A task is
a user and starts with the enrolment: the prior is made of the rewards that all earlier users have
given until then, and stays with the user. The draw of Meta-TS comes from a key of the study, the
number of the user and that of the arm. The exported belief is that about a user who would enrol
now, for Meta-TS too with the draw averaged out.

Neither is in the paper's Table 1, whose GradBand row cites Meta-TS. Concurrent interaction is not
met: users are served interleaved, but learn nothing from each other after they enrolled. Noise,
user (s²) and population (1/Λ) are separate in the model, but neither acts on the difference:
Meta-TS treats its draw as the truth, and AdaTS adds up the last two.
"""

from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32

from cocobandits.checks import check_numbers
from cocobandits.display import Line
from cocobandits.policies.base import (
    Arms,
    Problem,
    ReadFn,
    Readings,
    SequentialPolicy,
    UserData,
    UserIndex,
    best_probability,
    with_rows,
)
from cocobandits.policies.description import PolicySettings, description
from cocobandits.populations.mixture.arms import GaussianArms
from cocobandits.populations.mixture.belief import MixtureBelief
from cocobandits.types import ArmVector, PossibleContext, RngKey, Scalar
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change, UserTable


@description(
    "meta-ts",
    label="Meta-TS",
    line=Line("#8C6D31", (0, (4, 1.5)), 1.2),
    rewards=("gaussian",),
    table_one="+---+-",
    chooses="Thompson sampling from a prior that is drawn for each user",
    knows="learns a Gaussian per arm",
)
class MetaTS(PolicySettings):
    """Thompson sampling with a prior drawn from earlier users, in standardised units.

    Attributes:
        population_mean: q.
        population_deviation: s_q.
        user_deviation: s.
    """

    is_drawn: ClassVar[bool] = True
    population_mean: float = 0.0
    population_deviation: float = 1.0
    user_deviation: float = 0.5

    def __post_init__(self) -> None:
        check_numbers(self, "finite", "population_mean")
        check_numbers(self, "positive", "population_deviation", "user_deviation")


@description(
    "ada-ts",
    line=Line("#8C6D31", "-", 1.2),
    chooses="Thompson sampling from the average prior",
)
class AdaTS(MetaTS):
    """Thompson sampling with a prior averaged over earlier users; see `MetaTS`."""

    is_drawn: ClassVar[bool] = False


class Normals(NamedTuple):
    """Independent normals, one per arm, or one per user and arm."""

    mean: Float[Array, "*user arm"]
    variance: Float[Array, "*user arm"]


class Constants(NamedTuple):
    """The settings and the noise."""

    population_mean: Scalar
    population_variance: Scalar
    user_variance: Scalar
    noise: Scalar


class MetaState(NamedTuple):
    """The priors that users started with, and the key that draws are made from."""

    priors: Normals
    key: UInt32[Array, " word"]


class MetaTsPolicy(SequentialPolicy[MetaState], settings=MetaTS):
    """Give every user a prior learned from those before; Meta-TS if it is drawn, else AdaTS."""

    def __init__(self, problem: Problem, settings: MetaTS) -> None:
        super().__init__(problem, settings)
        variances = settings.population_deviation**2, settings.user_deviation**2
        numbers = settings.population_mean, *variances, problem.known_noise()
        self._constants = Constants(*(jnp.asarray(number, dtype=float) for number in numbers))

    def init(self, rng_key: RngKey) -> MetaState:
        """Keep the key."""
        blank = jnp.zeros((0, self.problem.num_arms))
        return MetaState(Normals(blank, blank), jax.random.key_data(rng_key))

    def enrol(self, state: MetaState, users: UserTable) -> MetaState:
        """Write down the prior that earlier users' rewards make."""
        start = _start(users, state.key, self._constants, self.settings.is_drawn)
        priors = with_rows(state.priors, len(users.contexts))
        return state._replace(priors=_write(priors, users.num_users - 1, start))

    def update(self, rng_key: RngKey, state: MetaState, change: Change) -> tuple[MetaState, None]:
        """Keep the priors; the population is computed from the table when a user enrols."""
        return state, None

    def probabilities(self, state: MetaState, users: UserTable, user: int, arms: Arms) -> ArmVector:
        """Compute P(arm is best) for a user, under the prior that the user started with."""
        belief = posterior(users, state.priors, user, self._constants.noise)
        return best_probability(belief, self.problem.num_arms, arms)

    def read(self, state: MetaState, users: UserTable, data: UserData, read_fn: ReadFn) -> Readings:
        """Apply a function to the belief about a user who enrols now and gives these rewards."""
        context, statistics = data
        return Readings.of_one(_read(read_fn, self.prior(state, users, context), statistics))

    def prior(self, state: MetaState, users: UserTable, context: PossibleContext) -> MixtureBelief:
        """Return N(μ̂, s² + 1/Λ)."""
        return _newcomer(users.statistics, self._constants)


def population(table: Statistics, constants: Constants) -> Normals:
    """Compute the posterior of the mean of the population given all rewards, N(μ̂, 1/Λ)."""
    mean, variance, user_variance, noise = constants
    scale = table.count * user_variance + noise**2
    precision = 1 / variance + jnp.sum(table.count / scale, axis=0)
    pull = mean / variance + jnp.sum(table.total / scale, axis=0)
    return Normals(pull / precision, 1 / precision)


@partial(jax.jit, static_argnames="is_drawn")
def _start(
    users: UserTable, key: UInt32[Array, " word"], constants: Constants, is_drawn: bool
) -> Normals:
    """Make the prior of the user who enrolled last."""
    learned = population(users.statistics, constants)
    if not is_drawn:
        return Normals(learned.mean, learned.variance + constants.user_variance)
    mean = learned.mean + jnp.sqrt(learned.variance) * _draws(key, users)
    return Normals(mean, jnp.full_like(mean, constants.user_variance))


def _draws(key: UInt32[Array, " word"], users: UserTable) -> ArmVector:
    """Draw a standard normal per arm, which does not depend on how many arms there are."""
    own = jax.random.fold_in(jax.random.wrap_key_data(key), users.num_users - 1)
    arms = jnp.arange(users.statistics.count.shape[1])
    return jax.vmap(lambda arm: jax.random.normal(jax.random.fold_in(own, arm)))(arms)


@jax.jit
def _write(priors: Normals, user: UserIndex, start: Normals) -> Normals:
    return jax.tree.map(lambda part, row: part.at[user].set(row), priors, start)


def _belief(prior: Normals, noise: Scalar) -> MixtureBelief:
    """Make one type of independent arms: who is best is then a one-dimensional integral."""
    arms = GaussianArms(prior.mean[None], prior.variance[None], noise[None])
    return MixtureBelief(jnp.zeros(1), arms)


@jax.jit
def _newcomer(table: Statistics, constants: Constants) -> MixtureBelief:
    learned = population(table, constants)
    variance = learned.variance + constants.user_variance
    return _belief(Normals(learned.mean, variance), constants.noise)


@jax.jit
def posterior(users: UserTable, priors: Normals, user: UserIndex, noise: Scalar) -> MixtureBelief:
    """Condition a user's own prior on the user's rewards."""
    prior = Normals(priors.mean[user], priors.variance[user])
    return _belief(prior, noise).condition(users.of(user)[1])


@partial(jax.jit, static_argnames="read_fn")
def _read(read_fn: ReadFn, belief: MixtureBelief, statistics: Statistics) -> Any:
    return read_fn(belief.condition(statistics))
