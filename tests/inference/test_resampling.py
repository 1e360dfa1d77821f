import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cocobandits.inference.resampling import systematic


def copies(ancestors):
    return np.bincount(np.asarray(ancestors), minlength=8)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    st.lists(st.floats(-6, 6) | st.just(-np.inf), min_size=8, max_size=8).filter(
        lambda logs: max(logs) > -7
    ),
    st.integers(0, 2**31 - 1),
)
def test_number_of_copies_is_rounded_up_or_down(log_weights, seed):
    """Multiply the weights by N by hand; a rounding error may tip an exact integer."""
    ancestors = systematic(jax.random.key(seed), jnp.array(log_weights))
    weights = np.exp(log_weights) / np.exp(log_weights).sum()
    counted = copies(ancestors)
    assert counted.sum() == 8
    assert np.all(counted >= np.floor(8 * weights - 1e-9))
    assert np.all(counted <= np.ceil(8 * weights + 1e-9))
    assert np.all(np.diff(ancestors) >= 0)


def test_resampling_is_unbiased():
    """Average the copies over 4,000 keys; the mean must be N w within four standard errors."""
    weights = np.array([0.3, 0.02, 0.11, 0.17, 0.05, 0.21, 0.08, 0.06])
    keys = jax.random.split(jax.random.key(11), 4000)
    drawn = jax.jit(jax.vmap(systematic, in_axes=(0, None)))(keys, jnp.log(weights))
    counted = np.stack([copies(row) for row in np.asarray(drawn)])
    error = counted.std(axis=0) / np.sqrt(4000)
    assert np.all(error > 0)
    assert np.all(np.abs(counted.mean(axis=0) - 8 * weights) < 4 * error)


def test_equal_weights_keep_every_particle():
    """Each of eight equal particles gets exactly one copy."""
    for seed in range(5):
        ancestors = systematic(jax.random.key(seed), jnp.zeros(8))
        np.testing.assert_array_equal(copies(ancestors), np.ones(8))
