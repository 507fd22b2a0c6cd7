"""Files of arrays that are read only if they are exactly as written, in the user's cache folder and elsewhere."""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from fluxforge._files import atomic_path, open_regular
from fluxforge.errors import InputError, StorageError
from fluxforge.run._durable import remove_strays

# Temporary files of killed processes are removed from the cache after this time; a file is written within seconds.
TEMPORARY_AGE = 3600.0


class Cached(NamedTuple):
    """The arrays of a file, and the text that was written with them."""

    arrays: dict[str, np.ndarray]
    words: str


def cache_folder() -> Path:
    """`$FLUXFORGE_CACHE`, or `fluxforge` in the user's cache folder."""
    if folder := os.environ.get("FLUXFORGE_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fluxforge"


def cache_path(kind: str, *inputs: bytes) -> Path:
    """The cache file of arrays that are computed from these inputs, named after `kind` and a hash of the inputs."""
    return cache_folder() / f"{kind}-{hashlib.sha256(b''.join(inputs)).hexdigest()[:24]}.safetensors"


def read_cached(place: Path) -> Cached | None:
    """The content of a file; None if the file is absent or, by its digest, not as it was written."""
    try:
        # Refuses a named pipe, on which safetensors would block.
        open_regular(place).close()
        with safe_open(place, framework="np") as held:
            metadata = held.metadata() or {}
        arrays = load_file(place)
    # AttributeError, ValueError: a header that names a type of numbers, or a shape, that NumPy does not have.
    except (OSError, SafetensorError, AttributeError, ValueError):
        return None
    words = metadata.get("words", "")
    return Cached(arrays, words) if metadata.get("digest") == digest_arrays(arrays, words) else None


def write_arrays(place: Path, arrays: Mapping[str, np.ndarray], words: str = "") -> None:
    """Write arrays and a text with their digest, atomically, for `read_cached`; raises StorageError if that fails."""
    content = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    # A single entry without words: safetensors writes several entries in an order that changes between processes.
    metadata = {"digest": digest_arrays(content, words)} | ({"words": words} if words else {})
    with atomic_path(place) as temporary:
        save_file(content, temporary, metadata=metadata)


def write_cached(place: Path, arrays: Mapping[str, np.ndarray], words: str = "") -> None:
    """Write a file of the cache. A failure raises nothing: results are the same, but computed again next time."""
    with suppress(InputError, StorageError, SafetensorError):
        write_arrays(place, arrays, words)
        remove_strays(place.parent, seconds=TEMPORARY_AGE)


def digest_arrays(arrays: Mapping[str, np.ndarray], words: str) -> str:
    """SHA-256 of the words, and of the names, types, shapes and numbers of the arrays."""
    total = hashlib.sha256(words.encode())
    for name in sorted(arrays):
        total.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        total.update(arrays[name].tobytes())
    return total.hexdigest()
