"""Every `train` compiles its own step: equal ones are compiled once per session."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True, scope="session")
def compilations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("compiled")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    yield
    jax.config.update("jax_compilation_cache_dir", before)
