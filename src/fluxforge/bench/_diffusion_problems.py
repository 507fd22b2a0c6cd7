"""Diffusion and reaction with known solutions: heat kernel, two layers, Fisher's wave, an anisotropic tensor."""

import math

import numpy as np
import sympy as sp

from fluxforge._types import CellField
from fluxforge.bench._rows import (
    Row,
    Sizes,
    add_orders,
    front_position,
    row_of_squares,
    run_row,
)
from fluxforge.expression._symbols import symbol
from fluxforge.mesh._boundary import Condition, Dirichlet, Neumann
from fluxforge.mesh._build import dual
from fluxforge.mesh._generate import jittered, squares
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._norms import relative_l2, relative_max
from fluxforge.mesh._parameters import fourier_step
from fluxforge.pde._equation import ANISOTROPIC
from fluxforge.stepping._run import simulate
from fluxforge.stepping._steady import overshoot, steady

KERNEL_START, KERNEL_TIME = 0.02, 0.005
K1, K2 = 1.0, 100.0
# Exact flux through two layers of thickness ½ in series.
LAYER_FLUX = 1 / (0.5 / K1 + 0.5 / K2)
LAYERS: dict[str, Condition | float] = {"left": 1.0, "right": 0.0, "bottom": Neumann(), "top": Neumann()}
# Length of the domain in units of √(D/r), and the times in units of 1/r between which the speed is measured.
FISHER_LENGTH, FISHER_FROM, FISHER_TO = 80.0, 15.0, 30.0
RATIO, DEGREES = 1000.0, 40.0
# End time and number of steps: 1e-4 of the time of slow diffusion over the unit square, 0.1 of that of fast diffusion.
BLOCK_TIME, BLOCK_STEPS = 1e-4, 10


def gaussian(x: np.ndarray, y: np.ndarray, t: float) -> np.ndarray:
    """The heat kernel of α = 1 around (0.45, 0.55), of age KERNEL_START and height 1 at t = 0."""
    age = KERNEL_START + t
    return np.asarray(KERNEL_START / age * np.exp(-((x - 0.45) ** 2 + (y - 0.55) ** 2) / (4 * age)))


def heat_kernel(sizes: Sizes) -> list[Row]:
    """∂T/∂t = ∇²T with the heat kernel as solution and as values on the walls.

    On squares with rk4 and Δt a fixed fraction of the Fourier step; on jittered triangles with the corrected flux,
    Crank–Nicolson and Δt proportional to h. Both errors are then of order 2.
    """
    finished: list[Row] = []
    for scheme, family in (("rk4", "squares"), ("corrected-crank-nicolson", "jittered")):
        numbers = sizes.heat_kernel if family == "squares" else sizes.heat_kernel[:4]
        finished += add_orders([_kernel_row(scheme, family, n) for n in numbers])
    return finished


def _kernel_row(scheme: str, family: str, n: int) -> Row:
    mesh = _mesh(family, n)
    dt = 0.9 * fourier_step(dual(mesh)) if family == "squares" else KERNEL_TIME / max(n // 4, 1)
    run = simulate(
        scheme,
        mesh,
        initial=lambda x, y: gaussian(x, y, 0.0),
        boundary=Dirichlet(gaussian),
        dt=dt,
        end_time=KERNEL_TIME,
        save_every=KERNEL_TIME,
    )
    x, y = run.graph.x.T
    exact = gaussian(x, y, KERNEL_TIME)
    return run_row(
        run,
        "heat-kernel",
        family,
        error=relative_l2(run.final, exact, run.graph.V),
        norm="relative L2",
        error_max=relative_max(run.final, exact),
    )


def two_layers(sizes: Sizes) -> list[Row]:
    """Field and flux of the steady state of two layers of thickness ½ with k = 1 and 100, between walls at 1 and 0."""
    return [_layer_row(scheme, sizes.layers) for scheme in ("two-point", "harmonic", "corrected", "arithmetic")]


def _layer_row(scheme: str, n: int) -> Row:
    state = steady(
        scheme,
        squares(n),
        equation="conduction",
        parameters={"k": lambda x, y: np.where(x < 0.5, K1, K2)},
        boundary=LAYERS,
    )
    graph, T = state.graph, state.field
    x = graph.x[:, 0]
    exact = np.where(x < 0.5, 1 - LAYER_FLUX * x / K1, LAYER_FLUX * (1 - x) / K2)
    entering = np.abs(graph.centre[:, 0]) < 1e-12
    flux = K1 * (graph.A * (1.0 - T[graph.owner]) / graph.delta)[entering].sum()
    return Row(
        problem="two-layers",
        scheme=scheme,
        mesh="squares",
        cells=graph.cells,
        error=relative_max(T, exact),
        norm="relative maximum",
        quantity="contact flux",
        measured=float(flux),
        exact=LAYER_FLUX,
    )


def fisher_wave(sizes: Sizes) -> list[Row]:
    """u_t = D u_xx + r u (1 − u) from a step function: the speed of u = ½ over √(Dr), which tends to 2.

    The convergence is slow, v(t) = 2 − 3/(2t) + 3√π/(2t^{3/2}) + … with t in units of 1/r (Bramson; Ebert and van
    Saarloos). `predicted` is the mean of the first two terms over the time of the measurement, and the error is the
    difference from it. The lattice adds h²/12, h in units of √(D/r).
    """
    return [_fisher_row(n) for n in sizes.fisher]


def predicted_fisher_speed(start: float, end: float) -> float:
    """The mean of 2 − 3/(2t) over t from `start` to `end`."""
    return 2 - 1.5 * math.log(end / start) / (end - start)


def _fisher_row(n: int) -> Row:
    run = simulate(
        "rk4",
        row_of_squares(n),
        equation="reaction-diffusion",
        parameters={"D": FISHER_LENGTH**-2, "r": 1.0},
        initial=f"x < {5 / FISHER_LENGTH}",
        boundary=Neumann(),
        dt_fraction=0.9,
        end_time=FISHER_TO,
        save_every=FISHER_FROM,
    )
    (_, first, last), (_, start, end) = run.fields, run.times
    moved = FISHER_LENGTH * (front_position(last, 0.5) - front_position(first, 0.5))
    speed, predicted = float(moved / (end - start)), predicted_fisher_speed(start, end)
    return run_row(
        run,
        "fisher",
        "row",
        error=abs(speed - predicted),
        norm="speed, from the predicted one",
        quantity="speed/√(Dr)",
        measured=speed,
        exact=2.0,
        predicted=predicted,
        minimum=float(last.min()),
        maximum=float(last.max()),
    )


def turned_tensor() -> tuple[tuple[float, float], tuple[float, float]]:
    """K = diag(1, 1000), rotated by 40°."""
    c, s = math.cos(math.radians(DEGREES)), math.sin(math.radians(DEGREES))
    off = (1 - RATIO) * c * s
    return (c * c + RATIO * s * s, off), (off, s * s + RATIO * c * c)


def anisotropic(sizes: Sizes) -> list[Row]:
    """K = diag(1, 1000) rotated by 40°: errors of a smooth steady state, and violations of minimum and maximum.

    For schemes without a time integrator, `below` and `above` are those of a steady state between walls at 1 and 0, the
    other walls insulated; for those with one, of a square of value 1 after ten steps with walls at 0.
    """
    finished: list[Row] = []
    for family in ("squares", "jittered"):
        for scheme in ("two-point", "corrected"):
            finished += add_orders([_steady_row(scheme, family, n) for n in sizes.anisotropic])
        for scheme in ("two-point-implicit", "corrected-implicit", "corrected-crank-nicolson"):
            finished.append(_block_row(scheme, family, sizes.anisotropic[0]))
    return finished


def _mesh(family: str, n: int) -> Mesh:
    return squares(n) if family == "squares" else jittered(n)


def _smooth_solution() -> tuple[sp.Expr, sp.Expr]:
    """A smooth solution, neither zero on the walls nor symmetric, and its source."""
    x, y = symbol("x"), symbol("y")
    exact = sp.sin(2 * x + y) + x * y + sp.cos(3 * y)
    return exact, ANISOTROPIC.strong(exact, 2, {"K": [[sp.Float(k) for k in row] for row in turned_tensor()]})


def _steady_row(scheme: str, family: str, n: int) -> Row:
    u, source = (sp.lambdify((symbol("x"), symbol("y")), formula, "numpy") for formula in _smooth_solution())
    mesh, values = _mesh(family, n), {"K": turned_tensor()}
    smooth = steady(
        scheme, mesh, equation=ANISOTROPIC, parameters=values, boundary=Dirichlet(u), source=lambda x, y: source(x, y)
    )
    between = steady(scheme, mesh, equation=ANISOTROPIC, parameters=values, boundary=LAYERS)
    below, above = between.overshoot()
    return Row(
        problem="anisotropic",
        scheme=scheme,
        mesh=family,
        cells=between.graph.cells,
        error=relative_l2(smooth.field, u(*smooth.graph.x.T), smooth.graph.V),
        norm="relative L2",
        minimum=float(between.field.min()),
        maximum=float(between.field.max()),
        below=below,
        above=above,
    )


def _block(x: np.ndarray, y: np.ndarray) -> CellField:
    return ((np.abs(x - 0.5) < 0.25) & (np.abs(y - 0.5) < 0.25)).astype(float)


def _block_row(scheme: str, family: str, n: int) -> Row:
    run = simulate(
        scheme,
        _mesh(family, n),
        equation=ANISOTROPIC,
        parameters={"K": turned_tensor()},
        initial=_block,
        dt=BLOCK_TIME / BLOCK_STEPS,
        steps=BLOCK_STEPS,
    )
    below, above = overshoot(run.final, run.graph, run.fields[0])
    return run_row(
        run,
        "anisotropic",
        family,
        minimum=float(run.final.min()),
        maximum=float(run.final.max()),
        below=below,
        above=above,
    )
