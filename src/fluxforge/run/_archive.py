"""A pytree as a safetensors file: array leaves by path, and a note of the step and the fingerprint.

Leaves that are not arrays are static: they are not stored, and the template keeps its own.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path, tree_map_with_path
from jaxtyping import PyTree
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from fluxforge._files import parse_json
from fluxforge.errors import InputError
from fluxforge.run._durable import reason

Leaf = jax.Array | np.ndarray | np.generic


class Kind(NamedTuple):
    """What a leaf looks like in a file: a random key is its words, and the name of its generator."""

    dtype: str
    shape: tuple[int, ...]
    key: str | None = None

    def __str__(self) -> str:
        plain = f"{self.dtype}[{','.join(map(str, self.shape))}]"
        return f"{plain} (a {self.key} key)" if self.key else plain


def named_leaves(tree: PyTree) -> dict[str, Leaf]:
    """The array leaves of a tree, named by their paths."""
    named: dict[str, Leaf] = {}
    for path, leaf in tree_flatten_with_path(tree)[0]:
        if isinstance(leaf, Leaf):
            if keystr(path) in named:
                raise ValueError(
                    f"two leaves of the tree have one path {keystr(path)!r}, so that a file cannot hold both"
                )
            named[keystr(path)] = leaf
    return named


def stored(leaf: Leaf) -> np.ndarray:
    """The array that a file holds for a leaf: dense, in the order of C."""
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf, order="C")


def kind(leaf: Leaf) -> Kind:
    """What a leaf looks like in a file."""
    array = stored(leaf)
    return Kind(array.dtype.name, array.shape, str(jax.random.key_impl(leaf)) if _is_key(leaf) else None)


def filled(template: PyTree, arrays: Mapping[str, np.ndarray]) -> PyTree:
    """The template with its array leaves replaced, each in the dtype of its array, whether or not x64 is on."""

    def replaced(path: Any, leaf: Any) -> Any:
        return _like(leaf, arrays[keystr(path)]) if isinstance(leaf, Leaf) else leaf

    return tree_map_with_path(replaced, template)


def _like(leaf: Leaf, array: np.ndarray) -> Leaf:
    if isinstance(leaf, np.generic):
        return array[()]
    if isinstance(leaf, np.ndarray):
        return array
    with jax.enable_x64(True):
        value = jnp.array(array)
    return jax.random.wrap_key_data(value, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else value


def _is_key(leaf: Leaf) -> TypeGuard[jax.Array]:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


_NOTE = "fluxforge-checkpoint"
_VERSION = 1
_CODES = {
    "BOOL": "bool",
    **{f"{code}{bits}": f"{name}{bits}" for code, name in (("I", "int"), ("U", "uint")) for bits in (8, 16, 32, 64)},
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
}


class DamagedError(Exception):
    """A file that is not what was saved; the message says why."""


def packed(tree: PyTree, *, step: int, fingerprint: str) -> bytes:
    """The array leaves of a tree as the bytes of a safetensors file; equal trees give equal bytes."""
    leaves = named_leaves(tree)
    kinds = {name: kind(leaf) for name, leaf in leaves.items()}
    for name, found in kinds.items():
        if found.dtype not in _CODES.values():
            raise InputError(f"leaf {name or 'the tree'}: a checkpoint cannot hold the type {found.dtype}")
    keys = {name: found.key for name, found in kinds.items() if found.key}
    note = {"format_version": _VERSION, "step": step, "fingerprint": fingerprint, "keys": keys}
    # One entry: safetensors writes several in an order that changes from process to process.
    metadata = {_NOTE: json.dumps(note, sort_keys=True)}
    return save({name: stored(leaf) for name, leaf in leaves.items()}, metadata)


def unpacked(path: Path, template: PyTree, *, step: int, fingerprint: str) -> PyTree:
    """The template filled from a file. All is checked against the header before any data are read."""
    try:
        with safe_open(path, "numpy") as archive:
            note = _note(archive.metadata(), step)
            _check_version(path, note)
            _check_fingerprint(path, note["fingerprint"], fingerprint)
            wanted = {name: kind(leaf) for name, leaf in named_leaves(template).items()}
            _check_leaves(path, wanted, _found(archive, note["keys"]))
            return filled(template, {name: archive.get_tensor(name) for name in wanted})
    except (SafetensorError, OSError) as error:
        raise DamagedError(reason(error)) from error


def _note(metadata: dict[str, str] | None, step: int) -> dict[str, Any]:
    try:
        note = parse_json((metadata or {})[_NOTE])
    except (KeyError, ValueError, RecursionError) as error:
        raise DamagedError("its header is none of ours") from error
    fields = {"format_version": int, "step": int, "fingerprint": str, "keys": dict}
    if not isinstance(note, dict) or any(type(note.get(name)) is not form for name, form in fields.items()):
        raise DamagedError("its header is none of ours")
    if note["step"] != step:
        raise DamagedError(f"it is of step {note['step']!s:.20}")
    return note


def _check_version(path: Path, note: dict[str, Any]) -> None:
    if note["format_version"] > _VERSION:
        raise InputError(
            f"{path}: has format_version {note['format_version']!s:.20}, and this fluxforge reads up to {_VERSION}: "
            "upgrade fluxforge"
        )


def _check_fingerprint(path: Path, found: str, wanted: str) -> None:
    if found != wanted:
        raise InputError(
            f"{path}: was made by another architecture or recipe (its fingerprint is {found:.12}, this run's is "
            f"{wanted:.12}): resume with the recipe it was made by, or begin a new run"
        )


def _found(archive: Any, keys: dict[str, Any]) -> dict[str, Kind]:
    slices = {name: archive.get_slice(name) for name in archive.keys()}  # noqa: SIM118 (it is no mapping)
    return {
        name: Kind(_CODES.get(part.get_dtype(), part.get_dtype()), tuple(part.get_shape()), keys.get(name))
        for name, part in slices.items()
    }


def _check_leaves(path: Path, wanted: dict[str, Kind], found: dict[str, Kind]) -> None:
    for name in sorted(wanted.keys() | found.keys()):
        want, have = wanted.get(name), found.get(name)
        if want != have:
            raise InputError(
                f"{path}: leaf {name or 'the tree'!s:.200} should be {want or 'absent'}, found "
                f"{have or 'absent'!s:.200}: it was not made by this run"
            )
