"""Schemes of a·n, n·K n and tangential parts: one file for the plane and for space, however the mesh is turned."""

import shutil
import subprocess
from pathlib import Path

import jax
import numpy as np
import pytest
from _emit_run import arrays, python, relative
from hypothesis import given
from hypothesis import strategies as st

from fluxforge.certify.units import measure_units
from fluxforge.errors import SchemeError
from fluxforge.mesh import Dirichlet, DualGraph, Neumann, dual, jittered, reference_step, resolve
from fluxforge.pde import Equation, dimensions, from_document, unit
from fluxforge.scheme import Hop, Scheme, SchemeBuilder, find, load, message_symbols, save, symbol_units
from fluxforge.scheme.emit import emit, emit_c_mesh, mesh_arrays
from fluxforge.scheme.emit._plan import Arguments
from fluxforge.stepping import general_stepper, stepper
from moved_graphs import orthogonal, renumbered, shifted, the_other_way_round, turned
from strategies import few, seeds
from tetrahedra import six_tetrahedra

SPEED = {"rank": "vector", "where": "face", "units": {"length": 1, "time": -1}}
CARRIED = from_document({"name": "carried", "transported": "u", "velocity": "a", "parameters": {"a": SPEED}})
SPREAD = from_document(
    {
        "name": "spread",
        "transported": "u",
        "velocity": "a",
        "diffusion": "K",
        "parameters": {"a": SPEED, "K": {"rank": "tensor", "units": {"length": 2, "time": -1}}},
    }
)
NEW = {"T_new": "T + dt*z/V + dt*S"}
UPWIND = SchemeBuilder(CARRIED).stage({"z": "-A*(max(a_n, 0)*T_P + min(a_n, 0)*T_N)"}, NEW).build("upwind")
# No method, but every invariant there is, in the unit of a flux.
EVERY = (
    SchemeBuilder(SPREAD)
    .stage(
        {
            "z": "A*((K_nn - K_nt*d_t/d_n/3)/d_n*(T_N - T_P) - max(a_n, 0)*T_P - min(a_n, 0)*T_N - a_t/7*(T_P - T_N))",
            "far": (Hop.PATH, "A_PN*a_t_NQ*d_t_PN/d_n_NQ*(T_Q - T_N) + A_NQ*K_nt_PN/d_n_NQ*(T_Q - T_P)"),
        },
        {"T_new": "T + dt*(z + far/9)/V + dt*S"},
    )
    .build("every-invariant")
)
WALLS = {"left": Dirichlet(1.0), "right": Neumann(0.3), "top": Neumann(), "bottom": Dirichlet("x")}
GRAPHS = {"plane": dual(jittered(4, 0.2, 1), WALLS), "space": six_tetrahedra(value="x")}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
both = pytest.mark.parametrize("scheme", [UPWIND, EVERY], ids=str)
# A few dozen products and sums of numbers of one size, evaluated in another order.
ROUNDED = 1e-13


def settings(equation: Equation, graph: DualGraph, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(graph.dimension, graph.dimension))
    values = {"a": rng.normal(size=graph.n.shape), "K": np.eye(graph.dimension) + root @ root.T / 4}
    return {p.name: values[p.name] for p in equation.parameters}


def fields(graph: DualGraph) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.random(graph.cells), rng.normal(size=graph.cells)


def step(scheme: Scheme, graph: DualGraph, values: dict[str, np.ndarray], dt: float, T, S) -> np.ndarray:
    return np.asarray(stepper(scheme, graph, dt, parameters=values, source=S)(T))


@every_graph
def test_upwind_from_one_file_takes_the_step_of_plain_loops(graph: DualGraph, tmp_path: Path) -> None:
    save(UPWIND, tmp_path / "upwind.json")
    scheme = load(tmp_path / "upwind.json")
    assert scheme == UPWIND
    assert scheme.dimension is None
    values, (T, S) = settings(CARRIED, graph), fields(graph)
    dt = 0.5 * reference_step(CARRIED, graph, values)
    rate = S.copy()
    for face in range(len(graph.A)):
        P, N = graph.owner[face], graph.neighbour[face]
        wall = graph.cells <= N
        shown = graph.value[N - graph.cells] if wall else T[N]
        if wall and graph.neumann[N - graph.cells]:
            shown = T[P] + graph.value[N - graph.cells] * graph.delta[face]
        speed = values["a"][face] @ graph.n[face]
        F = graph.A[face] * speed * (T[P] if speed > 0 else shown)
        rate[P] -= F / graph.V[P]
        if not wall:
            rate[N] += F / graph.V[N]
    assert relative(step(scheme, graph, values, dt, T, S), T + dt * rate) < ROUNDED
    assert relative(step(find("euler", CARRIED), graph, values, dt, T, S), T + dt * rate) < ROUNDED


@both
@every_graph
def test_the_general_stepper_and_every_emitted_step_are_those_of_matrices(
    graph: DualGraph, scheme: Scheme, tmp_path: Path
) -> None:
    values, (T, S), dt = settings(scheme.equation, graph), fields(graph), 1e-3
    wanted = step(scheme, graph, values, dt, T, S)
    general = general_stepper(scheme, graph, dt=dt, parameters=values, source=S, dtype="float64")
    assert relative(np.asarray(general(T)), wanted) < ROUNDED
    resolved = resolve(scheme.equation, graph, values)
    on_slots = [{**resolved.slots, **resolved.tangential}[name] for name in Arguments.of(scheme).slots]
    for target in ("numpy", "jax"):
        space = python(emit(scheme, target))
        take = jax.jit(space["step"]) if target == "jax" else space["step"]
        after = take(T, S, arrays(space, mesh_arrays(graph)), dt, *on_slots)
        assert relative(after, wanted) < ROUNDED, target
    if shutil.which("cc") is not None:
        assert relative(_compiled(scheme, graph, on_slots, dt, tmp_path), wanted) < ROUNDED


def _compiled(scheme: Scheme, graph: DualGraph, on_slots: list[np.ndarray], dt: float, folder: Path) -> np.ndarray:
    """The step of the emitted C on the emitted mesh."""
    name = scheme.name.replace("-", "_")
    (folder / "step.c").write_text(emit(scheme, "c"))
    (folder / "mesh.h").write_text(emit_c_mesh(graph, "graph"))
    tables = {"T": fields(graph)[0], "S": fields(graph)[1]} | {f"p{k}": value for k, value in enumerate(on_slots)}
    arrays = [
        f"    static const double {key}[] = {{{', '.join(f'{v:.17g}' for v in value.ravel())}}};"
        for key, value in tables.items()
    ]
    given = ", ".join(f"p{k}" for k in range(len(on_slots)))
    lines = [
        *("#include <stdio.h>", '#include "step.c"', '#include "mesh.h"', "int main(void)", "{", *arrays),
        "    double out[graph_cells];",
        f"    if ({name}_step(&graph, {dt!r}, {given}, T, S, out)) return 1;",
        '    for (int i = 0; i < graph_cells; i++) printf("%.17g\\n", out[i]);',
        *("    return 0;", "}", ""),
    ]
    (folder / "main.c").write_text("\n".join(lines))
    flags = (
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "-Wno-unused-const-variable",
        "-Wno-unused-variable",
    )
    subprocess.run(["cc", *flags, "main.c", "-o", "run", "-lm"], cwd=folder, check=True)
    told = subprocess.run([str(folder / "run")], capture_output=True, text=True, check=True).stdout
    return np.array(told.split(), float)


@both
@every_graph
@given(seed=seeds)
@few(5)
def test_no_motion_changes_a_step(graph: DualGraph, scheme: Scheme, seed: int) -> None:
    Q, rng = orthogonal(graph.dimension, seed), np.random.default_rng(seed)
    values, (T, S) = settings(scheme.equation, graph, seed), fields(graph)
    wanted = step(scheme, graph, values, 1e-3, T, S)
    order = rng.permutation(graph.cells)
    moved = renumbered(shifted(turned(graph, Q), rng.normal(size=graph.dimension)), order)
    K = {name: (Q @ value @ Q.T + (Q @ value @ Q.T).T) / 2 for name, value in values.items() if name == "K"}
    assert relative(step(scheme, moved, {"a": values["a"] @ Q.T, **K}, 1e-3, T[order], S[order]), wanted[order]) < 1e-12
    assert relative(step(scheme, the_other_way_round(graph), values, 1e-3, T, S), wanted) < ROUNDED


@given(factor=st.floats(1e-3, 1e3), seconds=st.floats(1e-3, 1e3))
@few(10)
def test_other_units_of_length_and_time_change_nothing(factor: float, seconds: float) -> None:
    graph = GRAPHS["plane"]
    values, (T, S) = settings(SPREAD, graph), fields(graph)
    wanted = step(EVERY, graph, values, 1e-3, T, S)
    walls = {
        "left": Dirichlet(1.0),
        "right": Neumann(0.3 / factor),
        "top": Neumann(),
        "bottom": Dirichlet(f"x/{factor!r}"),
    }
    mesh = jittered(4, 0.2, 1)
    larger = dual(type(mesh)(mesh.points * factor, mesh.cells, mesh.boundary), walls)
    scaled = {"a": values["a"] * factor / seconds, "K": values["K"] * factor**2 / seconds}
    after = step(EVERY, larger, scaled, 1e-3 * seconds, T, S / seconds)
    assert relative(after, wanted) < 1e-11


def test_the_certificate_finds_the_units_of_upwind_in_order() -> None:
    assert measure_units(UPWIND).holds
    assert measure_units(EVERY).holds


def test_every_invariant_has_a_unit() -> None:
    known = symbol_units(SPREAD, 3)
    length, speed, spread = unit(length=1), unit(length=1, time=-1), unit(length=2, time=-1)
    wanted = {"d_n": length, "d_t": length, "a_n": speed, "a_t": speed, "K_nn": spread, "K_nt": spread}
    for name, own in wanted.items():
        assert known[name] == known[f"{name}_PN"] == known[f"{name}_NQ"] == own
        assert {name, f"{name}_PN"} & set(message_symbols(Hop.EDGE, (), SPREAD)) == {name}
        assert f"{name}_NQ" in message_symbols(Hop.PATH, (), SPREAD)
    flux = EVERY.stages[0].messages["z"].expression
    assert dimensions(flux, symbol_units(SPREAD, 2)) == unit(length=2, time=-1, unknown=1)


def test_letters_of_invariants_are_set_and_explained() -> None:
    text = emit(EVERY, "latex")
    for letter in ("d_{PN,n}", "d_{PN,t}", "a_{PN,n}", "a_{NQ,t}", "K_{PN,nn}", "K_{PN,nt}", "d_{NQ,n}"):
        assert letter in text, letter
    assert "% d_{PN,n} = d.n." in text
    assert "% K_{PN,nt} = |K n - (n.(K n)) n|." in text
    assert "d_{PN,n} = " not in emit(UPWIND, "latex")


def test_tangential_parts_are_arguments_only_of_schemes_that_read_them() -> None:
    assert Arguments.of(UPWIND).slots == ("a_n",)
    assert Arguments.of(EVERY).slots == ("a_n", "a_t", "K_nn", "K_nt")
    assert "d_n, *d_t" in emit(UPWIND, "c")


@pytest.mark.parametrize(("name", "equation"), [("d_n", CARRIED), ("d_t", CARRIED), ("a_t", CARRIED), ("K_nt", SPREAD)])
def test_sums_and_outputs_may_not_have_the_name_of_an_invariant(name: str, equation: Equation) -> None:
    with pytest.raises(SchemeError, match=f"the name '{name}' is already used"):
        SchemeBuilder(equation).stage({name: "T_N"}, {"T_new": name}).build("taken")


def test_an_invariant_of_the_velocity_is_unknown_to_the_heat_equation() -> None:
    with pytest.raises(Exception, match="unknown symbol 'a_n'"):
        SchemeBuilder().stage({"z": "A*a_n*T_P"}, NEW)
