"""Graphs in space: steppers, certificates and emitted code take them as they take graphs of the plane."""

import math
import shutil
import subprocess
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from fluxforge.certify.conservation import exchange_of_messages
from fluxforge.certify.cost import measure_linearity
from fluxforge.certify.growth import measure_maximum_principle
from fluxforge.certify.stability import measure_stability
from fluxforge.errors import SchemeError
from fluxforge.mesh import DualGraph, fourier_step, reference_step, resolve, unit_volume
from fluxforge.pde import from_document
from fluxforge.scheme import Hop, Scheme, SchemeBuilder, amplification, find, one_cell_order
from fluxforge.scheme.emit import emit, emit_c_mesh, mesh_arrays
from fluxforge.scheme.reference import corrected_in
from fluxforge.stepping import generator, step_limit, stepper
from fluxforge.stepping._stepper import morton_order
from tetrahedra import six_tetrahedra

METHODS = ["euler", "midpoint", "rk4", "rkl2-8", "crank-nicolson", "two-hop"]
T = np.random.default_rng(0).random(6)


def test_the_graph_is_that_of_a_cube() -> None:
    graph = six_tetrahedra()
    assert graph.dimension == 3
    assert (graph.cells, graph.interior, graph.ghosts) == (6, 6, 12)
    assert graph.V.sum() == pytest.approx(1.0, rel=1e-15)
    assert graph.A[graph.interior :].sum() == pytest.approx(6.0, rel=1e-15)
    closed = ((graph.n * graph.A[:, None])[graph.slot_face] * graph.slot_sign[..., None]).sum(axis=1)
    assert np.abs(closed).max() < 1e-15


@pytest.mark.parametrize("name", METHODS)
def test_every_method_steps_and_keeps_heat_under_insulation(name: str) -> None:
    graph = six_tetrahedra(held=False)
    after = np.asarray(stepper(name, graph, 0.5 * fourier_step(six_tetrahedra())).rollout(T, 50))
    assert graph.V @ after == pytest.approx(graph.V @ T, rel=1e-13)
    # All cells have the same volume, and what is left after fifty steps is the mean.
    assert np.ptp(after) < 0.1 * np.ptp(T)


def test_a_step_is_that_of_plain_loops() -> None:
    graph = six_tetrahedra(value="z")
    dt = 0.1 * fourier_step(graph)
    rate = np.zeros(6)
    for face in range(len(graph.A)):
        P, N = graph.owner[face], graph.neighbour[face]
        shown = T[N] if N < 6 else graph.centre[face, 2]
        F = 1.3 * graph.A[face] / graph.delta[face] * (T[P] - shown)
        rate[P] -= F / graph.V[P]
        if N < 6:
            rate[N] += F / graph.V[N]
    after = np.asarray(stepper("euler", graph, dt, diffusivity=1.3)(T))
    assert np.abs(after - T - dt * rate).max() < 1e-15


def test_sources_and_parameters_are_formulas_of_three_coordinates() -> None:
    graph = six_tetrahedra()
    x, y, z = graph.x.T
    still, moved = (np.asarray(stepper("euler", graph, 1e-3, source=S)(T)) for S in (0.0, "x - 2*y + z**2"))
    assert np.abs(moved - still - 1e-3 * (x - 2 * y + z**2)).max() < 1e-15
    carried = from_document({"name": "a", "transported": "u", "velocity": "a", "parameters": {"a": {"rank": "vector"}}})
    along = resolve(carried, graph, {"a": (1.0, 2.0, -1.0)}).slots["a_n"]
    assert np.abs(along - (graph.n @ (1.0, 2.0, -1.0))[graph.slot_face] * graph.slot_sign).max() < 1e-15
    assert 0 < reference_step(carried, graph, {"a": (1.0, 2.0, -1.0)}) < math.inf


def test_units_of_the_mean_volume_are_cubes() -> None:
    graph = six_tetrahedra()
    scaled, length = unit_volume(graph)
    assert length == pytest.approx((1 / 6) ** (1 / 3), rel=1e-15)
    assert scaled.V.mean() == pytest.approx(1.0, rel=1e-15)
    # A/(δ V) goes with ℓ⁻² in every dimension.
    assert fourier_step(scaled) == pytest.approx(fourier_step(graph) / length**2, rel=1e-13)


@pytest.mark.parametrize("name", METHODS)
def test_linearity_and_stability_are_measured_on_tetrahedra(name: str) -> None:
    graph, scheme = six_tetrahedra(), find(name)
    assert measure_linearity(scheme, graph).linear
    stability = measure_stability(scheme, graph)
    limit = step_limit(scheme, graph)
    assert limit is not None
    assert stability.dt_max == limit.dt
    if not math.isinf(limit.dt):
        rates = np.linalg.eigvals(generator(scheme, graph).M.toarray())
        assert limit.dt == pytest.approx(scheme.claims.stable_to / np.abs(rates).max(), rel=1e-9)
        assert stability.stable_below
        assert stability.diverges_above
    assert measure_maximum_principle(find("euler"), graph).over_fourier == pytest.approx(1.0, rel=1e-6)


def test_formulas_of_the_plane_are_refused_in_space_and_the_other_way_round() -> None:
    from fluxforge.mesh import dual, squares

    with pytest.raises(SchemeError, match="'corrected' is written for 2 dimensions, and the mesh has 3"):
        stepper(corrected_in(2), six_tetrahedra(), 1e-3)
    by_name, written = (stepper(each, six_tetrahedra(), 1e-3) for each in ("corrected", corrected_in(3)))
    assert np.array_equal(by_name(T), written(T))
    along = SchemeBuilder().stage({"z": "A*alpha*n_z*d_z/delta**2*(T_N - T_P)"}, {"T_new": "T + dt*z/V"}).build("along")
    assert along.dimension == 3
    with pytest.raises(SchemeError, match="'along' is written for 3 dimensions, and the mesh has 2"):
        stepper(along, dual(squares(2)), 1e-3)
    graph = six_tetrahedra()
    wanted = np.einsum("c,cs->c", 1e-3 / graph.V, _along_z(graph))
    assert np.abs(np.asarray(stepper(along, graph, 1e-3)(T)) - T - wanted).max() < 1e-15


@pytest.mark.parametrize("slopes", [(1.0, 0.0, 0.0), (1.0, -2.0, 3.0)])
def test_the_corrected_flux_keeps_linear_fields_in_space(slopes: tuple[float, ...]) -> None:
    graph = six_tetrahedra()
    graph = replace(graph, value=graph.centre[graph.interior :] @ slopes)
    linear = graph.x @ slopes
    scheme = corrected_in(3)
    assert scheme.dimension == 3
    after = np.asarray(stepper(scheme, graph, 1e-3)(linear))
    # Gradients solve systems of condition about 10, on numbers of size 3.
    assert np.abs(after - linear).max() < 1e-13
    plain = np.asarray(stepper("euler", graph, 1e-3)(linear))
    assert np.abs(plain - linear).max() > 1e-3
    assert one_cell_order(scheme) == one_cell_order(find("corrected"))
    assert amplification(scheme) == amplification(find("corrected"))


def test_components_of_space_turn_around_with_the_rest() -> None:
    """V ∂F/∂T_N of n_z d_z is the same from both sides of a face, and of n_z alone it is not."""
    for factor, fine in (("n_z*d_z/delta", True), ("n_z", False)):
        message = f"alpha*A/delta*(2 + {factor})*(T_N - T_P)"
        builder = SchemeBuilder().stage({"z": message}, {"T_new": "T + dt*z/V"})
        scheme = builder.build("turned", theta=sp.Rational(1, 2))
        assert exchange_of_messages(scheme).holds is fine
        with nullcontext() if fine else pytest.raises(SchemeError, match="not symmetric"):
            emit(scheme, "c")


@pytest.mark.parametrize("target", ["numpy", "jax", "c"])
def test_rings_measure_all_three_coordinates(target: str, tmp_path: Path) -> None:
    graph = six_tetrahedra()
    builder = SchemeBuilder().stage({"z": (Hop.RING, "delta_PQ*(T_Q - T_P) + d_PQ_z*T_Q")}, {"T_new": "T + dt*z"})
    scheme, S = builder.build("far"), np.zeros(6)
    wanted = np.asarray(stepper(scheme, graph, 0.1)(T))
    assert np.abs(wanted - T).max() > 1e-2
    if target == "c":
        after = _run_c(scheme, graph, tmp_path, "0.1, 1.0")
    else:
        space: dict = {"__name__": "emitted"}
        exec(compile(emit(scheme, target), "<emitted>", "exec"), space)
        after = np.asarray(space["step"](T, S, space["Mesh"](**mesh_arrays(graph)), 0.1, 1.0))
    assert np.abs(after - wanted).max() < 1e-14


def _along_z(graph) -> np.ndarray:
    face = graph.slot_face
    shown = np.concatenate([T, graph.value])[graph.slot_node]
    return graph.A[face] * graph.n[face, 2] * graph.d[face, 2] / graph.delta[face] ** 2 * (shown - T[:, None])


def test_the_order_by_bits_is_one_of_all_cells() -> None:
    x = np.random.default_rng(0).random((100, 3))
    order = morton_order(x)
    assert sorted(order.tolist()) == list(range(100))
    # Halves of the box along the last coordinate come one after the other.
    assert (np.diff((x[order, 2] - x[:, 2].min()) / np.ptp(x, axis=0).max() >= 0.5).astype(int) != 0).sum() <= 1


@pytest.mark.parametrize("scheme", [find("rk4"), corrected_in(3)], ids=str)
def test_the_exported_step_runs_on_the_exported_mesh(scheme: Scheme, tmp_path: Path) -> None:
    graph = six_tetrahedra(value="x")
    wanted = np.asarray(stepper(scheme, graph, 1e-3, diffusivity=1.5)(T))
    assert np.abs(_run_c(scheme, graph, tmp_path, "0.001, 1.5") - wanted).max() < 1e-14


def _run_c(scheme: Scheme, graph: DualGraph, folder: Path, numbers: str) -> np.ndarray:
    """The emitted step on the emitted mesh, compiled; skips without a compiler."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    (folder / "step.c").write_text(emit(scheme, "c"))
    (folder / "cube.h").write_text(emit_c_mesh(graph, "cube"))
    values = ", ".join(repr(float(value)) for value in T)
    (folder / "main.c").write_text(
        '#include <stdio.h>\n#include "step.c"\n#include "cube.h"\n'
        f"int main(void)\n{{\n    const double T[] = {{{values}}}, S[6] = {{0}};\n    double out[6];\n"
        f"    if ({scheme.name}_step(&cube, {numbers}, T, S, out)) return 1;\n"
        '    for (int i = 0; i < cube_cells; i++) printf("%.17g\\n", out[i]);\n    return (int)cube_z[0];\n}\n'
    )
    subprocess.run(["cc", "-std=c99", "main.c", "-o", "run", "-lm"], cwd=folder, check=True)
    told = subprocess.run([str(folder / "run")], capture_output=True, text=True, check=True).stdout
    return np.array(told.split(), float)
