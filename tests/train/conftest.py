"""Every `train` traces and compiles its own step: equal recipes share one here."""

import json
from collections.abc import Iterator
from typing import Any

import jax
import pytest

from fluxforge import recipe
from fluxforge.train import _train, chunk_function


@pytest.fixture(autouse=True, scope="session")
def compilations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("compiled")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    yield
    jax.config.update("jax_compilation_cache_dir", before)


_TRACED: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def traces(monkeypatch: pytest.MonkeyPatch) -> None:
    def shared(spec: recipe.Recipe, transform: Any) -> Any:
        name = json.dumps(recipe.to_dict(spec), sort_keys=True)
        return _TRACED.setdefault(name, chunk_function(spec, transform))

    monkeypatch.setattr(_train, "chunk_function", shared)
