"""Run problems: choose a stable step, march, and compare schemes."""

import inspect
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from fluxforge._arguments import check_flag, check_function, check_positive, check_whole, describe_value
from fluxforge._types import Precision, State
from fluxforge.errors import InputError, InstabilityError, NumericalError
from fluxforge.mesh import Conditions, DualGraph, Mesh, Settings, Value, as_mesh, dual, reference_step
from fluxforge.pde import Equation
from fluxforge.scheme import Scheme, find
from fluxforge.stepping._build import Solver, check_diffusivity, check_precision, run_stepper
from fluxforge.stepping._field import Envelope, cell_capacity, data_envelope, field_on_cells
from fluxforge.stepping._limit import StepLimit, step_limit
from fluxforge.stepping._simulation import Comparison, Simulation
from fluxforge.stepping._stepper import AbstractStepper
from fluxforge.stepping._trained import TrainedNetwork

PRECISE_UP_TO = 5000
# An implicit step adds Δt times an exchange of round-off size to the field; beyond this many Fourier steps (a hundredth
# of 1/ε) that is no longer small beside the field.
LONGEST_STEP = {"float64": 0.01 / np.finfo(np.float64).eps, "float32": 0.01 / float(np.finfo(np.float32).eps)}


# What overflows shows as a field that is not finite, and is judged there: NumPy's warnings would say nothing new.
@np.errstate(all="ignore")
def simulate(
    scheme: str | os.PathLike[str] | Scheme | TrainedNetwork,
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

    `scheme` is a built-in name, the path of a scheme.json, a scheme, or the network of a run (`run.network`).
    `equation` is a name, a TOML file or an Equation, the scheme's own (heat) unless given, and `parameters` its
    parameters by name; `diffusivity` is the word for heat's α. `mesh` is a mesh or the path of its file. The step is
    `dt`, or `dt_fraction` of the reference step, which for heat is the Fourier step. One above the
    scheme's stability limit is refused unless `force`; a run that blows up raises InstabilityError naming the step,
    unless `throw` is false. A field blows up when it is not finite, or 1e8 times larger than the initial and the
    boundary values and all that sources and Neumann walls have brought allow. Raises InputError, naming the argument,
    for an argument that cannot be used.
    """
    scheme = _check_network(scheme, equation) if isinstance(scheme, TrainedNetwork) else find(scheme, equation)
    every = _check_steps(steps, save_every)
    check_flag(force, "force"), check_flag(throw, "throw"), check_function(progress, "progress")
    check_precision(dtype)
    mesh = as_mesh(mesh)
    graph = dual(mesh, boundary, equation=scheme.equation)
    T = field_on_cells(initial, graph, "the initial temperature")
    S = field_on_cells(source, graph, "the source")
    parameters = scheme.equation.settings(parameters, diffusivity=check_diffusivity(diffusivity))
    if isinstance(scheme, TrainedNetwork):
        parameters = scheme.check_settings(parameters)
    step, fourier, limit = choose_step(
        scheme, graph, parameters=parameters, state=T, dt=dt, dt_fraction=dt_fraction, force=force, dtype=dtype
    )
    envelope = data_envelope(scheme.equation, graph, parameters, initial=T, source=S)
    _check_fits(dtype, {"the initial temperature": T, "the source": S, "the boundary condition": graph.value})
    with jax.enable_x64(dtype == "float64"), _raise_memory_error():
        advance: AbstractStepper
        if isinstance(scheme, TrainedNetwork):
            advance = scheme.stepper(graph, step, source=S, dtype=dtype)
        else:
            advance = run_stepper(
                scheme, graph, step, steps=steps, parameters=parameters, source=S, dtype=dtype, solver=solver
            )
        run = _march(advance, T, envelope, dt=step, steps=steps, every=every, progress=progress)
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
        words=scheme.equation.words,
        capacity=None if scheme.equation.capacity == 1 else cell_capacity(scheme.equation, graph, parameters),
    )
    if throw and run.blew_up_at is not None:
        raise InstabilityError(f"scheme {scheme.name!r} blew up at step {run.blew_up_at} of {steps}")
    return result


def _check_network(network: TrainedNetwork, equation: object) -> TrainedNetwork:
    """Refuse an equation beside a network, which has learned its own."""
    if equation is not None:
        raise InputError(f"equation: a trained network has its own, {network.equation.name!r}: leave it out")
    return network


@contextmanager
def _raise_memory_error() -> Iterator[None]:
    """Raise MemoryError where JAX's runtime says, in an error for every purpose, that memory is exhausted."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error) and "Out of memory" not in str(error):
            raise
        raise MemoryError(str(error)) from error


def _check_fits(dtype: Precision, fields: Mapping[str, np.ndarray]) -> None:
    """Refuse data beyond the largest number of the precision, which would enter as infinity."""
    largest = float(np.finfo(dtype).max)
    for what, values in fields.items():
        if values.size and float(np.abs(values).max()) > largest:
            raise InputError(f"{what} has values beyond {largest:.3g}, the largest number of {dtype}: use float64")


def choose_step(
    scheme: Scheme | TrainedNetwork,
    graph: DualGraph,
    *,
    parameters: Settings | None = None,
    state: np.ndarray | None = None,
    dt: float | None,
    dt_fraction: float,
    force: bool,
    dtype: Precision = "float64",
) -> tuple[float, float, float | None]:
    """The time step, the reference step and the stability limit; an unstable step is refused unless forced.

    The reference step of an equation that is not linear is taken at the `state`.

    On large meshes the limit is a step that is certainly stable, close below the largest. None where it is not known.
    """
    fourier = reference_step(scheme.equation, graph, parameters, state)
    if dt is None:
        fraction = check_positive(dt_fraction, "dt_fraction")
        if not 0 < fourier < math.inf:
            words = scheme.equation.words
            what = f"no cell of this mesh exchanges {words.exchanged}" if fourier else "the exchange overflows"
            raise InputError(f"{_name_parameters(parameters)}{what}, so there is no {words.step_name}: give dt itself")
        dt = fraction * fourier
    dt = check_positive(dt, "dt")
    found = _known_limit(scheme, graph, parameters, precise=graph.cells <= PRECISE_UP_TO)
    if found is not None and found.certain < dt <= found.dt:
        found = _known_limit(scheme, graph, parameters, precise=True)
    if not force:
        _refuse_step(scheme, dt, fourier, found, dtype)
    return dt, fourier, None if found is None else found.certain


def _name_parameters(parameters: Settings | None) -> str:
    """The parameters that are numbers, as the beginning of a message."""
    numbers = [f"{name} = {value:g}" for name, value in (parameters or {}).items() if isinstance(value, int | float)]
    return f"{', '.join(numbers)}: " if numbers else ""


def _known_limit(
    scheme: Scheme | TrainedNetwork, graph: DualGraph, parameters: Settings | None, *, precise: bool
) -> StepLimit | None:
    """The limit, enclosed where it cannot be found to five digits; None where its eigenvalues are not found either."""
    if isinstance(scheme, TrainedNetwork):
        return None
    for attempt in (True, False) if precise else (False,):
        try:
            return step_limit(scheme, graph, parameters=parameters, precise=attempt)
        except NumericalError:
            continue
    return None


def _refuse_step(
    scheme: Scheme | TrainedNetwork, dt: float, fourier: float, found: StepLimit | None, dtype: Precision
) -> None:
    reference = scheme.equation.words.step_name
    if found is not None and dt > found.dt * (1 + 1e-9):
        raise InputError(
            f"dt = {dt:.4g} is above the stability limit of {scheme.name!r} on this mesh, {found.dt:.4g} "
            f"({found.dt / fourier:.3g} of the {reference}): take a smaller one, or force it (--force, or force=True)"
        )
    if scheme.implicit and dt > LONGEST_STEP[dtype] * fourier:
        raise InputError(
            f"dt = {dt:.4g} is {dt / fourier:.2g} {reference}s, so long that rounding errors of {dtype} would exceed "
            f"the field: take at most {LONGEST_STEP[dtype] * fourier:.2g}, or force it (--force, or force=True)"
        )


def _check_steps(steps: int, save_every: int | None) -> int:
    steps = check_whole(steps, "steps", least=1)
    if save_every is None:
        return max(1, math.ceil(steps / 20))
    return check_whole(save_every, "save_every", least=1)


@dataclass
class _March:
    marks: list[int]
    fields: list[np.ndarray]
    seconds_per_step: float = 0.0
    blew_up_at: int | None = None


def _march(
    advance: AbstractStepper,
    T: np.ndarray,
    envelope: Envelope,
    *,
    dt: float,
    steps: int,
    every: int,
    progress: Callable[[int], None] | None,
) -> _March:
    """Step in chunks between saved fields; the time of compilation is not counted."""
    run = _March([0], [T])
    state = advance.enter(T)
    jax.block_until_ready(advance.repeat(state, 1))
    seconds = 0.0
    while run.marks[-1] < steps:
        count = min(every, steps - run.marks[-1])
        start = time.perf_counter()
        after = _chunk(advance, state, count, seconds / max(run.marks[-1], 1))
        seconds += time.perf_counter() - start
        field = np.asarray(advance.leave(after), float)
        if not (np.abs(field) <= envelope.bound(dt * (run.marks[-1] + count))).all():
            run.blew_up_at = _which_step(advance, state, run.marks[-1], count, envelope, dt)
            break
        state = after
        run.marks.append(run.marks[-1] + count)
        run.fields.append(field)
        if progress is not None:
            progress(run.marks[-1])
    run.seconds_per_step = seconds / max(run.marks[-1], 1)
    return run


def _chunk(advance: AbstractStepper, state: State, count: int, seconds_each: float) -> State:
    """Take `count` steps in calls of about half a second each, so that Ctrl-C takes effect soon."""
    most = max(1, int(0.5 / seconds_each)) if seconds_each else min(count, 100)
    while count > 0:
        state = jax.block_until_ready(advance.repeat(state, min(most, count)))
        count -= most
    return state


def _which_step(advance: AbstractStepper, state: State, done: int, count: int, envelope: Envelope, dt: float) -> int:
    """Repeat the chunk step by step to find the one at which the field blew up."""
    for step in range(done + 1, done + count):
        state = advance.repeat(state, 1)
        if not (np.abs(np.asarray(state)) <= envelope.bound(dt * step)).all():
            return step
    return done + count


def compare(
    schemes: Sequence[str | os.PathLike[str] | Scheme],
    mesh: Mesh | str | os.PathLike[str],
    *,
    progress: Callable[[int], None] | None = None,
    **problem: Any,
) -> Comparison:
    """Run each scheme on the same mesh, data and time step; `problem` is what `simulate` takes.

    Raises InputError, naming the argument, for an argument that cannot be used.
    """
    if isinstance(schemes, str | os.PathLike | Scheme) or not isinstance(schemes, Sequence):
        raise InputError(f"schemes should be a list of schemes, got {describe_value(schemes)}")
    if not schemes:
        raise InputError("there is no scheme to compare: schemes is empty")
    known = set(inspect.signature(simulate).parameters) - {"scheme", "mesh", "progress"}
    if stray := sorted(set(problem) - known):
        raise InputError(f"unknown argument {stray[0]!r:.60}; known: {', '.join(sorted(known))}")
    check_function(progress, "progress")
    mesh = as_mesh(mesh)
    runs = []
    done = 0
    for scheme in schemes:
        before = done
        report = None if progress is None else (lambda step, before=before: progress(before + step))
        runs.append(simulate(scheme, mesh, progress=report, **problem))
        done = before + runs[-1].steps
    return Comparison(tuple(runs))
