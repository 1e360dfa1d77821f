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
independent. The code that these formulas were read off (Azizimj/Meta-SRM, derived from theirs)
plays every arm once at the start of a task; here, with a few rewards per user, none is forced. Here
a task is a user and starts with the enrolment: the prior is made of the rewards
that all earlier users have given until then, finished or not, and stays with the user; rewards that
the others give later reach those who enrol later. After a correction, a withdrawal or a new arm all
priors are refitted from the rewards in their order. The draw of Meta-TS comes from
a key of the study, the number of the user and that of the arm. The exported belief is that about a
user who would enrol now; of Meta-TS it is the one with the draw averaged out, AdaTS's.

Neither is in the paper's Table 1, whose GradBand row cites Meta-TS. Of its six criteria they meet
multi-task learning and, here, dynamic recruitment. Concurrent interaction is not met: users are
served interleaved, but learn nothing of each other after they enrolled. Nor is partial context:
contexts are unused, and as arms are independent a reward says nothing of other arms. The structure
is Gaussian, not nonparametric. Noise, this user (s²) and population (1/Λ) are told apart in the
model; Meta-TS treats its draw as the truth, and AdaTS adds up the last two, so neither acts on it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, UInt32

from cocobandits.checks import check_numbers
from cocobandits.display import Line
from cocobandits.models.base import Belief, Statistics
from cocobandits.models.histories import Change, UserTable
from cocobandits.models.mixture.arms import GaussianArms
from cocobandits.models.mixture.belief import MixtureBelief
from cocobandits.policies.base import Arms, Problem, Readings, SequentialPolicy, with_rows
from cocobandits.policies.description import PolicySettings, description
from cocobandits.types import ArmVector, PossibleContext, RngKey, Scalar


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

    def build(self, problem: Problem) -> "MetaTsPolicy":
        """Build the policy for a problem."""
        return MetaTsPolicy(problem, self)


@description(
    "ada-ts",
    label="AdaTS",
    line=Line("#8C6D31", "-", 1.2),
    rewards=("gaussian",),
    table_one="+---+-",
    chooses="Thompson sampling from the average prior",
    knows="learns a Gaussian per arm",
)
class AdaTS(MetaTS):
    """Thompson sampling with a prior averaged over earlier users; see `MetaTS`."""

    is_drawn: ClassVar[bool] = False


class Normals(NamedTuple):
    """Independent normals, one per arm, or one per user and arm."""

    mean: Float[Array, "*user arm"]
    variance: Float[Array, "*user arm"]


class Told(NamedTuple):
    """The settings and the noise."""

    population_mean: Scalar
    population_variance: Scalar
    user_variance: Scalar
    noise: Scalar


class MetaTsState(NamedTuple):
    """The priors that users started with, and the key that draws are made from."""

    priors: Normals
    key: UInt32[Array, " word"]


class MetaTsPolicy(SequentialPolicy[MetaTsState]):
    """Give every user a prior learned from those before; Meta-TS if it is drawn, else AdaTS."""

    def __init__(self, problem: Problem, settings: MetaTS) -> None:
        self.problem = problem
        self.settings = settings
        self.is_drawn = settings.is_drawn
        variances = settings.population_deviation**2, settings.user_deviation**2
        told = settings.population_mean, *variances, problem.known_noise()
        self._told = Told(*(jnp.asarray(number, dtype=float) for number in told))

    def init(self, rng_key: RngKey) -> MetaTsState:
        """Keep the key."""
        blank = jnp.zeros((0, self.problem.num_arms))
        return MetaTsState(Normals(blank, blank), jax.random.key_data(rng_key))

    def enrol(self, state: MetaTsState, users: UserTable) -> MetaTsState:
        """Write down the prior that earlier users' rewards make."""
        start = _start(users, state.key, self._told, self.is_drawn)
        priors = with_rows(state.priors, len(users.contexts))
        return state._replace(priors=_write(priors, users.num_users - 1, start))

    def update(
        self, rng_key: RngKey, state: MetaTsState, change: Change
    ) -> tuple[MetaTsState, None]:
        """Keep the priors; the population is computed from the table when somebody enrols."""
        del rng_key, change
        return state, None

    def probabilities(
        self, state: MetaTsState, users: UserTable, user: int, arms: Arms = None
    ) -> ArmVector:
        """Compute P(arm is best) for a user, under the prior that the user started with."""
        chosen = None if arms is None else jnp.asarray(arms)
        belief = posterior(users, state.priors, user, self._told.noise)
        return _best_probability(belief, chosen)

    def widened(self, problem: Problem) -> "MetaTsPolicy":
        """Make the same policy for a problem with another arm."""
        return MetaTsPolicy(problem, self.settings)

    def read(
        self,
        state: MetaTsState,
        users: UserTable,
        context: PossibleContext,
        statistics: Statistics,
        read_fn: Callable[[Belief], Any],
    ) -> Readings:
        """Apply a function to the belief about a user who enrols now and gives these rewards."""
        values = _read(read_fn, self.prior(state, users, context), statistics)
        return Readings(jnp.zeros(1), jax.tree.map(lambda leaf: leaf[None], values))

    def prior(
        self, state: MetaTsState, users: UserTable, context: PossibleContext
    ) -> MixtureBelief:
        """Return N(μ̂, s² + 1/Λ)."""
        del state, context
        return _newcomer(users.statistics, self._told)


def population(table: Statistics, told: Told) -> Normals:
    """Compute what all users' rewards say about the mean of the population: N(μ̂, 1/Λ)."""
    scale = table.count * told.user_variance + told.noise**2
    precision = 1 / told.population_variance + jnp.sum(table.count / scale, axis=0)
    pull = told.population_mean / told.population_variance + jnp.sum(table.total / scale, axis=0)
    return Normals(pull / precision, 1 / precision)


def _draws(
    key: UInt32[Array, " word"], user: Int[ArrayLike, ""], arms: Int[Array, " arm"]
) -> ArmVector:
    """Draw a standard normal per arm, which does not depend on how many arms there are."""
    own = jax.random.fold_in(jax.random.wrap_key_data(key), user)
    return jax.vmap(lambda arm: jax.random.normal(jax.random.fold_in(own, arm)))(arms)


def _task_prior(
    learned: Normals, normals: Float[Array, "*user arm"], told: Told, is_drawn: bool
) -> Normals:
    if is_drawn:
        mean = learned.mean + jnp.sqrt(learned.variance) * normals
        return Normals(mean, jnp.full_like(mean, told.user_variance))
    return Normals(learned.mean, learned.variance + told.user_variance)


@partial(jax.jit, static_argnames="is_drawn")
def _start(users: UserTable, key: UInt32[Array, " word"], told: Told, is_drawn: bool) -> Normals:
    """Make the prior of the user who enrolled last."""
    num_arms = users.statistics.count.shape[1]
    normals = _draws(key, users.num_users - 1, jnp.arange(num_arms))
    return _task_prior(population(users.statistics, told), normals, told, is_drawn)


@jax.jit
def _write(priors: Normals, user: Int[Array, ""], start: Normals) -> Normals:
    rows = zip(priors, start, strict=True)
    return Normals(*(part.at[user].set(row) for part, row in rows))


def _belief(prior: Normals, noise: Scalar) -> MixtureBelief:
    """Make one type of independent arms: who is best is then a one-dimensional integral."""
    arms = GaussianArms(prior.mean[None], prior.variance[None], noise[None])
    return MixtureBelief(jnp.zeros(1), arms)


@jax.jit
def _newcomer(table: Statistics, told: Told) -> MixtureBelief:
    learned = population(table, told)
    variance = learned.variance + told.user_variance
    return _belief(Normals(learned.mean, variance), told.noise)


@jax.jit
def posterior(
    users: UserTable, priors: Normals, user: Int[ArrayLike, ""], noise: Scalar
) -> MixtureBelief:
    """Condition a user's own prior on the user's rewards."""
    prior = Normals(priors.mean[user], priors.variance[user])
    return _belief(prior, noise).condition(users.of(user)[1])


@jax.jit
def _best_probability(belief: MixtureBelief, arms: Int[Array, " chosen"] | None) -> ArmVector:
    return (belief if arms is None else belief.among(arms)).best_probability()


@partial(jax.jit, static_argnames="read_fn")
def _read(read_fn: Callable[[Belief], Any], belief: MixtureBelief, statistics: Statistics) -> Any:
    return read_fn(belief.condition(statistics))
