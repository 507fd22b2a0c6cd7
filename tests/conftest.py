"""JAX at its strictest: 64-bit, and no silent promotion of ranks."""

import jax
import matplotlib

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
matplotlib.use("Agg")
