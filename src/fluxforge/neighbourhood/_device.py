"""Arrays on their way to the device."""

import jax
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

from fluxforge._machine import free_memory


def put(values: np.ndarray | np.generic, dtype: DTypeLike | None = None) -> Array:
    """A copy on the device, in a precision if one is given: `jnp.asarray` would compile anew for every shape.

    Copied here, because on a CPU `device_put` shares the memory of an array that happens to be aligned: who changed
    theirs later would change ours.
    """
    return jax.device_put(np.array(values, dtype))


def device_memory() -> int | None:
    """Bytes that are free where JAX computes: in the machine for a CPU, on the device elsewhere; None if unknown."""
    device = jax.devices()[0]
    if device.platform == "cpu":
        return free_memory()
    held = device.memory_stats() or {}
    return held["bytes_limit"] - held.get("bytes_in_use", 0) if "bytes_limit" in held else None
