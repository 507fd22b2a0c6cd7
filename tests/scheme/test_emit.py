"""Emitted code takes the same step as our own steppers; emitted LaTeX is well formed."""

import ast
import functools
import os
import re
import shutil
import subprocess
import sys

import _emit_meshes
import jax
import numpy as np
import pytest
from _emit_operators import OPERATORS, operator_schemes, operator_values
from _emit_run import CLibrary, arrays, python, relative, same_with_nan
from _emit_schemes import AWKWARD, CONSTANTS, COUNTS, EXPLICIT, HOSTILE, IMPLICIT, PLAIN, REFUSED, RING, edge

from fluxforge.errors import InputError, SchemeError
from fluxforge.scheme import Scheme
from fluxforge.scheme.emit import TARGETS, emit
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import general_stepper, operator, stepper

DT, ALPHA = 2.3e-3, 0.7
ALL_EXPLICIT = [scheme for scheme in (*BUILT_IN.values(), *EXPLICIT) if not scheme.implicit]
EXPLICIT_AND_GRAPH = [
    *((scheme, "mixed") for scheme in ALL_EXPLICIT),
    *((BUILT_IN[name], "triangles") for name in ("euler", "two-hop", "corrected")),
    *(pytest.param(BUILT_IN[name], "triangles", marks=pytest.mark.slow) for name in ("rk4", "two-hop-printed")),
]
ALL_IMPLICIT = [BUILT_IN["crank-nicolson"], *IMPLICIT]
COMPILED = ("corrected", "crank-nicolson")
SINGLE = [BUILT_IN[name] for name in ("rk4", "corrected", "two-hop", "crank-nicolson")] + [RING, CONSTANTS, COUNTS]
GRAPHS = {"triangles": functools.cache(_emit_meshes.triangles), "mixed": functools.cache(_emit_meshes.mixed)}
NEEDS_CC = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc) here")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> CLibrary:
    schemes = [*ALL_EXPLICIT, *ALL_IMPLICIT, AWKWARD, *operator_schemes().values()]
    return CLibrary(schemes, tmp_path_factory.mktemp("c"))


@functools.cache
def reference(scheme: Scheme, graph_name: str, direct: bool) -> np.ndarray:
    graph = GRAPHS[graph_name]()
    T, S = _emit_meshes.fields(graph)
    if direct:
        step = general_stepper(scheme, graph, dt=DT, parameters={"alpha": ALPHA}, source=S, dtype="float64")
    else:
        step = stepper(scheme, graph, DT, diffusivity=ALPHA, source=S)
    return np.asarray(step(T))


def emitted_step(
    scheme: Scheme, target: str, graph_name: str, *, dtype: str = "float64", compiled: bool = False, **more: float
) -> np.ndarray:
    space = python(emit(scheme, target))
    graph = GRAPHS[graph_name]()
    T, S = (field.astype(dtype) for field in _emit_meshes.fields(graph))
    mesh = arrays(space, _emit_meshes.table(graph), dtype)
    step = jax.jit(space["step"]) if compiled else space["step"]
    return step(T, S, mesh, DT, ALPHA, **more)


@pytest.mark.parametrize("target", ["numpy", "jax"])
@pytest.mark.parametrize(("scheme", "graph_name"), EXPLICIT_AND_GRAPH, ids=str)
def test_emitted_python_takes_the_step_of_both_our_steppers(scheme, target, graph_name):
    after = emitted_step(scheme, target, graph_name, compiled=target == "jax")
    assert after.dtype == np.float64
    for direct in (False, True):
        assert relative(after, reference(scheme, graph_name, direct)) < 1e-13


@NEEDS_CC
@pytest.mark.parametrize(("scheme", "graph_name"), EXPLICIT_AND_GRAPH, ids=str)
def test_emitted_c_takes_the_step_of_both_our_steppers(scheme, graph_name, library):
    graph = GRAPHS[graph_name]()
    status, after = library.step(scheme.name, *_emit_meshes.fields(graph), _emit_meshes.table(graph), DT, ALPHA)
    assert status == 0
    for direct in (False, True):
        assert relative(after, reference(scheme, graph_name, direct)) < 1e-13


@pytest.mark.parametrize(
    ("scheme", "target"),
    [
        *((scheme, "numpy") for scheme in ALL_IMPLICIT),
        *((scheme, "jax") for scheme in (ALL_IMPLICIT[0], ALL_IMPLICIT[-1])),
        *(pytest.param(scheme, "jax", marks=pytest.mark.slow) for scheme in ALL_IMPLICIT[1:-1]),
    ],
    ids=str,
)
def test_emitted_conjugate_gradients_solve_the_system_of_our_direct_solver(scheme, target):
    after = emitted_step(scheme, target, "mixed", compiled=target == "jax")
    assert relative(after, reference(scheme, "mixed", False)) < 1e-11


@NEEDS_CC
@pytest.mark.parametrize("graph_name", GRAPHS)
@pytest.mark.parametrize("scheme", ALL_IMPLICIT, ids=str)
def test_emitted_c_solves_the_system_of_our_direct_solver(scheme, graph_name, library):
    graph = GRAPHS[graph_name]()
    status, after = library.step(scheme.name, *_emit_meshes.fields(graph), _emit_meshes.table(graph), DT, ALPHA)
    assert status == 0
    assert relative(after, reference(scheme, graph_name, False)) < 1e-11


@pytest.mark.parametrize(
    ("scheme", "target"),
    [
        *((scheme, "numpy") for scheme in SINGLE),
        *((BUILT_IN[name], "jax") for name in COMPILED),
        *(pytest.param(scheme, "jax", marks=pytest.mark.slow) for scheme in SINGLE if scheme.name not in COMPILED),
    ],
    ids=str,
)
def test_single_precision_stays_single_and_close(scheme, target):
    after = emitted_step(scheme, target, "mixed", dtype="float32", compiled=target == "jax")
    assert after.dtype == np.float32
    assert relative(after, reference(scheme, "mixed", False)) < 1e-4


@pytest.mark.parametrize("target", ["numpy", "jax"])
@pytest.mark.parametrize("text", OPERATORS)
def test_every_operator_has_its_value_in_python(text, target):
    after = emitted_step(operator_schemes()[text], target, "mixed")
    assert same_with_nan(after, operator_values(OPERATORS[text], GRAPHS["mixed"]()))


@NEEDS_CC
@pytest.mark.parametrize("text", OPERATORS)
def test_every_operator_has_its_value_in_c(text, library):
    graph = GRAPHS["mixed"]()
    name = operator_schemes()[text].name
    _, after = library.step(name, *_emit_meshes.fields(graph), _emit_meshes.table(graph), DT, ALPHA)
    assert same_with_nan(after, operator_values(OPERATORS[text], GRAPHS["mixed"]()))


def test_c_numbers_are_doubles_and_never_divided_as_integers():
    text = emit(BUILT_IN["rkl2-8"], "c").partition("*/")[2]
    assert "1225.0*D7[P]/648.0" in text
    assert not re.search(r"[-+*/(] ?\d+/", text.replace("path/", ""))


@pytest.mark.parametrize(("field", "target"), [("n_x", "numpy"), ("chi", "jax")])
def test_what_the_header_calls_unread_may_be_none(field, target):
    source = emit(BUILT_IN["euler"], target)
    assert re.search(rf"\b{field}\b.* not read and may be None", source)
    space = python(source)
    graph = GRAPHS["triangles"]()
    mesh = arrays(space, _emit_meshes.table(graph))._replace(**{field: None})
    step = jax.jit(space["step"]) if target == "jax" else space["step"]
    after = step(*_emit_meshes.fields(graph), mesh, DT, ALPHA)
    assert relative(after, reference(BUILT_IN["euler"], "triangles", False)) < 1e-13


@pytest.mark.parametrize("scheme", ALL_IMPLICIT, ids=str)
def test_the_preconditioner_is_the_diagonal_of_the_scheme_s_matrix(scheme):
    space = python(emit(scheme, "numpy"))
    graph = GRAPHS["mixed"]()
    diagonal = space["_diagonal"](arrays(space, _emit_meshes.table(graph)), DT, ALPHA)
    assert relative(diagonal, operator(scheme, graph, dt=DT, parameters={"alpha": ALPHA}).M.diagonal()) < 1e-13


def test_the_header_of_an_implicit_scheme_asks_for_chi_which_its_diagonal_reads():
    text = emit(BUILT_IN["crank-nicolson"], "c")
    assert "n_x, n_y, d_x, d_y are not read and may be NULL" in text
    assert "mesh->chi[e]" in text


def test_conjugate_gradients_that_do_not_converge_say_so():
    scheme = BUILT_IN["crank-nicolson"]
    with pytest.raises(RuntimeError, match="no convergence in 1 iterations"):
        emitted_step(scheme, "numpy", "triangles", max_iterations=1)
    assert np.isnan(emitted_step(scheme, "jax", "triangles", compiled=True, max_iterations=1)).all()


@NEEDS_CC
def test_c_reports_failure_of_the_solver_and_of_memory(library):
    graph = GRAPHS["triangles"]()
    T, S = _emit_meshes.fields(graph)
    table = _emit_meshes.table(graph)
    assert library.step("crank-nicolson", T * np.nan, S, table, DT, ALPHA)[0] == 2
    assert library.step("crank-nicolson", T, S, table, -1e3, ALPHA)[0] == 2
    for name in ("crank-nicolson", "midpoint"):
        assert library.step(name, T, S, table, DT, ALPHA, cells=2**58)[0] == 1


def test_a_negative_time_step_is_not_solved_silently():
    space = python(emit(BUILT_IN["crank-nicolson"], "numpy"))
    graph = GRAPHS["triangles"]()
    mesh = arrays(space, _emit_meshes.table(graph))
    with pytest.raises(RuntimeError, match="not positive definite"):
        space["step"](*_emit_meshes.fields(graph), mesh, -1e3, ALPHA)


@pytest.mark.parametrize(
    ("target", "allowed"), [("numpy", {"typing", "numpy"}), ("jax", {"typing", "jax", "jax.numpy"})]
)
@pytest.mark.parametrize("scheme", [*ALL_EXPLICIT, *ALL_IMPLICIT], ids=str)
def test_emitted_python_depends_on_its_array_library_alone(scheme, target, allowed):
    tree = ast.parse(emit(scheme, target))
    assert {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)} <= allowed
    assert {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names} <= allowed
    assert ast.get_docstring(tree).startswith(f"{scheme.name}: {scheme.summary}")


def test_the_text_is_the_same_whatever_the_hash_seed():
    code = (
        "from fluxforge.scheme.emit import TARGETS, emit; from fluxforge.scheme.reference import BUILT_IN;"
        "open(1, 'wb').write(''.join(emit(BUILT_IN[n], t) for n in ('corrected', 'two-hop') for t in TARGETS).encode())"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    text = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout
    assert text.decode() == "".join(emit(BUILT_IN[n], t) for n in ("corrected", "two-hop") for t in TARGETS)


@NEEDS_CC
def test_names_that_a_language_has_taken_are_spelled_differently(library):
    graph = GRAPHS["mixed"]()
    wanted = emitted_step(PLAIN, "numpy", "mixed")
    assert relative(emitted_step(AWKWARD, "numpy", "mixed"), wanted) < 1e-13
    space = python(emit(AWKWARD, "jax"))
    mesh = arrays(space, _emit_meshes.table(graph))
    traced = jax.eval_shape(space["step"], *_emit_meshes.fields(graph), mesh, DT, ALPHA)
    assert traced.shape == wanted.shape
    _, after = library.step(AWKWARD.name, *_emit_meshes.fields(graph), _emit_meshes.table(graph), DT, ALPHA)
    assert relative(after, wanted) < 1e-13


def test_an_unknown_target_is_refused():
    with pytest.raises(InputError, match=r"no target 'fortran' to export to; known: latex, numpy, jax, c"):
        emit(BUILT_IN["euler"], "fortran")
    assert TARGETS == ("latex", "numpy", "jax", "c")


@pytest.mark.parametrize("target", ["numpy", "jax", "c"])
@pytest.mark.parametrize("reason", REFUSED)
def test_a_system_that_conjugate_gradients_cannot_solve_is_refused_with_the_reason(reason, target):
    scheme = REFUSED[reason]
    with pytest.raises(SchemeError, match=re.escape(reason)) as caught:
        emit(scheme, target)
    assert str(caught.value).startswith(f"scheme {scheme.name!r} is implicit and ")
    assert "\n" not in str(caught.value)
    assert r"\theta = \frac{1}{2}" in emit(scheme, "latex")


@pytest.mark.parametrize("target", ["numpy", "jax", "c"])
def test_crank_nicolson_as_printed_has_latex_and_no_code(target):
    scheme = BUILT_IN["crank-nicolson-printed"]
    with pytest.raises(SchemeError, match=r"not positive definite: a mode of decay rate 2\.00/dt"):
        emit(scheme, target)
    assert r"F_P(T) &= T_P - \frac{\Delta t}{V_P}\,z_P" in emit(scheme, "latex")


@NEEDS_CC
def test_a_hostile_title_stays_inside_its_comment(tmp_path):
    CLibrary([HOSTILE], tmp_path)
    for target in ("numpy", "jax"):
        assert "step" in python(emit(HOSTILE, target))
    assert all(line.startswith("%") for line in emit(HOSTILE, "latex").partition("\\[")[0].splitlines())


def letters_of(latex: str) -> str:
    """What would be set in italics: no comments, commands, environments or upright words."""
    body = re.sub(r"^%.*$", "", latex, flags=re.MULTILINE)
    return re.sub(r"\\(mathrm|operatorname|begin|end)\{[^}]*\}|\\[A-Za-z]+|\\.", " ", body)


@pytest.mark.parametrize("scheme", [*BUILT_IN.values(), *EXPLICIT, *IMPLICIT, *operator_schemes().values()], ids=str)
def test_latex_is_balanced_and_has_no_names_of_code(scheme):
    text = emit(scheme, "latex")
    assert text.count("{") == text.count("}")
    assert text.count(r"\left") == text.count(r"\right")
    assert text.count(r"\biggl[") == text.count(r"\biggr]")
    assert text.count(r"\begin{aligned}") == text.count(r"\end{aligned}") == 1
    rows = (
        re.sub(r"^%.*\n", "", text, flags=re.MULTILINE).split("\n", 2)[2].split("\n\\end{aligned}")[0].split("\\\\\n")
    )
    assert all(row.count("&") == 1 for row in rows)
    words = set(re.findall(r"[A-Za-z]{2,}", letters_of(text)))
    assert words <= {"PN", "NQ", "PQ", "xx", "xy", "yy"}
    assert "*" not in letters_of(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("alpha*A/delta*(T_N - T_P)", r"\frac{\alpha\,A_{PN}}{\delta_{PN}}\left(T_N^{n} - T_P^{n}\right)"),
        ("-n_x*d_y*chi/V_N", r"\left(-\frac{\chi_{PN}\,d_{PN,y}\,n_{PN,x}}{V_N}\right)"),
        ("T_P**2/S_N", r"\frac{\left(T_P^{n}\right)^{2}}{S_N}"),
        ("sqrt(T_P)*T_N**(1/3)", r"\left(T_N^{n}\right)^{1/3}\,\sqrt{T_P^{n}}"),
        ("max(T_N, 1/2)*abs(S_P)", r"\left|S_P\right|\,\max\left(T_N^{n}, \frac{1}{2}\right)"),
        ("2.5e-7*exp(-T_N)*pi", r"2.5\cdot 10^{-7}\,\pi\,\exp\left(-T_N^{n}\right)"),
        ("1/(T_N + 2*T_P)", r"\frac{1}{T_N^{n} + 2\,T_P^{n}}"),
        ("sign(T_N - T_P)", r"\operatorname{sgn}\left(T_N^{n} - T_P^{n}\right)"),
        ("1 + 100*(T_N > 0.5)", r"\left(1 + 100\,\left[T_N^{n} > 0.5\right]\right)"),
        ("where(T_N <= T_P, 1, S_P)", r"\operatorname{where}\left(T_N^{n} \le T_P^{n}, 1, S_P\right)"),
        ("tanh(T_P)/sin(S_P)", r"\frac{\tanh\left(T_P^{n}\right)}{\sin\left(S_P\right)}"),
    ],
)
def test_latex_of_a_message_reads_as_a_person_would_write_it(text, wanted):
    sums = emit(edge("one", text), "latex")
    assert rf"z_P &= \sum_{{N\in\mathcal{{N}}_1(P)}} {wanted}" in sums


def test_latex_names_what_is_summed_over():
    assert r"\sum_{P\to N\to Q} \frac{\Delta t\,\alpha^{2}\,A_{NQ}" in emit(BUILT_IN["two-hop"], "latex")
    assert r"\sum_{Q\in\mathcal{N}_2(P)} \frac{\alpha}{2}" in emit(BUILT_IN["two-hop-printed"], "latex")
    ring = emit(RING, "latex")
    assert r"\overline{V_N}" in ring
    assert r"\overline{A_{PN}}" in ring
    assert r"\overline{d_{PQ" not in ring
    assert r"T_P^{n+1/2} &= T_P^{n} + \frac{\Delta t}{2}\,S_P" in emit(BUILT_IN["midpoint"], "latex")
    assert r"\mathrm{rate}_P &= S_P + \frac{z_{1,P}}{V_P}" in emit(BUILT_IN["rkl2-8"], "latex")
