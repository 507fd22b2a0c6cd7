"""What is refused before anything is trained or written."""

from pathlib import Path
from typing import Any

import pytest

from fluxforge import recipe
from fluxforge.distil import ENGINES
from fluxforge.errors import FluxforgeError, InputError
from fluxforge.pipeline import discover


def refused(spec: recipe.Recipe, folder: Path) -> str:
    with pytest.raises(FluxforgeError) as caught:
        discover(spec, folder / "run")
    assert not (folder / "run").exists()
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_an_engine_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(ENGINES["pysr"]), "available", lambda self: "pysr is not installed: pip install it")
    spec = recipe.override(recipe.load("first-order"), {"search.engine": "pysr"})
    assert refused(spec, tmp_path) == "pysr is not installed: pip install it"


def test_a_recipe_that_asks_for_nothing(tmp_path: Path) -> None:
    spec = recipe.override(recipe.load("first-order"), {"search": None})
    assert "neither 'arms' nor 'search'" in refused(spec, tmp_path)


@pytest.mark.parametrize("theta", [0.5, 1.0])
def test_a_residual_on_two_cells_of_one_step(tmp_path: Path, theta: float) -> None:
    document: dict[str, Any] = recipe.to_dict(recipe.load("first-order-pinn"))
    document["data"] = {"kind": "two-cells", "faces": "random"}
    document["loss"]["residual"]["theta"] = theta
    spec = recipe.from_dict(document, "made up")
    text = refused(spec, tmp_path)
    assert "'loss.residual' and 'data.kind'" in text
    with pytest.raises(InputError):
        discover(spec, tmp_path / "run")
