"""One folder of compiled JAX functions per run of the tests: shared by its workers, removed at its end.

JAX finds an entry by a digest of the whole program, the compiler's version and options and XLA_FLAGS, so that an entry
is never that of another function or another instruction set; and since the folder is new with every run, none comes
from another build or another processor.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import jax
import pytest
from jax._src.lru_cache import LRUCache

FOLDER = pytest.StashKey[str]()
_NEVER = "1e9"  # seconds


def make_folder(config: pytest.Config) -> str:
    """The folder of a new run, which is removed when the run is over."""
    folder = tempfile.mkdtemp(prefix="fluxforge-compiled-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    config.stash[FOLDER] = folder
    return folder


def folder_of(config: pytest.Config) -> str:
    """The folder made for a run."""
    return config.stash[FOLDER]


def use(folder: str) -> None:
    """Read and write compilations there. Processes that tests start only read: they may be killed while they write."""
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = _NEVER
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    LRUCache.put = _put_whole  # type: ignore[method-assign]


def _put_whole(cache: Any, key: str, value: bytes) -> None:
    """In place of JAX's `put`, which writes in place: another worker could read half an entry."""
    place = Path(cache.path) / f"{key}-cache"
    if not place.exists():
        handle, temporary = tempfile.mkstemp(dir=cache.path)
        with os.fdopen(handle, "wb") as file:
            file.write(value)
        os.replace(temporary, place)
