"""Arrays on their way to the device."""

import jax
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array


def put(values: np.ndarray | np.generic, dtype: DTypeLike | None = None) -> Array:
    """On the device, in a precision if one is given: `jnp.asarray` would compile anew for every shape."""
    return jax.device_put(np.asarray(values, dtype))
