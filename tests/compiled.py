"""One folder of compiled JAX functions per run of the tests: shared by its workers, removed at its end.

JAX finds an entry by a digest of the whole program, the compiler's version and options and XLA_FLAGS, so that an entry
is never that of another function or another instruction set; and since the folder is new with every run, none comes
from another build or another processor.

More than half of the processor time of the tests is XLA's compiler. It compiles without optimisation here, unless
XLA_FLAGS is set: `XLA_FLAGS= make test` compiles as a user's process does, and so does `make portable`.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import jax
import jaxlib
import pytest
from jax._src.lru_cache import LRUCache

FOLDER = pytest.StashKey[str]()
_NEVER = "1e9"  # seconds
# Training 2 × 400 steps of a small network takes 10.6 s of processor time with XLA's own choices and 3.5 s with these.
_UNOPTIMISED = "--xla_backend_optimization_level=0"
# XLA ends the process at a flag it does not know, and this one may go: it is given to the versions it was tried with.
_SIMPLE_LOOPS = "--xla_cpu_use_fusion_emitters=false"
_TRIED = ("0.10.",)


def quick_flags(version: str = jaxlib.__version__) -> str:
    """XLA_FLAGS with which programs that run for milliseconds compile fast."""
    return f"{_UNOPTIMISED} {_SIMPLE_LOOPS}" if version.startswith(_TRIED) else _UNOPTIMISED


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
