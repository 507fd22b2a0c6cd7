"""Runs with Robin, periodic and inflow walls."""

import numpy as np
import pytest

import fluxforge as ff
from fluxforge.mesh import right_triangles, squares
from fluxforge.stepping import step_limit, step_matrix

TORUS = {"left": ff.Periodic("right"), "bottom": ff.Periodic("top")}


def test_periodic_advection_returns_to_its_initial_field_in_first_order() -> None:
    errors, mesh = [], _row(512)
    for waves in (8, 4, 2, 1):
        # A turn of each is one over 64, 128, 256 and 512 cells.
        run = ff.simulate(
            "rk4",
            mesh,
            equation="advection",
            parameters={"velocity": (1.0, 0.0)},
            initial=f"sin({2 * waves}*pi*x)",
            boundary=TORUS,
            dt=0.5 / 512,
            steps=1024 // waves,
        )
        errors.append(float(np.abs(run.final - run.fields[0]).max()))
    # Upwind: the amplitude falls by exp(−2π²/n) in one turn.
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert abs(rates[-1] - 1.0) < 0.05
    assert errors[-1] == pytest.approx(1 - np.exp(-2 * np.pi**2 / 512), rel=0.01)


def _row(n: int) -> ff.mesh.Mesh:
    """A row of n rectangles in the unit square."""
    mesh = squares(n)
    x = np.linspace(0.0, 1.0, n + 1)
    points = np.concatenate([np.stack([x, np.full(n + 1, y)], axis=1) for y in (0.0, 1.0)])
    k = np.arange(n)
    cells = np.stack([k, k + 1, k + n + 2, k + n + 1], axis=1)
    edges = {
        "left": np.array([[n + 1, 0]]),
        "right": np.array([[n, 2 * n + 1]]),
        "bottom": np.stack([k, k + 1], axis=1),
        "top": np.stack([k + n + 2, k + n + 1], axis=1),
    }
    return type(mesh)(points, cells, edges)


@pytest.mark.parametrize(("scheme", "equation"), [("rk4", "advection-diffusion"), ("euler", "burgers")])
def test_the_total_on_a_torus_is_kept_to_round_off(scheme: str, equation: str) -> None:
    name = "velocity" if equation == "advection-diffusion" else "direction"
    settings = {name: (1.0, 0.3)}
    run = ff.simulate(
        scheme,
        right_triangles(6),
        equation=equation,
        parameters=settings,
        initial="1 + sin(2*pi*x)*cos(2*pi*y)",
        boundary=TORUS,
        dt=1e-3,
        steps=50,
    )
    totals = run.fields @ run.graph.V
    # Each step rounds the total of 72 cells, of about 1.
    assert np.abs(totals - totals[0]).max() < 50 * 72 * np.finfo(float).eps
    assert np.abs(run.final - run.fields[0]).max() > 1e-3


def test_free_outflow_lets_a_field_leave_without_a_trace() -> None:
    run = ff.simulate(
        "euler",
        squares(10),
        equation="advection",
        parameters={"velocity": (1.0, 0.0)},
        initial=1.0,
        dt=0.1,
        steps=10,
    )
    # Nothing but 0 enters. At Courant number 1 upwind moves the field by one cell a step; 1 − Δt A/V is rounded.
    assert np.abs(run.final).max() < 10 * np.finfo(float).eps


def test_a_constant_stays_constant_between_inflow_of_it_and_free_outflow() -> None:
    for equation, name in (("advection", "velocity"), ("burgers", "direction"), ("traffic", "direction")):
        run = ff.simulate(
            "rk4" if equation == "advection" else "midpoint",
            squares(6),
            equation=equation,
            parameters={name: (1.0, 0.5)},
            initial=0.25,
            boundary=ff.Inflow(0.25),
            dt=0.02,
            steps=30,
        )
        # Thirty steps of four stages, each a sum of four fluxes.
        assert np.abs(run.final - 0.25).max() < 500 * np.finfo(float).eps


def test_a_shock_leaves_through_a_free_wall() -> None:
    # u = 1 enters on the left and pushes u = 0.2 out of the domain at the speed 0.6; the wall's own value never enters.
    run = ff.simulate(
        "euler",
        _row(50),
        equation="burgers",
        parameters={"direction": (1.0, 0.0)},
        initial=0.2,
        boundary={"left": 1.0, "right": 0.0},
        dt=0.01,
        steps=400,
    )
    assert np.abs(run.final - 1.0).max() < 1e-6


def test_the_stability_limit_counts_a_robin_wall() -> None:
    graph = ff.dual(squares(4), ff.Robin(5.0, 0.0))
    limit = step_limit(ff.scheme.find("euler"), graph)
    assert limit is not None
    values = np.linalg.eigvals(step_matrix(ff.scheme.find("euler"), graph, limit.dt).toarray())
    # The limit is found to five digits.
    assert np.abs(values).max() == pytest.approx(1.0, abs=1e-4)
    held = step_limit(ff.scheme.find("euler"), ff.dual(squares(4)))
    assert held is not None
    assert limit.dt > held.dt


def test_schemes_of_one_and_of_two_hops_see_the_same_robin_wall() -> None:
    walls = {"left": ff.Robin("1 + y", "2*y"), "right": 1.0, "top": ff.Neumann(0.3)}
    one, two = (
        ff.simulate(scheme, right_triangles(3), boundary=walls, source=1.0, dt=1e-3, steps=20)
        for scheme in ("midpoint", "two-hop")
    )
    # The same sums in another order, twenty steps.
    assert np.abs(one.final - two.final).max() < 1e-13
