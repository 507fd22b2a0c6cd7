"""Sources, walls and parameters that change in time: each stage of every integrator sees them at its own time."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import jaxtyping
import numpy as np
import pytest
import sympy as sp

import fluxforge as ff
from fluxforge.errors import InputError
from fluxforge.mesh import Mesh, squares
from fluxforge.scheme import Scheme, find
from fluxforge.stepping import simulate


@pytest.fixture(autouse=True)
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the type checks of every call: there are thousands of steps on the host here."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


START, END = 0.3, 1.3
COUNTS = (8, 16, 32, 64, 128)
# u = (1 + x + 2y) cos 5t is linear in space, where the two-point flux on squares makes no error: what is left is that
# of the time integrator. K = 0.05.
EXACT = "(1 + x + 2*y)*cos(5*t)"
WALLS = {
    "left": ff.Dirichlet("(1 + 2*y)*cos(5*t)"),
    "bottom": ff.Dirichlet("(1 + x)*cos(5*t)"),
    "top": ff.Neumann("2*cos(5*t)"),
    "right": ff.Robin(2.0, "(2 + 2*y + 0.025)*cos(5*t)"),
}
SOURCE = "-5*(1 + x + 2*y)*sin(5*t)"
ORDERS = {"euler": 1, "midpoint": 2, "rk4": 4, "rkl2-3": 2, "implicit": 1, "crank-nicolson": 2}


def errors(scheme: str | Scheme, counts: tuple[int, ...], **changes: object) -> np.ndarray:
    """The largest errors at the end of runs of so many steps."""
    problem = {"initial": "(1 + x + 2*y)*cos(1.5)", "source": SOURCE, "boundary": WALLS, "diffusivity": 0.05} | changes
    runs = [
        simulate(scheme, squares(2), start_time=START, end_time=END, dt=1.0 / n, force=True, **problem)  # type: ignore[arg-type]
        for n in counts
    ]
    assert all(run.times[-1] == END and run.steps == n for run, n in zip(runs, counts, strict=True))
    return np.array([run.error(EXACT).max for run in runs])


@pytest.mark.parametrize("scheme", [*ORDERS, pytest.param("rkl2-8", marks=pytest.mark.slow)])
def test_every_integrator_keeps_its_order_with_data_that_change_in_time(scheme: str) -> None:
    norms, order = errors(scheme, COUNTS), ORDERS.get(scheme, 2)
    rates = np.log2(norms[:-1] / norms[1:])
    assert abs(rates[-1] - order) < 0.1
    assert (np.abs(rates - order) < 0.3).all()
    assert norms[-1] < {1: 0.1, 2: 2e-3, 4: 1e-6}[order]


@pytest.mark.parametrize("scheme", ["midpoint", pytest.param("rk4", marks=pytest.mark.slow)])
def test_walls_and_sources_at_the_end_of_the_step_cost_the_order(scheme: str) -> None:
    built = find(scheme)
    naive = replace(built, stages=tuple(replace(stage, time=sp.Rational(1)) for stage in built.stages))
    norms = errors(naive, COUNTS)
    assert abs(np.log2(norms[-2] / norms[-1]) - 1.0) < 0.1


@pytest.mark.parametrize(("scheme", "order"), [("midpoint", 2), ("crank-nicolson", 2)])
def test_a_transfer_coefficient_may_change_in_time(scheme: str, order: int) -> None:
    outside = "(2 + 2*y)*cos(5*t) + 0.05/(2 + sin(3*t))*cos(5*t)"
    norms = errors(scheme, (5, 10, 20, 40), boundary=WALLS | {"right": ff.Robin("2 + sin(3*t)", outside)})
    assert abs(np.log2(norms[-2] / norms[-1]) - order) < 0.1


@pytest.mark.parametrize(
    ("scheme", "order"), [("midpoint", 2), ("crank-nicolson", 2), pytest.param("rk4", 4, marks=pytest.mark.slow)]
)
def test_parameters_that_change_in_time_are_taken_at_stage_times(scheme: str, order: int) -> None:
    # u = x² cos t with K = 0.1 + t/20: S = −x² sin t − 2 K cos t, and the second difference of x² is exact on a
    # row between insulated walls that hold the end's slope; walls at the faces are not, so both walls are Neumann.
    walls = {"left": ff.Neumann(), "right": ff.Neumann("2*cos(t)"), "top": ff.Neumann(), "bottom": ff.Neumann()}
    norms = []
    for n in (4, 8, 16, 32):
        run = simulate(
            scheme,
            squares(3),
            equation="conduction",
            parameters={"k": "0.1 + t/20"},
            initial="x**2",
            source="-x**2*sin(t) - 2*(0.1 + t/20)*cos(t)",
            boundary=walls,
            end_time=1.0,
            dt=1.0 / n,
            force=True,
        )
        norms.append(run.error("x**2*cos(t)").max)
    rates = np.log2(np.array(norms[:-1]) / norms[1:])
    assert abs(rates[-1] - order) < 0.15


def test_a_velocity_that_turns_carries_the_field_along_both_axes() -> None:
    def run(n: int) -> float:
        done = simulate(
            "midpoint",
            squares(8),
            equation="advection",
            parameters={"velocity": "(cos(t), sin(t))"},
            initial="x",
            source="-cos(t)*0",
            boundary=ff.Inflow("x - sin(t)"),
            end_time=0.5,
            dt=0.5 / n,
        )
        # x − ∫cos is carried without error inside; upwind at first-order walls sees g at the face, not at the cell.
        return float(np.abs(done.final - (done.graph.x[:, 0] - np.sin(0.5))).max())

    assert run(64) < 1.0 / 16 + 1e-12


@pytest.mark.parametrize(("scheme", "order"), [("euler", 1), ("midpoint", 2), ("crank-nicolson", 2)])
def test_a_source_of_the_unknown_is_a_reaction(scheme: str, order: int) -> None:
    # du/dt = −t u + sin t, u(0) = 1: against a fine run of another method.
    norms = []
    for n in COUNTS[:4]:
        run = simulate(
            scheme, squares(1), initial=1.0, source="-t*T + 0*x", boundary=ff.Neumann(), end_time=2.0, dt=2.0 / n
        )
        norms.append(abs(float(run.final[0]) - np.exp(-2.0)))
    rates = np.log2(np.array(norms[:-1]) / norms[1:])
    assert abs(rates[-1] - order) < 0.1


def test_a_logistic_source_gives_the_logistic_function() -> None:
    run = simulate(
        "rk4", squares(2), initial=0.1, source="2*T*(1 - T)", boundary=ff.Neumann(), dt=0.01, steps=100, force=True
    )
    # Fourth order: the error of a step is below (2 dt)^5 = 4e-9.
    assert np.abs(run.final - 1 / (1 + 9 * np.exp(-2.0))).max() < 100 * 4e-9


def test_data_that_do_not_change_give_the_same_field_on_either_way() -> None:
    plain = simulate("rk4", squares(4), initial="x", source=1.0, boundary=ff.Dirichlet(1.0), dt=1e-3, steps=30)
    slow = simulate(
        "rk4", squares(4), initial="x", source=lambda x, y, t: 1 + 0 * x, boundary=ff.Dirichlet(1.0), dt=1e-3, steps=30
    )
    # The same sums in another order.
    assert np.abs(plain.final - slow.final).max() < 1e-13


def test_a_function_and_a_formula_give_the_same_field() -> None:
    def source(x: np.ndarray, y: np.ndarray, t: float) -> np.ndarray:
        return np.asarray(x * np.cos(t) + y)

    one, two = (simulate("midpoint", squares(4), source=each, dt=1e-3, steps=20) for each in (source, "x*cos(t) + y"))
    # cos of NumPy and of XLA differ in the last digit.
    assert np.abs(one.final - two.final).max() < 1e-15


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": "1/(t - 0.3)"}, r"the source.*t = 0.3"),
        ({"source": "1/(t - 1.3)"}, r"the source.*t = 1.3"),
        (
            {"source": lambda x, y, t: x / (t - 0.5 if abs(t - 0.5) > 1e-12 else 0.0)},
            "the source is inf at .* at time 0.5",
        ),
        ({"source": "1/(T - T)"}, "the source"),
        ({"boundary": {"left": ff.Dirichlet("1/(t - 0.3)")}}, "the boundary condition of 'left'"),
        ({"end_time": 0.2}, "end_time 0.2 should be later than the time 0.3"),
        ({"steps": 5}, "steps and end_time"),
        ({"save_every": -0.5}, "save_every"),
        ({"initial": "t"}, "the initial field"),
    ],
)
def test_invalid_data_that_depend_on_time_are_refused_in_one_line(changes: dict[str, object], words: str) -> None:
    problem: dict[str, object] = {"start_time": 0.3, "end_time": 1.3, "dt": 0.1, "force": True, "scheme": "euler"}
    mesh: Mesh = squares(2)
    with pytest.raises(InputError, match=words) as caught:
        simulate(mesh=mesh, **(problem | changes))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.fixture
def single_by_default() -> Iterator[None]:
    """JAX as users find it: without 64-bit numbers unless a context asks for them."""
    jax.config.update("jax_enable_x64", False)
    yield
    jax.config.update("jax_enable_x64", True)


@pytest.mark.usefixtures("single_by_default")
@pytest.mark.parametrize(
    ("scheme", "options"),
    [
        ("euler", {"boundary": {"left": lambda x, y, t: 1 + np.sin(1e4 * t) + 0 * x}}),
        ("euler", {"source": lambda x, y, t: x + t}),
        ("euler", {"initial": "x", "parameters": {"alpha": "1 + t"}}),
        ("corrected-rk4", {"initial": "x", "equation": "conduction", "parameters": {"k": "1 + t*x"}}),
        ("euler", {"source": lambda x, y, t: x + t, "dtype": "float32"}),
    ],
)
def test_python_functions_of_time_are_in_double_precision_whatever_jax_is_set_to(
    scheme: str, options: dict[str, Any]
) -> None:
    final = ff.simulate(scheme, squares(20), steps=4, **options).final
    jax.config.update("jax_enable_x64", True)
    np.testing.assert_array_equal(final, ff.simulate(scheme, squares(20), steps=4, **options).final)
