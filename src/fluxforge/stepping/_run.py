"""Run problems: choose a stable step, march, and compare schemes."""

import inspect
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import jax
import numpy as np

from fluxforge._arguments import check_flag, check_function, describe_value
from fluxforge._types import Precision
from fluxforge.errors import InputError, InstabilityError
from fluxforge.mesh._boundary import Value
from fluxforge.mesh._conditions import Conditions
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import Settings
from fluxforge.mesh._read import as_mesh
from fluxforge.pde._equation import Equation
from fluxforge.scheme._document import find
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._build import check_diffusivity, check_linear, check_precision, run_stepper, stepper
from fluxforge.stepping._field import CLOCK, cell_capacity
from fluxforge.stepping._march import (
    Plan,
    automatic_step,
    check_fits,
    check_plan,
    choose_step,
    march,
    plan_steps,
    raise_memory_error,
)
from fluxforge.stepping._problem import Problem, read_last, read_problem
from fluxforge.stepping._schedule import make_schedule
from fluxforge.stepping._setup import Setup, set_up, times_of_stages
from fluxforge.stepping._simulation import Comparison, Simulation
from fluxforge.stepping._solvers import Solver
from fluxforge.stepping._stepper import AbstractMethod, AbstractStepper
from fluxforge.stepping._timed import (
    Clock,
    Forcing,
    HostOperator,
    TimedImplicitStepper,
    TimedStepper,
    VaryingImplicitStepper,
)


def simulate(
    scheme: str | os.PathLike[str] | Scheme | AbstractMethod,
    mesh: Mesh | str | os.PathLike[str],
    *,
    equation: str | os.PathLike[str] | Equation | None = None,
    parameters: Settings | None = None,
    diffusivity: float | None = None,
    initial: Value | np.ndarray = 0.0,
    source: Value | np.ndarray = 0.0,
    boundary: Conditions = None,
    dt: float | Literal["auto"] | None = None,
    dt_fraction: float = 0.5,
    steps: int | None = None,
    end_time: float | None = None,
    start_time: float = 0.0,
    save_every: float | None = None,
    force: bool = False,
    throw: bool = True,
    dtype: Precision = "float64",
    solver: Solver = "auto",
    progress: Callable[[int], None] | None = None,
) -> Simulation:
    """Step a problem from `initial` at `start_time` on, and return about twenty of its fields.

    - `scheme` is a built-in name, the path of a scheme.json or of a run folder (for its formula), a scheme, or the
      network of a run (`run.network`).
    - `equation` is a name, a TOML file or an Equation, by default the scheme's own (heat), and `parameters` are its
      parameters by name; `diffusivity` is α of the heat equation. `mesh` is a mesh or the path of its file.
    - `boundary` is a condition, a number for a value at every wall, a mapping from tags to conditions, as objects,
      numbers, formulas or functions, or the text of --boundary, such as "left=1, rest=insulated"; by default u = 0.
    - Formulas of `source`, `boundary` and `parameters` may contain the time t, functions may take it after the
      coordinates; the source may contain the unknown.
    - The step is `dt`, or `dt_fraction` of the reference step, which for heat is the Fourier step. `dt="auto"` takes
      0.9 of the stability limit. A step above the limit is refused unless `force`.
    - The run has `steps` steps (50), or ends at `end_time`: then the steps are equal and at most `dt`.
    - `save_every` is a number of steps, or as a float a time: the first field at or after each multiple is saved.

    A run that blows up raises InstabilityError naming the step, unless `throw` is false. A field blows up when it is
    not finite, or 1e8 times larger than the initial and the boundary values and all that sources and Neumann walls
    have brought allow. Raises InputError, naming the argument, for an argument that cannot be used.
    """
    if not isinstance(scheme, AbstractMethod):
        scheme = find(scheme, equation)
    elif equation is not None:
        raise InputError(f"equation: a trained network has its own, {scheme.equation.name!r}: leave it out")
    check_plan(steps, end_time, start_time, save_every)
    check_flag(force, "force"), check_flag(throw, "throw"), check_function(progress, "progress")
    check_precision(dtype)
    problem = Problem(
        scheme=scheme,
        mesh=as_mesh(mesh),
        parameters=scheme.equation.settings(parameters, diffusivity=check_diffusivity(diffusivity)),
        initial=initial,
        source=source,
        boundary=boundary,
        dt=dt,
        dt_fraction=dt_fraction,
        steps=None if steps is None else int(steps),
        end_time=None if end_time is None else float(end_time),
        start_time=float(start_time),
        save_every=save_every,
        force=force,
        dtype=dtype,
        solver=solver,
    )
    result = run_problem(problem, throw=throw, progress=progress)
    for note in () if isinstance(scheme, Scheme) else result.notes:
        warnings.warn(note, stacklevel=2)
    return result


# Overflow shows as a field that is not finite, which is reported: NumPy's warnings would only repeat that.
@np.errstate(all="ignore")
def run_problem(problem: Problem, *, throw: bool = True, progress: Callable[[int], None] | None = None) -> Simulation:
    """March a problem whose arguments were checked; see `simulate`."""
    duration = check_plan(problem.steps, problem.end_time, problem.begin, problem.save_every)
    setup = set_up(problem)
    dt, how = problem.dt, None
    if isinstance(dt, str):
        if dt != "auto":
            raise InputError(f"dt should be a positive number or 'auto', got {describe_value(dt)}")
        dt, how = automatic_step(
            setup.scheme, setup.graph, parameters=setup.parameters, state=setup.initial, duration=duration
        )
    step, fourier, limit = choose_step(
        setup.scheme,
        setup.graph,
        parameters=setup.parameters,
        state=setup.initial,
        dt=dt,
        dt_fraction=problem.dt_fraction,
        force=problem.force,
        dtype=problem.dtype,
    )
    plan = plan_steps(
        step,
        steps=problem.steps,
        duration=duration,
        save_every=problem.save_every,
        start=problem.start_time,
        first=problem.first_step,
    )
    values = setup.graph.value
    check_fits(
        problem.dtype,
        {"the initial field": setup.initial, "the source": setup.source, "the boundary condition": values},
    )
    envelope = setup.envelope()
    with jax.enable_x64(problem.dtype == "float64"), raise_memory_error():
        run = march(_build_stepper(setup, plan), setup.initial, envelope, plan, progress=progress)
    if run.blew_up_at is not None:
        for step in range(run.marks[-1], run.blew_up_at):
            for part in (0.0, 0.5, 1.0):
                setup.check_data_at(plan.start + (plan.first + step + part) * plan.dt)
    equation = setup.scheme.equation
    result = Simulation(
        scheme=setup.scheme.name,
        mesh=problem.mesh,
        graph=setup.graph,
        times=np.array([plan.time(mark) for mark in run.marks]),
        fields=np.stack(run.fields),
        dt=plan.dt,
        dt_fourier=fourier,
        dt_limit=limit,
        steps=run.marks[-1],
        seconds_per_step=run.seconds_per_step,
        blew_up_at=run.blew_up_at,
        words=equation.words,
        capacity=cell_capacity(equation, setup.graph, setup.parameters),
        dt_choice=how,
        problem=problem,
        notes=setup.notes(plan.dt / fourier),
    )
    if throw and run.blew_up_at is not None:
        raise InstabilityError(f"scheme {setup.scheme.name!r} blew up at step {run.blew_up_at} of {plan.steps}")
    return result


def _build_stepper(setup: Setup, plan: Plan) -> AbstractStepper:
    """The stepper of a run: that of a network, of data that change in time, or the fastest one for the scheme."""
    problem, scheme, parameters = setup.problem, setup.scheme, setup.parameters
    if not isinstance(scheme, Scheme):
        return scheme.stepper(setup.graph, plan.dt, source=setup.source, parameters=parameters, dtype=problem.dtype)
    if setup.varies:
        return _build_timed_stepper(setup, scheme, plan)
    return run_stepper(
        scheme,
        setup.graph,
        plan.dt,
        steps=plan.first + plan.steps,
        parameters=parameters,
        source=setup.source,
        dtype=problem.dtype,
        solver=problem.solver,
    )


def _build_timed_stepper(setup: Setup, scheme: Scheme, plan: Plan) -> AbstractStepper:
    problem, graph = setup.problem, setup.graph
    clock = Clock.of(plan.start, plan.dt, plan.first, problem.dtype)
    parameters = {**setup.parameters, **problem.parameters}
    schedule = make_schedule(
        scheme,
        graph,
        conditions=setup.conditions,
        parameters=parameters,
        source=problem.source if setup.source_varies else setup.source,
        dt=plan.dt,
        time=problem.begin,
        clock=CLOCK if any(p.name == CLOCK for p in scheme.equation.parameters) else None,
        dtype=problem.dtype,
    )
    if not scheme.implicit:
        times = times_of_stages(scheme) or (0.0,) * len(scheme.stages)
        return TimedStepper(scheme, schedule, clock, times, problem.dtype)
    check_linear(scheme)
    theta = float(scheme.theta)
    if setup.matrix_varies:
        return VaryingImplicitStepper(clock, HostOperator(scheme, graph, parameters, schedule), theta)
    inner = stepper(scheme, graph, plan.dt, parameters=setup.parameters, dtype=problem.dtype, solver=problem.solver)
    return TimedImplicitStepper(clock, inner, Forcing(scheme, schedule), theta)


def rerun(folder: str | os.PathLike[str], *, progress: Callable[[int], None] | None = None) -> Simulation:
    """Run the problem of a folder again, from the files in it: on the same machine the fields are equal.

    Raises InputError for a folder that holds no problem, and for one with a function of Python.
    """
    check_function(progress, "progress")
    return run_problem(read_problem(folder), progress=progress)


def restart(
    folder: str | os.PathLike[str],
    *,
    steps: int | None = None,
    end_time: float | None = None,
    dt: float | None = None,
    save_every: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> Simulation:
    """Continue from the last saved field of a folder, at its time and, unless `dt` is given, with its step.

    With the same step the fields are those of an uninterrupted run. Raises InputError for a folder that holds no
    problem.
    """
    check_function(progress, "progress")
    return run_problem(
        continue_problem(folder, steps=steps, end_time=end_time, dt=dt, save_every=save_every), progress=progress
    )


def continue_problem(
    folder: str | os.PathLike[str],
    *,
    steps: int | None,
    end_time: float | None,
    dt: float | Literal["auto"] | None,
    save_every: float | None,
) -> Problem:
    """The problem that continues the run of a folder, with the arguments of `restart`."""
    problem = replace(read_last(folder), steps=steps, end_time=end_time, save_every=save_every)
    check_plan(steps, end_time, problem.begin, save_every)
    return problem if dt is None else replace(problem, start_time=problem.begin, first_step=0, dt=dt)


def compare(
    schemes: Sequence[str | os.PathLike[str] | Scheme | AbstractMethod],
    mesh: Mesh | str | os.PathLike[str],
    *,
    progress: Callable[[int], None] | None = None,
    **problem: Any,
) -> Comparison:
    """Run each scheme on the same mesh, data and time step; `problem` are further arguments of `simulate`.

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
    runs: list[Simulation] = []
    for scheme in schemes:
        done = sum(run.steps for run in runs)
        report = None if progress is None else (lambda step, done=done: progress(done + step))
        runs.append(simulate(scheme, mesh, progress=report, **problem))
    return Comparison(tuple(runs))
