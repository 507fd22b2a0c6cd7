"""Checkpoints of a small tree, and functions that inspect and damage them."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fluxforge.run import Checkpoints

F = "f" * 64


def record_warnings(checkpoints: Checkpoints) -> tuple[Checkpoints, list[str]]:
    told: list[str] = []
    return Checkpoints(checkpoints.folder, warn=told.append, keep=checkpoints.keep), told


def tree(step: int) -> dict[str, Any]:
    return {"w": np.arange(6.0).reshape(2, 3) + step, "n": np.int32(step)}


def data(checkpoints: Checkpoints, step: int) -> Path:
    return checkpoints.folder / f"step-{step:09d}.safetensors"


def seal(checkpoints: Checkpoints, step: int) -> Path:
    return checkpoints.folder / f"step-{step:09d}.safetensors.sha256"


def save_steps(checkpoints: Checkpoints, *steps: int) -> None:
    for step in steps:
        checkpoints.save(step, tree(step), fingerprint=F)


def steps(checkpoints: Checkpoints) -> set[str]:
    return {item.name for item in checkpoints.folder.iterdir()}


def pair(*numbers: int) -> set[str]:
    return {f"step-{step:09d}.safetensors{end}" for step in numbers for end in ("", ".sha256")}


def same_bits(one: Any, other: Any) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        if not eqx.is_array(a):
            assert a is b
            continue
        assert type(a) is type(b)
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
