from typing import Any

import pytest

from fluxforge.paper import _claims, _run
from toy_paper import SENTENCES, Toy, parts


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package with the two toy parts for its paper."""
    first, second = Toy("first"), Toy("second", "holds under a condition")
    paper_parts = parts(first, second)
    monkeypatch.setattr(_run, "PARTS", paper_parts)
    monkeypatch.setattr(_claims, "PART_TEXTS", paper_parts)
    monkeypatch.setattr(_claims, "SENTENCES", SENTENCES)
    return first, second
