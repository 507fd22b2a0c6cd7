"""A problem on its mesh: fields, walls and parameters at the beginning, and the stepper that suits them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluxforge.errors import InputError
from fluxforge.mesh._boundary import Condition, Robin, depends_on_time, evaluate_at, fit_conditions, wall_value
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import resolve, settings_at, varies_in_time
from fluxforge.scheme._document import named_scheme
from fluxforge.scheme._linear import linear_stages
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._build import run_stepper, scheme_for_cells, stepper
from fluxforge.stepping._field import Envelope, data_envelope, field_on_cells
from fluxforge.stepping._problem import Problem
from fluxforge.stepping._schedule import make_schedule
from fluxforge.stepping._source import (
    CLOCK,
    check_reaction,
    check_source,
    source_settings,
    unknown_in_source,
    with_source,
)
from fluxforge.stepping._step_size import Plan
from fluxforge.stepping._stepper import AbstractStepper
from fluxforge.stepping._timed import (
    Clock,
    Forcing,
    HostOperator,
    TimedImplicitStepper,
    TimedStepper,
    VaryingImplicitStepper,
    times_of_stages,
)
from fluxforge.stepping._trained import TrainedNetwork


@dataclass(frozen=True)
class Setup:
    """A problem with its scheme, graph, fields and parameters at the beginning, and what of it changes in time."""

    problem: Problem
    scheme: Scheme | TrainedNetwork
    graph: DualGraph
    conditions: Mapping[str, Condition]
    initial: np.ndarray
    source: np.ndarray
    parameters: dict[str, Any]
    walls_vary: bool
    matrix_varies: bool
    source_varies: bool

    @property
    def varies(self) -> bool:
        """Whether anything changes in time."""
        return self.walls_vary or self.matrix_varies or self.source_varies

    def envelope(self) -> Envelope:
        """How large the field may become; unlimited where data change in time."""
        if self.varies:
            return Envelope(np.inf, 0.0)
        return data_envelope(
            self.scheme.equation, self.graph, self.parameters, initial=self.initial, source=self.source
        )

    def stepper(self, plan: Plan) -> AbstractStepper:
        """The stepper of the run."""
        problem, scheme = self.problem, self.scheme
        if isinstance(scheme, TrainedNetwork):
            return scheme.stepper(
                self.graph, plan.dt, source=self.source, parameters=self.parameters, dtype=problem.dtype
            )
        if self.varies:
            return self._timed(scheme, plan)
        return run_stepper(
            scheme,
            self.graph,
            plan.dt,
            steps=plan.first + plan.steps,
            parameters=self.parameters,
            source=self.source,
            dtype=problem.dtype,
            solver=problem.solver,
        )

    def _timed(self, scheme: Scheme, plan: Plan) -> AbstractStepper:
        problem = self.problem
        clock = Clock.of(plan.start, plan.dt, plan.first, problem.dtype)
        named = CLOCK if any(p.name == CLOCK for p in scheme.equation.parameters) else None
        given = {**problem.parameters, **{k: v for k, v in self.parameters.items() if k not in problem.parameters}}
        source = problem.source if self.source_varies else self.source
        schedule = make_schedule(
            scheme,
            self.graph,
            conditions=self.conditions,
            parameters=given,
            source=source,
            dt=plan.dt,
            time=problem.begin,
            clock=named,
            dtype=problem.dtype,
        )
        theta = float(scheme.theta)
        if not scheme.implicit:
            times = times_of_stages(scheme) or (0.0,) * len(scheme.stages)
            return TimedStepper(scheme, schedule, clock, times, problem.dtype)
        if linear_stages(scheme) is None:
            raise InputError(f"scheme {scheme.name!r} is implicit and not linear: no solver here takes it")
        if self.matrix_varies:
            return VaryingImplicitStepper(HostOperator(scheme, self.graph, given, schedule), clock, theta)
        inner = stepper(
            scheme, self.graph, plan.dt, parameters=self.parameters, dtype=problem.dtype, solver=problem.solver
        )
        return TimedImplicitStepper(inner, Forcing(scheme, schedule), clock, theta)

    def notes(self) -> tuple[str, ...]:
        """What a user should know of the steps."""
        asked = self.problem.scheme.name
        if self.scheme.name != asked:
            others = f"{asked}: cells without opposite faces have no lines of cells; {self.scheme.name} was run"
            return (others, *self._notes_on_times())
        return self._notes_on_times()

    def _notes_on_times(self) -> tuple[str, ...]:
        if not self.varies or isinstance(self.scheme, TrainedNetwork) or self.scheme.implicit:
            return ()
        if self.scheme.claims.time_order == 1 or times_of_stages(self.scheme) is not None:
            return ()
        return (
            f"{self.scheme.name}: the times of its stages are not known: sources and walls are those at the "
            "beginning of each step, which is first order in time",
        )

    def explain_failure(self, plan: Plan, done: int, failed: int) -> None:
        """Raise InputError, naming place and time, if data that change in time are refused around a failed step."""
        if not self.varies or isinstance(self.scheme, TrainedNetwork):
            return
        for step in range(done, failed):
            for part in (0.0, 0.5, 1.0):
                time = plan.start + (plan.first + step + part) * plan.dt
                if self.source_varies:
                    evaluate_at(self.problem.source, self.graph.x, "the source", time)  # type: ignore[arg-type]
                if self.walls_vary:
                    dual(self.problem.mesh, self.problem.boundary, equation=self.scheme.equation, time=time)
                if self.matrix_varies:
                    self._check_parameters(time)

    def _check_parameters(self, time: float) -> None:
        equation = self.problem.scheme.equation
        try:
            resolve(equation, self.graph, settings_at(equation, self.problem.parameters, time, self.graph.dimension))
        except InputError as error:
            raise InputError(f"{error} at time {time:g}") from error


def set_up(problem: Problem) -> Setup:
    """Evaluate a problem on its mesh at the beginning; InputError, naming the field, for what cannot be used."""
    scheme, begin = problem.scheme, problem.begin
    dimension = problem.mesh.points.shape[1]
    settings = dict(problem.parameters)
    formula = unknown_in_source(problem.source, scheme.equation, dimension)
    if formula is not None:
        scheme = _scheme_with_source(scheme, formula, dimension)
    graph = dual(problem.mesh, problem.boundary, equation=scheme.equation, time=begin)
    if isinstance(scheme, Scheme):
        scheme = scheme_for_cells(scheme, graph)
    conditions = fit_conditions(problem.boundary, graph.tags, scheme.equation)
    check_robin_walls(scheme, graph)
    T = field_on_cells(problem.initial, graph, "the initial temperature")
    if isinstance(scheme, TrainedNetwork):
        settings = dict(scheme.check_settings(settings))
    timed = varies_in_time(scheme.equation, settings, dimension)
    parameters = settings_at(scheme.equation, settings, begin, dimension) if timed else settings
    if formula is not None:
        check_source(formula, scheme.equation, graph, time=begin, state=T)
        parameters = {**parameters, **source_settings(scheme.equation, graph, begin)}
    elif not isinstance(scheme, TrainedNetwork):
        check_reaction(scheme.equation, graph, parameters, T)
    varies = formula is None and depends_on_time(problem.source, dimension)
    S = np.zeros(graph.cells)
    if formula is None:
        S = _source_at(problem, graph, begin if varies else None)
    walls = [depends_on_time(wall_value(each), dimension) for each in conditions.values()]
    transfers = [depends_on_time(each.h, dimension) for each in conditions.values() if isinstance(each, Robin)]
    setup = Setup(
        problem=problem,
        scheme=scheme,
        graph=graph,
        conditions=conditions,
        initial=T,
        source=S,
        parameters=parameters,
        walls_vary=any(walls) or any(transfers),
        matrix_varies=bool(timed) or any(transfers) or CLOCK in parameters,
        source_varies=varies,
    )
    if isinstance(scheme, TrainedNetwork) and setup.varies:
        raise InputError("a trained network takes sources, walls and parameters that do not change in time")
    return setup


def check_robin_walls(scheme: Scheme | TrainedNetwork, graph: DualGraph) -> None:
    """Raise InputError for a Robin wall with a scheme that takes the flux along a wall from a tensor.

    That flux would be added to h (u − outside), which is the whole of what passes the wall.
    """
    tensor = scheme.equation.diffusion_tensor
    if graph.transfer is None or tensor is None or isinstance(scheme, TrainedNetwork):
        return
    read = {own.name for stage in scheme.stages for m in stage.messages.values() for own in m.expression.free_symbols}
    if read & set(tensor.conormal_names):
        tag = graph.tags[int(graph.tag[np.isfinite(graph.transfer)][0])]
        raise InputError(
            f"the boundary condition of {tag!r}: scheme {scheme.name!r} takes no robin wall with the tensor "
            f"{tensor.name}; give a value or neumann:Q"
        )


def _source_at(problem: Problem, graph: DualGraph, time: float | None) -> np.ndarray:
    if time is None or isinstance(problem.source, np.ndarray):
        return field_on_cells(problem.source, graph, "the source")
    if problem.end_time is not None:
        evaluate_at(problem.source, graph.x, "the source", problem.end_time)
    return evaluate_at(problem.source, graph.x, "the source", time)


def _scheme_with_source(scheme: Scheme | TrainedNetwork, source: Any, dimension: int) -> Scheme:
    """The scheme of the same name for the equation with the source among its reactions."""
    known = None if isinstance(scheme, TrainedNetwork) else named_scheme(scheme.name, scheme.equation, dimension)
    if known is None or known != scheme:
        name = scheme.equation.unknown
        raise InputError(f"the source contains {name}: it needs a scheme that is made from the equation, by its name")
    made = named_scheme(scheme.name, with_source(scheme.equation, source, dimension), dimension)
    assert made is not None
    return made
