"""Transport with known solutions: rotation, LeVeque's deformational flow, shocks and fans of Burgers' equation."""

from collections.abc import Callable

import numpy as np

from fluxforge._types import CellField
from fluxforge.bench._rows import (
    Row,
    Sizes,
    add_orders,
    cell_means,
    front_position,
    relative_l1,
    row_of_squares,
    run_row,
    total_variation,
)
from fluxforge.bench._tracers import DEFORMATION, DEFORMATION_PERIOD, ROTATED_PROFILES, ROTATION, TRACERS, Profile
from fluxforge.mesh._boundary import Inflow
from fluxforge.mesh._generate import right_triangles, squares
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._norms import relative_l2, relative_max
from fluxforge.stepping._run import simulate
from fluxforge.stepping._simulation import Simulation

ON_SQUARES = ("upwind", "minmod-ssp2", "van-leer-ssp2", "superbee-ssp2")
ON_TRIANGLES = ("upwind", "barth-jespersen-ssp2")
BURGERS = ("godunov", "rusanov", "engquist-osher", "minmod-ssp2")
LEFT, RIGHT = 1.2, 0.2
SHOCK_FROM, SHOCK_TO, FAN_TIME = 0.2, 0.6, 0.4


def rotation(sizes: Sizes) -> list[Row]:
    """A cone and a slotted cylinder, rotated once about the centre; the exact solution is the initial field."""
    n = sizes.rotation
    # So that there are about as many triangles as squares.
    half = max(2, round(n / np.sqrt(2)))
    meshes = (("squares", squares(n), ON_SQUARES), ("right", right_triangles(half), ON_TRIANGLES))
    return [
        _rotation_row(name, profile, scheme, family, mesh)
        for name, profile in ROTATED_PROFILES.items()
        for family, mesh, schemes in meshes
        for scheme in schemes
    ]


def _rotation_row(name: str, profile: Profile, scheme: str, family: str, mesh: Mesh) -> Row:
    initial = cell_means(mesh, profile)
    run = simulate(
        scheme,
        mesh,
        equation="advection",
        parameters={"velocity": ROTATION},
        initial=initial,
        end_time=1.0,
        save_every=1.0,
    )
    return _tracer_row(f"rotation, {name}", family, run, initial, relative_l1(run.graph, run.final, initial), "L1")


def _tracer_row(problem: str, family: str, run: Simulation, initial: CellField, error: float, norm: str) -> Row:
    u, graph = run.final, run.graph
    before = total_variation(graph, initial)
    return run_row(
        run,
        problem,
        family,
        error=error,
        norm=f"relative {norm}",
        error_max=relative_max(u, initial),
        minimum=float(u.min()),
        maximum=float(u.max()),
        below=max(0.0, float(initial.min() - u.min())),
        above=max(0.0, float(u.max() - initial.max())),
        variation=total_variation(graph, u) / before if before else None,
    )


def deformation(sizes: Sizes) -> list[Row]:
    """LeVeque's swirl, ψ = sin²πx sin²πy cos(πt/T)/π with T = 1.5, after which tracers have their initial values."""
    return [
        deformation_row(name, profile, scheme, sizes.deformation)
        for name, profile in TRACERS.items()
        for scheme in ("upwind", "van-leer-ssp2")
    ]


def deformation_row(name: str, profile: Profile, scheme: str, n: int) -> Row:
    """The row of a tracer in the deformational flow on n × n squares after one period."""
    mesh = squares(n)
    initial = cell_means(mesh, profile)
    run = simulate(
        scheme,
        mesh,
        equation="advection",
        parameters={"velocity": DEFORMATION},
        initial=initial,
        # |a_x| + |a_y| is at most 1.3, so that the Courant number is at most 0.65.
        dt=0.5 / n,
        end_time=DEFORMATION_PERIOD,
        save_every=DEFORMATION_PERIOD,
    )
    error = relative_l2(run.final, initial, run.graph.V)
    return _tracer_row(f"deformation, {name}", "squares", run, initial, error, "L2")


def burgers(sizes: Sizes) -> list[Row]:
    """A shock from 1.2 to 0.2, which moves with the speed ½(1.2 + 0.2), and a transonic rarefaction from −1 to 1."""
    problems: tuple[Callable[[str, int], Row], ...] = (shock_row, fan_row)
    return [
        row
        for solve in problems
        for scheme in BURGERS
        for row in add_orders([solve(scheme, n) for n in sizes.burgers], dimension=1)
    ]


def _march_step(scheme: str, n: int, left: float, right: float, start: float, times: tuple[float, float]) -> Simulation:
    """Burgers' equation along a row of cells from a step function at x = `start`; `times`: end time, save_every."""
    at_end, save_every = times
    return simulate(
        scheme,
        row_of_squares(n),
        equation="burgers",
        initial=lambda x, y: np.where(x < start, left, right),
        boundary={"left": Inflow(left), "right": Inflow(right), "boundary": Inflow(0.0)},
        dt=0.5 / n / max(abs(left), abs(right)),
        end_time=at_end,
        save_every=save_every,
    )


def shock_row(scheme: str, n: int) -> Row:
    """The row of a shock: the measured speed is that of the point with u = ½(u_L + u_R) between two times."""
    run = _march_step(scheme, n, LEFT, RIGHT, 0.3, (SHOCK_TO, SHOCK_FROM))
    (first, last), (start, end) = run.fields[[1, -1]], run.times[[1, -1]]
    middle = 0.5 * (LEFT + RIGHT)
    speed = (front_position(last, middle) - front_position(first, middle)) / (end - start)
    exact = np.clip((0.3 + middle * end) * n - np.arange(n), 0, 1) * (LEFT - RIGHT) + RIGHT
    return _burgers_row("burgers, shock", run, exact, quantity="speed", measured=float(speed), exact_value=middle)


def fan_row(scheme: str, n: int) -> Row:
    """The row of a transonic rarefaction fan: the measured quantity is the largest jump between neighbouring cells.

    It is h/t in the exact solution, and of order 1 if the entropy condition is violated.
    """
    run = _march_step(scheme, n, -1.0, 1.0, 0.5, (FAN_TIME, FAN_TIME))
    corners = np.clip((np.arange(n + 1) / n - 0.5) / FAN_TIME, -1, 1)
    # The mean over a cell, by the trapezoidal rule; a kink inside a cell gives an error of at most h²/(8t) there.
    exact = 0.5 * (corners[1:] + corners[:-1])
    jump = float(np.diff(run.final).max())
    return _burgers_row(
        "burgers, transonic fan", run, exact, quantity="largest jump", measured=jump, exact_value=1 / n / FAN_TIME
    )


def _burgers_row(
    problem: str, run: Simulation, exact: CellField, *, quantity: str, measured: float, exact_value: float
) -> Row:
    u = run.final
    return run_row(
        run,
        problem,
        "row",
        error=float(np.abs(u - exact).mean()),
        norm="L1",
        quantity=quantity,
        measured=measured,
        exact=exact_value,
        minimum=float(u.min()),
        maximum=float(u.max()),
    )
