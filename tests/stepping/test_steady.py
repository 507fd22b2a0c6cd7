"""Steady states: the published errors of the plain flux to four digits, and the orders each family allows."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy.sparse import eye_array
from scipy.sparse.linalg import spsolve

from fluxforge.mesh import (
    Conditions,
    Dirichlet,
    DualGraph,
    Mesh,
    Neumann,
    cross_triangles,
    dual,
    equilateral,
    fourier_step,
    jittered,
    right_triangles,
    squares,
)
from fluxforge.scheme import Scheme
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import operator
from strategies import BOUNDARIES, MESHES, SIDED, mixed, warped_quads, whole_step

FAMILIES: dict[str, Callable[[int], Mesh]] = {
    "right": right_triangles,
    "cross": cross_triangles,
    "squares": squares,
    "equilateral": equilateral,
}


def steady(scheme: Scheme, graph: DualGraph, S: np.ndarray) -> np.ndarray:
    """(I − M) T = N S + b."""
    step = operator(scheme, graph, dt=0.5 * fourier_step(graph))
    return spsolve((eye_array(graph.cells) - step.M).tocsc(), step.N @ S + step.b)


def hill(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.sin(np.pi * x) * np.sin(np.pi * y)


def slope(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.sin(2 * x + y) + x * x


@cache
def errors(name: str, family: str, n: int) -> tuple[float, float]:
    """Relative L∞ and volume-weighted L2 errors against the exact solution at the centroids."""
    if family == "equilateral":
        graph = dual(FAMILIES[family](n), Dirichlet(slope))
        u = slope(*graph.x.T)
        S = 5 * np.sin(2 * graph.x[:, 0] + graph.x[:, 1]) - 2
    else:
        graph = dual(FAMILIES[family](n))
        u = hill(*graph.x.T)
        S = 2 * np.pi**2 * u
    error = steady(BUILT_IN[name], graph, S) - u
    largest = np.abs(error).max() / np.abs(u).max()
    return float(largest), float(np.sqrt(graph.V @ error**2) / np.sqrt(graph.V @ u**2))


@pytest.mark.parametrize(
    ("n", "largest", "mean"),
    [(10, 7.042e-2, 6.201e-2), (20, 6.816e-2, 5.998e-2), (50, 6.472e-2, 5.943e-2), (100, 6.326e-2, 5.936e-2)],
)
def test_the_published_errors_on_right_triangles(n: int, largest: float, mean: float) -> None:
    assert errors("euler", "right", n) == pytest.approx((largest, mean), abs=0.6e-5)


@pytest.mark.parametrize(("n", "mean"), [(6, 7.75e-3), (12, 1.91e-3), (30, 3.05e-4), (50, 1.10e-4)])
def test_the_errors_on_squares_cut_by_both_diagonals(n: int, mean: float) -> None:
    assert errors("euler", "cross", n)[1] == pytest.approx(mean, rel=5e-3)


@pytest.mark.parametrize(("n", "mean"), [(10, 5.8e-3), (20, 1.6e-3), (40, 4.1e-4)])
def test_the_correction_restores_convergence_on_right_triangles(n: int, mean: float) -> None:
    assert errors("corrected", "right", n)[1] == pytest.approx(mean, rel=0.04)


@pytest.mark.parametrize("name", ["euler", "corrected"])
@pytest.mark.parametrize("family", ["squares", "equilateral", "cross"])
def test_order_two_where_centroid_lines_are_perpendicular(family: str, name: str) -> None:
    norms = np.array([errors(name, family, n) for n in (8, 16, 32, 64)])
    largest, mean = np.log2(norms[:-1] / norms[1:]).T
    assert np.abs(mean - 2.0).max() <= 0.05
    assert np.abs(largest[-1] - 2.0).max() <= 0.1  # the acute corners of the parallelogram come late
    assert norms[-1].max() < 2e-3


def test_no_order_at_all_on_right_triangles() -> None:
    norms = np.array([errors("euler", "right", n) for n in (10, 20, 50, 100)])
    fitted = -np.polyfit(np.log([10, 20, 50, 100]), np.log(norms), 1)[0]
    assert np.abs(fitted).max() <= 0.06


LINEAR: dict[str, Conditions] = {
    "dirichlet": Dirichlet("2 - 3*x + 5*y"),
    "both": {
        "left": Neumann(3.0),
        "right": Dirichlet("2 - 3*x + 5*y"),
        "bottom": Neumann(-5.0),
        "top": Dirichlet("2 - 3*x + 5*y"),
    },
    "nearly insulated": {
        "left": Neumann(3.0),
        "right": Neumann(-3.0),
        "bottom": Neumann(-5.0),
        "top": Dirichlet("2 - 3*x + 5*y"),
    },
}


@pytest.mark.parametrize("conditions", LINEAR.values(), ids=list(LINEAR))
@pytest.mark.parametrize(
    "mesh",
    [jittered(6, 0.3, seed=4), right_triangles(5), squares(5), warped_quads(5, 0.3), mixed(5, 0.3), cross_triangles(3)],
    ids=lambda mesh: mesh.origin.split("(")[0],
)
def test_the_corrected_scheme_is_exact_on_linear_fields(mesh: Mesh, conditions: Conditions) -> None:
    graph = dual(mesh, conditions)
    u = 2 - 3 * graph.x[:, 0] + 5 * graph.x[:, 1]
    moved = whole_step(BUILT_IN["corrected"], graph, fourier_step(graph))(u) - u
    assert np.abs(moved).max() <= 1e-12
    assert np.abs(steady(BUILT_IN["corrected"], graph, np.zeros(graph.cells)) - u).max() <= 1e-10


def test_the_plain_flux_is_not_exact_on_linear_fields_of_skew_meshes() -> None:
    graph = dual(jittered(6, 0.3, seed=4), LINEAR["dirichlet"])
    u = 2 - 3 * graph.x[:, 0] + 5 * graph.x[:, 1]
    moved = whole_step(BUILT_IN["euler"], graph, fourier_step(graph))(u) - u
    assert np.abs(moved).max() > 1e-2


SAME_STEADY = ["midpoint", "rk4", "rkl2-8", "two-hop", "crank-nicolson"]


@pytest.mark.parametrize("name", SAME_STEADY)
def test_every_method_of_the_plain_flux_comes_to_rest_where_euler_does(name: str) -> None:
    for mesh in SIDED.values():
        graph = dual(mesh, BOUNDARIES["both"])
        S = np.sin(9 * graph.x[:, 0])
        rest = steady(BUILT_IN["euler"], graph, S)
        step = whole_step(BUILT_IN[name], graph, 0.4 * fourier_step(graph))
        assert np.abs(step(rest, S) - rest).max() <= 1e-12


def test_the_printed_midpoint_rule_comes_to_rest_elsewhere() -> None:
    graph = dual(MESHES["jittered"])
    S = np.sin(9 * graph.x[:, 0])
    rest = steady(BUILT_IN["euler"], graph, S)
    step = whole_step(BUILT_IN["midpoint-printed"], graph, 0.4 * fourier_step(graph))
    assert np.abs(step(rest, S) - rest).max() > 1e-5


@pytest.mark.parametrize(("n", "ratio"), [(12, 2.732)])
def test_the_printed_two_hop_formula_conducts_too_well(n: int, ratio: float) -> None:
    """(1 + √3) α on equilateral triangles: its steady state is that much too flat (walls have no second hop)."""
    graph = dual(equilateral(n))
    inner = (np.abs(graph.x[:, 1] - 0.433) < 0.25) & (np.abs(graph.x[:, 0] - 0.75) < 0.25)
    probe = graph.x[:, 0] ** 2 + graph.x[:, 1] ** 2
    dt = 1e-3 * fourier_step(graph)
    rate = (whole_step(BUILT_IN["two-hop-printed"], graph, dt)(probe) - probe)[inner] / dt
    assert inner.sum() > 50
    # ∇²(x² + y²) = 4.
    assert rate / 4 == pytest.approx(np.full(inner.sum(), ratio), rel=2e-3)
