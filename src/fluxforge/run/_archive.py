"""A pytree as a safetensors file: array leaves by path, and in the metadata a note with step and fingerprint.

Leaves that are not arrays are static: they are not stored, and on reading they are taken from the template.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path, tree_map_with_path
from jaxtyping import PyTree
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from fluxforge._files import parse_json, reason
from fluxforge.errors import InputError

Leaf = jax.Array | np.ndarray | np.generic


class LeafType(NamedTuple):
    """Dtype and shape of a leaf as stored; for a random key those of its data, and the name of its generator."""

    dtype: str
    shape: tuple[int, ...]
    key: str | None = None

    def __str__(self) -> str:
        plain = f"{self.dtype}[{','.join(map(str, self.shape))}]"
        return f"{plain} (a {self.key} key)" if self.key else plain


def named_leaves(tree: PyTree) -> dict[str, Leaf]:
    """The array leaves of a tree by their paths; raises ValueError if two have the same path."""
    named: dict[str, Leaf] = {}
    for path, leaf in tree_flatten_with_path(tree)[0]:
        if isinstance(leaf, Leaf):
            if keystr(path) in named:
                raise ValueError(f"two leaves of the tree have the same path {keystr(path)!r}: a file cannot hold both")
            named[keystr(path)] = leaf
    return named


def to_array(leaf: Leaf) -> np.ndarray:
    """A leaf as the array to store: dense, in C order; of a random key its data."""
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf, order="C")


def leaf_type(leaf: Leaf) -> LeafType:
    """Dtype, shape and key generator of a leaf as stored."""
    array = to_array(leaf)
    return LeafType(array.dtype.name, array.shape, str(jax.random.key_impl(leaf)) if _is_key(leaf) else None)


def fill_template(template: PyTree, arrays: Mapping[str, np.ndarray]) -> PyTree:
    """A template with its array leaves replaced by `arrays`, in their dtypes, whether or not x64 is enabled."""

    def replace_leaf(path: Any, leaf: Any) -> Any:
        return _convert_like(leaf, arrays[keystr(path)]) if isinstance(leaf, Leaf) else leaf

    return tree_map_with_path(replace_leaf, template)


def _convert_like(leaf: Leaf, array: np.ndarray) -> Leaf:
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
    """A checkpoint file whose content is not what was saved; the message says why."""


class Note(msgspec.Struct, frozen=True):
    """The metadata of a checkpoint: format version, step, fingerprint of the run, and generators of random keys."""

    format_version: int
    step: int
    fingerprint: str
    keys: dict[str, str]


def pack_tree(tree: PyTree, *, step: int, fingerprint: str) -> bytes:
    """The array leaves of a tree as the bytes of a safetensors file; equal trees give equal bytes.

    Raises InputError for a leaf of a dtype that the format does not have.
    """
    leaves = named_leaves(tree)
    types = {name: leaf_type(leaf) for name, leaf in leaves.items()}
    for name, each in types.items():
        if each.dtype not in _CODES.values():
            raise InputError(f"leaf {name or 'the tree'}: a checkpoint cannot hold the type {each.dtype}")
    keys = {name: each.key for name, each in types.items() if each.key}
    note = Note(_VERSION, step, fingerprint, keys)
    # A single entry, since safetensors writes several entries in an order that changes from process to process.
    metadata = {_NOTE: json.dumps(msgspec.structs.asdict(note), sort_keys=True)}
    return save({name: to_array(leaf) for name, leaf in leaves.items()}, metadata)


def unpack_tree(path: Path, template: PyTree, *, step: int, fingerprint: str) -> PyTree:
    """Fill a template from a file; the header is checked before any data are read.

    Raises DamagedError if the file is not as it was saved, InputError if it is from another run or a newer version.
    """
    try:
        with safe_open(path, "numpy") as archive:
            note = _read_note(archive.metadata(), step)
            _check_note(path, note, fingerprint)
            wanted = {name: leaf_type(leaf) for name, leaf in named_leaves(template).items()}
            _check_leaves(path, wanted, _stored_types(archive, note.keys))
            return fill_template(template, {name: archive.get_tensor(name) for name in wanted})
    except (SafetensorError, OSError) as error:
        raise DamagedError(reason(error)) from error


def _read_note(metadata: dict[str, str] | None, step: int) -> Note:
    try:
        note = msgspec.convert(parse_json((metadata or {})[_NOTE]), Note)
    except (KeyError, ValueError, RecursionError) as error:  # msgspec's ValidationError is a ValueError
        raise DamagedError("its header is not that of a checkpoint") from error
    if note.step != step:
        raise DamagedError(f"it is of step {note.step!s:.20}")
    return note


def _check_note(path: Path, note: Note, fingerprint: str) -> None:
    if note.format_version > _VERSION:
        raise InputError(
            f"{path}: has format_version {note.format_version!s:.20}, but this version of fluxforge reads at most "
            f"{_VERSION}: upgrade fluxforge"
        )
    if note.fingerprint != fingerprint:
        raise InputError(
            f"{path}: was made with another recipe or architecture (its fingerprint is {note.fingerprint:.12}, this "
            f"run's is {fingerprint:.12}): resume with that recipe, or start a new run"
        )


def _stored_types(archive: Any, keys: dict[str, str]) -> dict[str, LeafType]:
    slices = {name: archive.get_slice(name) for name in archive.keys()}  # noqa: SIM118 (not a mapping)
    return {
        name: LeafType(_CODES.get(part.get_dtype(), part.get_dtype()), tuple(part.get_shape()), keys.get(name))
        for name, part in slices.items()
    }


def _check_leaves(path: Path, wanted: dict[str, LeafType], stored: dict[str, LeafType]) -> None:
    for name in sorted(wanted.keys() | stored.keys()):
        want, have = wanted.get(name), stored.get(name)
        if want != have:
            raise InputError(
                f"{path}: leaf {name or 'the tree'!s:.200} should be {want or 'absent'}, found "
                f"{have or 'absent'!s:.200}: it was not made by this run"
            )
