"""Settings that every test runs under: strict shapes, 64 bits, annotations checked at run time."""

from jaxtyping import install_import_hook

# Before the package is first imported: every axis name in an annotation becomes a check.
with install_import_hook("cocobandits", "beartype.beartype"):
    import cocobandits  # noqa: F401

import jax

jax.config.update("jax_numpy_rank_promotion", "raise")
