"""JAX at its strictest: 64-bit, and no silent promotion of ranks."""

import os

# There is little to compute in a test, and much to compile; processes that tests start inherit it.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import jax
import matplotlib

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
matplotlib.use("Agg")
