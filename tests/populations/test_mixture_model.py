"""The mixture model against populations, densities and sums that are written out by hand."""

import functools
import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mixture_oracles import (
    CONFIGS,
    GAUSSIAN,
    RANGE,
    UNCORRELATED,
    contexts_of,
    counts_by_hand,
    laws_of,
    model_of,
    particles_of,
    population_by_hand,
    raw_log_density,
    raw_log_probability,
    rewards_of,
)
from model_oracles import statistics_of

from cocobandits.errors import ConfigurationError
from cocobandits.populations.mixture import MixtureConfig
from cocobandits.populations.mixture import model as mixture_module
from cocobandits.populations.mixture.model import MixtureModel, stick_breaking
from cocobandits.populations.mixture.population import Layout
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import UserRows

STEP = 1e-5
VALUES = jnp.linspace(-1.2, 1.8, 6)
COUNTS = {2: (3, 1), 3: (2, 0, 3), 4: (1, 0, 2, 2)}


def jitted(name):
    return jax.jit(lambda model, *rest: getattr(model, name)(*rest), static_argnums=0)


log_evidence, posterior = jitted("log_evidence"), jitted("posterior")
with_gradient, whole = jitted("log_evidence_and_gradient"), jitted("log_likelihood_and_gradient")
information, interweave = jitted("information"), jitted("interweave")


@functools.partial(jax.jit, static_argnums=0)
def population_at(model, parameters, context):
    """Read a population at a context: weights, means, spreads, factors, noise."""
    population, terms = model.layout.population(parameters), model.layout.terms(context)
    return (
        jnp.exp(stick_breaking(population.logits(terms))),
        population.means(terms),
        population.spreads,
        population.factors(terms),
        population.noise,
    )


@pytest.mark.parametrize("name", CONFIGS)
def test_population_is_that_of_the_formulas(name):
    """Read the parameters one after another, at three contexts; none is left over."""
    model = model_of(name)
    for parameters in particles_of(name, 2):
        for context in contexts_of(model.config, 3):
            expected = population_by_hand(model.config, parameters, context)
            found = population_at(model, parameters, jnp.asarray(context))
            for part, by_hand in zip(found, expected, strict=True):
                np.testing.assert_allclose(part, by_hand, atol=1e-12)
            assert float(found[0].sum()) == pytest.approx(1.0, abs=1e-14)
            assert float(found[0].min()) > 0


def case_of(name, seed=6):
    """Take a particle, a context and rewards of all arms but one."""
    config = CONFIGS[name]
    parameters, context = particles_of(name, 1)[0], contexts_of(config, 1)[0]
    rewards = rewards_of(config, COUNTS[config.num_arms], seed)
    return parameters, context, rewards, population_by_hand(config, parameters, context)


@pytest.mark.parametrize("seed", [6, 7])
@pytest.mark.parametrize("name", GAUSSIAN)
def test_evidence_is_the_density_of_the_raw_rewards(name, seed):
    """A mixture of multivariate normals with all covariances written down (scipy)."""
    parameters, context, rewards, hand = case_of(name, seed)
    found = log_evidence(model_of(name), parameters, jnp.asarray(context), statistics_of(rewards))
    assert float(found) == pytest.approx(raw_log_density(hand, rewards), abs=1e-9)


@pytest.mark.parametrize("seed", [6, 7])
def test_evidence_of_yes_and_no_is_an_integral_over_chances(seed):
    parameters, context, rewards, hand = case_of("yes or no", seed)
    model = model_of("yes or no")
    found = log_evidence(model, parameters, jnp.asarray(context), statistics_of(rewards))
    expected = raw_log_probability(hand, rewards, RANGE[1])
    assert float(found) == pytest.approx(expected, abs=2e-7)


@jax.jit
def ask(belief):
    return laws_of(belief, VALUES) | {
        "best": belief.best_probability(),
        "expected_best": belief.expected_best(),
    }


# What is summed over places of a factor, instead of integrated.
TOLERANCES = {"one factor": 2e-3}


@pytest.mark.parametrize("is_new", [True, False], ids=["newcomer", "known"])
@pytest.mark.parametrize("name", GAUSSIAN)
def test_posterior_is_that_of_dense_covariances(name, is_new):
    """Condition the same components with `GaussianBelief`."""
    parameters, context, rewards, hand = case_of(name)
    statistics = statistics_of([[] for _ in rewards] if is_new else rewards)
    found = ask(posterior(model_of(name), parameters, jnp.asarray(context), statistics))
    expected = ask(hand.belief().condition(statistics))
    for answer in found:
        exact = 1e-4 if answer in ("best", "expected_best") else 1e-10
        atol = TOLERANCES.get(name, exact)
        np.testing.assert_allclose(
            found[answer], expected[answer], rtol=atol, atol=atol, err_msg=answer
        )
    assert name in UNCORRELATED or name in TOLERANCES


def test_posterior_of_yes_and_no_counts_outcomes():
    """Each component's Beta laws with successes and failures added, reweighted by evidence."""
    parameters, context, rewards, hand = case_of("yes or no")
    model, at = model_of("yes or no"), jnp.asarray(context)
    belief = posterior(model, parameters, at, statistics_of(rewards))
    alpha, beta = counts_by_hand(hand)
    wins = np.array([given.count(RANGE[1]) for given in rewards])
    losses = np.array([given.count(RANGE[0]) for given in rewards])
    np.testing.assert_allclose(belief.arms.successes, alpha + wins, rtol=1e-12)
    np.testing.assert_allclose(belief.arms.failures, beta + losses, rtol=1e-12)
    alone = [
        raw_log_probability(hand._replace(weights=np.eye(3)[c] + 1e-300), rewards, RANGE[1])
        for c in range(3)
    ]
    shares = hand.weights * np.exp(alone)
    np.testing.assert_allclose(np.exp(belief.log_weights), shares / shares.sum(), atol=1e-7)


@pytest.mark.parametrize("name", ["features", "one factor", "yes or no"])
def test_withdrawn_rewards_leave_no_trace(name):
    parameters, context, rewards, _ = case_of(name)
    model, at = model_of(name), jnp.asarray(context)
    kept = [given[:-1] if arm == 2 else given for arm, given in enumerate(rewards)]
    withdrawn = statistics_of(rewards).remove(2, rewards[2][-1])
    never = statistics_of(kept)
    values = [float(log_evidence(model, parameters, at, each)) for each in (withdrawn, never)]
    assert values[0] == pytest.approx(values[1], abs=1e-10)
    found, expected = (ask(posterior(model, parameters, at, each)) for each in (withdrawn, never))
    for answer in found:
        np.testing.assert_allclose(found[answer], expected[answer], atol=1e-10, err_msg=answer)


@pytest.mark.parametrize("name", CONFIGS)
def test_slope_of_one_user_matches_finite_differences(name):
    parameters, context, rewards, _ = case_of(name)
    model, statistics = model_of(name), statistics_of(rewards)
    _, gradient = with_gradient(model, parameters, jnp.asarray(context), statistics)

    @functools.partial(jax.jit, static_argnums=0)
    def around(model, at):
        steps = STEP * jnp.eye(model.num_parameters)
        each = jax.vmap(model.log_evidence, (0, None, None))
        ahead, behind = (
            each(at[None] + sign * steps, jnp.asarray(context), statistics) for sign in (1, -1)
        )
        return (ahead - behind) / (2 * STEP)

    # Series of the Gamma function have eight digits.
    atol = 1e-5 if name == "yes or no" else 1e-7
    np.testing.assert_allclose(gradient, around(model, parameters), atol=atol)
    assert np.abs(np.asarray(gradient)).max() > 0.1


NUM_ROWS, CAPACITY = 37, 70  # more than a chunk of users, and less than two


def rows_of(name, with_points):
    """Make users of unequal weights, one of them zero; garbage is left beyond the last."""
    config, generator = CONFIGS[name], np.random.default_rng(9)
    contexts = jnp.asarray(contexts_of(config, CAPACITY))
    if with_points:
        points = np.stack([contexts_of(config, CAPACITY, seed) for seed in (4, 5, 6)], axis=1)
        # What is known is the same at all points.
        points[::3] = points[::3, :1]
        contexts = jnp.asarray(points)
    given = [
        statistics_of(rewards_of(config, generator.integers(0, 4, config.num_arms), seed))
        for seed in range(CAPACITY)
    ]
    weights = generator.uniform(0.2, 1.0, CAPACITY)
    weights[5] = 0.0
    statistics = Statistics(*(jnp.stack(part) for part in zip(*given, strict=True)))
    return UserRows(jnp.asarray(weights), contexts, statistics, jnp.asarray(NUM_ROWS))


@pytest.mark.parametrize(
    ("name", "with_points"),
    [(name, False) for name in CONFIGS]
    + [(name, True) for name in CONFIGS if CONFIGS[name].features],
)
def test_likelihood_is_the_weighted_sum_over_users(name, with_points):
    """Add evidences and slopes user by user; rows beyond the last do not count."""
    model, rows, particles = model_of(name), rows_of(name, with_points), particles_of(name, 3)
    values, gradients = whole(model, particles, rows)
    for each, parameters in enumerate(particles):
        value, slope = 0.0, 0.0
        for row in range(NUM_ROWS):
            weight, *user = rows.of(row)
            one, direction = with_gradient(model, parameters, *user)
            value, slope = value + float(weight * one), slope + np.asarray(weight * direction)
        # Series of the Gamma function have eight digits.
        atol = 1e-6 if name == "yes or no" else 1e-9
        assert float(values[each]) == pytest.approx(value, abs=atol)
        np.testing.assert_allclose(gradients[each], slope, atol=atol)
    assert not np.allclose(
        whole(model, particles, rows._replace(num_rows=jnp.asarray(NUM_ROWS + 1)))[0], values
    )


@pytest.mark.parametrize("name", ["features", "one factor", "yes or no"])
def test_information_sums_outer_products_of_slopes(name, monkeypatch):
    """All particles the same: whichever takes its turn, Σ_u w_u g_u g_uᵀ; or its diagonal."""
    model, rows = model_of(name), rows_of(name, with_points=False)
    parameters = particles_of(name, 1)[0]
    copies = jnp.tile(parameters[None], (10, 1))
    slopes = [np.asarray(with_gradient(model, parameters, *rows.of(r)[1:])[1]) for r in range(37)]
    weights = np.asarray(rows.weights[:NUM_ROWS])
    expected = np.einsum("u,ui,uj->ij", weights, slopes, slopes)
    # In double whatever the precision; the series of the Gamma function have eight digits.
    atol = 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(information(model, copies, rows), expected, atol=atol)
    monkeypatch.setattr(mixture_module, "_MOST_DENSE", 0)
    lean = jax.jit(model.information)(copies, rows)
    np.testing.assert_allclose(lean, np.diag(expected), atol=atol)


@pytest.mark.parametrize("name", CONFIGS)
def test_interweaving_keeps_every_population(name):
    """Scales move and coefficients with them: the same weights, means, spreads and factors."""
    model = model_of(name)
    for number, parameters in enumerate(particles_of(name, 3)):
        moved = interweave(model, jax.random.key(number), parameters)
        assert np.abs(np.asarray(moved - parameters)).max() > 0.01
        for context in contexts_of(model.config, 3):
            at = jnp.asarray(context)
            before, after = (population_at(model, p, at) for p in (parameters, moved))
            for old, new in zip(before, after, strict=True):
                np.testing.assert_allclose(new, old, atol=1e-10)


@pytest.mark.parametrize("name", ["features", "one factor"])
def test_interweaving_keeps_the_prior(name):
    """30,000 particles from N(0, I), three walks each: means, squares, and scales with squares."""
    model, count = model_of(name), 30_000
    particles = jax.random.normal(jax.random.key(0), (count, model.num_parameters))
    walk = jax.jit(jax.vmap(model.interweave))
    start = particles
    for number in range(3):
        particles = walk(jax.random.split(jax.random.key(number + 1), count), particles)
    moved, num_scales = np.asarray(particles), model.layout.num_hyper
    correlation = np.corrcoef(moved[:, 0], np.asarray(start)[:, 0])[0, 1]
    assert correlation < 0.9, "scales hardly moved"
    for values, expected in (
        (moved, 0.0),
        (moved**2, 1.0),
        (moved[:, :1] * moved**2, 0.0),  # zero for the first scale itself too: a third moment
        (moved[:, :1] * moved[:, 1:num_scales], 0.0),
    ):
        errors = values.std(axis=0) / math.sqrt(count)
        # Some two hundred comparisons: four and a half deviations.
        assert np.abs((values.mean(axis=0) - expected) / errors).max() < 4.5


@pytest.mark.parametrize("name", CONFIGS)
def test_a_new_arm_is_a_block_at_the_end(name):
    """Append normals for another arm: nothing changes for the first ones."""
    config, model = CONFIGS[name], model_of(name)
    wider = MixtureModel(replace(config, num_arms=config.num_arms + 1))
    layout, wider_layout = Layout(config), Layout(wider.config)
    size = wider.num_parameters - model.num_parameters
    assert size == layout.num_per_arm == wider_layout.num_per_arm
    parameters = particles_of(name, 1)[0]
    appended = jnp.concatenate([parameters, jnp.linspace(-1.5, 2.0, size)])
    at = jnp.asarray(contexts_of(config, 1)[0])
    old, new = population_at(model, parameters, at), population_at(wider, appended, at)
    for part, axis in zip(range(5), (None, 1, 1, 1, None), strict=True):
        kept = new[part] if axis is None else new[part][:, : config.num_arms]
        np.testing.assert_array_equal(kept, old[part])
    assert wider == model.with_arm()
    particles = particles_of(name, 500)
    drawn = model.extend(jax.random.key(3), particles)
    np.testing.assert_array_equal(drawn[:, :-size], particles)
    fresh = np.asarray(drawn[:, -size:])
    assert abs(fresh.mean()) < 4 / math.sqrt(fresh.size)
    assert abs((fresh**2).mean() - 1) < 4 * math.sqrt(2 / fresh.size)


@pytest.mark.parametrize("name", CONFIGS)
def test_number_of_parameters(name):
    """Scales, a shift, sticks, spreads, the noise, and per arm its lines, loadings and spread."""
    config = CONFIGS[name]
    components, terms = config.num_components, config.num_terms
    scales = 1 + len(config.features) + (config.rank > 0)
    shared = scales + 1 + (components - 1) * terms + 1 + components + (config.noise_deviation > 0)
    per_arm = terms + components * terms + components * config.rank * terms + 1
    assert model_of(name).num_parameters == shared + config.num_arms * per_arm


def test_learned_noise_is_told_and_floored():
    model = model_of("learned noise")
    parameters = particles_of("learned noise", 1)[0]
    hand = population_by_hand(model.config, parameters, [0.3])
    assert float(model.hyperparameters(parameters).noise) == pytest.approx(hand.noise, rel=1e-12)
    assert model_of("features").hyperparameters(particles_of("features", 1)[0]).noise is None
    low, high = model.noise_range
    assert low == pytest.approx(0.3 * math.exp(-1.6))
    assert high == pytest.approx(0.3 * math.exp(1.6))
    # A ten-thousandth of the range, whatever the particle says.
    place = model.layout.num_shared - 1
    tiny = model.hyperparameters(parameters.at[place].set(-40.0)).noise
    assert float(tiny) == pytest.approx(1e-4 * (RANGE[1] - RANGE[0]), rel=1e-9)


def test_rewards_that_are_summed_over():
    assert model_of("features").reward_grid.num_values == 128
    np.testing.assert_array_equal(model_of("yes or no").reward_grid.values(), RANGE)


def test_sticks_are_broken_off_one_after_another():
    logits = np.array([0.4, -1.2, 2.0])
    shares = 1 / (1 + np.exp(-logits))
    left, expected = 1.0, []
    for share in shares:
        expected.append(left * share)
        left *= 1 - share
    found = np.exp(np.asarray(stick_breaking(jnp.asarray(logits))))
    np.testing.assert_allclose(found, [*expected, left], atol=1e-15)
    np.testing.assert_array_equal(np.exp(stick_breaking(jnp.zeros(0))), [1.0])


def test_single_precision_is_close():
    """Values of many users to five digits, gradients to three."""
    rows, particles = rows_of("features", with_points=False), particles_of("features", 4)
    single = MixtureModel(replace(CONFIGS["features"], precision="single"))
    found, slopes = whole(single, particles, rows)
    exact, expected = whole(model_of("features"), particles, rows)
    np.testing.assert_allclose(found, exact, rtol=1e-5)
    np.testing.assert_allclose(slopes, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_arms": 1}, "num_arms=1"),
        ({"num_components": 0}, "num_components=0"),
        ({"rank": 2}, "rank from 0 to 1 for gaussian"),
        ({"rank": 1, "rewards": "bernoulli"}, "rank from 0 to 0 for bernoulli"),
        ({"reward_noise": 0.0}, "reward_noise=0.0"),
    ],
)
def test_configuration_is_refused(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        MixtureConfig(**{"num_arms": 2} | changes)
