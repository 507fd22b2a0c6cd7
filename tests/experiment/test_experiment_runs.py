"""Recipes of experiments refused before anything is made, a small run from end to end, and decoys."""

import json
from pathlib import Path

import pytest

import fluxforge as ff
from fluxforge import recipe
from fluxforge.errors import InputError
from fluxforge.mesh import Inflow
from fluxforge.pipeline import discover, resume
from fluxforge.sweeps import AblationRow, Gallery, GalleryRow, format_gallery


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FLUXFORGE_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"data.law": "velocity_n*u_X"}, "data.law"),
        ({"textbook": "nobody's"}, "textbook"),
        ({"equation": "heat"}, "textbook"),
        ({"parameters": {"velocity": [1.0, 0.0]}}, "parameters"),
        ({"search": None}, "search"),
        ({"data.peclet": 3.0}, "data.peclet"),
        ({"data.states": [1.0, -1.0]}, "data.states"),
    ],
)
def test_a_bad_recipe_is_refused_before_there_is_a_folder(tmp_path: Path, changes, field) -> None:
    with pytest.raises(InputError, match=field):
        discover("upwind", tmp_path / "run", changes=changes)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_upwind_is_found_kept_and_runs_on_a_mesh(tmp_path: Path) -> None:
    run = discover("upwind", tmp_path / "run")
    assert run.verdict == "recovered"
    experiment = run.document["experiment"]
    assert experiment["textbook"]["same"]
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert page.count("<math") >= 3
    assert "fluxforge discover upwind --seed 1 -o upwind-seed-1" in page
    assert json.loads((tmp_path / "run" / "scheme.json").read_text())["equation"] == "advection"
    (tmp_path / "run" / "report.html").unlink()
    again = resume(tmp_path / "run")
    assert again.document == run.document
    assert (tmp_path / "run" / "report.html").exists()
    simulated = ff.simulate(
        tmp_path / "run",
        ff.mesh.square(cells=60),
        parameters={"velocity": (1.0, 0.3)},
        initial=1.0,
        boundary=Inflow(1.0),
        steps=5,
    )
    # A constant is carried into itself: what comes in leaves, to round-off of the sums over three faces.
    assert abs(simulated.final - 1.0).max() < 1e-12


@pytest.mark.slow
def test_data_with_two_percent_of_another_flux_are_not_taken_for_upwind(tmp_path: Path) -> None:
    law = "0.98*(max(velocity_n, 0)*u_P + min(velocity_n, 0)*u_N) + 0.02*velocity_n*(u_P + u_N)/2"
    run = discover("upwind", tmp_path / "run", changes={"data.law": law})
    assert not (run.verdict == "recovered" and run.document["experiment"]["textbook"]["same"])
    assert not run.document["experiment"]["textbook"]["same"]


def test_seeds_and_decoys_are_rows_of_the_gallery() -> None:
    row = GalleryRow(
        exhibit="upwind", asked="what is carried", seed=0, sees=("u_P",), verdict="recovered", found="max(a, 0)|",
        error=1e-16, textbook="F", same=True, decoy=False, seconds=3.0,
        ablations=(AblationRow(method="sparse regression", formula="a", error=0.3),),
    )  # fmt: skip
    refused = GalleryRow(
        exhibit="upwind", asked="what is carried", seed=1, sees=("u_P",), verdict="refused", found=None, error=None,
        textbook=None, same=False, decoy=False, seconds=5.0,
    )  # fmt: skip
    text = format_gallery(Gallery(seeds=(0, 1), command="c", hardware="p", environment={}, rows=(row, refused)))
    assert "| `upwind`: what is carried | 1 of 2 | 0 | 1 | 5 | F |" in text
    assert r"`max(a, 0)\|`" in text
    # Of two seeds the worse one is the median, and no formula is worse than any.
    assert "| `upwind` | 1 of 2 (no formula) | 0 of 2 (3.0e-01) |" in text


def test_the_recipes_of_experiments_name_a_textbook_that_is_nowhere_in_their_data() -> None:
    for name in ("conductance", "upwind", "exponential", "godunov"):
        spec = recipe.load(name)
        assert spec.textbook is not None
        assert isinstance(spec.data, recipe.Experiment)
        assert spec.data.law is None
