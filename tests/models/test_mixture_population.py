"""The mixture model: gradients, interweaving, new arms, and its place behind the seam."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits.errors import ConfigurationError
from cocobandits.models.base import Statistics
from cocobandits.models.histories import Change, HistoryPath, UserTable
from cocobandits.models.mixture import MixtureConfig, MixtureModel
from cocobandits.models.mixture.model import stick_breaking

CONFIGS = {
    "plain": MixtureConfig(3, (None,), num_components=3, precision="double"),
    "factor": MixtureConfig(2, (None,), num_components=2, rank=1, precision="double"),
    "factors": MixtureConfig(3, (None,), num_components=2, rank=2, precision="double"),
    "kinds": MixtureConfig(
        2, (None, 3), num_components=3, smooth_terms=2, noise_deviation=0.4, precision="double"
    ),
    "yes-no": MixtureConfig(3, (None,), num_components=3, rewards="bernoulli", precision="double"),
}


def table_of(config, num_users=40):
    """Make users with a few rewards each, and one without."""
    generator = np.random.default_rng(3)
    table = UserTable.empty(len(config.features), config.num_arms)
    for user in range(num_users):
        values = [
            generator.uniform(-1, 1) if kind is None else float(generator.integers(kind))
            for kind in config.features
        ]
        table = table.append(jnp.asarray(values))
        statistics = Statistics.empty(config.num_arms)
        for _ in range(0 if user == 5 else 3):
            sign = float(generator.choice([-2.0, 2.0]))
            reward = sign if config.rewards == "bernoulli" else float(generator.normal())
            statistics = statistics.add(int(generator.integers(config.num_arms)), reward)
        table = table.replace(user, statistics)
    return table


@pytest.mark.parametrize("name", CONFIGS)
def test_likelihood_adds_up_users_and_its_gradient_is_their_slopes(name):
    """Against the evidence of one user after another, and finite differences."""
    config = CONFIGS[name]
    model, table = MixtureModel(config), table_of(config)
    particles = 0.7 * jax.random.normal(jax.random.key(1), (2, model.num_parameters))
    change = Change.of(table, 7, Statistics.empty(config.num_arms).add(1, 2.0))
    temperature = jnp.asarray(0.3)
    path = HistoryPath(model)
    value, gradient = jax.jit(path.log_likelihood_and_gradient)(particles, change, temperature)

    @jax.jit
    def slowly(parameters):
        evidence = jax.vmap(model.log_evidence, (None, 0, 0))
        fixed = jnp.where(jnp.arange(len(table.contexts)) == 7, 1 - temperature, 1.0)
        old = evidence(parameters, table.contexts, table.statistics)
        new = model.log_evidence(parameters, table.contexts[7], change.statistics)
        return jnp.sum(fixed * old) + temperature * new

    for each in range(2):
        np.testing.assert_allclose(value[each], slowly(particles[each]), rtol=1e-9)
        expected = jax.grad(slowly)(particles[each])
        np.testing.assert_allclose(gradient[each], expected, rtol=1e-6, atol=1e-6)
    direction = jax.random.normal(jax.random.key(2), (model.num_parameters,))
    step = 1e-5
    ahead, behind = (slowly(particles[0] + sign * step * direction) for sign in (1, -1))
    slope = float(gradient[0] @ direction)
    assert slope == pytest.approx(float(ahead - behind) / (2 * step), rel=1e-5)


def test_single_precision_is_close():
    """Values of many users to a few digits after the point, gradients to four digits."""
    config = CONFIGS["plain"]
    table = table_of(config)
    single = MixtureModel(MixtureConfig(3, (None,), num_components=3))
    particles = jax.random.normal(jax.random.key(1), (4, single.num_parameters))
    change = Change.of(table, 0, table.of(0)[1])
    paths = [HistoryPath(model) for model in (single, MixtureModel(config))]
    (ours, slopes), (exact, expected) = (
        path.log_likelihood_and_gradient(particles, change, jnp.ones(())) for path in paths
    )
    np.testing.assert_allclose(ours, exact, rtol=1e-5)
    np.testing.assert_allclose(slopes, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_information_is_the_average_of_outer_products():
    """With as many rounds as groups, every user is seen under every particle."""
    config = CONFIGS["plain"]
    model, table = MixtureModel(config), table_of(config, 2)
    particles = jax.random.normal(jax.random.key(1), (10, model.num_parameters))
    rows = Change.of(table, 0, table.of(0)[1]).rows(jnp.ones(()))
    found = model.information(particles, rows)
    expected = super(MixtureModel, model).information(particles, rows)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["plain", "factor", "kinds"])
def test_interweaving_keeps_the_population(name):
    """Other parameters, the same means, weights, spreads and factors."""
    model = MixtureModel(CONFIGS[name])
    parameters = jax.random.normal(jax.random.key(3), (model.num_parameters,))
    moved = model.interweave(jax.random.key(4), parameters)
    assert np.max(np.abs(np.asarray(moved - parameters))) > 1e-3
    terms = jnp.asarray(np.random.default_rng(1).normal(size=(5, model.config.num_terms)))
    before, after = (model.layout.population(each) for each in (parameters, moved))
    for part in ("logits", "means", "factors"):
        found, expected = getattr(after, part)(terms), getattr(before, part)(terms)
        np.testing.assert_allclose(found, expected, atol=1e-10)
    np.testing.assert_allclose(after.spreads, before.spreads, atol=1e-12)


def test_interweaving_keeps_the_prior():
    """Many particles from N(0, I): means and squares stay, within four standard errors."""
    model = MixtureModel(CONFIGS["kinds"])
    num = 20_000
    particles = jax.random.normal(jax.random.key(1), (num, model.num_parameters))
    keys = jax.random.split(jax.random.key(2), num)
    moved = np.asarray(jax.jit(jax.vmap(model.interweave))(keys, particles))
    assert np.max(np.abs(moved.mean(axis=0))) * np.sqrt(num) < 4.5
    assert np.max(np.abs((moved**2).mean(axis=0) - 1)) * np.sqrt(num / 2) < 4.5


def test_sticks_sum_to_one():
    """Break off shares by hand."""
    logits = np.array([0.3, -1.2, 2.0])
    shares = 1 / (1 + np.exp(-logits))
    left, expected = 1.0, []
    for share in shares:
        expected.append(left * share)
        left *= 1 - share
    np.testing.assert_allclose(jnp.exp(stick_breaking(jnp.asarray(logits))), [*expected, left])


@pytest.mark.parametrize("name", CONFIGS)
def test_new_arm_leaves_the_others_as_they_were(name):
    """Widen particles: what is believed of the first arms stays, and evidence without the new."""
    model = MixtureModel(CONFIGS[name])
    wider = model.with_arm()
    particles = jax.random.normal(jax.random.key(5), (3, model.num_parameters))
    widened = model.widened(jax.random.key(6), particles)
    assert widened.shape == (3, wider.num_parameters)
    context = jnp.zeros(len(model.config.features))
    statistics = Statistics.empty(model.num_arms).add(0, 2.0)
    more = Statistics.empty(wider.num_arms).add(0, 2.0)
    for old, new in zip(particles, widened, strict=True):
        before, after = (
            model.posterior(old, context, statistics),
            wider.posterior(new, context, more),
        )
        np.testing.assert_allclose(after.mean()[:-1], before.mean(), atol=1e-10)
        np.testing.assert_allclose(after.variance()[:-1], before.variance(), atol=1e-10)
        np.testing.assert_allclose(
            wider.log_evidence(new, context, more), model.log_evidence(old, context, statistics)
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_arms": 1}, "num_arms=1"),
        ({"num_components": 0}, "num_components=0"),
        ({"rank": 3}, "rank from 0 to 2 for gaussian"),
        ({"rank": 1, "rewards": "bernoulli"}, "rank from 0 to 0 for bernoulli"),
        ({"reward_noise": 0.0}, "reward_noise=0.0"),
    ],
)
def test_configuration_is_refused(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        MixtureConfig(**{"num_arms": 2} | changes)
