"""Steps whose sources, walls or parameters change in time: each stage uses them at its own time.

The state of these steppers is the field followed by the number n of the step, so that the time is t₀ + (n + c) Δt
and not a sum of rounded steps.
"""

from dataclasses import replace
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fluxforge._types import State
from fluxforge.errors import InputError
from fluxforge.graph._padded_graph import put
from fluxforge.graph._stages import Formulas, evaluate_stages, visit_stages_in_time
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import Settings, resolve, settings_at
from fluxforge.scheme._scheme import NEXT, Ghost, Scheme
from fluxforge.stepping._assemble import Operator, operator, sides
from fluxforge.stepping._implicit import HostExchange
from fluxforge.stepping._schedule import Schedule
from fluxforge.stepping._solvers import factorise
from fluxforge.stepping._stepper import AbstractStepper, repeat_steps


class Clock(eqx.Module):
    """t₀ + (n + c) Δt; `first` is the number of the step that a run begins with."""

    # No static fields: one compilation serves all steps.
    start: Float[Array, ""]
    dt: Float[Array, ""]
    first: Float[Array, ""]

    @staticmethod
    def of(start: float, dt: float, first: int, dtype: str) -> "Clock":
        """A clock of numbers on the device."""
        return Clock(*(put(np.asarray(float(each)), dtype) for each in (start, dt, first)))

    def at(self, n: Float[Array, ""], c: float) -> Float[Array, ""]:
        """The time at the part c of step n."""
        return self.start + (n + c) * self.dt


class TimedStepper(AbstractStepper):
    """An explicit scheme; every message is evaluated in every slot at every step."""

    scheme: Scheme = eqx.field(static=True)
    schedule: Schedule
    clock: Clock
    times: tuple[float, ...] = eqx.field(static=True)
    dtype: Literal["float32", "float64"] = eqx.field(static=True)

    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> Float[Array | np.ndarray, " entries"]:
        """The field followed by the number of the first step."""
        return jnp.concatenate([jnp.asarray(T, self.dtype), self.clock.first[None]])

    def leave(self, T: Float[Array | np.ndarray, " entries"]) -> Float[Array | np.ndarray, " cells"]:
        """The field alone."""
        return T[:-1]

    def repeat(self, T: State, steps: int) -> State:
        """Many steps without leaving the device."""
        return repeat_steps(self, T, jnp.asarray(steps))

    @eqx.filter_jit
    def advance(self, T: State) -> State:
        """One step: stage by stage, each with the data at its own time."""
        u, n = T[:-1], jnp.asarray(T[-1])
        moments = {c: self.schedule.at(self.clock.at(n, c)) for c in dict.fromkeys(self.times)}
        rounds = ((Formulas(stage), moments[c]) for stage, c in zip(self.scheme.stages, self.times, strict=True))
        *_, last = visit_stages_in_time(rounds, jnp.asarray(u))
        return jnp.concatenate([last.outputs[NEXT], jnp.asarray([n + 1.0], T.dtype)])


class HostTimed(AbstractStepper):
    """A stepper on the host whose state is the field followed by the number of the step."""

    clock: Clock

    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> Float[Array | np.ndarray, " entries"]:
        """The field followed by the number of the first step."""
        return np.append(np.array(T, float), float(self.clock.first))

    def leave(self, T: Float[Array | np.ndarray, " entries"]) -> Float[Array | np.ndarray, " cells"]:
        """The field alone."""
        return T[:-1]


class Forcing(eqx.Module):
    """c(t) = N S(t) + b(t) of a linear F(T) = M T + c(t), computed as F(0)."""

    scheme: Scheme = eqx.field(static=True)
    schedule: Schedule

    @eqx.filter_jit
    def __call__(self, time: Float[Array, ""]) -> State:
        """The contribution of sources and walls to a step that begins at `time`."""
        graph, S, parameters = self.schedule.at(time)
        return evaluate_stages(self.scheme.stages, graph, jnp.zeros_like(graph.V), S, parameters=parameters)


class TimedImplicitStepper(HostTimed):
    """An implicit scheme with a constant matrix; sources and walls enter a step by (1 − θ) c(t) + θ c(t + Δt).

    `inner` solves the systems; its `constant` is replaced at every step.
    """

    inner: AbstractStepper
    forcing: Forcing
    theta: float = eqx.field(static=True)

    def advance(self, T: State) -> State:
        """One step."""
        n = float(T[-1])
        now, then = (np.asarray(self.forcing(self.clock.at(jnp.asarray(n), c))) for c in (0.0, 1.0))
        constant = (1.0 - self.theta) * now + self.theta * then
        inner = eqx.tree_at(lambda it: it.constant, self.inner, self._to_inner(constant))
        after = inner.leave(inner.advance(inner.enter(np.asarray(T[:-1]))))
        return np.append(np.asarray(after, float), n + 1.0)

    def _to_inner(self, constant: np.ndarray) -> State:
        held = self.inner.constant  # type: ignore[attr-defined]
        return constant if isinstance(held, np.ndarray) else jnp.asarray(self.inner.enter(constant), held.dtype)


class HostOperator:
    """M and c(t) of a linear scheme at any time, assembled on the host.

    Compared by identity, so that it can be a static field.
    """

    def __init__(self, scheme: Scheme, graph: DualGraph, parameters: Settings, schedule: Schedule) -> None:
        self.scheme, self.graph, self.parameters, self.schedule = scheme, graph, parameters, schedule
        self._last: tuple[float, tuple[Operator, np.ndarray]] | None = None

    def __call__(self, time: float) -> tuple[Operator, np.ndarray]:
        """M, N and b as an operator, and c, at one time; the result for the last time is cached."""
        if self._last is None or self._last[0] != time:
            self._last = time, self._assemble(time)
        return self._last[1]

    def _assemble(self, time: float) -> tuple[Operator, np.ndarray]:
        S, *shown = (np.asarray(each, float) for each in _evaluate_source_and_nodes(self.schedule, jnp.asarray(time)))
        follow, constant = (each[self.graph.cells :] for each in shown)
        # The values of a graph from the constants of its ghosts: g, q, or the value outside.
        held = np.where(follow < 1.0, constant / np.where(follow < 1.0, 1.0 - follow, 1.0), 0.0)
        value = np.where(self.graph.neumann, constant / self.graph.delta[self.graph.interior :], held)
        closed = replace(self.graph, value=value, follow=follow, transfer=None, inflow=None)
        settings = settings_at(self.scheme.equation, self.parameters, time, self.graph.dimension)
        if self.schedule.clock is not None:
            settings[self.schedule.clock] = time
        if np.isnan(follow).any():
            # Raises an error that names the parameter, if a parameter is the cause.
            resolve(self.scheme.equation, self.graph, settings)
            tag = self.graph.tags[int(self.graph.tag[np.isnan(follow)][0])]
            raise InputError(
                f"h of the boundary condition of {tag!r} is below 0 at time {time:g}; it should be 0 or more"
            )
        step = operator(self.scheme, closed, dt=float(self.schedule.dt), parameters=settings)
        return step, step.N @ S + step.b


@eqx.filter_jit
def _evaluate_source_and_nodes(
    schedule: Schedule, time: Float[Array, ""]
) -> tuple[State, Float[Array, " nodes"], Float[Array, " nodes"]]:
    """The source, and the scale and the constant of a state's values at nodes."""
    moment = schedule.at(time)
    shown = moment.graph.shown[str(Ghost.DIRICHLET)]
    return moment.S, shown.scale, shown.constant


class VaryingImplicitStepper(HostTimed):
    """An implicit scheme whose matrix changes in time: both ends of a step are assembled, and the end is factorised.

    T' = T + (1 − θ)((M − I) T + c)(t) + θ((M − I) T' + c)(t + Δt).
    """

    at: HostOperator = eqx.field(static=True)
    theta: float = eqx.field(static=True)

    def advance(self, T: State) -> State:
        """One step."""
        u, n = np.asarray(T[:-1]), float(T[-1])
        start, dt = float(self.clock.start), float(self.clock.dt)
        (before, c0), (after, c1) = (self.at(start + (n + c) * dt) for c in (0.0, 1.0))
        known = u + (1.0 - self.theta) * (HostExchange(before)(u) + c0)
        left, _ = sides(after)
        solved = factorise(left, symmetric_pattern=True).solve(known + self.theta * c1)
        return np.append(known + self.theta * (HostExchange(after)(solved) + c1), n + 1.0)
