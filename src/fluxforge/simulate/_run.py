"""Running a problem of a scheme's equation on a mesh."""

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float

from fluxforge._types import State
from fluxforge.errors import InputError, InstabilityError
from fluxforge.mesh import Conditions, DualGraph, Mesh, Settings, Value, dual, read, reference_step
from fluxforge.pde import Equation
from fluxforge.scheme import Scheme, find
from fluxforge.simulate._build import Precision, Solver, check_diffusivity, stepper
from fluxforge.simulate._field import field_on_cells
from fluxforge.simulate._limit import step_limit
from fluxforge.simulate._stepper import AbstractStepper

BLOWN_UP = 1e8
PRECISE_UP_TO = 5000


@dataclass(frozen=True)
class Simulation:
    """What a run left: the saved fields, and how it went. `blew_up_at` is the step at which it did, if it did."""

    scheme: str
    mesh: Mesh
    graph: DualGraph
    times: Float[np.ndarray, " frames"]
    fields: Float[np.ndarray, "frames cells"]
    dt: float
    dt_fourier: float
    dt_limit: float | None
    steps: int
    seconds_per_step: float
    blew_up_at: int | None

    def summary(self) -> dict[str, object]:
        """The numbers of the last saved field, volume-weighted, as plain JSON values."""
        T, V = self.fields[-1], self.graph.V
        return {
            "scheme": self.scheme,
            "cells": self.graph.cells,
            "steps": self.steps,
            "time": float(self.times[-1]),
            "dt": self.dt,
            "dt_over_fourier": self.dt / self.dt_fourier if math.isfinite(self.dt_fourier) else None,
            "dt_limit": self.dt_limit if self.dt_limit is not None and math.isfinite(self.dt_limit) else None,
            "min": float(T.min()),
            "max": float(T.max()),
            "mean": float(V @ T / V.sum()),
            "energy": float(0.5 * V @ T**2),
            "heat": float(V @ T),
            "seconds_per_step": self.seconds_per_step,
            "blew_up_at": self.blew_up_at,
        }


def simulate(
    scheme: str | os.PathLike[str] | Scheme,
    mesh: Mesh | str | os.PathLike[str],
    *,
    equation: str | os.PathLike[str] | Equation | None = None,
    parameters: Settings | None = None,
    diffusivity: float | None = None,
    initial: Value | np.ndarray = 0.0,
    source: Value | np.ndarray = 0.0,
    boundary: Conditions = None,
    dt: float | None = None,
    dt_fraction: float = 0.5,
    steps: int = 50,
    save_every: int | None = None,
    force: bool = False,
    throw: bool = True,
    dtype: Precision = "float64",
    solver: Solver = "auto",
    progress: Callable[[int], None] | None = None,
) -> Simulation:
    """March a problem from `initial` and keep about twenty fields (or every `save_every` steps).

    `equation` is a name, a TOML file or an Equation, the scheme's own (heat) unless given, and `parameters` its
    parameters by name; `diffusivity` is the word for heat's α. `mesh` is a mesh or the path of its file. The step is
    `dt`, or `dt_fraction` of the reference step, which for heat is the Fourier step. One above the
    scheme's stability limit is refused unless `force`; a run that blows up raises InstabilityError naming the step,
    unless `throw` is false.
    """
    scheme = find(scheme, equation)
    mesh = mesh if isinstance(mesh, Mesh) else read(mesh)
    graph = dual(mesh, boundary)
    T = field_on_cells(initial, graph, "the initial temperature")
    check_diffusivity(diffusivity)
    parameters = scheme.equation.settings(parameters, diffusivity=diffusivity)
    step, fourier, limit = choose_step(
        scheme, graph, parameters=parameters, state=T, dt=dt, dt_fraction=dt_fraction, force=force
    )
    every = _check_steps(steps, save_every)
    with jax.enable_x64(dtype == "float64"):
        advance = stepper(scheme, graph, step, parameters=parameters, source=source, dtype=dtype, solver=solver)
        run = _march(advance, T, steps=steps, every=every, progress=progress)
    result = Simulation(
        scheme=scheme.name,
        mesh=mesh,
        graph=graph,
        times=step * np.array(run.marks),
        fields=np.stack(run.fields),
        dt=step,
        dt_fourier=fourier,
        dt_limit=limit,
        steps=run.marks[-1],
        seconds_per_step=run.seconds_per_step,
        blew_up_at=run.blew_up_at,
    )
    if throw and run.blew_up_at is not None:
        raise InstabilityError(f"scheme {scheme.name!r} blew up at step {run.blew_up_at} of {steps}")
    return result


def choose_step(
    scheme: Scheme,
    graph: DualGraph,
    *,
    parameters: Settings | None = None,
    state: np.ndarray | None = None,
    dt: float | None,
    dt_fraction: float,
    force: bool,
) -> tuple[float, float, float | None]:
    """The time step, the reference step and the stability limit; an unstable step is refused unless forced.

    The reference step of an equation that is not linear is taken at the `state`.

    On large meshes the limit is a step that is certainly stable, close below the largest.
    """
    fourier = reference_step(scheme.equation, graph, parameters, state)
    if dt is None:
        if not (math.isfinite(dt_fraction) and dt_fraction > 0):
            raise InputError(f"dt_fraction should be a positive number, got {dt_fraction}")
        if math.isinf(fourier):
            raise InputError("no cell of this mesh exchanges heat, so there is no Fourier step: give dt itself")
        dt = dt_fraction * fourier
    if not (math.isfinite(dt) and dt > 0):
        raise InputError(f"dt should be a positive number, got {dt}")
    found = step_limit(scheme, graph, parameters=parameters, precise=graph.cells <= PRECISE_UP_TO)
    if found is not None and found.certain < dt <= found.dt:
        found = step_limit(scheme, graph, parameters=parameters)
    if found is not None and dt > found.dt * (1 + 1e-9) and not force:
        raise InputError(
            f"dt = {dt:.4g} is above the stability limit of {scheme.name!r} on this mesh, {found.dt:.4g} "
            f"({found.dt / fourier:.3g} of the Fourier step): take a smaller one, or force it (--force, or force=True)"
        )
    return dt, fourier, None if found is None else found.certain


def _check_steps(steps: int, save_every: int | None) -> int:
    if steps < 0:
        raise InputError(f"steps should be 0 or more, got {steps}")
    if save_every is not None and save_every < 1:
        raise InputError(f"save_every should be 1 or more, got {save_every}")
    return save_every or max(1, math.ceil(steps / 20))


@dataclass
class _March:
    marks: list[int]
    fields: list[np.ndarray]
    seconds_per_step: float = 0.0
    blew_up_at: int | None = None


def _march(
    advance: AbstractStepper, T: np.ndarray, *, steps: int, every: int, progress: Callable[[int], None] | None
) -> _March:
    """Step in chunks between saved fields; the clock starts once the step is compiled."""
    run = _March([0], [T])
    state = advance.enter(T)
    bound = BLOWN_UP * (1.0 + float(np.abs(T).max()))
    if steps:
        jax.block_until_ready(advance.repeat(state, 1))
    seconds = 0.0
    while run.marks[-1] < steps:
        count = min(every, steps - run.marks[-1])
        start = time.perf_counter()
        after = _chunk(advance, state, count, seconds / max(run.marks[-1], 1))
        seconds += time.perf_counter() - start
        field = np.asarray(advance.leave(after), float)
        if not (np.abs(field) <= bound).all():
            run.blew_up_at = _which_step(advance, state, run.marks[-1], bound)
            break
        state = after
        run.marks.append(run.marks[-1] + count)
        run.fields.append(field)
        if progress is not None:
            progress(run.marks[-1])
    run.seconds_per_step = seconds / max(run.marks[-1], 1)
    return run


def _chunk(advance: AbstractStepper, state: State, count: int, seconds_each: float) -> State:
    """Many steps in calls of about half a second each, so that an interruption is answered soon."""
    most = max(1, int(0.5 / seconds_each)) if seconds_each else min(count, 100)
    while count > 0:
        state = jax.block_until_ready(advance.repeat(state, min(most, count)))
        count -= most
    return state


def _which_step(advance: AbstractStepper, state: State, done: int, bound: float) -> int:
    """Walk the bad chunk again, one step at a time."""
    while True:
        state = advance.repeat(state, 1)
        done += 1
        if not (np.abs(np.asarray(state)) <= bound).all():
            return done
