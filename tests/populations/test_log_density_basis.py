import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cocobandits.populations.log_density import (
    Axis,
    CategoricalAxis,
    LogDensityConfig,
    LogDensityModel,
)
from cocobandits.populations.log_density.basis import leading_modes
from cocobandits.populations.log_density.karhunen_loeve import decompose

ARM_AXIS = Axis(-1.0, 0.8, 4)
CONTEXT_AXIS = Axis(0.0, 1.0, 4)


def gram(left, right, lengthscale):
    return np.exp(-0.5 * (np.subtract.outer(left, right) / lengthscale) ** 2)


def line(axis):
    return np.linspace(axis.low, axis.high, axis.size)


def small_config(num_modes, **changes):
    settings = {
        "context_axes": (CONTEXT_AXIS,),
        "arm_axis": ARM_AXIS,
        "arm_lengthscale": 0.6,
        "context_lengthscale": 0.4,
        "amplitude": 1.7,
        "num_modes": num_modes,
    }
    return LogDensityConfig(2, **settings | changes)


def dense_eigenpairs():
    """Decompose the whole kernel matrix over (arm, arm, context) nodes, largest first."""
    arm = gram(line(ARM_AXIS), line(ARM_AXIS), 0.6)
    context = gram(line(CONTEXT_AXIS), line(CONTEXT_AXIS), 0.4)
    values, vectors = np.linalg.eigh(np.kron(np.kron(arm, arm), context))
    return values[::-1], vectors[:, ::-1]


def cut_between_distinct_eigenvalues(values, at_least):
    return next(m for m in range(at_least, len(values)) if values[m - 1] > 1.001 * values[m])


def functions_on_nodes(model, contexts):
    """Push unit vectors through the model: one function on (arm, arm, context) nodes per row."""
    by_context = jax.vmap(model.log_density, in_axes=(None, 0))
    pushed = jax.jit(jax.vmap(by_context, in_axes=(0, None)))(
        jnp.eye(model.num_parameters), jnp.asarray(contexts)[:, None]
    )
    return np.moveaxis(np.asarray(pushed), 1, -1).reshape(model.num_parameters, -1)


@pytest.mark.parametrize("at_least", [2, 20])
def test_truncated_covariance_matches_dense_decomposition(at_least):
    """Decompose the full Kronecker kernel matrix with numpy and keep as many modes."""
    values, vectors = dense_eigenpairs()
    num_modes = cut_between_distinct_eigenvalues(values, at_least)
    model = LogDensityModel(small_config(num_modes))
    np.testing.assert_allclose(model.basis.eigenvalues, values[:num_modes], rtol=1e-10)

    functions = functions_on_nodes(model, line(CONTEXT_AXIS))
    kept = vectors[:, :num_modes]
    expected = 1.7**2 * (kept * values[:num_modes]) @ kept.T
    np.testing.assert_allclose(functions.T @ functions, expected, atol=1e-10)

    unscaled = functions / (1.7 * np.sqrt(model.basis.eigenvalues))[:, None]
    np.testing.assert_allclose(unscaled.T @ unscaled, kept @ kept.T, atol=1e-9)


def test_all_modes_give_the_kernel_itself():
    """Form the Kronecker kernel matrix entry by entry from the product of three correlations."""
    model = LogDensityModel(small_config(64))
    nodes = list(itertools.product(line(ARM_AXIS), line(ARM_AXIS), line(CONTEXT_AXIS)))
    expected = [
        [
            1.7**2 * gram(p[0], q[0], 0.6) * gram(p[1], q[1], 0.6) * gram(p[2], q[2], 0.4)
            for q in nodes
        ]
        for p in nodes
    ]
    functions = functions_on_nodes(model, line(CONTEXT_AXIS))
    np.testing.assert_allclose(functions.T @ functions, expected, atol=1e-10)
    assert model.captured_variance == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("num_modes", [1, 7, 25, 60])
def test_leading_modes_match_sorting_all_products(num_modes):
    """List every product of one eigenvalue per axis and sort."""
    rng = np.random.default_rng(3)
    ladders = [np.sort(rng.uniform(0.01, 2.0, size))[::-1].copy() for size in (4, 3, 5)]
    products = {
        index: np.prod([ladder[i] for ladder, i in zip(ladders, index, strict=True)])
        for index in itertools.product(range(4), range(3), range(5))
    }
    expected = sorted(products, key=products.get, reverse=True)[:num_modes]
    modes = leading_modes([jnp.log(ladder) for ladder in ladders], num_modes)
    assert [tuple(index) for index in modes.indices.tolist()] == expected
    np.testing.assert_allclose(
        modes.eigenvalues, [products[index] for index in expected], rtol=1e-12
    )


def test_leading_modes_stop_when_products_run_out():
    """Count by hand: 2 x 3 eigenvalues have six products, however many are asked for."""
    ladders = [jnp.array([2.0, 0.5]), jnp.array([3.0, 1.0, 0.1])]
    modes = leading_modes([jnp.log(ladder) for ladder in ladders], 100)
    np.testing.assert_allclose(modes.eigenvalues, [6.0, 2.0, 1.5, 0.5, 0.2, 0.05], rtol=1e-12)


def test_extension_returns_the_eigenvectors_at_nodes():
    """Compare with the eigenvector rows that the extension must pass through."""
    basis = decompose(Axis(-1.0, 1.4, 4), 0.5)
    extended = jax.vmap(basis.at)(basis.axis.nodes)
    np.testing.assert_allclose(extended, basis.eigenvectors, atol=1e-8)


def test_extension_returns_the_eigenvectors_at_categories():
    """Compare with the eigenvectors of the matrix that has one constant off the diagonal."""
    basis = decompose(CategoricalAxis(4), 0.7)
    matrix = np.full((4, 4), np.exp(-0.5 / 0.7**2))
    np.fill_diagonal(matrix, 1.0)
    rebuilt = (basis.eigenvectors * basis.eigenvalues[None, :]) @ basis.eigenvectors.T
    np.testing.assert_allclose(rebuilt, matrix, atol=1e-12)
    extended = jax.vmap(basis.at)(jnp.arange(4.0))
    np.testing.assert_allclose(extended, basis.eigenvectors, atol=1e-10)


def test_extension_between_nodes_approximates_the_kernel():
    """Evaluate the kernel directly at pairs of points off the nodes."""
    basis = decompose(Axis(-1.0, 1.0, 15), 0.7)
    points = np.array([-0.93, -0.41, 0.02, 0.333, 0.78])
    functions = jax.vmap(basis.at)(jnp.asarray(points))
    covariance = (functions * basis.eigenvalues[None, :]) @ functions.T
    expected = gram(points, points, 0.7)
    np.testing.assert_allclose(covariance, expected, atol=1e-7)
    assert not set(points) & set(np.asarray(basis.axis.nodes))


def test_density_off_the_nodes_is_the_gaussian_process_interpolation():
    """Interpolate the values at the context nodes with a dense solve, k(x, X) K⁻¹ f(X)."""
    model = LogDensityModel(small_config(64))
    parameters = jnp.asarray(np.random.default_rng(5).normal(size=64))
    nodes = line(CONTEXT_AXIS)
    at_nodes = [np.asarray(model.log_density(parameters, jnp.array([x]))) for x in nodes]
    weights = np.linalg.solve(gram(nodes, nodes, 0.4), gram(nodes, 0.31, 0.4))
    expected = np.tensordot(weights, np.stack(at_nodes), axes=1)
    actual = model.log_density(parameters, jnp.array([0.31]))
    np.testing.assert_allclose(actual, expected, atol=1e-10)


def test_density_moves_continuously_with_the_context():
    """Where two neighbouring nodes differ clearly, half-way lies between their values."""
    axis = Axis(0.0, 1.0, 4)
    model = LogDensityModel(small_config(40, context_axes=(axis,), context_lengthscale=1.5))
    parameters = jnp.asarray(np.random.default_rng(8).normal(size=40))
    left, middle, near, right = jax.vmap(model.log_density, in_axes=(None, 0))(
        parameters, jnp.array([[0.0], [1 / 6], [1 / 6 + 1e-7], [1 / 3]])
    )
    is_clear = np.abs(right - left) > 0.1
    assert is_clear.sum() >= 5
    share = np.asarray((middle - left) / (right - left))[is_clear]
    assert np.all((share > 0.05) & (share < 0.95))
    step = np.abs(near - middle).max()
    assert 0 < step < 1e-6


def test_category_selects_its_own_density():
    """Categories correlate as the kernel at distance one says, all pairs alike."""
    axis = CategoricalAxis(4)
    model = LogDensityModel(small_config(64, context_axes=(axis,)))
    functions = functions_on_nodes(model, [0.0, 1.0, 2.0, 3.0])
    covariance = (functions.T @ functions).reshape(4, 4, 4, 4, 4, 4)
    expected = np.full((4, 4), 1.7**2 * np.exp(-0.5 / 0.4**2))
    np.fill_diagonal(expected, 1.7**2)
    np.testing.assert_allclose(covariance[1, 2, :, 1, 2, :], expected, atol=1e-10)


@pytest.mark.parametrize(("num_modes", "expected"), [(80, 0.67), (379, 0.95)])
def test_paper_preset_keeps_the_documented_share_of_variance(num_modes, expected):
    """Sum all products of eigenvalues with numpy; the shares are those of the design notes."""
    arm = np.linalg.eigvalsh(gram(*[np.linspace(-2, 2, 20)] * 2, 0.7))
    context = np.linalg.eigvalsh(gram(*[np.linspace(-1, 1, 10)] * 2, 0.7))
    products = np.einsum("i,j,k,l->ijkl", arm, arm, arm, context).ravel()
    brute_force = np.sort(products)[-num_modes:].sum() / (20**3 * 10)
    share = LogDensityModel(LogDensityConfig(3, num_modes=num_modes)).captured_variance
    assert share == pytest.approx(brute_force, rel=1e-9)
    assert round(share, 2) == expected
