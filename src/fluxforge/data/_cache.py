"""Files of arrays in the user's cache folder."""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from fluxforge.errors import InputError, StorageError
from fluxforge.run._arrays import write_arrays
from fluxforge.run._durable import remove_strays

# Temporary files of killed processes are removed from the cache after this time; a file is written within seconds.
TEMPORARY_AGE = 3600.0


def cache_folder() -> Path:
    """`$FLUXFORGE_CACHE`, or `fluxforge` in the user's cache folder."""
    if folder := os.environ.get("FLUXFORGE_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fluxforge"


def cache_path(kind: str, *inputs: bytes) -> Path:
    """The cache file of arrays that are computed from these inputs, named after `kind` and a hash of the inputs."""
    return cache_folder() / f"{kind}-{hashlib.sha256(b''.join(inputs)).hexdigest()[:24]}.safetensors"


def write_cached(place: Path, arrays: Mapping[str, np.ndarray], words: str = "") -> None:
    """Write a file of the cache. A failure raises nothing: results are the same, but computed again next time."""
    with suppress(InputError, StorageError):
        write_arrays(place, arrays, words)
        remove_strays(place.parent, seconds=TEMPORARY_AGE)
