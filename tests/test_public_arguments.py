"""Wrong arguments of every public function: one line of InputError that names the argument."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import sympy as sp

import fluxforge as ff
from fluxforge.certify import linear_field_defect, other_equation, verify_step
from fluxforge.errors import InputError
from fluxforge.mesh import Disk, Polygon
from fluxforge.pipeline import resume
from fluxforge.scheme import SchemeBuilder, emit
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import generator, operator, read_field, step_limit, write_comparison, write_run

X = sp.Symbol("x")


@pytest.fixture(autouse=True)
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the type checks that tests add to every function, and users do not have."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


MESH = ff.mesh.squares(2)
GRAPH = ff.dual(MESH)
EULER = BUILT_IN["euler"]

NO_NUMBER: dict[str, Any] = {
    "text": "0.1",
    "formula": "x*y",
    "array": np.ones(3),
    "list": [0.1],
    "lambda": lambda x, y: x,
    "symbol": X,
    "complex": 1j,
    "flag": True,
    "mesh": MESH,
}
NOT_POSITIVE: dict[str, Any] = NO_NUMBER | {"zero": 0.0, "negative": -1.0, "nan": float("nan"), "inf": float("inf")}
NOT_WHOLE: dict[str, Any] = NO_NUMBER | {"fraction": 2.5, "nan": float("nan"), "none": 2.0}
NOT_COUNTED: dict[str, Any] = NOT_WHOLE | {"zero": 0, "negative": -3}
NO_MESH: dict[str, Any] = {
    "list": [MESH],
    "number": 3.0,
    "array": np.ones((3, 2)),
    "graph": GRAPH,
    "empty": "",
    "nul": "a\0b",
}
NO_GRAPH: dict[str, Any] = {"mesh": MESH, "list": [GRAPH], "number": 3, "none": None, "text": "m.msh"}
NO_GRAPH_OR_MESH = {kind: NO_GRAPH[kind] for kind in ("list", "number", "none")}
NO_SCHEME: dict[str, Any] = {"number": 3, "list": ["euler"], "lambda": lambda T: T, "none": None, "array": np.ones(3)}
NO_SCHEME_OBJECT = NO_SCHEME | {"name": "euler"}
NO_FIELD: dict[str, Any] = {
    "none": None,
    "short": np.ones(3),
    "texts": ["a", "b", "c", "d"],
    "nan": float("nan"),
    "unknown": "x + t",
    "one": lambda x: x,
    "mapping": {"x": 1},
    "symbol": X,
    "complex": lambda x, y: 1j * x,
    "large": 10**400,
}
NO_CONDITION: dict[str, Any] = {
    "everywhere": True,
    "text": "insulatd",
    "list": [ff.Neumann()],
    "word": {"left": "warm:1"},
    "flag": {"left": True},
    "complex": {"left": lambda x, y: 1j * y},
    "large": {"left": 10**400},
}
NO_FLAG: dict[str, Any] = {"text": "yes", "number": 1, "none": None}
NO_WORD: dict[str, Any] = {"unknown": "best", "number": 64, "list": ["cg"], "none": None, "dtype": np.float64}
NO_FUNCTION: dict[str, Any] = {"text": "print", "number": 1}
NO_PATH: dict[str, Any] = {"number": 3, "list": ["a"], "none": None, "nul": "a\0b", "empty": "", "bytes": b"out"}
NO_TEXT: dict[str, Any] = {"number": 3, "list": ["x"], "lambda": lambda x, y: x}


def problem(**arguments: Any) -> Any:
    return ff.simulate(**({"scheme": "euler", "mesh": MESH, "steps": 1} | arguments))


def step(**arguments: Any) -> Any:
    return ff.stepper(**({"scheme": "euler", "graph": GRAPH, "dt": 1e-3} | arguments))


def stage(**arguments: Any) -> Any:
    return SchemeBuilder().stage(**({"messages": {"z": "A*(T_N - T_P)"}, "outputs": {"T_new": "T + z"}} | arguments))


def build(**arguments: Any) -> Any:
    builder = SchemeBuilder().stage({"z": "A*(T_N - T_P)"}, {"T_new": "T + z"})
    return builder.build(**({"name": "mine"} | arguments))


# Function, argument, values that are none; the function with every other argument right.
CASES: list[tuple[Callable[..., Any], str, dict[str, Any]]] = [
    *((problem, name, NOT_POSITIVE) for name in ("diffusivity", "dt", "dt_fraction")),
    (problem, "steps", NOT_COUNTED),
    (problem, "save_every", NOT_POSITIVE | {"zero": 0, "negative": -3}),
    (problem, "start_time", NO_NUMBER | {"nan": float("nan")}),
    (problem, "end_time", NO_NUMBER | {"nan": float("nan"), "early": -1.0}),
    (problem, "mesh", NO_MESH),
    (problem, "scheme", NO_SCHEME),
    (problem, "initial", NO_FIELD),
    (problem, "source", NO_FIELD | {"unknown": "x + q"}),
    (problem, "boundary", NO_CONDITION),
    *((problem, name, NO_FLAG) for name in ("force", "throw")),
    *((problem, name, NO_WORD) for name in ("dtype", "solver")),
    (problem, "progress", NO_FUNCTION),
    (
        lambda schemes: ff.compare(schemes, MESH),
        "schemes",
        {"text": "euler", "scheme": EULER, "number": 3, "empty": []},
    ),
    (lambda mesh: ff.compare(["euler"], mesh), "mesh", NO_MESH),
    (lambda scheme: ff.steady(scheme, MESH), "scheme", NO_SCHEME),
    (lambda mesh: ff.steady("euler", mesh), "mesh", NO_MESH),
    (lambda solver: ff.steady("euler", MESH, solver=solver), "solver", NO_WORD),
    (lambda source: ff.steady("euler", MESH, source=source), "source", NO_FIELD),
    (lambda boundary: ff.steady("euler", MESH, boundary=boundary), "boundary", NO_CONDITION),
    (lambda diffusivity: ff.steady("euler", MESH, diffusivity=diffusivity), "diffusivity", NOT_POSITIVE),
    (lambda progress: ff.compare(["euler"], MESH, progress=progress), "progress", NO_FUNCTION),
    (lambda speed: ff.compare(["euler"], MESH, speed=speed), "speed", {"unknown": 1.0}),
    *((step, name, NOT_POSITIVE) for name in ("diffusivity", "dt")),
    (step, "graph", NO_GRAPH_OR_MESH),
    (step, "scheme", NO_SCHEME),
    (step, "source", NO_FIELD),
    *((step, name, NO_WORD) for name in ("dtype", "solver")),
    (step, "renumber", NO_FLAG),
    (ff.dual, "mesh", NO_MESH),
    (ff.mesh_arrays, "graph", NO_GRAPH_OR_MESH),
    (lambda boundary: ff.dual(MESH, boundary), "boundary", NO_CONDITION),
    (
        lambda texts: ff.mesh.read_conditions(texts),
        "boundary",
        {"number": 3, "none": None, "numbers": [1.0, 2.0], "text": "left=1", "mapping": {"left": 1}},
    ),
    (lambda time: ff.dual(MESH, time=time), "time", NO_NUMBER),
    (lambda equation: ff.dual(MESH, equation=equation), "equation", {"number": 3, "list": ["heat"], "unknown": "heet"}),
    (lambda reaction: ff.equation("heat", reaction=reaction), "reaction", {"number": 3, "list": ["-T"]}),
    (lambda over: ff.sweep("midpoint", over), "over", {"field": {"sed": [1]}}),
    (lambda changes: ff.sweep("midpoint", {"seed": [1]}, changes=changes), "changes", {"field": {"sed": 1}}),
    (lambda boundary: ff.dual(MESH, ff.Dirichlet(boundary)), "boundary", NO_FIELD),
    (lambda boundary: ff.dual(MESH, {"left": ff.Neumann(boundary)}), "boundary", NO_FIELD),
    (ff.verify, "scheme", NO_SCHEME),
    (lambda mesh: ff.verify("euler", mesh=mesh), "mesh", NO_MESH),
    (
        lambda meshes: ff.verify("euler", meshes=meshes),
        "meshes",
        {"one": MESH, "text": "m.msh", "number": 3, "few": [MESH]},
    ),
    (lambda meshes: ff.verify("euler", meshes=[MESH, meshes]), "meshes", {"number": 3, "array": np.ones(3)}),
    (lambda families: ff.verify("euler", families=families), "famil", {"text": "squares", "number": 3, "stray": (3,)}),
    (lambda levels: ff.verify("euler", levels=levels), "levels", NOT_COUNTED),
    (lambda quick: ff.verify("euler", quick=quick), "quick", NO_FLAG),
    (lambda exact: ff.verify("euler", meshes=[MESH, MESH], exact=exact), "exact", NO_TEXT | {"formula": "x + t"}),
    (lambda progress: ff.verify("euler", progress=progress), "progress", NO_FUNCTION),
    (ff.discover, "source", {"number": 3, "list": ["first-order"], "none": None, "lambda": lambda x: x}),
    (lambda output: ff.discover("first-order", output), "output", {"number": 3, "nul": "a\0b", "empty": ""}),
    (
        lambda changes: ff.discover("first-order", changes=changes),
        "changes",
        {"list": ["seed"], "text": "seed=3", "key": {3: 1}},
    ),
    (lambda seed: ff.discover("first-order", changes={"seed": seed}), "seed", NOT_WHOLE),
    (lambda command: ff.discover("first-order", command=command), "command", NO_TEXT),
    (lambda tell: ff.discover("first-order", tell=tell), "tell", NO_FUNCTION),
    (lambda warn: ff.discover("first-order", warn=warn), "warn", NO_FUNCTION),
    (ff.load_run, "folder", {"number": 3, "none": None, "empty": ""}),
    (resume, "output", {"number": 3, "none": None, "empty": ""}),
    (lambda tell: resume("run", tell=tell), "tell", NO_FUNCTION),
    *((make, "n", NOT_COUNTED) for make in (ff.mesh.squares, ff.mesh.right_triangles, ff.mesh.cross_triangles)),
    *((make, "n", NOT_COUNTED) for make in (ff.mesh.equilateral, ff.mesh.jittered)),
    (lambda jitter: ff.mesh.jittered(2, jitter), "jitter", NO_NUMBER | {"large": 0.5, "nan": float("nan")}),
    (lambda seed: ff.mesh.jittered(2, seed=seed), "seed", NOT_WHOLE | {"negative": -1}),
    (lambda seed: ff.mesh.square(seed=seed, cells=10), "seed", NOT_WHOLE | {"negative": -1}),
    (lambda cells: ff.mesh.square(cells=cells), "cells", NOT_COUNTED),
    (lambda size: ff.mesh.square(size=size), "size", NOT_POSITIVE),
    (lambda kind: ff.mesh.square(kind=kind), "kind", NO_WORD),
    (lambda engine: ff.mesh.square(engine=engine), "engine", NO_WORD),
    (lambda cells: ff.mesh.graded(cells=cells), "cells", NOT_COUNTED),
    (lambda ratio: ff.mesh.graded(ratio=ratio), "ratio", NOT_POSITIVE),
    (lambda seed: ff.mesh.graded(seed=seed), "seed", NOT_WHOLE | {"negative": -1}),
    (lambda engine: ff.mesh.graded(engine=engine), "engine", NO_WORD),
    (
        lambda domain: ff.mesh.generate(domain),
        "domain",
        {"text": "square", "list": [(0, 0), (1, 0), (0, 1)], "mesh": MESH},
    ),
    (ff.mesh.disk, "radius", NOT_POSITIVE),
    (
        lambda centre: ff.mesh.disk(1.0, centre),
        "centre",
        {"number": 1.0, "three": (0, 0, 0), "text": "00", "none": None},
    ),
    (ff.mesh.polygon, "vertices", {"number": 1.0, "text": "abc", "none": None, "two": [(0, 0), (1, 1)]}),
    (lambda tags: Polygon([(0, 0), (1, 0), (0, 1)], tags), "tags", {"few": ("a",), "number": 3, "numbers": (1, 2, 3)}),
    (lambda centre: Disk(centre), "centre", {"nan": (0.0, float("nan")), "texts": ("0", "1")}),
    (ff.mesh.read, "path", NO_PATH),
    (lambda mesh: ff.mesh.write(mesh, "m.msh"), "mesh", NO_MESH),
    (lambda path: ff.mesh.write(MESH, path), "path", NO_PATH),
    (lambda data: ff.mesh.write(MESH, "m.vtu", cell_data=data), "cell_data", {"list": [1.0], "array": np.ones(4)}),
    (ff.mesh.info, "mesh", NO_MESH),
    (ff.mesh.cell_quality, "mesh", NO_MESH),
    (ff.mesh.cell_diameters, "mesh", NO_MESH),
    (lambda mesh: ff.mesh.mesh_picture(mesh, "m.png"), "mesh", NO_MESH),
    (lambda path: ff.mesh.mesh_picture(MESH, path), "path", NO_PATH),
    *(
        (ask, "graph", NO_GRAPH)
        for ask in (ff.mesh.fourier_step, ff.mesh.count_components, ff.mesh.lines, ff.mesh.paths)
    ),
    *((ask, "graph", NO_GRAPH) for ask in (ff.mesh.nonorthogonality, ff.mesh.ring, ff.mesh.unit_volume)),
    (lambda diffusivity: ff.mesh.fourier_step(GRAPH, diffusivity), "diffusivity", NO_NUMBER),
    (ff.scheme.find, "scheme", NO_SCHEME | {"unknown": "eulr"}),
    (ff.scheme.load, "path", NO_PATH),
    (lambda path: ff.scheme.save(EULER, path), "path", NO_PATH),
    (lambda scheme: ff.scheme.save(scheme, "s.json"), "scheme", NO_SCHEME_OBJECT),
    (ff.scheme.to_document, "scheme", NO_SCHEME_OBJECT),
    (ff.scheme.from_document, "scheme", {"number": 3, "list": [1], "empty": {}}),
    (lambda scheme: emit.emit(scheme, "c"), "scheme", NO_SCHEME_OBJECT),
    (lambda target: emit.emit(EULER, target), "target", NO_WORD),
    (
        stage,
        "messages",
        {"list": ["T_N"], "number": 3, "lambda": {"z": lambda: 1}, "array": {"z": np.ones(3)}, "key": {3: "T_N"}},
    ),
    (stage, "outputs", {"list": ["T"], "number": 3, "symbol": {"T_new": X}, "pair": {"T_new": ("dirichlet", "T")}}),
    (build, "name", NO_TEXT),
    (build, "summary", NO_TEXT),
    (build, "claims", {"mapping": {"conservative": True}, "list": [1]}),
    (build, "theta", NO_NUMBER | {"large": sp.Integer(2)}),
    (lambda scheme: step_limit(scheme, GRAPH), "scheme", NO_SCHEME_OBJECT),
    (lambda graph: step_limit(EULER, graph), "graph", NO_GRAPH),
    # A number may be written out, as on the command line.
    (
        lambda alpha: step_limit(EULER, GRAPH, parameters={"alpha": alpha}),
        "alpha",
        {kind: value for kind, value in NOT_POSITIVE.items() if kind != "text"},
    ),
    (lambda graph: ff.mesh.reference_step(EULER.equation, graph), "graph", NO_GRAPH),
    (lambda graph: ff.mesh.divergence(graph, GRAPH.slot_sign), "graph", NO_GRAPH),
    (lambda graph: ff.mesh.relative_divergence(graph, GRAPH.slot_sign), "graph", NO_GRAPH),
    (lambda a_n: ff.mesh.divergence(GRAPH, a_n), "a_n", {"short": np.ones((2, 3)), "per face": np.ones(len(GRAPH.A))}),
    *(
        (lambda scheme, ask=ask: ask(scheme, GRAPH), "scheme", NO_SCHEME_OBJECT)
        for ask in (generator, linear_field_defect)
    ),
    *((lambda graph, ask=ask: ask(EULER, graph), "graph", NO_GRAPH) for ask in (generator, linear_field_defect)),
    (lambda graph: operator(EULER, graph, dt=1.0), "graph", NO_GRAPH),
    (other_equation, "scheme", NO_SCHEME_OBJECT),
    (lambda step: verify_step(step), "make_step", {"number": 3, "text": "euler", "none": None}),
    (lambda mesh: verify_step(lambda graph, dt: lambda T: T, mesh=mesh), "mesh", NO_MESH),
    (lambda run: write_run(run, "out"), "simulation", {"number": 3, "none": None, "list": []}),
    (lambda run: write_comparison(run, "out"), "comparison", {"number": 3, "none": None, "list": []}),
    (lambda spec: read_field(spec, 4), "spec", NO_TEXT),
    (lambda source: ff.sweep(source, {"seed": [1]}), "source", {"number": 3, "list": ["midpoint"], "nul": "a\0b"}),
    (lambda over: ff.sweep("midpoint", over), "over", {"none": None, "list": ["seed"], "empty": {"seed": []}}),
    (lambda over: ff.sweep("midpoint", over), "over", {"text": {"seed": "0:3"}, "number": {"seed": 3}}),
    (lambda workers: ff.sweep("midpoint", {"seed": [1]}, workers=workers), "workers", NOT_COUNTED | {"many": 10**6}),
    (lambda on: ff.sweep("midpoint", {"seed": [1]}, on=on), "on", NO_WORD),
    (lambda output: ff.sweep("midpoint", {"seed": [1]}, output), "output", {"number": 3, "nul": "a\0b", "empty": ""}),
    (lambda cells: read_field("T.npy", cells), "cells", NOT_COUNTED),
]


@pytest.mark.parametrize(
    ("function", "argument", "value"),
    [
        pytest.param(function, argument, value, id=f"{k}-{argument}-{kind}")
        for k, (function, argument, values) in enumerate(CASES)
        for kind, value in values.items()
    ],
)
def test_a_wrong_argument_is_bad_input_that_names_it(
    function: Callable[..., Any], argument: str, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    by_name = argument in inspect.signature(function).parameters or function in (problem, step, stage, build)
    with pytest.raises(InputError) as caught:
        function(**{argument: value}) if by_name else function(value)
    message = str(caught.value)
    assert argument in message
    assert "\n" not in message
    assert len(message) < 300
    assert list(tmp_path.iterdir()) == []


def test_every_public_function_is_asked() -> None:
    """Whatever is added to the package, to its meshes and to its schemes, is added above or set aside here."""
    aside = {"Dirichlet", "Neumann", "compare", "dual", "equation", "simulate", "stepper", "verify", "discover"}
    aside |= {"load_run", "mesh_arrays", "Robin", "Periodic", "Inflow", "steady", "sweep"}
    assert aside == {name for name in ff.__all__ if callable(getattr(ff, name))}
    asked = Path(__file__).read_text(encoding="utf-8")
    functions = [name for name in ff.mesh.__all__ if inspect.isfunction(getattr(ff.mesh, name))]
    # Helpers of the rooms above, and functions without arguments.
    inner = {
        "as_mesh",
        "check_graph",
        "close_walls",
        "conditions_of_tags",
        "default_condition",
        "depends_on_time",
        "faces_of_tags",
        "fit_conditions",
        "flux_slopes",
        "linear_speed",
        "wall_conductance",
        "wall_value",
        "wall_velocity",
        "draw_field",
        "exchange_weights",
        "face_conormals",
        "resolve",
        "settings_at",
        "varies_in_time",
        "dual",
        "evaluate_at",
        "gmsh_problem",
        "read_cell_data",
        "save_figure",
    }
    inner |= {"two_cells", "unit_square"}
    assert [name for name in functions if name not in inner and f"mesh.{name}" not in asked] == []


CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
TRIANGLE = np.array([[0, 1, 2]])


@pytest.mark.parametrize(
    ("points", "cells", "words"),
    [
        (CORNERS.tolist(), TRIANGLE, "^points should be an array, got a list of 3$"),
        (CORNERS, TRIANGLE.tolist(), "^cells should be an array, got a list of 1$"),
        (CORNERS, TRIANGLE + 0.0, "the cells should be integers in 3 or 4 columns, got float64"),
        (CORNERS, TRIANGLE + 3, "cell 0 refers to point 3, and the points are 0 to 2"),
        (CORNERS[:, :1], TRIANGLE, "the points should be numbers in two columns"),
        (CORNERS[:0], TRIANGLE[:0], "has no cells"),
    ],
)
def test_a_mesh_made_by_hand_of_wrong_arrays_is_refused_in_one_line(points: Any, cells: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        ff.dual(ff.mesh.Mesh(points, cells))


@pytest.mark.parametrize("number", [np.float64(0.25), np.float32(0.25), np.array(0.25), sp.Rational(1, 4), 1])
def test_numbers_of_other_kinds_are_numbers(number: Any) -> None:
    assert problem(diffusivity=number, steps=np.int64(2), save_every=np.array(1)).steps == 2
    conduction = ff.equation("conduction")
    given = problem(
        initial=number, source=number, boundary={"left": number}, equation=conduction, parameters={"k": number}
    )
    same = float(number)
    wanted = problem(initial=same, source=same, boundary={"left": same}, equation=conduction, parameters={"k": same})
    np.testing.assert_array_equal(given.fields, wanted.fields)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: ff.simulate("euler", MESH, initial=None),
            r"the initial field should be real numbers: .*; got None",
        ),
        (lambda: ff.simulate("euler", MESH, parameters=[1]), "parameters should be a mapping .*, got a list of 1"),
        (lambda: ff.simulate("euler", MESH, equation=3), "equation should be an equation, .*, got 3"),
        (lambda: ff.equation(None), "equation should be an equation, .*, got None"),
        (lambda: ff.discover("first-order", changes={"training.step": 3}), r"changes: unknown field 'training\.step'"),
    ],
)
def test_values_of_another_kind_are_bad_input(call: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
