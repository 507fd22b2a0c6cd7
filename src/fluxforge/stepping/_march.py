"""The time steps of a run: a step chosen by its stability limit, equal steps to an end time, and the march."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from fluxforge._arguments import check_number, check_positive, check_whole
from fluxforge._types import Precision, State
from fluxforge.errors import InputError, NumericalError
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import Settings, reference_step, reference_step_over, speed_varies
from fluxforge.pde._equation import Equation
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._field import Envelope
from fluxforge.stepping._limit import StepLimit, step_limit
from fluxforge.stepping._stepper import AbstractMethod, AbstractStepper

# Up to this many cells the stability limit is computed to five digits, beyond it is enclosed.
MOST_PRECISE_CELLS = 5000
# An implicit step adds Δt times the round-off of the exchange to the field; beyond this many Fourier steps (a hundredth
# of 1/ε) that is no longer small beside the field.
LONGEST_STEP = {"float64": 0.01 / np.finfo(np.float64).eps, "float32": 0.01 / float(np.finfo(np.float32).eps)}


# The step of dt="auto" as a share of the stability limit, and of the reference step where no limit is known.
AUTO_OF_LIMIT, AUTO_OF_REFERENCE = 0.9, 0.5
# With dt="auto", a run to an end time without a stability limit takes this many steps.
AUTO_STEPS = 100
# The number of steps, and of saved fields, unless given.
STEPS, FRAMES = 50, 20
# More steps than a run of years would take.
MOST_STEPS = 1e12


def choose_step(
    scheme: Scheme | AbstractMethod,
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

    The reference step of an equation that is not linear is taken at the `state`, and where the speed depends on the
    unknown also over the range of the data (see `reference_step_over`). On large meshes the limit is a step that is
    certainly stable, close below the largest; None if it is not known.
    """
    fourier = _reference_step(scheme.equation, graph, parameters, state)
    if dt is None:
        fraction = check_positive(dt_fraction, "dt_fraction")
        if not 0 < fourier < math.inf:
            words = scheme.equation.words
            none = f"no cell exchanges {words.exchanged} with a neighbour (is the field or a parameter 0 everywhere?)"
            what = none if fourier else "the exchange between cells is not a finite number"
            raise InputError(f"{_name_parameters(parameters)}{what}, so there is no {words.step_name}: give dt itself")
        dt = fraction * fourier
    dt = check_positive(dt, "dt")
    limit = _known_limit(scheme, graph, parameters, precise=graph.cells <= MOST_PRECISE_CELLS)
    if limit is not None and limit.certain < dt <= limit.dt:
        limit = _known_limit(scheme, graph, parameters, precise=True)
    if not force:
        _refuse_step(scheme, dt, fourier, limit, dtype)
    return dt, fourier, None if limit is None else limit.certain


def _reference_step(
    equation: Equation, graph: DualGraph, parameters: Settings | None, state: np.ndarray | None
) -> float:
    if state is None:
        return reference_step(equation, graph, parameters)
    return reference_step_over(equation, graph, parameters, state)


def name_reference_step(equation: Equation) -> str:
    """The reference step of a run in a sentence."""
    return equation.words.step_name + (" over the range of the data" if speed_varies(equation) else "")


def _name_parameters(parameters: Settings | None) -> str:
    """The parameters that are numbers, as the beginning of a message."""
    numbers = [f"{name} = {value:g}" for name, value in (parameters or {}).items() if isinstance(value, int | float)]
    return f"{', '.join(numbers)}: " if numbers else ""


def _known_limit(
    scheme: Scheme | AbstractMethod, graph: DualGraph, parameters: Settings | None, *, precise: bool
) -> StepLimit | None:
    """The stability limit, enclosed if it is not found to five digits; None if the eigenvalues are not found at all."""
    if not isinstance(scheme, Scheme):
        return None
    for attempt in (True, False) if precise else (False,):
        try:
            return step_limit(scheme, graph, parameters=parameters, precise=attempt)
        except NumericalError:
            continue
    return None


def _refuse_step(
    scheme: Scheme | AbstractMethod, dt: float, fourier: float, limit: StepLimit | None, dtype: Precision
) -> None:
    reference = scheme.equation.words.step_name
    if limit is not None and dt > limit.dt * (1 + 1e-9):
        raise InputError(
            f"dt = {dt:.4g} is above the stability limit of {scheme.name!r} on this mesh, {limit.dt:.4g} "
            f"({limit.dt / fourier:.3g} of the {reference}): use a smaller step, or --force (force=True)"
        )
    if scheme.implicit and dt > LONGEST_STEP[dtype] * fourier:
        raise InputError(
            f"dt = {dt:.4g} is {dt / fourier:.2g} {reference}s, so long that rounding errors of {dtype} would exceed "
            f"the field: use at most {LONGEST_STEP[dtype] * fourier:.2g}, or --force (force=True)"
        )


def automatic_step(
    scheme: Scheme | AbstractMethod,
    graph: DualGraph,
    *,
    parameters: Settings | None,
    state: np.ndarray,
    duration: float | None,
) -> tuple[float, str]:
    """The step of `dt="auto"`, and a text that says how it was chosen.

    It is a share of the stability limit. If there is no limit, it is a hundredth of the run or, without an end time,
    the reference step; if the limit is not known, a share of the reference step. Raises InputError if there is no
    reference step either.
    """
    limit = _known_limit(scheme, graph, parameters, precise=graph.cells <= MOST_PRECISE_CELLS)
    if limit is not None and 0 < limit.certain < math.inf:
        return AUTO_OF_LIMIT * limit.certain, f"auto: {AUTO_OF_LIMIT:g} of the stability limit"
    if limit is not None and limit.certain > 0 and duration is not None:
        return duration / AUTO_STEPS, f"auto: there is no stability limit, {AUTO_STEPS} steps to the end time"
    reference = reference_step_over(scheme.equation, graph, parameters, state)
    if not 0 < reference < math.inf:
        raise InputError(
            f"dt: no {scheme.equation.words.step_name} is defined for this problem, so that dt cannot be chosen: "
            "give dt itself"
        )
    share = 1.0 if limit is not None else AUTO_OF_REFERENCE
    return share * reference, f"auto: {share:g} of the {name_reference_step(scheme.equation)}"


@dataclass(frozen=True)
class Plan:
    """Equal steps from `start` + `first` Δt on; `marks` are the numbers of the steps whose fields are saved."""

    dt: float
    steps: int
    marks: tuple[int, ...]
    start: float
    end: float | None
    first: int = 0

    def time(self, step: int) -> float:
        """The time after `step` steps; after the last one the end time itself, free of round-off."""
        return self.end if self.end is not None and step == self.steps else self.start + (self.first + step) * self.dt


def check_plan(steps: int | None, end_time: float | None, start_time: float, save_every: float | None) -> float | None:
    """The duration of a run, None if it is given as a number of steps; raises InputError for invalid arguments."""
    start = check_number(start_time, "start_time")
    if not math.isfinite(start):
        raise InputError(f"start_time should be finite, got {start}")
    if steps is not None:
        check_whole(steps, "steps", least=1)
    if isinstance(save_every, float | np.floating) and not isinstance(save_every, bool):
        check_positive(save_every, "save_every")
    elif save_every is not None:
        check_whole(save_every, "save_every", least=1)
    if end_time is None:
        return None
    if steps is not None:
        raise InputError("steps and end_time both set the length of the run: give only one of them")
    end = check_number(end_time, "end_time")
    if not math.isfinite(end):
        raise InputError(f"end_time should be finite, got {end}")
    if not end > start:
        raise InputError(f"end_time {end:g} should be later than the time {start:g} at which the run begins")
    return end - start


def plan_steps(
    dt: float, *, steps: int | None, duration: float | None, save_every: float | None, start: float, first: int
) -> Plan:
    """Steps of length `dt`; with a duration, the fewest equal steps of at most that length that fill it."""
    end = None
    if duration is not None:
        begin = start + first * dt if first else start
        end = begin + duration
        if not duration / dt < MOST_STEPS:
            raise InputError(
                f"a run over a time of {duration:g} takes {duration / dt:.3g} steps of {dt:g}, and at most "
                f"{MOST_STEPS:g} are allowed"
            )
        # A quotient that is a whole number up to rounding is taken as that number.
        steps = max(1, math.ceil(duration / dt * (1.0 - 1e-12)))
        if first and not math.isclose(duration / steps, dt, rel_tol=1e-12):
            # The step differs from that of the earlier run, so steps are counted from here.
            start, first = begin, 0
        dt = dt if first else duration / steps
    steps = STEPS if steps is None else steps
    return Plan(dt, steps, _marks(dt, steps, save_every), start, end, first)


def _marks(dt: float, steps: int, save_every: float | None) -> tuple[int, ...]:
    """The numbers of the steps to save, the last included: every `save_every`-th, or by time if that is a float.

    A time saves the first step at or after each of its multiples.
    """
    if isinstance(save_every, float):
        count = int(steps * dt / save_every * (1.0 + 1e-12))
        if count > steps:
            every: Any = range(1, steps + 1)
        else:
            every = (math.ceil(k * save_every / dt * (1.0 - 1e-12)) for k in range(1, count + 1))
    else:
        each = math.ceil(steps / FRAMES) if save_every is None else int(save_every)
        every = range(each, steps + 1, each)
    return tuple(dict.fromkeys([*(mark for mark in every if mark <= steps), steps]))


@contextmanager
def raise_memory_error() -> Iterator[None]:
    """Turn JAX's general runtime error into MemoryError where its message says that memory is exhausted."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error) and "Out of memory" not in str(error):
            raise
        raise MemoryError(str(error)) from error


def check_fits(dtype: Precision, fields: Mapping[str, np.ndarray]) -> None:
    """Raise InputError for data beyond the largest number of the precision, which would become infinite."""
    largest = float(np.finfo(dtype).max)
    for what, values in fields.items():
        if values.size and float(np.abs(values).max()) > largest:
            raise InputError(f"{what} has values beyond {largest:.3g}, the largest number of {dtype}: use float64")


@dataclass
class March:
    """Saved fields and the numbers of their steps; `blew_up_at` is the step at which the field blew up, or None."""

    marks: list[int]
    fields: list[np.ndarray]
    seconds_per_step: float = 0.0
    blew_up_at: int | None = None


def march(
    advance: AbstractStepper,
    T: np.ndarray,
    envelope: Envelope,
    plan: Plan,
    *,
    progress: Callable[[int], None] | None,
) -> March:
    """Step to every mark and save the field there, until it blows up; the time of compilation is not counted."""
    run = March([0], [T])
    state = advance.enter(T)
    # Compiles the step before time is measured.
    jax.block_until_ready(advance.repeat(state, 1))
    seconds = 0.0
    for mark in plan.marks:
        done = run.marks[-1]
        start = time.perf_counter()
        after = _step_in_chunks(advance, state, mark - done, seconds / max(done, 1))
        seconds += time.perf_counter() - start
        field = np.asarray(advance.leave(after), float)
        if not (np.abs(field) <= envelope.bound(plan.dt * mark)).all():
            run.blew_up_at = _find_failed_step(advance, state, done, mark - done, envelope, plan.dt)
            break
        state = after
        run.marks.append(mark)
        run.fields.append(field)
        if progress is not None:
            progress(mark)
    run.seconds_per_step = seconds / max(run.marks[-1], 1)
    return run


def _step_in_chunks(advance: AbstractStepper, state: State, count: int, seconds_each: float) -> State:
    """Take `count` steps in calls of about half a second each, so that Ctrl-C takes effect soon."""
    most = max(1, int(0.5 / seconds_each)) if seconds_each else min(count, 100)
    while count > 0:
        state = jax.block_until_ready(advance.repeat(state, min(most, count)))
        count -= most
    return state


def _find_failed_step(
    advance: AbstractStepper, state: State, done: int, count: int, envelope: Envelope, dt: float
) -> int:
    """Repeat the chunk step by step to find the one at which the field blew up."""
    for step in range(done + 1, done + count):
        state = advance.repeat(state, 1)
        if not (np.abs(np.asarray(advance.leave(state), float)) <= envelope.bound(dt * step)).all():
            return step
    return done + count
