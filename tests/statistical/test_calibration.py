"""Simulation-based calibration: is the truth anywhere in the posterior, as often as it should be?

A population is drawn from the prior, a history from it, and the particles learn from the history.
If the posterior is right, the share of its mass below the true value of any quantity is uniform
(Talts et al., 2018). Shares are put in ten bins; the p-value is that of the chi-square test.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from histories import draw_history, policy_for, run_smc, tiny_model
from scipy import stats

from cocobandits.inference.smc import SmcConfig
from cocobandits.populations.history_path import HistoryPath
from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change

NUM_BINS = 10


def quantities(model: LogDensityModel, num_coefficients: int):
    """Compile what is ranked: leading coefficients, P(first arm is best), the log-likelihood."""
    path = HistoryPath(model)

    @jax.jit
    def compute(particles: jax.Array, change: Change) -> jax.Array:
        def best(parameters: jax.Array) -> jax.Array:
            context = jnp.full(len(model.config.context_axes), 0.3)
            belief = model.posterior(parameters, context, Statistics.empty(model.num_arms))
            return belief.best_probability()[0]

        fit, _ = path.log_likelihood_and_gradient(particles, change, jnp.ones(()))
        leading = particles[:, :num_coefficients]
        return jnp.concatenate([leading, jax.vmap(best)(particles)[:, None], fit[:, None]], axis=1)

    names = [f"coefficient {n}" for n in range(num_coefficients)]
    return compute, [*names, "P(first arm best)", "log-likelihood"]


def shares_below(
    model: LogDensityModel, num_particles: int, num_replicates: int, num_users: int, per_user: int
) -> tuple[np.ndarray, list[str]]:
    """Rank the truth within the posterior, once per replicate and quantity."""
    policy = policy_for(model, SmcConfig(num_particles=num_particles))
    compute, names = quantities(model, min(4, model.num_parameters))
    shares = []
    for replicate in range(num_replicates):
        truth = jax.random.normal(jax.random.key(10_000 + replicate), (model.num_parameters,))
        history = draw_history(model, truth, replicate, num_users, per_user)
        state = run_smc(policy, history, seed=replicate)
        table = state.users
        change = Change.of(table, jnp.asarray(0), table.of(0)[1])
        weights = np.exp(np.asarray(state.own.log_weights))
        learned = np.asarray(compute(state.own.particles, change))
        true = np.asarray(compute(truth[None], change))[0]
        shares.append(weights @ (learned < true[None, :]))
    return np.array(shares), names


def p_values(shares: np.ndarray) -> np.ndarray:
    """Test each column for uniformity over ten bins."""
    bins = np.minimum((shares * NUM_BINS).astype(int), NUM_BINS - 1)
    counts = np.array([np.bincount(column, minlength=NUM_BINS) for column in bins.T])
    return stats.chisquare(counts, axis=1).pvalue


def report(title: str, names: list[str], values: np.ndarray) -> None:
    """Print one line per quantity."""
    print(f"\n{title}")
    for name, value in zip(names, values, strict=True):
        print(f"  {name:<20} chi-square p = {value:.3f}")


def test_tiny_model_is_calibrated():
    shares, names = shares_below(tiny_model(), 200, num_replicates=100, num_users=8, per_user=3)
    values = p_values(shares)
    report("Calibration of the tiny model, 200 particles, 100 replicates", names, values)
    # Five tests at a joint level of one per cent.
    assert values.min() > 0.01 / len(values)


def test_calibration_check_finds_an_overconfident_posterior():
    """Shrink every share towards its nearer end, as a posterior half as wide would do."""
    generator = np.random.default_rng(0)
    narrow = stats.norm.cdf(2 * stats.norm.ppf(generator.uniform(size=(100, 1))))
    assert p_values(narrow)[0] < 1e-4


@pytest.mark.slow
def test_paper_sized_model_is_calibrated():
    """The paper's 80 coefficients, 200 particles and three arms, on six nodes; 200 replicates."""
    model = LogDensityModel(LogDensityConfig(3, arm_axis=Axis(-2.0, 2.0, 6)))
    shares, names = shares_below(model, 200, num_replicates=200, num_users=15, per_user=4)
    values = p_values(shares)
    report("Calibration with 80 coefficients, 200 particles, 200 replicates", names, values)
    assert values.min() > 0.01 / len(values)
