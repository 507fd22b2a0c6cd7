"""Every `train` traces and compiles its own step: equal recipes share one here."""

import json
from typing import Any

import pytest

from fluxforge import recipe
from fluxforge.train import _train, chunk_function

_TRACED: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def traces(monkeypatch: pytest.MonkeyPatch) -> None:
    def shared(spec: recipe.Recipe, transform: Any) -> Any:
        name = json.dumps(recipe.to_dict(spec), sort_keys=True)
        return _TRACED.setdefault(name, chunk_function(spec, transform))

    monkeypatch.setattr(_train, "chunk_function", shared)
