"""JAX as the command line wants it."""

import jax


def use_64_bits() -> None:
    """Switch on 64-bit mode, which the library leaves to whoever runs it."""
    jax.config.update("jax_enable_x64", True)
