"""Measurements of a scheme or network on a mesh: residuals, errors in time and in space, and seconds per step."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from msgspec import Struct
from scipy.sparse import block_array, csr_array, diags_array
from scipy.sparse.linalg import expm_multiply

from fluxforge._types import State
from fluxforge.data._meshes import generate_meshes
from fluxforge.data._model import PLAIN_HEAT
from fluxforge.data._problem import Problem, problem
from fluxforge.gnn._network import AbstractNetwork
from fluxforge.graph._pad import pad_graph
from fluxforge.loss._loss import mean_defect, theta_residual
from fluxforge.mesh._boundary import Dirichlet
from fluxforge.mesh._build import dual
from fluxforge.mesh._conditions import Conditions
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._norms import relative_l2
from fluxforge.mesh._parameters import fourier_step
from fluxforge.paper.studies._records import to_number
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping._assemble import Operator, generator
from fluxforge.stepping._build import stepper
from fluxforge.stepping._field import field_on_cells
from fluxforge.stepping._limit import step_limit
from fluxforge.stepping._solvers import Solver
from fluxforge.stepping._stepper import AbstractStepper
from fluxforge.stepping._trained import network_stepper

Subject: TypeAlias = Scheme | AbstractNetwork


class Limit(Struct, frozen=True):
    """The longest stable Δt of a scheme; None if every Δt is stable (`unlimited`), or if it is not known."""

    dt: float | None = None
    unlimited: bool = False


class MeshFacts(Struct, frozen=True):
    """A mesh: its Fourier step, λ_max, 2/λ_max (Crank–Nicolson oscillates beyond it), and limits by scheme.

    `wanted` is the requested number of cells.
    """

    cells: int
    fourier: float
    rate: float | None
    oscillation: float | None
    limits: dict[str, Limit]
    wanted: int = 0


@dataclass(frozen=True)
class GridRow:
    """Relative errors of one scheme after `steps` steps of `fourier` Fourier steps; None if the run blew up.

    `free` is that of noise in T₀ without source, `driven` that of noise in S, `error` the larger of both. The residuals
    are of one step, for θ = ½ and 1, over the mean rate of change.
    """

    fourier: float
    dt: float
    steps: int
    free: float | None
    driven: float | None
    blew_up: bool
    error: float | None
    residual_half: float | None
    residual_one: float | None


class Grid(Struct, frozen=True):
    """The rows of one scheme on one mesh, one per time step."""

    rows: list[GridRow]


class Clock(Struct, frozen=True):
    """Seconds per step of one scheme on one mesh with one Δt."""

    seconds: float


class SpaceError(Struct, frozen=True):
    """The relative L2 error of one run against the heat equation; None if it blew up."""

    cells: int
    steps: int
    error: float | None


@dataclass(frozen=True)
class Answers:
    """White noise in T₀ and in S, which has all modes of the mesh, and exact semi-discrete solutions after some time.

    `free` starts from T₀ with S = 0, `driven` from T = 0 with S: one run with both could hide errors of either.
    """

    T0: np.ndarray
    S: np.ndarray
    free: np.ndarray
    driven: np.ndarray


def make_irregular(cells: int, seed: int, engine: str = "builtin") -> Mesh:
    """An irregular mesh of the unit square of about `cells` cells, from the cache of meshes if it is there.

    The built-in engine makes the same mesh on every machine.
    """
    (mesh,) = generate_meshes([{"kind": "irregular", "cells": cells, "seed": seed, "engine": engine}])
    return mesh


@lru_cache(maxsize=4)
def make_graph(cells: int, seed: int, boundary: Conditions = None) -> DualGraph:
    """The dual graph of an irregular mesh of the built-in engine; by default with T = 0 at the walls."""
    return dual(make_irregular(cells, seed), Dirichlet() if boundary is None else boundary)


def make_stepper(
    subject: Subject, graph: DualGraph, dt: float, *, source: np.ndarray, solver: Solver = "auto"
) -> AbstractStepper:
    """The stepper of a scheme or a network on a graph with a source, a field over cells."""
    if isinstance(subject, AbstractNetwork):
        return network_stepper(subject, graph, dt, source=source)
    return stepper(subject, graph, dt, source=source, solver=solver)


@lru_cache(maxsize=1)
def solve_noise(cells: int, seed: int, end: float) -> Answers:
    """Random T₀ and S on a mesh, and the exact semi-discrete solutions after `end` Fourier steps."""
    graph = make_graph(cells, seed)
    fourier = fourier_step(graph)
    rng = np.random.default_rng([cells, seed])
    T0, S = rng.standard_normal(graph.cells), rng.standard_normal(graph.cells) / fourier
    system, nothing = generator(BUILT_IN["euler"], graph), np.zeros(graph.cells)
    t = end * fourier
    return Answers(
        T0, S, solve_exactly(system, graph.V, T0, nothing, t=t), solve_exactly(system, graph.V, nothing, S, t=t)
    )


def solve_exactly(system: Operator, V: np.ndarray, T0: np.ndarray, S: np.ndarray, *, t: float) -> np.ndarray:
    """T(t) of dT/dt = G T + s S + r, by the action of the matrix exponential, without a full matrix.

    √V G /√V is symmetric for a conservative flux, so that the terms of the series have no transient growth. Their
    number grows like t λ_max, which is why t is counted in Fourier steps.
    """
    root = np.sqrt(V)
    constant = t * root * (system.N @ S + system.b)
    # The constant term is one more unknown, scaled so that it does not dominate the norm of the matrix.
    unit = float(np.abs(constant).sum()) or 1.0
    scaled = t * csr_array(diags_array(root) @ system.M @ diags_array(1 / root))
    column = csr_array((constant / unit)[:, None])
    whole = block_array([[scaled, column], [None, csr_array((1, 1))]], format="csr")
    state = expm_multiply(whole, np.append(root * T0, unit), traceA=float(scaled.diagonal().sum()))
    return np.asarray(state[:-1] / root)


FIELD = "x*y + sin(pi*x)*sin(2*pi*y)"
ON_BOUNDARY = "x*y"
SOURCE = "20*exp(-20*((x - 0.4)**2 + (y - 0.6)**2))"
# A run has blown up if max |T| exceeds that of the initial and of the exact field by more than this factor.
BLOW_UP_RATIO = 1e3
PRECISE_CELLS = 20_000
CLOCK_SECONDS = 0.02
CLOCK_MOST_STEPS = 200
CLOCK_TRIES = 3


def measure_mesh(graph: DualGraph, schemes: Sequence[Scheme]) -> MeshFacts:
    """Δt_Fourier, λ_max, 2/λ_max (beyond which Crank–Nicolson's fastest mode changes sign), and all stability limits.

    On meshes of more than `PRECISE_CELLS` cells λ_max is only enclosed, and the limits are lower bounds.
    """
    precise = graph.cells <= PRECISE_CELLS
    limits: dict[str, Limit] = {}
    rate: float | None = None
    for scheme in schemes:
        # Implicit schemes count as unlimited: no eigenvalue is computed for them.
        limit = None if scheme.implicit else step_limit(scheme, graph, precise=precise)
        limits[scheme.name] = Limit(
            dt=None if limit is None or math.isinf(limit.certain) else limit.certain,
            unlimited=scheme.implicit or (limit is not None and math.isinf(limit.certain)),
        )
        if scheme.name == "euler" and limit is not None:
            rate = limit.rate
    return MeshFacts(graph.cells, fourier_step(graph), rate, 2.0 / rate if rate is not None else None, limits)


def measure_grid(subject: Subject, *, cells: int, seed: int, fractions: Sequence[float], end: float) -> Grid:
    """Residuals and errors in time of one scheme on one mesh, for every Δt of `fractions` Fourier steps.

    Errors are relative L2 errors after `end` Fourier steps against the exact semi-discrete solution.
    """
    residuals = _measure_residuals(subject, cells=cells, seed=seed, fractions=fractions)
    graph, known = make_graph(cells, seed), solve_noise(cells, seed, end)
    fourier, nothing = fourier_step(graph), np.zeros(graph.cells)
    rows = []
    for fraction, (half, one) in zip(fractions, residuals, strict=True):
        steps = max(round(end / fraction), 1)
        dt = end * fourier / steps
        free, driven = (
            relative_error(
                np.asarray(make_stepper(subject, graph, dt, source=S).rollout(T, steps)), exact, graph.V, start=T
            )
            for T, S, exact in ((known.T0, nothing, known.free), (nothing, known.S, known.driven))
        )
        worst = None if free is None or driven is None else max(free, driven)
        rows.append(GridRow(fraction, dt, steps, free, driven, worst is None, worst, half, one))
    return Grid(rows)


def _measure_residuals(
    subject: Subject, *, cells: int, seed: int, fractions: Sequence[float]
) -> list[tuple[float | None, float | None]]:
    """Mean |θ-residual| over mean |L T + S| of one step from a smooth field with source: (θ = ½, θ = 1) for each Δt."""
    graph = make_graph(cells, seed, Dirichlet(ON_BOUNDARY))
    T, S = (field_on_cells(words, graph, "the field") for words in (FIELD, SOURCE))
    around, alpha = PLAIN_HEAT.put_on(pad_graph(graph))
    fourier = fourier_step(graph)
    posed = problem(around, jnp.asarray(T), jnp.asarray(S), dt=jnp.ones(()), parameters=alpha)
    scale = float(mean_defect(posed.rate(posed.T), posed, "l1"))
    rows = []
    for fraction in fractions:
        dt = fraction * fourier
        new = jnp.asarray(make_stepper(subject, graph, dt, source=S)(T))
        half, one = _mean_residuals(posed, jnp.asarray(dt), new)
        rows.append((to_number(float(half) / scale), to_number(float(one) / scale)))
    return rows


@eqx.filter_jit
def _mean_residuals(posed: Problem, dt: Float[Array, ""], new: State) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The mean |θ-residual| of the field `new` after one step Δt of a problem, for θ = ½ and 1."""
    stepped = eqx.tree_at(lambda p: p.dt, posed, dt)
    half, one = (mean_defect(theta_residual(theta)(stepped, new), stepped, "l1") for theta in (0.5, 1.0))
    return half, one


def relative_error(T: np.ndarray, exact: np.ndarray, V: np.ndarray, *, start: np.ndarray) -> float | None:
    """√(Σ V (T − T_exact)² / Σ V T_exact²), or None if the run from `start` blew up."""
    most = BLOW_UP_RATIO * max(np.abs(start).max(), np.abs(exact).max())
    if not np.isfinite(T).all() or np.abs(T).max() > most:
        return None
    return relative_l2(T, exact, V)


def measure_space_error(subject: Subject, *, cells: int, seed: int, fraction: float, until: float) -> SpaceError:
    """Relative L2 error at t = `until` against a solution of the heat equation, with Δt of `fraction` Fourier steps.

    T = (2 − exp(−2π²t)) sin πx sin πy with S = 4π² sin πx sin πy.
    """
    graph = make_graph(cells, seed)
    u = np.sin(np.pi * graph.x[:, 0]) * np.sin(np.pi * graph.x[:, 1])
    steps = math.ceil(until / (fraction * fourier_step(graph)))
    step = make_stepper(subject, graph, until / steps, source=4 * np.pi**2 * u)
    T = np.asarray(step.rollout(u, steps))
    exact = (2 - math.exp(-2 * np.pi**2 * until)) * u
    return SpaceError(graph.cells, steps, relative_error(T, exact, graph.V, start=u))


def measure_seconds(subject: Subject, *, cells: int, seed: int, fraction: float) -> float:
    """Seconds per step: the least of several short runs, after compilation and factorisation."""
    graph = make_graph(cells, seed)
    step = make_stepper(subject, graph, fraction * fourier_step(graph), source=np.ones(graph.cells))
    T = step.enter(np.random.default_rng(seed).standard_normal(graph.cells))

    def time_run(steps: int) -> float:
        began = time.perf_counter()
        jax.block_until_ready(step.repeat(T, steps))
        return (time.perf_counter() - began) / steps

    time_run(1)
    # Enough steps that the resolution of the clock and the overhead of the call are negligible.
    steps = round(min(max(CLOCK_SECONDS / time_run(3), 3), CLOCK_MOST_STEPS))
    return min(time_run(steps) for _ in range(CLOCK_TRIES))
