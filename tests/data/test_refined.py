"""Answers by refinement: divided cells, walls and averages, against a matrix exponential on the divided mesh."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

from fluxforge import recipe
from fluxforge.data import divide, divide_cells, meshes, source
from fluxforge.errors import InputError
from fluxforge.mesh import Mesh, dual, jittered, squares, write
from fluxforge.scheme import find
from fluxforge.stepping import generator

CHANGES = {
    "data.target": "refined",
    "data.meshes": 2,
    "data.cells": [8, 16],
    "data.kinds": ["irregular"],
    "data.engine": "builtin",
    "data.levels": 1,
    "data.fields": ["noise"],
    "training.precision": "float64",
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUXFORGE_CACHE", str(tmp_path))


def test_a_cell_is_divided_into_four_of_its_shape() -> None:
    mesh = jittered(3)
    fine = divide_cells(mesh)
    areas = dual(fine).V.reshape(-1, 4)
    # Round-off of products of coordinates near 1.
    assert np.abs(areas - dual(mesh).V[:, None] / 4).max() < 1e-14
    assert {tag: len(edges) for tag, edges in fine.boundary.items()} == {
        tag: 2 * len(edges) for tag, edges in mesh.boundary.items()
    }
    assert dual(fine).ghosts == 2 * dual(mesh).ghosts


def test_walls_of_divided_cells_lie_on_those_they_came_from() -> None:
    mesh = jittered(3)
    coarse, fine = dual(mesh), divide(mesh, 2)
    assert np.array_equal(np.bincount(fine.wall), np.full(coarse.ghosts, 4))
    n = coarse.n[coarse.interior :][fine.wall]
    assert np.abs(fine.graph.n[fine.graph.interior :] - n).max() < 1e-12


def test_only_triangles_are_divided() -> None:
    with pytest.raises(InputError, match="only meshes of triangles"):
        divide_cells(squares(2))


def test_a_refined_answer_is_the_exponential_of_the_corrected_operator() -> None:
    spec = recipe.override(recipe.load("carry"), CHANGES)
    refined: Any = source(spec)
    mesh = meshes(spec.data, spec.seed)[0]  # type: ignore[arg-type]
    fine = divide(mesh, 1)
    p = refined.problems
    cells, fine_cells = len(mesh.cells), 4 * len(mesh.cells)
    padded = p.graph.V.shape[1]
    held = np.asarray(p.graph.shown["dirichlet"].constant[0])[padded:][fine.wall]
    L = generator(find("corrected"), replace(fine.graph, value=held))
    b = L.b + L.N @ np.repeat(np.asarray(p.S[0])[:cells], 4)
    dt = float(p.dt[0])
    whole = expm(dt * np.block([[L.M.toarray(), b[:, None]], [np.zeros((1, fine_cells + 1))]]))
    T = np.asarray(p.T[0])[:cells]
    wanted = (whole[:-1, :-1] @ np.repeat(T, 4) + whole[:-1, -1]).reshape(-1, 4).mean(axis=1)
    # Modes are resolved to 1e-6.
    assert np.abs(np.asarray(p.answer[0])[:cells] - wanted).max() < 1e-5
    assert np.abs(wanted - T).max() > 1e-2


def test_answers_are_kept_in_the_cache_unless_damaged_and_levels_stop_at_the_tolerance(tmp_path: Path) -> None:
    loose = recipe.override(recipe.load("carry"), {**CHANGES, "data.levels": 3, "data.tolerance": 0.5})
    first: Any = source(loose)
    assert first.levels == 2
    assert 0 < first.difference <= 0.5
    (kept,) = tmp_path.glob("refined-*.safetensors")
    written = kept.stat().st_mtime_ns
    again: Any = source(loose)
    assert np.array_equal(again.problems.answer, first.problems.answer)
    assert kept.stat().st_mtime_ns == written
    damaged = bytearray(kept.read_bytes())
    damaged[-1] ^= 1
    kept.write_bytes(damaged)
    again = source(loose)
    assert np.array_equal(again.problems.answer, first.problems.answer)
    assert again.difference == first.difference
    (generated,) = tmp_path.glob("meshes-*.safetensors")
    kept.write_bytes(generated.read_bytes())
    again = source(loose)
    assert np.array_equal(again.problems.answer, first.problems.answer), "a whole file of something else"
    with pytest.raises(InputError, match=r"data\.noise"):
        recipe.override(loose, {"data.noise": 0.1})


def test_mesh_files_with_the_same_points_and_other_cells_have_answers_of_their_own(tmp_path: Path) -> None:
    base = squares(3)
    recipes = []
    for name, corners in (("rising", ([0, 1, 2], [0, 2, 3])), ("falling", ([0, 1, 3], [1, 2, 3]))):
        cells = np.concatenate([base.cells[:, three] for three in corners])
        write(Mesh(base.points, cells, base.boundary), tmp_path / f"{name}.msh")
        kept = ("data.target", "data.levels", "data.fields", "training.precision")
        default = {"data.meshes": 100, "data.cells": [100, 600], "data.kinds": ["regular", "irregular"]}
        files = {"data.files": [str(tmp_path / f"{name}.msh")]}
        changes = {field: CHANGES[field] for field in kept}
        recipes.append(recipe.override(recipe.load("carry"), {**changes, **default, **files}))
    answers = [np.asarray(source(each).problems.answer) for each in recipes]  # type: ignore[attr-defined]
    assert np.abs(answers[0] - answers[1]).max() > 1e-3
    assert len(list(tmp_path.glob("refined-*.safetensors"))) == 2
