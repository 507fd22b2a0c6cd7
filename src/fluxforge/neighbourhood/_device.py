"""Arrays on their way to the device."""

import jax
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array


def put(values: np.ndarray | np.generic, dtype: DTypeLike | None = None) -> Array:
    """A copy on the device, in a precision if one is given: `jnp.asarray` would compile anew for every shape.

    Copied here, because on a CPU `device_put` shares the memory of an array that happens to be aligned: who changed
    theirs later would change ours.
    """
    return jax.device_put(np.array(values, dtype))
