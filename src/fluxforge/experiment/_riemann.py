"""The flux through the face where two constant states meet, by a central scheme that has no numerical flux.

Nessyahu's and Tadmor's staggered scheme of second order evaluates f at states only: no Riemann problem is solved, and
nothing is upwinded. The flux is measured as what leaves the left half of the domain between two times. The solution is
a function of x/t, so that the first part of a run is like a run on a coarser grid: the flux in the second half of the
time is free of the O(h) error of the start, and its difference from that in the second quarter estimates its error.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jaxtyping import Array, Float

from fluxforge.experiment._setup import Experiment, Measured, Samples
from fluxforge.expression._evaluate import evaluate
from fluxforge.pde._equation import differentiate

# Numbers of cells of the grids.
COARSEST, FINEST = 128, 1024
COURANT = 0.4  # the staggered scheme is stable up to 1/2
# The distance that the fastest wave travels, in units of half the domain.
TRAVEL = 0.8
# Samples are refined in batches of this size, so that few shapes are compiled.
BATCH = 256
# The number of points between two states at which |f′| is evaluated.
_POINTS = 65
# The round-off of a mean over hundreds of cells and steps, relative to the flux.
_ROUND_OFF = 1e-12

State = Float[Array, "samples cells"]


def riemann_flux(experiment: Experiment, samples: Samples, tolerance: float) -> Measured:
    """The mean flux of every experiment; grids are refined where its error exceeds `tolerance` times rms(flux).

    On the finest grid a larger error is accepted, and returned as it is.
    """
    velocity = experiment.velocity
    assert velocity is not None
    P, N = (samples[each.name] for each in experiment.states)
    a = samples[velocity.name]
    cells, todo = COARSEST, np.arange(len(P))
    flux, error = np.zeros(len(P)), np.full(len(P), np.inf)
    speed = fastest_speed(experiment, P, N)
    while len(todo):
        late, early = _measure_in_batches(
            experiment.equation.transported, P[todo], N[todo], a[todo], speed[todo], cells
        )
        flux[todo] = late
        error[todo] = np.abs(late - early) + _ROUND_OFF * np.abs(late)
        size = float(np.sqrt(np.mean(flux**2)))
        todo = np.flatnonzero(error > tolerance * size)
        cells *= 2
        if cells > FINEST:
            break
    return Measured(flux, error)


def fastest_speed(experiment: Experiment, P: np.ndarray, N: np.ndarray) -> np.ndarray:
    """The largest |f′| between two states, at 65 points, for every sample."""
    equation = experiment.equation
    u = P[:, None] + (N - P)[:, None] * np.linspace(0.0, 1.0, _POINTS)
    slope = evaluate(differentiate(equation.transported, equation.u), {equation.u: u}, np)
    return np.asarray(np.broadcast_to(np.abs(np.asarray(slope, float)), u.shape).max(axis=1))


def _measure_in_batches(
    formula: sp.Expr, P: np.ndarray, N: np.ndarray, a: np.ndarray, speed: np.ndarray, cells: int
) -> tuple[np.ndarray, np.ndarray]:
    batches = []
    for first in range(0, len(P), BATCH):
        rows = np.arange(first, min(first + BATCH, len(P)))
        padded = np.resize(rows, BATCH)
        # A wave that moves left is one that moves right with the cells exchanged: the scheme itself is symmetric.
        with jax.enable_x64(True):
            both = _measure(formula, cells, *(jnp.asarray(each[padded]) for each in (P, N, a, speed)))
        batches.append([np.asarray(each)[: len(rows)] for each in both])
    late, early = (np.concatenate(each) for each in zip(*batches, strict=True))
    return late, early


class _Grid(NamedTuple):
    """The flux function a·n f, the states at the two ends, and Δt/h."""

    f: Callable[[State], State]
    P: Float[Array, "samples 1"]
    N: Float[Array, "samples 1"]
    ratio: Float[Array, "samples 1"]


@partial(jax.jit, static_argnums=(0, 1))
def _measure(
    formula: sp.Expr, cells: int, P: Array, N: Array, a: Array, speed: Array
) -> tuple[Float[Array, " samples"], Float[Array, " samples"]]:
    """Mean fluxes from T/2 to T and from T/4 to T/2; Δt is such that each sample's fastest wave comes equally far."""
    (u,) = formula.free_symbols
    # Without a wave, any step is stable.
    ratio = jnp.where(speed * jnp.abs(a) > 0, COURANT / (speed * jnp.abs(a)), 1.0)[:, None]

    def f(state: State) -> State:
        return a[:, None] * evaluate(formula, {u: state}, jnp)

    grid = _Grid(f, P[:, None], N[:, None], ratio)
    half = cells // 2
    start = jnp.where(jnp.arange(cells) < half, grid.P, grid.N)
    quarter = 2 * max(1, round(TRAVEL * cells / (16 * COURANT)))  # steps in a quarter of the time
    states = [start]
    for steps in (quarter, quarter, 2 * quarter):
        states.append(jax.lax.fori_loop(0, steps // 2, lambda _, v: _two_steps(v, grid), states[-1]))
    # In units of the cell's width.
    _, first, middle, last = ((each[:, :half] - grid.P).sum(axis=1) for each in states)
    inflow, time = f(grid.P)[:, 0], quarter * ratio[:, 0]
    return inflow - (last - middle) / (2 * time), inflow - (middle - first) / time


def _two_steps(u: State, grid: _Grid) -> State:
    """Two staggered steps, after which cells are where they were."""
    between = jnp.concatenate((grid.P, _step_staggered(u, grid), grid.N), axis=1)
    return _step_staggered(between, grid)


def _step_staggered(u: State, grid: _Grid) -> Float[Array, "samples cells-1"]:
    """Cell means half a cell to the right after one step; there is one fewer than in u."""
    slope = _limit_slopes(u)
    middle = grid.f(u - 0.5 * grid.ratio * _limit_slopes(grid.f(u)))
    mean = 0.5 * (u[:, 1:] + u[:, :-1]) + 0.125 * (slope[:, :-1] - slope[:, 1:])
    return mean - grid.ratio * (middle[:, 1:] - middle[:, :-1])


def _limit_slopes(u: State) -> State:
    """The smaller of the differences to both sides (minmod), 0 where they differ in sign and at the ends."""
    d = jnp.diff(u, axis=1)
    before, after = d[:, :-1], d[:, 1:]
    inner = 0.5 * (jnp.sign(before) + jnp.sign(after)) * jnp.minimum(jnp.abs(before), jnp.abs(after))
    return jnp.pad(inner, ((0, 0), (1, 1)))
