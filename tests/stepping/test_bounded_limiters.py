"""Limiters φ(r, c) in cells of any shape: the formula, its bounds, and lines of cells as a special case."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import sympy as sp
from hypothesis import given

import fluxforge as ff
from fluxforge.errors import MeshError
from fluxforge.expression import evaluate
from fluxforge.mesh import (
    Curl,
    Dirichlet,
    DualGraph,
    Neumann,
    Periodic,
    dual,
    equilateral,
    jittered,
    reference_step,
    resolve,
    squares,
)
from fluxforge.scheme import (
    EULER,
    LIMITERS,
    Hop,
    Scheme,
    SchemeBuilder,
    find,
    integrate,
    limiter_of,
    linear_stages,
    unbounded_space,
)
from fluxforge.scheme import transport as module
from fluxforge.scheme.limiters import C, Q, R
from fluxforge.stepping import general_stepper
from moved_graphs import orthogonal, renumbered, shifted, the_other_way_round, turned
from strategies import few, seeds
from tetrahedra import six_tetrahedra
from transport_rows import ALONG, advance, averages, bump, on_row, row

ADVECTION = find("upwind").equation
VORTEX = {"velocity": Curl("sin(pi*x)*sin(pi*y) + 0.3*x - 0.2*y")}
TAKEN = ("van-leer", "cfl-superbee", "discovered-ramp", "discovered-downwind")


def some(*names: str, rest: tuple[str, ...]) -> pytest.MarkDecorator:
    """A test of some limiters, and of the rest in the slow tests."""
    slow = [pytest.param(name, marks=pytest.mark.slow) for name in rest]
    return pytest.mark.parametrize("name", [*names, *slow])


def take(scheme: Scheme, graph: DualGraph, u: np.ndarray, dt: float, steps: int = 1, **values: object) -> np.ndarray:
    """Steps of a scheme that may have no name."""
    parameters = values.pop("parameters", VORTEX)
    step = general_stepper(scheme, graph, dt=dt, parameters=parameters, source=np.zeros(len(u)), dtype="float64")  # type: ignore[arg-type]
    return np.asarray(step.rollout(u, steps))


def courant_step(graph: DualGraph, parameters: dict) -> float:
    return reference_step(ADVECTION, graph, parameters)


def plain_step(graph: DualGraph, u: np.ndarray, phi: sp.Expr, dt: float, parameters: dict) -> np.ndarray:
    """One step with forward Euler, face by face, as the module's docstring says; all walls are held at 0."""
    a = resolve(ADVECTION, graph, parameters).slots["velocity_n"]
    legs = graph.legs()
    d = np.stack([legs["d_x"], legs["d_y"]], axis=-1)
    around = np.concatenate([u, np.zeros(graph.ghosts)])[graph.slot_node]
    gradient = np.array([
        np.linalg.lstsq(d[i] / legs["delta"][i][:, None], (around[i] - u[i]) / legs["delta"][i], rcond=None)[0]
        for i in range(graph.cells)
    ])  # fmt: skip
    low, high = np.minimum(u, around.min(axis=1)), np.maximum(u, around.max(axis=1))
    flow = a * legs["A"] * dt
    leaving = np.maximum(flow, 0).sum(axis=1) / graph.V
    # What enters from a neighbour leaves that one; through a wall comes 0.
    out = [(i, k, j) for i in range(graph.cells) for k, j in enumerate(graph.slot_node[i]) if flow[i, k] > 0]
    r, q, c = np.empty((3, len(out)))
    for at, (i, k, j) in enumerate(out):
        rise = around[i, k] - u[i]
        r[at], c[at] = 2 * gradient[i] @ d[i, k] / rise - 1, flow[i, k] / graph.V[i]
        # A ghost has its owner's gradient.
        q[at] = 2 * gradient[j if j < graph.cells else i] @ d[i, k] / rise - 1
    limited = np.broadcast_to(evaluate(phi, {R: r, Q: q, C: c}, np), r.shape)
    new = u.copy()
    for at, (i, k, j) in enumerate(out):
        e = 0.5 * (1 - c[at]) * limited[at] * (around[i, k] - u[i])
        room = (1 - leaving[i]) / leaving[i]
        e = min(max(e, room * (u[i] - high[i])), room * (u[i] - low[i]))
        new[i] -= flow[i, k] * (u[i] + e) / graph.V[i]
        if j < graph.cells:
            new[j] += flow[i, k] * (u[i] + e) / graph.V[j]
    return new


@cache
def triangles(seed: int = 3, n: int = 6) -> tuple[DualGraph, np.ndarray]:
    graph = dual(jittered(n, 0.2, seed), Dirichlet(0.0))
    return graph, np.random.default_rng(seed).random(graph.cells)


@pytest.mark.parametrize("name", TAKEN)
def test_a_step_is_that_of_a_plain_loop_over_faces(name: str) -> None:
    graph, u = triangles()
    dt = 0.6 * courant_step(graph, VORTEX)
    wanted = plain_step(graph, u, LIMITERS[name].phi, dt, VORTEX)
    assert np.abs(take(find(f"bounded-{name}"), graph, u, dt) - wanted).max() < 1e-12
    assert np.abs(wanted - take(find("upwind"), graph, u, dt)).max() > 0.02


def wrong_sign(state: object, end: str, *others: object) -> sp.Expr:
    return -RIGHT(state, end, *others)


def half(state: object, end: str, *others: object) -> sp.Expr:
    return RIGHT(state, end, *others) / 2


def other_cell(state: object, end: str, *others: object) -> sp.Expr:
    return RIGHT(state, "N" if end == "P" else "P", *others)


RIGHT = module.extrapolate_difference


@pytest.mark.parametrize(
    "fault", [wrong_sign, pytest.param(half, marks=pytest.mark.slow), pytest.param(other_cell, marks=pytest.mark.slow)]
)
def test_a_wrong_sign_factor_or_upwind_cell_of_r_is_detected(fault: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, u = triangles()
    dt = 0.6 * courant_step(graph, VORTEX)
    wanted = plain_step(graph, u, LIMITERS["discovered-ramp"].phi, dt, VORTEX)
    monkeypatch.setattr(module, "extrapolate_difference", fault)
    assert np.abs(take(find("bounded-discovered-ramp"), graph, u, dt) - wanted).max() > 1e-3


@pytest.mark.parametrize("courant", [0.4, 0.9])
@some("cfl-superbee", "discovered-downwind", rest=("van-leer", "discovered-ramp", "superbee-ssp2"))
def test_on_a_row_it_is_the_scheme_of_lines_of_cells(name: str, courant: float) -> None:
    n = 30
    u = np.concatenate([np.zeros(3), np.random.default_rng(1).random(n - 8).round(1), np.zeros(5)])
    courant = courant / 2 if "ssp2" in name else courant
    rows = [advance(each, on_row(n), u, courant / n, 2) for each in (name, f"bounded-{name}")]
    # r is a quotient of differences of numbers up to 1, and differences of round-off have fluxes as small.
    assert np.abs(rows[0] - rows[1]).max() < 1e-12
    assert np.abs(rows[0] - u).max() > 0.1


@some("van-leer", "discovered-ramp", rest=("cfl-superbee", "discovered-downwind"))
def test_on_squares_the_value_behind_a_cell_is_that_of_the_cell_there(name: str) -> None:
    """In oblique flow r is that of the lines; in flow along the lines the cut changes nothing either."""
    walls = {"left": Periodic("right"), "right": Periodic("left"), "bottom": Periodic("top"), "top": Periodic("bottom")}
    graph = dual(squares(6), walls)
    u = np.random.default_rng(2).random(graph.cells)
    free = integrate(EULER, ADVECTION, unbounded_space(LIMITERS[name]))
    oblique = {"velocity": (0.8, -0.5)}
    wanted = take(find(name), graph, u, 0.05, parameters=oblique)
    assert np.abs(take(free, graph, u, 0.05, parameters=oblique) - wanted).max() < 1e-12
    wanted = take(find(name), graph, u, 0.1, parameters=ALONG)
    assert np.abs(take(find(f"bounded-{name}"), graph, u, 0.1, parameters=ALONG) - wanted).max() < 1e-12


def excess_over_bounds(graph: DualGraph, u: np.ndarray, new: np.ndarray) -> float:
    """How far new values lie outside those of a cell and its neighbours; walls are held at 0."""
    around = np.concatenate([u, np.zeros(graph.ghosts)])[graph.slot_node]
    low, high = np.minimum(u, around.min(axis=1)), np.maximum(u, around.max(axis=1))
    return float(np.maximum(low - new, new - high).max())


@given(seed=seeds)
@few(2)
@some(*TAKEN[1:], "superbee-ssp3", rest=("ultrabee",))
def test_no_cell_leaves_the_range_of_its_neighbours(name: str, seed: int) -> None:
    """Up to the Courant step, whatever the field; each stage of a method of three reaches one neighbour further."""
    graph, u = triangles(seed % 1000)
    u = np.where(u < 0.5, u.round(), u)
    new = take(find(f"bounded-{name}"), graph, u, courant_step(graph, VORTEX))
    # Sums of a few terms up to 1 are rounded, and the discrete divergence is round-off.
    assert (
        excess_over_bounds(graph, u, new) < 1e-14
        if "ssp" not in name
        else -1e-14 <= new.min() <= new.max() <= 1 + 1e-14
    )


def test_no_tetrahedron_leaves_the_range_of_its_neighbours() -> None:
    graph = six_tetrahedra()
    along = {"velocity": (1.0, 0.4, 0.7)}
    for seed in range(5):
        u = np.random.default_rng(seed).random(graph.cells)
        scheme = find("bounded-discovered-ramp", dimension=3)
        new = take(scheme, graph, u, courant_step(graph, along), parameters=along)
        assert excess_over_bounds(graph, u, new) < 1e-14


@some("discovered-ramp", rest=("cfl-superbee", "discovered-downwind"))
def test_without_the_cut_the_bounds_are_left(name: str) -> None:
    """What holds on lines of cells does not hold on triangles by itself, and the measurement can fail."""
    graph, u = triangles()
    free = integrate(EULER, ADVECTION, unbounded_space(LIMITERS[name]))
    assert excess_over_bounds(graph, u, take(free, graph, u, 0.9 * courant_step(graph, VORTEX))) > 0.05


def test_exchanged_bounds_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, u = triangles()
    rises = module.slope_round

    def exchanged(*arguments: object) -> object:
        stage = rises(*arguments)  # type: ignore[arg-type]
        outputs = dict(stage.outputs)
        outputs["rise"], outputs["fall"] = outputs["fall"], outputs["rise"]
        return type(stage)(stage.messages, outputs)

    monkeypatch.setattr(module, "slope_round", exchanged)
    new = take(find("bounded-discovered-ramp"), graph, u, 0.9 * courant_step(graph, VORTEX))
    assert excess_over_bounds(graph, u, new) > 0.01


@given(seed=seeds)
@few(2)
@pytest.mark.parametrize("name", ["van-leer-ssp2", "discovered-ramp"])
def test_rigid_motion_and_the_order_of_cells_change_nothing(name: str, seed: int) -> None:
    graph = dual(jittered(6, 0.2, seed % 100), Neumann())
    draw = np.random.default_rng(seed)
    u, order, velocity = draw.random(graph.cells), draw.permutation(graph.cells), draw.normal(size=2)
    Q = orthogonal(2, seed % 97)
    scheme, dt = find(f"bounded-{name}"), 0.013
    wanted = take(scheme, graph, u, dt, 2, parameters={"velocity": tuple(velocity)})
    moved = {
        "order": (renumbered(graph, order), u[order], velocity, wanted[order]),
        "sides": (the_other_way_round(graph), u, velocity, wanted),
        "turn": (turned(graph, Q), u, Q @ velocity, wanted),
        "shift": (shifted(graph, draw.normal(size=2)), u, velocity, wanted),
    }
    for what, (other, start, along, expected) in moved.items():
        after = take(scheme, other, start, dt, 2, parameters={"velocity": tuple(along)})
        # φ has slopes up to 32/c: rounded values of r are that much off.
        assert np.abs(after - expected).max() < 1e-11, what


@pytest.mark.parametrize("name", [*TAKEN, "van-leer-ssp2"])
def test_what_cells_hold_is_conserved_and_constants_are_kept(name: str) -> None:
    graph = dual(jittered(6, 0.2, 3), Neumann())
    u = np.random.default_rng(1).random(graph.cells)
    closed = {"velocity": Curl("sin(pi*x)*sin(pi*y)")}
    dt = 0.5 * courant_step(graph, closed)
    new = take(find(f"bounded-{name}"), graph, u, dt, 5, parameters=closed)
    assert abs(graph.V @ (new - u)) < 1e-14
    assert np.abs(new - u).max() > 0.05
    flat = np.full(graph.cells, 0.7)
    assert np.abs(take(find(f"bounded-{name}"), graph, flat, dt, 5, parameters=closed) - flat).max() < 1e-14


def inner_cells(graph: DualGraph, rings: int) -> np.ndarray:
    """Cells that are more than so many faces away from the walls."""
    near = np.any(graph.slot_node >= graph.cells, axis=1)
    for _ in range(rings):
        near = near | np.any(near[np.minimum(graph.slot_node, graph.cells - 1)], axis=1)
    return ~near


@some("van-leer-ssp2", rest=("superbee-ssp3",))
def test_linear_fields_move_exactly_where_faces_lie_half_way_between_centroids(name: str) -> None:
    """φ(1) = 1 on equilateral triangles; a factor other than ½ before φ would show."""
    graph, a = dual(equilateral(16), Neumann()), np.array([0.7, -0.4])
    u = graph.x @ np.array([1.0, -2.0])
    dt = 0.4 * courant_step(graph, {"velocity": tuple(a)})
    new = take(find(f"bounded-{name}"), graph, u, dt, parameters={"velocity": tuple(a)})
    inside = inner_cells(graph, 6)
    assert inside.sum() > 30
    assert np.abs(new - (u - dt * (a @ np.array([1.0, -2.0]))))[inside].max() < 1e-14
    upwind = take(find("upwind"), graph, u, dt, parameters={"velocity": tuple(a)})
    assert np.abs(new - upwind)[inside].max() > 1e-3


def test_triangles_run_by_the_name_of_the_limiter_and_say_what_was_run() -> None:
    mesh = jittered(6, 0.2, 1)
    given = {"equation": "advection", "parameters": {"velocity": (1.0, 0.3)}, "initial": "x < 0.4", "steps": 3}
    by_name = ff.simulate("discovered-ramp", mesh, **given)
    assert by_name.scheme == "bounded-discovered-ramp"
    assert by_name.notes == (
        "discovered-ramp: the scheme needs lines of cells through opposite faces, which this mesh does not have; "
        "bounded-discovered-ramp was used instead",
    )
    np.testing.assert_array_equal(by_name.final, ff.simulate("bounded-discovered-ramp", mesh, **given).final)
    on_squares = ff.simulate("discovered-ramp", squares(6), **given)
    assert (on_squares.scheme, on_squares.notes) == ("discovered-ramp", ())


def test_a_stepper_by_name_takes_triangles_too() -> None:
    graph, u = triangles()
    steps = [
        ff.stepper(name, graph, 1e-3, equation="advection", parameters=VORTEX)(u)
        for name in ("van-leer", "bounded-van-leer")
    ]
    np.testing.assert_array_equal(*steps)


def test_formulas_of_ones_own_along_lines_are_refused_on_triangles() -> None:
    own = SchemeBuilder().stage({"z": (Hop.LINE, "T_B - T_P")}, {"T_new": "T + dt*z"}).build("own")
    assert linear_stages(own) is not None
    with pytest.raises(MeshError, match="opposite"):
        ff.simulate(own, jittered(4, 0.2, 1), steps=1, dt=1e-4, force=True)


def test_a_bump_on_triangles_errs_less_than_with_upwind_and_its_error_falls() -> None:
    graph, given = dual(jittered(48, 0.2, 0), Neumann()), {"parameters": {"velocity": (1.0, 1.0)}}
    errors = []
    for n in (6, 12, 24, 48):
        # A bump over n² cells has the errors that it has on a mesh of n²: one compilation serves all sizes.
        x = graph.x * 48 / n
        steps = round(0.25 * n / 0.15)
        dt = 0.25 / steps * n / 48
        start, end = (np.exp(-60 * ((x - 0.35 - shift) ** 2).sum(axis=1)) for shift in (0.0, 0.25))
        new = take(find("bounded-discovered-ramp"), graph, start, dt, steps, **given)
        errors.append(float(graph.V @ np.abs(new - end)) / n**2)
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    # With forward Euler the part of the flux with c is that of flow along d alone: first order on triangles in the end.
    # 1.48, 1.40, 1.18 were measured.
    assert orders.min() > 0.9, orders
    assert orders.mean() > 1.2, orders
    upwind = take(find("upwind"), graph, start, dt, steps, **given)
    assert errors[-1] < float(graph.V @ np.abs(upwind - end)) / 48**2 / 5


@pytest.mark.parametrize("name", ["discovered-ramp", "bounded-discovered-ramp"])
def test_a_flow_that_turns_back_is_taken_at_the_middle_of_a_step(name: str) -> None:
    """The centre of a bump returns; with the flow at the beginning of each step it would end Δt further on."""
    n = 40
    run = ff.simulate(
        name,
        row(n),
        equation="advection",
        parameters={"velocity": ("cos(pi*t/0.5)", "0")},
        initial=averages(bump, n),
        dt=0.4 / n,
        end_time=0.5,
    )
    centre = [float(u @ run.graph.x[:, 0] / u.sum()) for u in (run.fields[0], run.final)]
    assert np.abs(run.fields[0] - run.fields[len(run.fields) // 2]).max() > 0.5
    assert abs(centre[1] - centre[0]) < 0.05 * run.dt


@pytest.mark.parametrize(("wave", "left"), [((2, 1), 0.0), ((1, 0), -1 / 3)])
def test_what_is_left_of_forward_eulers_antidiffusion_on_equilateral_triangles(
    wave: tuple[int, int], left: float
) -> None:
    """With φ = 1, over ½ Δt |a|², for flow along the wave vector: parallel to a face, and at right angles to one."""
    n = 24
    walls = {"left": Periodic("right"), "right": Periodic("left"), "bottom": Periodic("top"), "top": Periodic("bottom")}
    graph = dual(equilateral(n), walls)
    k = 2 * np.pi * (wave[0] * np.array([1.0, -1 / np.sqrt(3)]) + wave[1] * np.array([0.0, 2 / np.sqrt(3)]))
    along = {"velocity": tuple(k / np.linalg.norm(k))}
    dt = 0.5 * courant_step(graph, along)
    step = integrate(EULER, ADVECTION, unbounded_space(limiter_of("one", 1 + 0 * R)))
    phase = np.exp(1j * graph.x @ k)
    # Cells that point up and down alternate in number; each kind has its own amplitude.
    kinds = [np.arange(graph.cells) % 2 == which for which in range(2)]
    moved = [
        take(step, graph, (phase * own).real, dt, parameters=along)
        + 1j * take(step, graph, (phase * own).imag, dt, parameters=along)
        for own in kinds
    ]
    matrix = np.array([[(each / phase)[own].mean() for each in moved] for own in kinds])
    factors = np.linalg.eigvals(matrix)
    factor = factors[np.argmin(np.abs(factors - np.exp(-1j * np.linalg.norm(k) * dt)))]
    # Waves of 12 and 24 cells: what follows in the expansion is (k δ)² ≈ 0.1 of the next coefficient.
    assert -2 * np.log(abs(factor)) / (np.linalg.norm(k) * dt) ** 2 == pytest.approx(left, abs=0.03)
