"""Whole runs: refused arguments, saved fields, and the step at which a run blows up."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from fluxforge.errors import FluxforgeError, InputError, InstabilityError, SchemeError
from fluxforge.mesh import Dirichlet, Neumann, dual, fourier_step, squares
from fluxforge.scheme import Claims, SchemeBuilder
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import compare, simulate, step_limit
from strategies import BOUNDARIES, MESHES, noise, whole_step

MESH = MESHES["mixed"]
GRAPH = dual(MESH, BOUNDARIES["both"])
LIMIT = step_limit(BUILT_IN["euler"], dual(MESH))


def test_a_run_is_its_steps_and_keeps_the_fields_at_the_times_it_says() -> None:
    T, S = noise(GRAPH.cells, 1), noise(GRAPH.cells, 2)
    run = simulate(
        "euler", MESH, initial=T, source=S, boundary=BOUNDARIES["both"], diffusivity=1.7, steps=10, save_every=4
    )
    dt = 0.5 * fourier_step(GRAPH, 1.7)
    assert (run.scheme, run.steps, run.blew_up_at) == ("euler", 10, None)
    assert run.dt == pytest.approx(dt, rel=1e-14)
    assert run.dt_fourier == pytest.approx(2 * dt, rel=1e-14)
    assert run.times == pytest.approx(dt * np.array([0, 4, 8, 10]), rel=1e-14)
    step, fields = whole_step(BUILT_IN["euler"], GRAPH, dt, 1.7), [T]
    for _ in range(10):
        fields.append(step(fields[-1], S))
    assert np.abs(run.fields - np.array(fields)[[0, 4, 8, 10]]).max() <= 1e-12


@pytest.mark.parametrize(
    ("steps", "every", "marks"),
    [(1, None, [0, 1]), (3, None, [0, 1, 2, 3]), (41, None, [*range(0, 41, 3), 41]), (5, 9, [0, 5]), (6, 3, [0, 3, 6])],
)
def test_about_twenty_fields_are_kept_and_the_last_always(steps: int, every: int | None, marks: list[int]) -> None:
    seen: list[int] = []
    run = simulate("euler", MESH, steps=steps, save_every=every, initial=1.0, progress=seen.append)
    assert (run.times / run.dt).round(6).tolist() == marks
    assert len(run.fields) == len(marks)
    assert seen == marks[1:]
    assert run.seconds_per_step >= 0


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (2, lambda x, y: 2.0 + 0 * x),
        (1.5, lambda x, y: 1.5 + 0 * x),
        ("sin(pi*x) + y", lambda x, y: np.sin(np.pi * x) + y),
        (lambda x, y: x * y, lambda x, y: x * y),
        (GRAPH.x[:, 0].copy(), lambda x, y: x),
        (np.ones(GRAPH.cells, int), lambda x, y: 1.0 + 0 * x),
    ],
)
def test_the_initial_field_is_a_number_a_formula_a_function_or_an_array(
    given: object, wanted: Callable[..., object]
) -> None:
    run = simulate("euler", MESH, initial=given, steps=1)  # type: ignore[arg-type]
    assert run.fields[0] == pytest.approx(wanted(*GRAPH.x.T), rel=1e-15)
    assert run.fields.dtype == float


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (np.zeros(3), r"^the initial field should be 24 finite numbers, got an array of shape \(3,\)$"),
        (np.zeros((24, 1)), "shape"),
        (np.full(24, np.inf), "^the initial field should be finite, and is inf in cell 0$"),
        (float("nan"), "the initial field is nan at"),
        ("x + t", "unknown symbol 't'"),
        ("log(x - 5)", "is nan at x"),
        (lambda x, y: np.zeros(3), "the initial field"),
        (np.ones(24, complex), "the initial field"),
        (np.array(["a"] * 24), "the initial field"),
    ],
)
def test_an_initial_field_that_cannot_be_used_is_refused(given: object, match: str) -> None:
    with pytest.raises(InputError, match=match):
        simulate("euler", MESH, initial=given, steps=1)  # type: ignore[arg-type]


def test_a_step_above_the_limit_is_refused_with_both_numbers() -> None:
    assert LIMIT is not None
    dt = 1.5 * LIMIT.dt
    with pytest.raises(InputError) as caught:
        simulate("euler", MESH, dt=dt, initial=1.0)
    fourier = fourier_step(dual(MESH))
    assert str(caught.value) == (
        f"dt = {dt:.4g} is above the stability limit of 'euler' on this mesh, {LIMIT.dt:.4g} "
        f"({LIMIT.dt / fourier:.3g} of the Fourier step): use a smaller step, or --force (force=True)"
    )
    simulate("euler", MESH, dt=LIMIT.dt, steps=1)
    simulate("euler", MESH, dt=dt, steps=1, force=True)


def test_the_printed_crank_nicolson_scheme_is_refused_at_any_step() -> None:
    with pytest.raises(InputError, match="above the stability limit of 'crank-nicolson-printed' on this mesh, 0 "):
        simulate("crank-nicolson-printed", MESH, dt=1e-9)


def test_an_implicit_run_accepts_steps_of_any_length() -> None:
    run = simulate("crank-nicolson", MESH, dt_fraction=100.0, steps=3, initial="x")
    assert run.dt_limit == np.inf
    assert run.summary().dt_limit is None
    assert run.summary().dt_limit_kind == "unlimited"
    assert run.summary().dt_over_fourier == pytest.approx(100.0)


BOUND = 1e8


def first_step_beyond(T: np.ndarray, dt: float) -> int:
    M = whole_step(BUILT_IN["euler"], dual(MESH), dt).M
    bound, step = BOUND * (1 + np.abs(T).max()), 0
    while np.abs(T).max() <= bound:
        T, step = M @ T, step + 1
    return step


@pytest.mark.parametrize("every", [1, 7, 500])
def test_a_run_that_blows_up_names_the_step_whatever_is_saved(every: int) -> None:
    assert LIMIT is not None
    T, dt = noise(GRAPH.cells, 3), 1.5 * LIMIT.dt
    wanted = first_step_beyond(T, dt)
    assert 10 < wanted < 100
    problem: dict[str, Any] = {"initial": T, "dt": dt, "force": True, "steps": 200, "save_every": every}
    with pytest.raises(InstabilityError, match=rf"^scheme 'euler' blew up at step {wanted} of 200$"):
        simulate("euler", MESH, **problem)
    run = simulate("euler", MESH, **problem, throw=False)
    assert run.blew_up_at == wanted
    assert run.steps == (wanted - 1) // every * every
    assert run.times[-1] == pytest.approx(run.steps * dt)
    assert np.isfinite(run.fields).all()
    assert np.abs(run.fields).max() <= BOUND * (1 + np.abs(T).max())
    assert run.summary().blew_up_at == wanted


def test_a_run_that_overflows_names_a_step_too() -> None:
    run = simulate("euler", MESH, initial=noise(GRAPH.cells), dt=1e300, force=True, steps=5, throw=False)
    assert run.blew_up_at == 1
    assert run.steps == 0


LARGE = 1e11


@pytest.mark.parametrize(
    "problem",
    [
        {"boundary": Dirichlet(LARGE)},
        {"boundary": {"left": Dirichlet(-LARGE), "right": Neumann()}},
        {"source": LARGE},
        {"source": -1e30},
        {"boundary": Neumann(1e12)},
        {"boundary": Neumann(1e200)},
    ],
    ids=["walls", "one wall", "source", "sink", "flux", "huge flux"],
)
@pytest.mark.parametrize("scheme", ["euler", "crank-nicolson"])
def test_large_data_are_not_reported_as_blow_up(scheme: str, problem: dict[str, Any]) -> None:
    """From zero, a field follows its walls, sources and fluxes, however large they are."""
    run = simulate(scheme, MESH, dt_fraction=0.4, steps=60, **problem)
    assert (run.blew_up_at, run.steps) == (None, 60)
    size = max(abs(run.fields.min()), run.fields.max())
    assert size > 1e9
    assert run.summary().heat is not None


@pytest.mark.parametrize("problem", [{"boundary": Dirichlet(LARGE)}, {"source": LARGE}, {"boundary": Neumann(LARGE)}])
def test_large_data_blow_up_later_and_relative_to_their_size(problem: dict[str, Any]) -> None:
    assert LIMIT is not None
    run = simulate("euler", MESH, dt=3 * LIMIT.dt, force=True, steps=400, throw=False, **problem)
    assert run.blew_up_at is not None
    assert run.blew_up_at > 2
    assert np.abs(run.fields).max() <= 1e8 * (1 + LARGE + LARGE * 1e3 * run.times[-1])


def test_a_source_counts_by_the_time_it_has_acted() -> None:
    """The same growth is an explosion early on, and what a source brings later."""
    assert LIMIT is not None
    late = simulate("euler", MESH, dt=1.5 * LIMIT.dt, force=True, steps=400, source=1.0, initial="x", throw=False)
    none = simulate("euler", MESH, dt=1.5 * LIMIT.dt, force=True, steps=400, initial="x", throw=False)
    assert late.blew_up_at is not None
    assert none.blew_up_at is not None
    # In units of the mesh a source of 1 brings less than 1 in so short a time: a factor of two, one or two steps.
    assert 0 <= late.blew_up_at - none.blew_up_at <= 3


def test_numbers_of_a_summary_that_overflow_are_left_out() -> None:
    summary = simulate("euler", MESH, initial=1e200, steps=2).summary()
    assert summary.energy is None
    assert summary.heat == pytest.approx(1e200, rel=0.7)


def test_data_beyond_single_precision_are_refused_there() -> None:
    for problem in ({"initial": 1e39}, {"source": 1e39}, {"boundary": Dirichlet(1e39)}):
        with pytest.raises(InputError, match=r"beyond 3\.4e\+38, the largest number of float32: use float64"):
            simulate("euler", MESH, steps=1, dtype="float32", **problem)  # type: ignore[arg-type]


@pytest.mark.parametrize("solver", ["direct", "amg", "cg"])
@pytest.mark.parametrize("share", [1e3, 1e9, 1e13])
def test_an_insulated_box_keeps_its_heat_at_any_step_that_is_allowed(share: float, solver: Any) -> None:
    run = simulate("crank-nicolson", MESH, boundary=Neumann(), initial="x", dt_fraction=share, steps=50, solver=solver)
    start = run.graph.V @ run.fields[0]
    # Differences of T_θ are about 1/Δt of those of T, so that the fluxes of a step are of the size of the field. What a
    # cell gives and its neighbour receives are equal to a few ε of that; there are at most four of them and 50 steps.
    assert run.summary().heat == pytest.approx(start, rel=50 * 10 * np.finfo(float).eps)
    assert np.abs(run.fields).max() <= 2.0


@pytest.mark.parametrize(("dtype", "share"), [("float64", 1e14), ("float64", 1e200), ("float32", 1e6)])
def test_an_implicit_step_that_rounding_would_ruin_is_refused(dtype: Any, share: float) -> None:
    problem: dict[str, Any] = {"boundary": Neumann(), "initial": "x", "dt_fraction": share, "steps": 2, "dtype": dtype}
    with pytest.raises(InputError, match=rf"rounding errors of {dtype} would exceed the field: use at most"):
        simulate("crank-nicolson", MESH, **problem)
    assert simulate("crank-nicolson", MESH, **problem, force=True, throw=False).dt > 0


def test_single_precision_runs_with_and_without_64_bits() -> None:
    problem: dict[str, Any] = {"initial": "sin(pi*x)", "source": "y", "boundary": BOUNDARIES["both"], "steps": 20}
    double = simulate("midpoint", MESH, **problem)
    with jax.enable_x64(False):
        single = simulate("midpoint", MESH, **problem, dtype="float32")
        again = simulate("midpoint", MESH, **problem)
    assert single.fields.dtype == float
    assert 1e-9 < np.abs(single.fields[-1] - double.fields[-1]).max() < 1e-5
    assert np.array_equal(again.fields, double.fields)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("field", ["dt", "dt_fraction", "diffusivity"])
def test_numbers_out_of_range_are_refused_by_name(field: str, bad: float) -> None:
    with pytest.raises(InputError, match=f"^{field} should be a positive number, got {bad}"):
        simulate("euler", MESH, **{field: bad})  # type: ignore[arg-type]


def test_counts_out_of_range_are_refused_by_name() -> None:
    for steps in (0, -1):
        with pytest.raises(InputError, match=rf"^steps should be 1 or more, got {steps}"):
            simulate("euler", MESH, steps=steps)
    with pytest.raises(InputError, match=r"^save_every should be 1 or more, got 0"):
        simulate("euler", MESH, save_every=0)


def test_what_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(SchemeError, match="no scheme 'euller'"):
        simulate("euller", MESH)
    with pytest.raises(InputError, match="boundary tag 'lid' is not in the mesh"):
        simulate("euler", MESH, boundary={"lid": Neumann()})


def test_a_mesh_that_exchanges_nothing_needs_a_step_of_its_own() -> None:
    with pytest.raises(InputError, match="no Fourier step: give dt itself"):
        simulate("euler", squares(1), boundary=Neumann())
    run = simulate("euler", squares(1), boundary=Neumann(), dt=0.25, steps=4, source=2.0)
    assert run.fields[-1] == pytest.approx([2.0])
    assert run.summary().dt_over_fourier is None


def test_a_mesh_on_which_a_scheme_has_no_finite_coefficients_is_bad_input() -> None:
    """The gradient of the triangle in the arrow's notch is not determined: all its neighbours lie in one line."""
    with np.errstate(all="ignore"), pytest.raises(FluxforgeError):
        simulate("corrected", MESHES["arrow"], boundary=Neumann(), dt=1e-3, steps=1)


def test_a_scheme_that_is_not_linear_runs_without_a_limit() -> None:
    stage = SchemeBuilder().stage({"z": "alpha*A/delta*(T_N - T_P)*(1 + T_P**2)"}, {"T_new": "T + dt/V*z"})
    run = simulate(stage.build("hot", summary="", claims=Claims()), MESH, initial="x*y", dt_fraction=0.1, steps=3)
    assert run.dt_limit is None
    assert run.summary().dt_limit is None
    assert run.summary().dt_limit_kind == "unknown"
    assert run.steps == 3


def test_the_summary_is_that_of_the_last_field() -> None:
    run = simulate("euler", MESH, initial="1 + x", boundary=Dirichlet(3.0), steps=2)
    T, V, summary = run.fields[-1], run.graph.V, run.summary()
    assert summary.heat == pytest.approx(V @ T)
    assert summary.mean == pytest.approx(V @ T / V.sum())
    assert summary.energy == pytest.approx(0.5 * V @ T**2)
    assert (summary.min, summary.max) == (T.min(), T.max())
    assert (summary.cells, summary.steps, summary.scheme) == (24, 2, "euler")
    assert summary.time == run.times[-1]
    assert summary.dt_limit == run.dt_limit
    assert summary.dt_limit_kind == "finite"


def test_schemes_are_compared_with_the_first() -> None:
    seen: list[int] = []
    comparison = compare(
        ["euler", "midpoint", "two-hop"], MESH, initial=noise(GRAPH.cells), steps=4, save_every=2, progress=seen.append
    )
    rows = comparison.table()
    assert [row.scheme for row in rows] == ["euler", "midpoint", "two-hop"]
    assert (rows[0].l2_difference, rows[0].linf_difference) == (0.0, 0.0)
    first, other = (run.fields[-1] for run in comparison.simulations[:2])
    assert rows[1].linf_difference == pytest.approx(np.abs(other - first).max() / np.abs(first).max())
    V = comparison.simulations[0].graph.V
    assert rows[1].l2_difference == pytest.approx(np.sqrt(V @ (other - first) ** 2 / (V @ first**2)))
    assert rows[2].l2_difference == pytest.approx(rows[1].l2_difference, rel=1e-9)
    assert seen == [2, 4, 6, 8, 10, 12]


def test_a_scheme_that_blew_up_has_no_difference() -> None:
    assert LIMIT is not None
    problem: dict[str, Any] = {
        "dt": 1.5 * LIMIT.dt,
        "force": True,
        "throw": False,
        "steps": 150,
        "initial": noise(GRAPH.cells, 3),
    }
    rows = compare(["crank-nicolson", "euler"], MESH, **problem).table()
    assert rows[1].l2_difference is None
    assert rows[1].blew_up_at > 10


def test_a_comparison_without_schemes_is_refused() -> None:
    with pytest.raises(InputError, match="there is no scheme to compare"):
        compare([], MESH)


def test_a_time_of_more_steps_than_a_run_can_take_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^a run over a time of 1 takes 1e\+300 steps of 1e-300, and at most 1e\+12 are allowed$"
    ):
        simulate("euler", MESH, dt=1e-300, end_time=1.0)
