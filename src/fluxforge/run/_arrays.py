"""Files of arrays with a digest, which are read only if they are exactly as written."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from fluxforge._files import atomic_path, escape_unprintable, open_regular, reason
from fluxforge.errors import StorageError


class Arrays(NamedTuple):
    """The arrays of a file, and the text that was written with them."""

    arrays: dict[str, np.ndarray]
    words: str


def read_arrays(place: Path) -> Arrays | None:
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
    return Arrays(arrays, words) if metadata.get("digest") == digest_arrays(arrays, words) else None


def write_arrays(place: Path, arrays: Mapping[str, np.ndarray], words: str = "") -> None:
    """Write arrays and a text with their digest, atomically, for `read_arrays`.

    Raises StorageError if the system fails, such as on a full disk, and InputError if the path cannot be written.
    """
    content = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    # A single entry without words: safetensors writes several entries in an order that changes between processes.
    metadata = {"digest": digest_arrays(content, words)} | ({"words": words} if words else {})
    with atomic_path(place) as temporary:
        try:
            save_file(content, temporary, metadata=metadata)
        except SafetensorError as error:
            # The file beside `place` was created before: what fails now is the system.
            raise StorageError(f"{escape_unprintable(str(place))}: cannot be written ({reason(error)})") from error


def digest_arrays(arrays: Mapping[str, np.ndarray], words: str) -> str:
    """SHA-256 of the words, and of the names, types, shapes and numbers of the arrays."""
    total = hashlib.sha256(words.encode())
    for name in sorted(arrays):
        total.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        total.update(arrays[name].tobytes())
    return total.hexdigest()
