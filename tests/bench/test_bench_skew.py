import numpy as np
import pytest

from fluxforge.bench import bench_skew
from fluxforge.bench._hybrid import solve_hybrid
from fluxforge.bench._skew import SIZES
from fluxforge.bench._skew_conductivity import (
    TENSOR_FAMILIES,
    jump_case,
    line_mesh,
    measure_error,
    tensor_case,
)
from fluxforge.mesh import dual
from fluxforge.skew import FAMILIES, FluxOperator, fit_order, make_mesh, solve_steady


@pytest.mark.parametrize("family", FAMILIES)
def test_the_hybrid_scheme_is_exact_for_linear_fields(family):
    graph = dual(make_mesh(family, 5, 1))
    K = np.array([[2.0, 0.4], [0.4, 1.0]])
    walls = graph.centre[graph.interior :] @ [1.0, -2.0] + 0.5
    solution = solve_hybrid(graph, np.zeros(graph.cells), walls, K)
    assert solution.cells == pytest.approx(graph.x @ [1.0, -2.0] + 0.5, abs=1e-11)
    assert solution.unknowns == graph.cells + graph.interior


def test_the_hybrid_scheme_on_squares_is_the_two_point_flux():
    graph = dual(make_mesh("squares", 6, 0))
    source = np.random.default_rng(0).normal(size=graph.cells)
    walls = np.zeros(graph.ghosts)
    plain = solve_steady(FluxOperator(graph).plain_matrix(), graph, source[:, None], walls[:, None])[:, 0]
    assert solve_hybrid(graph, source, walls).cells == pytest.approx(plain, abs=1e-12 * np.abs(plain).max() + 1e-15)


COMPARED = ("right", "jittered", "quadrilaterals")


@pytest.fixture(scope="module")
def measured():
    """The benchmark on small meshes, of families on which the plain flux does not converge."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fluxforge.bench._skew.FAMILIES", COMPARED)
        patch.setattr("fluxforge.bench._skew.SIZES", {**SIZES, "quick": (6, 12)})
        patch.setattr("fluxforge.bench._skew.CONDUCTIVITY_SIZES", {"quick": (4, 6)})
        patch.setattr("fluxforge.bench._skew_conductivity.PROBLEMS", 1)
        patch.setattr("fluxforge.bench._skew.RANGE_MESHES", {"quick": 2})
        patch.setattr("fluxforge.bench._skew.BLEND_SIZES", {"quick": (12,)})
        return bench_skew(size="quick")


def test_the_table_has_all_schemes_and_the_discovered_one_is_ahead(measured):
    by_name = {(each.family, each.scheme): each for each in measured.compared}
    for family in COMPARED:
        assert by_name[family, "skew-error"].over_corrected < 0.95
        assert by_name[family, "two-point"].over_corrected > 2.0
        assert by_name[family, "hybrid"].equal_unknowns == pytest.approx(1.0)
    assert any(row.violated > 0 for row in measured.ranges if not row.blended)
    assert all(row.violated == 0 for row in measured.ranges if row.blended)
    assert all(0.5 < row.error_ratio < 1.5 for row in measured.blends)
    document = measured.document()["skew"]
    assert {row["problem"] for row in document["conductivities"]} == {"tensor", "jump"}
    assert {row["scheme"] for row in document["rows"]} >= {"corrected", "two-point", "hybrid", "skew-error"}


@pytest.mark.parametrize("make", [tensor_case, jump_case])
def test_problems_with_other_conductivities_are_solved_with_second_order(make):
    """A wrong source or wall value leaves an error that no refinement removes."""
    case = make(np.random.default_rng(1))
    rows = {n: measure_error("skew-error", line_mesh(n, 1), [case]) for n in (4, 8, 16, 24)}
    cells, errors = zip(*rows.values(), strict=True)
    assert fit_order(cells, errors) > 1.7
    assert errors[-1] < 0.01


def test_a_line_of_faces_stays_where_the_conductivity_jumps():
    for n in (4, 8):
        graph = dual(line_mesh(n, 2))
        x = graph.x[:, 0]
        inner = slice(graph.interior)
        across = (x[graph.owner[inner]] < 0.5) != (x[graph.neighbour[inner]] < 0.5)
        assert across.sum() == n
        assert graph.centre[inner][across, 0] == pytest.approx(0.5, abs=1e-15)


def test_rows_of_conductivities_are_compared_with_the_corrected_flux(measured):
    rows = measured.conductivities
    assert {row.mesh for row in rows if row.problem == "tensor"} == set(TENSOR_FAMILIES)
    by_name = {(row.problem, row.mesh, row.scheme, row.cells): row for row in rows}
    for row in rows:
        assert row.error == pytest.approx(
            row.over_corrected * by_name[row.problem, row.mesh, "corrected", row.cells].error
        )
        assert (row.order is None) == (row.cells == min(r.cells for r in rows if r.mesh == row.mesh))
