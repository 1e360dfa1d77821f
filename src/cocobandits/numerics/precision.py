"""How many bits numbers are computed in, by name."""

from typing import Literal

import jax.numpy as jnp

Precision = Literal["single", "double"]
DTYPES = {"single": jnp.float32, "double": jnp.float64}
