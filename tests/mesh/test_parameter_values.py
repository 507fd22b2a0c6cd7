"""Parameters of an equation on a graph: formulas, functions, arrays, regions, stream functions, time."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxforge.errors import InputError
from fluxforge.expression import symbol
from fluxforge.mesh import (
    Curl,
    divergence,
    dual,
    equilateral,
    jittered,
    read,
    relative_divergence,
    resolve,
    right_triangles,
    squares,
    varies_in_time,
    write,
)
from fluxforge.pde import (
    ADVECTION,
    ADVECTION_DIFFUSION,
    ANISOTROPIC,
    CONDUCTION,
    HEAT,
    Equation,
    Parameter,
    Rank,
    Where,
)

LEFT_HALF = replace(squares(4), regions={"steel": np.arange(8), "air": np.arange(8, 16)})
HALVES = dual(LEFT_HALF)
GRAPH = dual(jittered(4, seed=3))
ON_FACES = Equation(
    "on faces",
    parameters=(Parameter("K", rank=Rank.TENSOR, where=Where.FACE), Parameter("m", where=Where.FACE)),
    diffusion=symbol("K"),
)


def conductivity(given, graph=HALVES, **more):
    return resolve(CONDUCTION, graph, {"k": given, **more}).cells["k"]


def test_a_jump_by_a_comparison():
    k = conductivity("1 + 100*(x > 0.5)")
    np.testing.assert_array_equal(k, np.where(HALVES.x[:, 0] > 0.5, 101.0, 1.0))


@pytest.mark.parametrize(
    "given",
    [
        {"steel": 50.0, "air": 0.02},
        {"air": "1/50", "steel": lambda x, y: 50.0 + 0 * x},
        "steel: 50, air: 0.02",
        " air:0.02 ,steel : max(50, 2)",
        "steel: 50, rest: 0.02",
        {"rest": 0.02, "steel": 50},
    ],
)
def test_values_by_region(given):
    np.testing.assert_array_equal(conductivity(given), np.repeat([50.0, 0.02], 8))


def test_a_formula_holds_in_its_region_only():
    k = conductivity("steel: 1 + y, air: 1/(y - 0.1)")
    np.testing.assert_allclose(k[:8], 1 + HALVES.x[:8, 1], rtol=1e-15)
    np.testing.assert_allclose(k[8:], 1 / (HALVES.x[8:, 1] - 0.1), rtol=1e-15)


def test_regions_are_kept_by_files(tmp_path):
    """Cells keep their order, and those in no region stay in none."""
    partly = replace(LEFT_HALF, regions={"steel": np.array([3, 0, 9])})
    for mesh in (LEFT_HALF, partly, squares(2)):
        write(mesh, tmp_path / "m.msh")
        again = read(tmp_path / "m.msh")
        wanted = mesh.regions or {"domain": np.arange(4)}
        assert again.regions.keys() == wanted.keys()
        for name, cells in wanted.items():
            np.testing.assert_array_equal(again.regions[name], np.sort(cells))
        np.testing.assert_array_equal(again.cells, mesh.cells)
        write(again, tmp_path / "n.msh")
        assert (tmp_path / "n.msh").read_bytes() == (tmp_path / "m.msh").read_bytes()
    write(partly, tmp_path / "m.msh")
    k = resolve(CONDUCTION, dual(tmp_path / "m.msh"), {"k": "steel: 2, rest: 3"}).cells["k"]
    np.testing.assert_array_equal(k, np.where(np.isin(np.arange(16), [0, 3, 9]), 2.0, 3.0))


def test_functions_may_take_the_time():
    at = {"k": lambda x, y, t: 1 + x + t, "rhoc": "2 + sin(t)*y"}
    assert varies_in_time(CONDUCTION, at) == {"k", "rhoc"}
    fields = resolve(CONDUCTION, HALVES, at, time=0.5)
    np.testing.assert_allclose(fields.cells["k"], 1.5 + HALVES.x[:, 0], rtol=1e-15)
    np.testing.assert_allclose(fields.cells["rhoc"], 2 + np.sin(0.5) * HALVES.x[:, 1], rtol=1e-15)
    with pytest.raises(InputError, match="parameter 'rhoc' changes in time"):
        resolve(CONDUCTION, HALVES, {"rhoc": "2 + t"})


@pytest.mark.parametrize(
    ("equation", "values", "names"),
    [
        (HEAT, {}, set()),
        (HEAT, {"alpha": "1 + t"}, {"alpha"}),
        (CONDUCTION, {"k": "steel: 1, air: t"}, {"k"}),
        (CONDUCTION, {"k": "t: 1, air: 2"}, set()),
        (CONDUCTION, {"k": {"steel": 1, "air": "tan(x)"}}, set()),
        (CONDUCTION, {"k": lambda x, y: x}, set()),
        (ADVECTION, {"velocity": "(cos(t), 1)"}, {"velocity"}),
        (ADVECTION, {"velocity": ("x", lambda x, y, t: x)}, {"velocity"}),
        (ADVECTION, {"velocity": "curl(t*x*y)"}, {"velocity"}),
        (ADVECTION, {"velocity": Curl("x*y")}, set()),
        (ADVECTION, {"velocity": np.ones(3)}, set()),
    ],
)
def test_what_varies_in_time(equation, values, names):
    assert varies_in_time(equation, values) == names


def test_a_constant_may_be_a_formula():
    assert resolve(HEAT, GRAPH, {"alpha": "2*pi"}).constants["alpha"] == pytest.approx(2 * np.pi, rel=1e-15)
    assert resolve(HEAT, GRAPH, {"alpha": "1 + t"}, time=2.0).constants["alpha"] == 3.0


def velocity(given, graph=GRAPH):
    return resolve(ADVECTION, graph, {"velocity": given}).slots["velocity_n"]


def test_forms_of_a_velocity_agree():
    wanted = velocity("(1 - y, 2*x)")
    vectors = np.stack([1 - GRAPH.centre[:, 1], 2 * GRAPH.centre[:, 0]], axis=1)
    normal = np.einsum("fi,fi->f", vectors, GRAPH.n)
    for form in (("1 - y", "2*x"), vectors, normal, (lambda x, y: 1 - y, "2*x")):
        np.testing.assert_allclose(velocity(form), wanted, rtol=1e-14, atol=1e-15)


def test_a_stream_function_is_the_velocity_it_is_the_curl_of():
    """Along a straight face the difference of a quadratic ψ is its derivative at the centre, exactly."""
    wanted = velocity("(x - 2*y, 3 - y)")
    size = np.abs(wanted).max()
    given = "x*y - y**2 - 3*x"
    for form in (f"curl({given})", Curl(given), Curl(lambda x, y: x * y - y**2 - 3 * x)):
        np.testing.assert_allclose(velocity(form), wanted, rtol=0, atol=1e-13 * size)
    tangential = resolve(ADVECTION, GRAPH, {"velocity": f"curl({given})"}).tangential["velocity_t"]
    vectors = resolve(ADVECTION, GRAPH, {"velocity": "(x - 2*y, 3 - y)"}).tangential["velocity_t"]
    np.testing.assert_allclose(tangential, vectors, rtol=0, atol=1e-13 * size)


coefficients = st.floats(-3, 3).filter(lambda a: a == 0 or abs(a) > 1e-3)
MESHES = (jittered(5, seed=1), right_triangles(4), equilateral(3), squares(3))


@settings(deadline=None, derandomize=True, max_examples=15)
@given(st.lists(coefficients, min_size=5, max_size=5), st.sampled_from(MESHES), st.floats(-3, 3))
def test_a_stream_function_has_no_divergence_on_any_mesh(c, mesh, shift):
    graph = dual(replace(mesh, points=mesh.points + shift))
    psi = f"{c[0]!r}*x + {c[1]!r}*sin(3*y) + {c[2]!r}*x**2*y + {c[3]!r}*exp(x/3) + {c[4]!r}*(x > y)*(x - y)"
    a_n = velocity(f"curl({psi})", graph)
    # Every corner's ψ enters twice with opposite signs. The corner is the centre of each of two faces plus half its
    # length, which differ by roundings of |x| ≤ 5, times |∇ψ| ≤ 150, beside ψ's own of |ψ| ≤ 450.
    assert np.abs(divergence(graph, a_n) * graph.V).max() <= 8 * np.finfo(float).eps * (5 * 150 + 450)


def test_the_divergence_of_a_source_is_told():
    graph = dual(squares(4))
    np.testing.assert_allclose(divergence(graph, velocity("(x, 2*y)", graph)), 3.0, rtol=1e-13)
    assert relative_divergence(graph, velocity("(1, 2)", graph)) < 1e-15
    assert 0.05 < relative_divergence(graph, velocity("(x, 2*y)", graph)) < 1


def normal_parts(equation, given, graph):
    return resolve(equation, graph, {"K": given, **({"m": 1} if equation is ON_FACES else {})}).slots["K_nn"]


def test_forms_of_a_tensor_agree():
    K = ((2.0, 0.5), (0.5, 1.0))
    constant = Equation("constant", parameters=(Parameter("K", rank=Rank.TENSOR),), diffusion=symbol("K"))
    wanted = normal_parts(constant, K, GRAPH)
    tiled = np.tile(K, (GRAPH.cells, 1, 1))
    for form in (K, "((2, 1/2), (1/2, 1))", tiled, (("2", 0.5), (lambda x, y: 0.5 + 0 * x, 1))):
        np.testing.assert_allclose(normal_parts(ANISOTROPIC, form, GRAPH), wanted, rtol=1e-14)
    on_faces = np.tile(K, (len(GRAPH.A), 1, 1))
    for form in (K, on_faces):
        np.testing.assert_allclose(normal_parts(ON_FACES, form, GRAPH), wanted, rtol=1e-14)


def test_a_jump_of_the_tensor_is_met_by_the_harmonic_mean_along_the_normal():
    one, other = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[8.0, -1.0], [-1.0, 4.0]])
    graph = dual(replace(squares(2), regions={"a": np.arange(2), "b": np.arange(2, 4)}))
    fields = resolve(ANISOTROPIC, graph, {"K": {"a": one.tolist(), "b": "((8, -1), (-1, 4))"}})
    per_cell = np.stack([one, one, other, other])
    for face, (P, N) in enumerate(zip(graph.owner, graph.neighbour, strict=True)):
        n = graph.n[face]
        sides = [per_cell[P] @ n, per_cell[N if N < 4 else P] @ n]
        lam = 2 / sum(1 / (side @ n) for side in sides)
        tangent = np.array([-n[1], n[0]])
        rest = lam * sum((side @ tangent) / (side @ n) for side in sides) / 2
        here = np.argwhere((graph.slot_face == face) & graph.slot_mask)
        for cell, slot in here:
            assert fields.slots["K_nn"][cell, slot] == pytest.approx(lam, rel=1e-14)
            assert fields.tangential["K_nt"][cell, slot] == pytest.approx(abs(rest), rel=1e-13)
    # Two layers in series: the flux of a field that is linear in either is that of the harmonic mean.
    across = np.flatnonzero((graph.owner < 2) & (graph.neighbour >= 2) & (graph.neighbour < 4))
    assert len(across) == 2


@pytest.mark.parametrize(
    ("equation", "values", "words"),
    [
        (CONDUCTION, {"k": "steel: 1"}, "parameter 'k': region 'air' has no value; give one, or one for 'rest'"),
        (CONDUCTION, {"k": {"brass": 1}}, "parameter 'k': the mesh has no region 'brass'; it has: steel, air"),
        (CONDUCTION, {"k": "steel: 1, steel: 2"}, "each region once"),
        (CONDUCTION, {"k": "steel: , air: 2"}, "should be REGION: VALUE"),
        (CONDUCTION, {"k": "steel: 1, air: 1/(x - x)"}, "parameter 'k' in region 'air': division by zero"),
        (CONDUCTION, {"k": "steel: 1, air: x - 0.7"}, "parameter k: the diffusion should be positive, got -0.575"),
        (CONDUCTION, {"k": "x - 0.2"}, "parameter k: the diffusion should be positive, got -0.075 in cell 0 at (0.125"),
        (CONDUCTION, {"rhoc": 0}, "parameter rhoc: the capacity should be positive, got 0 in cell 0 at"),
        (CONDUCTION, {"k": "1/(x - 0.125)"}, "parameter 'k': the formula \"1/(x - 0.125)\" is inf at x = 0.125"),
        (CONDUCTION, {"k": np.ones(3)}, "parameter 'k' should be 16 finite numbers, one per cell, got an array"),
        (CONDUCTION, {"k": np.r_[np.ones(15), np.nan]}, "parameter 'k' is not finite in cell 15 at (0.875, 0.875)"),
        (CONDUCTION, {"k": "1 + q"}, "parameter 'k': unknown symbol 'q'"),
        (CONDUCTION, {"k": lambda x: x}, "parameter 'k' should be a function of x and y"),
        (CONDUCTION, {"conductivity": 1}, "no parameter 'conductivity'; it has: rhoc, k"),
        (HEAT, {"alpha": {"steel": 1, "air": 2}}, "parameter 'alpha' should be a finite number"),
        (ADVECTION, {"velocity": "(1, 0, 0)"}, "parameter 'velocity' should have 2 components, such as (1, 0)"),
        (ADVECTION, {"velocity": "1"}, "parameter 'velocity' should have 2 components"),
        (ADVECTION, {"velocity": np.ones((7, 2))}, "should be 40 numbers a·n, or vectors of shape (40, 2)"),
        (ADVECTION, {"velocity": np.ones(7)}, "parameter 'velocity' should be 40 numbers a·n"),
        (ADVECTION, {"velocity": "(1, 1/(y - y))"}, "parameter 'velocity', component 2: division by zero"),
        (ADVECTION, {"velocity": "(x, )"}, "parameter 'velocity': an empty component"),
        (ADVECTION, {"velocity": "curl(x*q)"}, "parameter 'velocity', its stream function: unknown symbol 'q'"),
        (ADVECTION, {"velocity": "curl(log(x - 0.5))"}, "its stream function: the formula \"log(x - 0.5)\" is"),
        (ADVECTION, {"velocity": {"steel": (1, 0), "air": (0, 1)}}, "parameter 'velocity' should have 2 components"),
        (ADVECTION_DIFFUSION, {"velocity": (1, 0), "D": "-1"}, "parameter D: the diffusion should be positive, got -1"),
        (ANISOTROPIC, {"K": "((1, 0), (0, x - 0.5))"}, "definite; it is [[1.0, 0.0], [0.0, -0.375]] in cell 0 at"),
        (ANISOTROPIC, {"K": "((1, 2), (3, 40))"}, "such as ((2, 1), (1, 2)), symmetric and positive"),
        (ANISOTROPIC, {"K": "((1, 0), (0, 1/(x - x)))"}, "parameter 'K', entry 2, 2: division by zero"),
        (ANISOTROPIC, {"K": "(1, 0)"}, "parameter 'K' should be 2 rows of 2 numbers"),
        (ANISOTROPIC, {"K": np.ones((16, 2, 3))}, "parameter 'K' should be 2 rows of 2 numbers"),
        (ANISOTROPIC, {"K": {"steel": ((1, 0), (0, 1))}}, "parameter 'K': region 'air' has no value"),
        (ON_FACES, {"K": "((1, 0), (0, 1))", "m": {"steel": 1, "air": 2}}, "'m', given per face, has values on faces"),
    ],
)  # fmt: skip
def test_values_that_are_refused_name_the_parameter_and_the_place(equation, values, words):
    with pytest.raises(InputError) as refused:
        resolve(equation, HALVES, values)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_mesh_without_regions_says_so():
    with pytest.raises(InputError, match="the mesh has no region 'steel'; it has: none"):
        conductivity("steel: 1, rest: 2", GRAPH)
    np.testing.assert_array_equal(conductivity("rest: 2", GRAPH), 2.0)


def test_the_tangential_part_of_a_flow_per_face_is_not_known():
    assert "velocity_t" not in resolve(ADVECTION, GRAPH, {"velocity": np.ones(len(GRAPH.A))}).tangential
    assert "velocity_t" in resolve(ADVECTION, GRAPH, {"velocity": (1, 0)}).tangential
