"""March a field through the steps of a plan, and notice where it blows up."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import jax
import numpy as np

from fluxforge._types import Precision, State
from fluxforge.errors import InputError
from fluxforge.stepping._field import Envelope
from fluxforge.stepping._step_size import Plan
from fluxforge.stepping._stepper import AbstractStepper


@contextmanager
def raise_memory_error() -> Iterator[None]:
    """Raise MemoryError where JAX's runtime says, in an error for every purpose, that memory is exhausted."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error) and "Out of memory" not in str(error):
            raise
        raise MemoryError(str(error)) from error


def check_fits(dtype: Precision, fields: Mapping[str, np.ndarray]) -> None:
    """Refuse data beyond the largest number of the precision, which would enter as infinity."""
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
    """Step in chunks between saved fields; the time of compilation is not counted."""
    run = March([0], [T])
    state = advance.enter(T)
    jax.block_until_ready(advance.repeat(state, 1))
    seconds = 0.0
    for mark in plan.marks:
        done = run.marks[-1]
        start = time.perf_counter()
        after = _chunk(advance, state, mark - done, seconds / max(done, 1))
        seconds += time.perf_counter() - start
        field = np.asarray(advance.leave(after), float)
        if not (np.abs(field) <= envelope.bound(plan.dt * mark)).all():
            run.blew_up_at = _which_step(advance, state, done, mark - done, envelope, plan.dt)
            break
        state = after
        run.marks.append(mark)
        run.fields.append(field)
        if progress is not None:
            progress(mark)
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
        if not (np.abs(np.asarray(advance.leave(state), float)) <= envelope.bound(dt * step)).all():
            return step
    return done + count
