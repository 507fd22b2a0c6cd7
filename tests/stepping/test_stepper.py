"""Three ways to the same step: rows in slots, the stages as they are written, and the matrices."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fluxforge.errors import DocumentError, InputError, SchemeError
from fluxforge.mesh import Dirichlet, DualGraph, Neumann, dual, fourier_step
from fluxforge.scheme import Claims, Hop, Scheme, SchemeBuilder, save
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import AbstractStepper, GeneralStepper, LinearStepper, field_on_cells, general_stepper, stepper
from fluxforge.stepping._solvers import TOLERANCES
from fluxforge.stepping._stepper import repeat_steps
from strategies import BOUNDARIES, EXPLICIT, MESHES, SIDED, noise, whole_step

BOTH = dual(MESHES["mixed"], BOUNDARIES["both"])


def problem(graph: DualGraph, alpha: float) -> tuple[np.ndarray, np.ndarray, float]:
    return noise(graph.cells, 1), noise(graph.cells, 2), 0.8 * fourier_step(graph, alpha)


def gap(one: object, other: np.ndarray) -> float:
    return float(np.abs(np.asarray(one, float) - other).max() / max(1.0, np.abs(other).max()))


def take_one_step(step: AbstractStepper, T: np.ndarray) -> jax.Array | np.ndarray:
    """One compiled step, in the mesh's order."""
    return step.rollout(T, 1)


FEW_STAGES = ("euler", "midpoint", "two-hop", "two-hop-printed", "corrected")
PLACES = [(name, "mixed", boundary) for name in EXPLICIT for boundary in BOUNDARIES]
PLACES += [(name, mesh, "both") for name in FEW_STAGES for mesh in ("jittered", "warped")]


@pytest.mark.parametrize(("name", "mesh", "boundary"), PLACES)
def test_the_stepper_is_its_matrices(name: str, mesh: str, boundary: str) -> None:
    scheme = EXPLICIT[name]
    graph = dual(SIDED[mesh], BOUNDARIES[boundary])
    T, S, dt = problem(graph, 2.5)
    step = stepper(scheme, graph, dt, diffusivity=2.5, source=S)
    assert isinstance(step, LinearStepper)
    assert gap(take_one_step(step, T), whole_step(scheme, graph, dt, 2.5)(T, S)) <= 1e-13


@pytest.mark.parametrize("name", ["euler", "crank-nicolson"])
def test_calling_a_stepper_is_one_step(name: str) -> None:
    T, S, dt = problem(BOTH, 1.0)
    assert gap(stepper(name, BOTH, dt, source=S)(T), whole_step(BUILT_IN[name], BOTH, dt)(T, S)) <= 1e-13


class Compilations:
    """How often the back end compiled anything while the block ran."""

    count = 0

    def __call__(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        Compilations.count += event == "/jax/core/compile/backend_compile_duration"


jax.monitoring.register_event_duration_secs_listener(Compilations())


@pytest.mark.parametrize("name", ["euler", "corrected"])
def test_calling_a_stepper_again_compiles_nothing(name: str) -> None:
    T, _, dt = problem(BOTH, 1.0)
    step = stepper(name, BOTH, dt)
    step(T)
    before = Compilations.count
    assert before > 0
    step(T + 1)
    assert Compilations.count == before


def test_another_number_of_steps_compiles_nothing() -> None:
    T, _, dt = problem(BOTH, 1.0)
    step = stepper("euler", BOTH, dt)
    step.rollout(T, 3)
    before = Compilations.count
    step.rollout(T, 5)
    assert Compilations.count == before


@pytest.mark.parametrize("scheme", EXPLICIT.values(), ids=list(EXPLICIT))
def test_the_stages_as_they_are_written_give_the_same_step(scheme: Scheme) -> None:
    T, S, dt = problem(BOTH, 2.5)
    step = general_stepper(scheme, BOTH, dt=dt, parameters={"alpha": 2.5}, source=S, dtype="float64")
    assert gap(take_one_step(step, T), whole_step(scheme, BOTH, dt, 2.5)(T, S)) <= 1e-13


@pytest.mark.parametrize(("mesh", "boundary"), [("jittered", "dirichlet"), ("warped", "neumann")])
@pytest.mark.parametrize("name", ["euler", "corrected"])
def test_the_stages_as_they_are_written_on_other_meshes(name: str, mesh: str, boundary: str) -> None:
    graph = dual(SIDED[mesh], BOUNDARIES[boundary])
    T, S, dt = problem(graph, 0.4)
    step = general_stepper(BUILT_IN[name], graph, dt=dt, parameters={"alpha": 0.4}, source=S, dtype="float64")
    assert gap(take_one_step(step, T), whole_step(BUILT_IN[name], graph, dt, 0.4)(T, S)) <= 1e-13


@pytest.mark.parametrize("scheme", EXPLICIT.values(), ids=list(EXPLICIT))
def test_single_precision_agrees_to_single_precision(scheme: Scheme) -> None:
    T, S, dt = problem(BOTH, 2.5)
    wanted = whole_step(scheme, BOTH, dt, 2.5)(T, S)
    after = take_one_step(stepper(scheme, BOTH, dt, diffusivity=2.5, source=S, dtype="float32"), T)
    assert after.dtype == jnp.float32
    assert 1e-9 < gap(after, wanted) <= 2e-5


def test_single_precision_of_the_stages_as_they_are_written() -> None:
    T, S, dt = problem(BOTH, 2.5)
    step = general_stepper(BUILT_IN["corrected"], BOTH, dt=dt, parameters={"alpha": 2.5}, source=S, dtype="float32")
    after = take_one_step(step, T)
    assert after.dtype == jnp.float32
    assert gap(after, whole_step(BUILT_IN["corrected"], BOTH, dt, 2.5)(T, S)) <= 2e-5


@pytest.mark.parametrize("name", ["two", "fan", "arrow", "islands", "one"])
@pytest.mark.parametrize("scheme", [BUILT_IN["midpoint"], BUILT_IN["two-hop"], BUILT_IN["two-hop-printed"]], ids=str)
def test_the_stepper_is_its_matrices_on_unusual_graphs(scheme: Scheme, name: str) -> None:
    graph = dual(MESHES[name], Dirichlet(2.0))
    T, S, dt = problem(graph, 1.0)
    assert gap(take_one_step(stepper(scheme, graph, dt, source=S), T), whole_step(scheme, graph, dt)(T, S)) <= 1e-13


@pytest.mark.parametrize("scheme", BUILT_IN.values(), ids=str)
def test_one_insulated_cell_stays_as_it_is(scheme: Scheme) -> None:
    """Every coefficient but the one of T itself is zero there."""
    graph = dual(MESHES["one"], Neumann())
    assert np.asarray(take_one_step(stepper(scheme, graph, 0.1), np.array([3.0]))) == pytest.approx([3.0], rel=1e-15)


def test_a_field_that_is_zero_everywhere_is_a_field() -> None:
    scheme = (
        SchemeBuilder().stage({"z": "(1 - chi)*(T_N - T_P)"}, {"T_new": "z"}).build("m", summary="", claims=Claims())
    )
    graph = dual(MESHES["mixed"])
    assert np.asarray(take_one_step(stepper(scheme, graph, 0.1), noise(graph.cells))).tolist() == [0.0] * graph.cells


@pytest.mark.parametrize("name", ["euler", "corrected", "crank-nicolson"])
def test_a_rollout_is_step_after_step(name: str) -> None:
    T, S, dt = problem(BOTH, 1.0)
    step, exact = stepper(name, BOTH, dt, source=S), whole_step(BUILT_IN[name], BOTH, dt)
    wanted = T
    for _ in range(7):
        wanted = exact(wanted, S)
    assert gap(step.rollout(T, 7), wanted) <= 1e-12
    assert gap(step.rollout(T, 0), T) == 0.0
    assert gap(step.leave(step.repeat(step.enter(T), 7)), wanted) <= 1e-12


def test_a_stepper_runs_under_jit_and_scan() -> None:
    T, S, dt = problem(BOTH, 1.0)
    step, exact = stepper("midpoint", BOTH, dt, source=S), whole_step(BUILT_IN["midpoint"], BOTH, dt)
    last, _ = jax.jit(lambda T: jax.lax.scan(lambda T, _: (step(T), None), T, length=3))(jnp.asarray(T))
    assert gap(last, exact(exact(exact(T, S), S), S)) <= 1e-13


# Round-off: each side is a sum over 24 cells of products with rows of at most 8 terms, 2 (24 + 8) roundings in all.
ROUND_OFF = 64 * np.finfo(float).eps
# In the norm weighted by V, E (1 − E)⁻¹ of the exchange E is at most 1, so that a solve with a residual of tol ‖V v‖ is
# off by at most tol max V/min V ‖v‖. Each derivative solves once.
LEFT_OVER = 2 * TOLERANCES["float64"] * BOTH.V.max() / BOTH.V.min()


@pytest.mark.parametrize(
    ("name", "solver", "tolerance"),
    [
        ("midpoint", "auto", ROUND_OFF),
        ("barth-jespersen", "auto", ROUND_OFF),
        ("implicit", "cg", LEFT_OVER),
    ],
)
def test_a_step_is_differentiated_backwards_as_forwards(name: str, solver: Any, tolerance: float) -> None:
    """w·(J v) is (Jᵀ w)·v to round-off, or to what conjugate gradients leave over."""
    given: dict[str, Any] = {"equation": "advection", "parameters": {"velocity": (1.0, 0.5)}}
    step = stepper(name, BOTH, 1e-3, solver=solver, **(given if name == "barth-jespersen" else {}))
    T, v, w = (np.random.default_rng(seed).standard_normal(BOTH.cells) for seed in range(3))
    _, forwards = jax.jvp(step, (jnp.asarray(T),), (jnp.asarray(v),))
    backwards = jax.grad(lambda T: jnp.asarray(w) @ step(T))(jnp.asarray(T))
    assert abs(w @ forwards - backwards @ v) <= tolerance * np.linalg.norm(w) * np.linalg.norm(forwards)


def test_a_scheme_by_name_and_by_file(tmp_path: Path) -> None:
    T, _, dt = problem(BOTH, 1.0)
    save(BUILT_IN["midpoint"], tmp_path / "mine.json")
    wanted = whole_step(BUILT_IN["midpoint"], BOTH, dt)(T)
    assert gap(take_one_step(stepper("midpoint", BOTH, dt), T), wanted) <= 1e-13
    assert gap(take_one_step(stepper(tmp_path / "mine.json", BOTH, dt), T), wanted) <= 1e-13
    with pytest.raises(SchemeError, match="no scheme 'midpiont'"):
        stepper("midpiont", BOTH, dt)
    with pytest.raises(DocumentError, match="cannot be read"):
        stepper(tmp_path / "none.json", BOTH, dt)


def test_a_scheme_that_is_not_linear_is_evaluated_as_it_is_written() -> None:
    text = "alpha*A/delta*(T_N - T_P)*(1 + T_N**2/4 + abs(T_P))"
    scheme = (
        SchemeBuilder().stage({"z": text}, {"T_new": "T + dt/V*z + dt*S*T"}).build("m", summary="", claims=Claims())
    )
    T, S, dt = problem(BOTH, 1.5)
    step = stepper(scheme, BOTH, dt, diffusivity=1.5, source=S)
    assert isinstance(step, GeneralStepper)
    flow = np.zeros(BOTH.cells)
    for f, (P, N) in enumerate(zip(BOTH.owner, BOTH.neighbour, strict=True)):
        w = 1.5 * BOTH.A[f] / BOTH.delta[f]
        if f < BOTH.interior:
            far = T[N]
            flow[N] += w * (T[P] - far) * (1 + T[P] ** 2 / 4 + abs(far))
        else:
            k = f - BOTH.interior
            far = T[P] + BOTH.value[k] * BOTH.delta[f] if BOTH.neumann[k] else BOTH.value[k]
        flow[P] += w * (far - T[P]) * (1 + far**2 / 4 + abs(T[P]))
    assert gap(take_one_step(step, T), T + dt / BOTH.V * flow + dt * S * T) <= 1e-13
    assert gap(step.rollout(T, 2), np.asarray(take_one_step(step, np.asarray(take_one_step(step, T))))) <= 1e-14


def test_a_ring_in_a_scheme_that_is_not_linear() -> None:
    """The same ring message, once alone and once beside a square, must be the same sum."""
    ring = (Hop.RING, "A_PN*delta_NQ*T_N + delta_PQ*T_Q*V_N")
    plain = SchemeBuilder().stage({"z": ring}, {"T_new": "T + z"}).build("m", summary="", claims=Claims())
    square = SchemeBuilder().stage({"z": ring}, {"T_new": "T + z + T**2"}).build("m", summary="", claims=Claims())
    T = noise(BOTH.cells)
    assert gap(take_one_step(stepper(square, BOTH, 0.1), T), whole_step(plain, BOTH, 0.1)(T) + T**2) <= 1e-13


@pytest.mark.parametrize(
    "source",
    [1.5, 2, "x - y**2", lambda x, y: np.cos(x) * y, lambda x, y: 3.0, BOTH.x[:, 0].copy(), np.arange(BOTH.cells)],
)
def test_a_source_is_a_number_a_formula_a_function_or_an_array(source: Any) -> None:
    x, y = BOTH.x.T
    wanted = x - y**2 if isinstance(source, str) else source(x, y) if callable(source) else source
    field = field_on_cells(source, BOTH, "the source")
    assert np.allclose(field, np.broadcast_to(wanted, (BOTH.cells,)), rtol=1e-15)
    assert field.dtype == float


@pytest.mark.parametrize(
    ("source", "match"),
    [
        (np.zeros(3), r"the source should be \d+ finite numbers, got an array of shape \(3,\)"),
        (np.zeros((BOTH.cells, 1)), "the source should be"),
        (np.full(BOTH.cells, np.nan), "the source should be"),
        (float("inf"), "the source is inf at"),
        ("1/(x - x)", "column"),
        ("z", "unknown symbol 'z'"),
        (lambda x, y: np.zeros(3), "the source"),
    ],
)
def test_a_source_that_cannot_be_used_is_refused(source: object, match: str) -> None:
    with pytest.raises(InputError, match=match):
        stepper("euler", BOTH, 0.1, source=source)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), 0])
@pytest.mark.parametrize("name", ["euler", "crank-nicolson"])
def test_dt_and_diffusivity_are_positive_numbers(name: str, bad: float) -> None:
    with pytest.raises(InputError, match=r"^dt should be a positive number, got"):
        stepper(name, BOTH, bad)
    with pytest.raises(InputError, match=r"^diffusivity should be a positive number, got"):
        stepper(name, BOTH, 0.1, diffusivity=bad)


def test_double_precision_is_refused_where_jax_would_silently_halve_it() -> None:
    with jax.enable_x64(False):
        with pytest.raises(InputError, match=r"float64 needs JAX's 64-bit mode: .*or pass dtype='float32'$"):
            stepper("euler", BOTH, 1e-4)
        after = take_one_step(stepper("euler", BOTH, 1e-4, dtype="float32"), np.zeros(BOTH.cells, np.float32))
    assert after.dtype == jnp.float32


@pytest.mark.parametrize("steps", [0, 1, 7, 8, 19])
def test_steps_taken_in_turns_are_those_taken_one_by_one(steps: int) -> None:
    """As on a GPU: several steps in each turn of the loop, and the rest one by one."""
    step = stepper("euler", BOTH, 0.4 * fourier_step(BOTH))
    T = step.enter(noise(BOTH.cells, 1))
    by_turns = repeat_steps(step, T, jnp.asarray(steps), turn=8)
    # Compiled together, products and sums may be fused: one rounding less per operation and step.
    np.testing.assert_allclose(
        by_turns, repeat_steps(step, T, jnp.asarray(steps), turn=1), rtol=0, atol=8 * steps * 2**-52
    )
