"""The set-up: what is drawn is what was measured, and verdicts follow the numbers."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fluxforge.data import EQUILATERAL
from fluxforge.mesh import Mesh, cross_triangles, dual, equilateral, generate, right_triangles, squares
from fluxforge.paper.studies import setup
from fluxforge.paper.studies._setup_meshes import choose_patches, count_small_areas, make_patch
from study_documents import judge_document, run_document

CONFIG = setup.Config(meshes=8, cells=(150, 250), engine="builtin")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLUXFORGE_CACHE", str(tmp_path_factory.mktemp("cache")))
        return run_document(setup, CONFIG)


def _verdict(result: Mapping[str, Any], name: str) -> str:
    return next(claim.verdict for claim in judge_document(setup, result) if claim.name == name)


def test_the_document_is_plain_and_small(result: dict[str, Any]) -> None:
    text = json.dumps(result, allow_nan=False)
    assert json.loads(text) == result
    assert len(text) < 60_000
    assert {"experiment", "preset", "claims", "environment"} <= set(result)
    assert [claim["verdict"] for claim in result["claims"]] == ["holds", "holds"]


def test_the_training_pair_has_the_printed_geometry(result: dict[str, Any]) -> None:
    pair = result["two_cells"]
    assert pair["V"] == pytest.approx([3**0.5] * 2)
    assert (pair["A"], pair["delta"]) == pytest.approx((2, 2 / 3**0.5))
    assert pair["ratio"] == pytest.approx([1, 1])
    assert pair["training"]["graphs"] == 105
    assert pair["training"]["edges"] == 1


def test_the_example_is_one_step_of_the_first_order_scheme(result: dict[str, Any]) -> None:
    one = result["two_cells"]["example"]
    T, S = np.array(one["T"]), np.array(one["S"])
    assert one["after"] == pytest.approx((T + one["dt"] * (T[::-1] - T + S)).tolist(), abs=2e-6)
    assert abs(T[0] - T[1]) > 0.01


def test_another_geometry_of_the_training_pair_changes_the_verdict(result: dict[str, Any]) -> None:
    changed = copy.deepcopy(result)
    changed["two_cells"]["training"]["delta"][1] *= 1 + 1e-9
    assert _verdict(changed, "setup-two-cells") == "does not hold"


def test_verdicts_on_the_meshes_change_with_the_numbers(result: dict[str, Any]) -> None:
    def judge_changed(kind: str, **changes: Any) -> str:
        changed = copy.deepcopy(result)
        changed["ensemble"]["by_kind"][kind] |= changes
        return _verdict(changed, "setup-meshes")

    spread = copy.deepcopy(result["ensemble"]["by_kind"]["irregular"]["spread"])
    spread["delta"][0] = 1.5 * result["ensemble"]["by_kind"]["regular"]["spread"]["delta"][2]
    assert judge_changed("irregular", spread=spread) == "does not hold"
    assert judge_changed("irregular", areas={"1": 2, "2": 2}) == "holds under a condition"
    assert judge_changed("regular", quality=[0.8, 0.9, 1.0]) == "does not hold"
    assert judge_changed("regular", areas={"0": 3, "1": 1}) == "does not hold"


def test_samples_are_scaled_by_the_largest_cell_of_the_irregular_one(result: dict[str, Any]) -> None:
    regular, irregular = (result["samples"][kind] for kind in ("regular", "irregular"))
    assert max(irregular["size"]) == 1.0
    points, cells = np.array(irregular["points"]), np.array(irregular["cells"])
    V = dual(Mesh(points, cells)).V
    assert irregular["size"] == pytest.approx((V / V.max()).tolist(), abs=2e-3)
    # The areas of both fill the unit square, so that sizes add up to the same.
    assert sum(regular["size"]) == pytest.approx(sum(irregular["size"]), rel=1e-3)
    assert irregular["spread"]["V"] > 3 * regular["spread"]["V"]


def test_areas_of_small_cells_are_counted() -> None:
    assert count_small_areas(dual(generate(kind="regular", cells=300, seed=1, engine="builtin"))) == 0
    assert count_small_areas(dual(squares(6))) == 0
    # Two corners of a coarse lattice, each cut into many small squares, in one list of quadrilaterals.
    fine = squares(5)
    corners = [fine.points * 0.2, fine.points * 0.2 + 0.8]
    points = np.concatenate([*corners, squares(2).points])
    cells = np.concatenate([fine.cells, fine.cells + 36, squares(2).cells + 72])
    assert count_small_areas(dual(Mesh(points, cells))) == 2


@pytest.mark.parametrize(
    ("mesh", "centre", "counts"),
    [
        (squares(7), 24, (4, 8, 4, 16, 4)),
        # Around a vertex of four triangles, one cell is reached twice.
        (cross_triangles(5), 48, (3, 5, 1, 9, 3)),
        (equilateral(6), 30, (3, 6, 0, 9, 3)),
        (right_triangles(6), 30, (3, 6, 0, 9, 3)),
    ],
    ids=lambda value: value.origin if isinstance(value, Mesh) else "",
)
def test_paths_of_a_patch_are_counted(mesh: Mesh, centre: int, counts: tuple[int, ...]) -> None:
    patch = make_patch(mesh, centre)
    names = ("one_hop", "two_hop", "reached_twice")
    assert (*(getattr(patch, name) for name in names), len(patch.paths), patch.returning) == counts
    near, far = {middle for middle, _ in patch.paths}, {end for _, end in patch.paths} - {0}
    assert {k for k, hop in enumerate(patch.hop) if hop == 1} == near
    assert {k for k, hop in enumerate(patch.hop) if hop == 2} == far


def test_a_patch_is_the_mesh_around_its_centre() -> None:
    mesh = equilateral(6)
    patch = make_patch(mesh, 30)
    x = dual(mesh).x
    assert patch.centroids[0] == pytest.approx(x[30].tolist(), abs=1e-5)
    corners = np.array(patch.points)[np.array(patch.cells)]
    assert corners.mean(axis=1) == pytest.approx(np.array(patch.centroids), abs=2e-5)
    edges = {frozenset(pair) for pair in patch.edges}
    assert all({frozenset((0, middle)), frozenset((middle, end))} <= edges for middle, end in patch.paths)


def test_the_patches_of_the_result_lie_inside(result: dict[str, Any]) -> None:
    triangles, quads = (result["patches"][kind] for kind in ("triangles", "squares"))
    assert (len(triangles["paths"]), triangles["returning"]) == (9, 3)
    assert triangles["two_hop"] + triangles["reached_twice"] == 6
    assert (quads["two_hop"], quads["reached_twice"]) == (8, 4)


def test_without_a_cell_reached_twice_any_inner_cell_will_do() -> None:
    patch = choose_patches([equilateral(6), cross_triangles(5)])["triangles"]
    assert (patch.mesh, patch.reached_twice) == ("cross_triangles(5)", 1)
    patch = choose_patches([equilateral(6)])["triangles"]
    assert (patch.one_hop, patch.two_hop, patch.reached_twice) == (3, 6, 0)


def test_the_pair_drawn_is_the_one_trained_on(result: dict[str, Any]) -> None:
    assert np.array(result["two_cells"]["points"]) == pytest.approx(EQUILATERAL, abs=1e-6)


def test_a_missing_gmsh_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(setup, "gmsh_problem", lambda: "libGLU.so.1 is missing")
    assert setup.find_engine("auto", told.append) == "the built-in engine"
    assert "libGLU" in told[0]
    assert setup.find_engine("builtin", told.append) == "the built-in engine"
    assert setup.find_engine("gmsh", told.append) == "gmsh"
    assert len(told) == 1
