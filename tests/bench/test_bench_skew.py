import numpy as np
import pytest

from fluxforge.bench import bench_skew
from fluxforge.bench._hybrid import solve_hybrid
from fluxforge.bench._skew import SIZES
from fluxforge.mesh import dual
from fluxforge.skew import FAMILIES, FluxOperator, make_mesh, solve_steady


@pytest.mark.parametrize("family", FAMILIES)
def test_the_hybrid_scheme_is_exact_for_linear_fields(family):
    graph = dual(make_mesh(family, 5, 1))
    K = np.array([[2.0, 0.4], [0.4, 1.0]])
    walls = graph.centre[graph.interior :] @ [1.0, -2.0] + 0.5
    found = solve_hybrid(graph, np.zeros(graph.cells), walls, K)
    assert found.cells == pytest.approx(graph.x @ [1.0, -2.0] + 0.5, abs=1e-11)
    assert found.unknowns == graph.cells + graph.interior


def test_the_hybrid_scheme_on_squares_is_the_two_point_flux():
    graph = dual(make_mesh("squares", 6, 0))
    source = np.random.default_rng(0).normal(size=graph.cells)
    walls = np.zeros(graph.ghosts)
    plain = solve_steady(FluxOperator(graph).plain_matrix(), graph, source[:, None], walls[:, None])[:, 0]
    assert solve_hybrid(graph, source, walls).cells == pytest.approx(plain, abs=1e-12 * np.abs(plain).max() + 1e-15)


def test_the_table_has_all_schemes_and_the_discovered_one_is_ahead(monkeypatch):
    monkeypatch.setattr("fluxforge.bench._skew.SIZES", {**SIZES, "quick": (6, 12)})
    measured = bench_skew(size="quick")
    by_name = {(each.family, each.scheme): each for each in measured.compared}
    for family in ("right", "jittered", "quadrilaterals"):
        assert by_name[family, "skew-error"].over_corrected < 0.95
        assert by_name[family, "two-point"].over_corrected > 2.0
        assert by_name[family, "hybrid"].equal_unknowns == pytest.approx(1.0)
    document = measured.document()["skew"]
    assert {row["scheme"] for row in document["rows"]} >= {"corrected", "two-point", "hybrid", "skew-error"}
