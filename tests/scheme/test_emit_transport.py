"""Code of transport schemes takes the step of our stepper: lines of cells, least and largest messages, offsets."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from _emit_run import CLibrary, arrays, python, relative

from fluxforge.errors import MeshError
from fluxforge.mesh import Dirichlet, Neumann, dual, jittered, resolve
from fluxforge.pde import BUILT_IN
from fluxforge.scheme import Hop, Reduction, SchemeBuilder, find, from_document, to_document
from fluxforge.scheme.emit import emit, example_arrays, mesh_arrays
from fluxforge.stepping import general_stepper
from strategies import warped_quads
from tetrahedra import six_tetrahedra

WALLS = {"left": Dirichlet(1.0), "right": Neumann(0.3), "top": Neumann(), "bottom": Dirichlet("x")}
QUADS, TRIANGLES = dual(warped_quads(4), WALLS), dual(jittered(4, 0.2, 1), WALLS)
GRAPHS = {"quads": QUADS, "triangles": TRIANGLES, "tetrahedra": six_tetrahedra()}
DT = 1e-2
# Sums of a few dozen terms of the same size, evaluated in another order; a quotient of slopes may be a hundred times as
# sensitive to the rounding of its differences.
ROUNDED = 1e-11


@pytest.mark.parametrize(
    ("name", "equation", "mesh"),
    [
        pytest.param("van-leer-ssp2", "traffic", "quads", marks=pytest.mark.slow),
        ("cfl-superbee", "burgers", "quads"),
        ("scharfetter-gummel", "advection-diffusion", "triangles"),
        pytest.param("barth-jespersen-ssp2", "burgers", "triangles", marks=pytest.mark.slow),
        ("venkatakrishnan", "advection", "triangles"),
        ("barth-jespersen", "advection", "tetrahedra"),
        ("bounded-discovered-ramp", "burgers", "triangles"),
    ],
)
def test_emitted_code_takes_the_step_of_our_stepper(name: str, equation: str, mesh: str, tmp_path: Path) -> None:
    graph = GRAPHS[mesh]
    scheme = find(name, equation, dimension=graph.dimension)
    T, S = (np.random.default_rng(seed).random(graph.cells) for seed in (0, 1))
    values = BUILT_IN[equation].example(graph.dimension)
    wanted = np.asarray(general_stepper(scheme, graph, dt=DT, parameters=values, source=S, dtype="float64")(T))
    fields = resolve(scheme.equation, graph, values)
    arguments = [*fields.constants.values(), *fields.cells.values(), *fields.slots.values()]
    status, by_c = CLibrary([scheme], tmp_path).step(name, T, S, mesh_arrays(graph), DT, arguments)
    assert status == 0
    assert relative(by_c, wanted) < ROUNDED
    for target in ("numpy", "jax"):
        space = python(emit(scheme, target))
        step = jax.jit(space["step"]) if target == "jax" else space["step"]
        after = step(T, S, arrays(space, mesh_arrays(graph)), DT, *arguments)
        assert relative(after, wanted) < ROUNDED
    assert from_document(to_document(scheme)) == scheme


def test_lines_that_a_mesh_does_not_have_are_refused_by_the_code_and_by_the_arrays(tmp_path: Path) -> None:
    scheme = find("mc", "advection")
    fields = resolve(scheme.equation, TRIANGLES, {"velocity": (1.0, 0.0)})
    T = np.ones(TRIANGLES.cells)
    status, _ = CLibrary([scheme], tmp_path).step("mc", T, 0 * T, mesh_arrays(TRIANGLES), DT, [*fields.slots.values()])
    assert status == 1
    with pytest.raises(MeshError, match="opposite"):
        example_arrays(scheme, TRIANGLES)


def test_only_a_reduction_other_than_the_sum_is_stored() -> None:
    plain = SchemeBuilder().stage({"z": "T_N - T_P"}, {"T_new": "T + z"}).build("plain")
    least = SchemeBuilder().stage({"z": (Hop.EDGE, "T_N", Reduction.MIN)}, {"T_new": "T + z"}).build("least")
    documents: list[Any] = [to_document(plain), to_document(least)]
    of_plain, of_least = (document["stages"][0]["messages"]["z"] for document in documents)
    assert of_plain == {"hop": "edge", "expression": "T_N - T_P"}
    assert of_least["reduction"] == "min"
    assert from_document(to_document(least)) == least != plain


def test_latex_and_words_say_which_reduction_and_which_line() -> None:
    assert r"\min_{N\in\mathcal{N}_1(P)}" in emit(find("barth-jespersen", "advection"), "latex")
    assert "B - P - N - F" in emit(find("mc", "advection"), "latex")
    assert "least over the faces of P" in emit(find("barth-jespersen", "advection"), "c")
    assert "lines B - P - N - F" in emit(find("mc", "advection"), "numpy")
