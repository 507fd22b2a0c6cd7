"""FiPy on the same squares with the same steps: conduction with a varying k, advection and diffusion, a Robin wall.

Both use backward Euler with Δt proportional to h², so that the error in time is of second order in h, too. Where both
programs assemble the same two-point fluxes, as problems state, their results should differ by round-off only.
"""

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy as sp
from scipy.optimize import brentq

from fluxforge._types import CellField
from fluxforge.bench._rows import Row, Sizes, add_orders, load_fipy, run_row
from fluxforge.expression._symbols import symbol
from fluxforge.mesh._boundary import Condition, Neumann, Robin, Value
from fluxforge.mesh._generate import squares
from fluxforge.mesh._norms import relative_l2
from fluxforge.pde._equation import CONDUCTION
from fluxforge.stepping._run import simulate

Exact = Callable[[np.ndarray, np.ndarray, float], np.ndarray]
# (fipy, mesh, unknown) ↦ FiPy's equation, and a function that is called with the new time before each step.
Peer = Callable[[Any, Any, Any], tuple[Any, Callable[[float], None]]]

K = "1 + x**2 + sin(3*y)/2"
VELOCITY, DIFFUSIVITY = (1.0, 0.5), 0.01
HEAT_TRANSFER = 2.0


@dataclass(frozen=True)
class Problem:
    """A problem for both programs: our arguments, the exact solution, the end time, and FiPy's equation."""

    name: str
    equation: str
    parameters: Mapping[str, Any]
    exact: Exact
    end_time: float
    source: Value
    boundary: Mapping[str, Condition | float]
    peer: Peer


def conduction(sizes: Sizes) -> list[Row]:
    """ρc ∂T/∂t = ∇·(k∇T) + S with k = 1 + x² + ½ sin 3y and the source of T = e^{−t} sin πx sin πy.

    Both programs use the harmonic mean of k at faces.
    """
    return _study(_conduction(), "two-point-implicit", sizes)


def advection_diffusion(sizes: Sizes) -> list[Row]:
    """A Gaussian that is transported with the velocity (1, ½) and diffuses with D = 0.01.

    Both programs use central, upwind and exponentially fitted fluxes; the last are ExponentialConvectionTerm in FiPy
    and scharfetter-gummel here.
    """
    studies = (_study(_advection_diffusion(term), f"{name}-implicit", sizes) for name, term in CONVECTION.items())
    return [row for study in studies for row in study]


def robin_wall(sizes: Sizes) -> list[Row]:
    """∂T/∂t = ∇²T with the Robin wall −∂T/∂x = 2 T at x = 1: T = e^{−μ²t} cos μx with μ tan μ = 2."""
    return _study(_robin_wall(), "implicit", sizes)


def _study(problem: Problem, scheme: str, sizes: Sizes) -> list[Row]:
    return add_orders([_row(problem, scheme, n) for n in sizes.fipy])


def _row(problem: Problem, scheme: str, n: int) -> Row:
    # Eight steps on 8 × 8 squares; their number grows like 1/h².
    steps = max(2, round(8 * (n / 8) ** 2))
    run = simulate(
        scheme,
        squares(n),
        equation=problem.equation,
        parameters=problem.parameters,
        initial=lambda x, y: problem.exact(x, y, 0.0),
        source=problem.source,
        boundary=problem.boundary,
        dt=problem.end_time / steps,
        steps=steps,
        save_every=steps,
    )
    x, y = run.graph.x.T
    exact = problem.exact(x, y, problem.end_time)
    error = relative_l2(run.final, exact, run.graph.V)
    row = run_row(run, problem.name, "squares", error=error, norm="relative L2")
    if (fipy := load_fipy()) is None:
        return row
    with warnings.catch_warnings():
        # FiPy uses deprecated names of NumPy and SciPy.
        warnings.simplefilter("ignore")
        theirs, seconds = _fipy_run(fipy, problem, n, steps)
    return replace(
        row,
        fipy_error=relative_l2(theirs, exact, run.graph.V),
        fipy_difference=float(np.abs(theirs - run.final).max()),
        fipy_seconds_per_step=seconds,
    )


def _fipy_run(fipy: Any, problem: Problem, n: int, steps: int) -> tuple[CellField, float]:
    """FiPy's last field, its cells in our order (row by row from below), and its seconds per step.

    The solver is sparse LU, since FiPy's iterative solvers stop long before round-off. The first step, in which FiPy
    builds its matrices, is not timed.
    """
    mesh = fipy.Grid2D(nx=n, ny=n, dx=1.0 / n, dy=1.0 / n)
    x, y = (np.asarray(part.value) for part in (mesh.x, mesh.y))
    u = fipy.CellVariable(mesh=mesh, value=problem.exact(x, y, 0.0), hasOld=True)
    equation, prepare = problem.peer(fipy, mesh, u)
    dt, solver = problem.end_time / steps, fipy.LinearLUSolver()
    start = time.perf_counter()
    for k in range(steps):
        if k == 1:
            start = time.perf_counter()
        u.updateOld()
        prepare((k + 1) * dt)
        equation.solve(var=u, dt=dt, solver=solver)
    return np.array(u.value), (time.perf_counter() - start) / (steps - 1)


def _change_nothing(time: float) -> None:
    """The function before each step for problems whose data do not depend on time."""


def _conduction() -> Problem:
    x, y, t = symbol("x"), symbol("y"), symbol("t")
    T = sp.exp(-t) * sp.sin(sp.pi * x) * sp.sin(sp.pi * y)
    k = 1 + x**2 + sp.sin(3 * y) / 2
    exact = sp.lambdify((x, y, t), T, "numpy")
    source = sp.lambdify((x, y, t), CONDUCTION.strong(T, 2, {"k": k, "rhoc": sp.Integer(1)}), "numpy")
    conductivity = sp.lambdify((x, y), k, "numpy")

    def peer(fipy: Any, mesh: Any, u: Any) -> tuple[Any, Callable[[float], None]]:
        X, Y = np.asarray(mesh.x.value), np.asarray(mesh.y.value)
        u.constrain(0.0, mesh.exteriorFaces)
        S = fipy.CellVariable(mesh=mesh, value=0.0)
        k = fipy.CellVariable(mesh=mesh, value=conductivity(X, Y))
        equation = fipy.TransientTerm() == fipy.DiffusionTerm(coeff=k.harmonicFaceValue) + S
        return equation, lambda time: S.setValue(source(X, Y, time))

    walls: dict[str, Condition | float] = dict.fromkeys(("left", "right", "bottom", "top"), 0.0)
    return Problem(
        "varying k", "conduction", {"k": K, "rhoc": 1.0}, exact, 0.1, lambda x, y, t: source(x, y, t), walls, peer
    )


CONVECTION: Mapping[str, str] = MappingProxyType(
    {
        "central": "CentralDifferenceConvectionTerm",
        "scharfetter-gummel": "ExponentialConvectionTerm",
        "upwind": "UpwindConvectionTerm",
    }
)


def _moving_gaussian(x: np.ndarray, y: np.ndarray, t: float) -> np.ndarray:
    """A Gaussian with standard deviation 0.06 around (0.35, 0.4) at t = 0; below 1e-6 on the walls until t = 0.15."""
    spread = 0.06**2 + 2 * DIFFUSIVITY * t
    squared = (x - 0.35 - VELOCITY[0] * t) ** 2 + (y - 0.4 - VELOCITY[1] * t) ** 2
    return np.asarray(0.06**2 / spread * np.exp(-squared / (2 * spread)))


def _advection_diffusion(term: str) -> Problem:
    def peer(fipy: Any, mesh: Any, u: Any) -> tuple[Any, Callable[[float], None]]:
        u.constrain(0.0, mesh.exteriorFaces)
        carried = getattr(fipy, term)(coeff=VELOCITY)
        return fipy.TransientTerm() + carried == fipy.DiffusionTerm(coeff=DIFFUSIVITY), _change_nothing

    walls: dict[str, Condition | float] = dict.fromkeys(("left", "right", "bottom", "top"), 0.0)
    parameters = {"velocity": VELOCITY, "D": DIFFUSIVITY}
    return Problem("advection-diffusion", "advection-diffusion", parameters, _moving_gaussian, 0.15, 0.0, walls, peer)


def _robin_wall() -> Problem:
    mu = brentq(lambda mu: mu * math.tan(mu) - HEAT_TRANSFER, 0.1, 1.5)

    def exact(x: np.ndarray, y: np.ndarray, t: float) -> np.ndarray:
        return np.asarray(math.exp(-(mu**2) * t) * np.cos(mu * x))

    def peer(fipy: Any, mesh: Any, u: Any) -> tuple[Any, Callable[[float], None]]:
        """At the wall, the resistances of half a cell and of the heat transfer are in series."""
        right = mesh.facesRight
        D = fipy.FaceVariable(mesh=mesh, value=1.0)
        D.setValue(0.0, where=right)
        through = 1 / (0.5 * mesh.dx + 1 / HEAT_TRANSFER)
        loss = (right * through * mesh.faceNormals).divergence
        return fipy.TransientTerm() == fipy.DiffusionTerm(coeff=D) - fipy.ImplicitSourceTerm(
            coeff=loss
        ), _change_nothing

    walls: dict[str, Condition | float] = {side: Neumann() for side in ("left", "bottom", "top")}
    walls["right"] = Robin(HEAT_TRANSFER)
    return Problem("robin wall", "heat", {"alpha": 1.0}, exact, 0.2, 0.0, walls, peer)
