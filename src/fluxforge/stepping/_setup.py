"""A problem on its mesh: scheme, graph, fields, walls and parameters at the start."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluxforge.errors import InputError, SchemeError
from fluxforge.mesh._boundary import Condition, Robin, depends_on_time, evaluate_at, wall_value
from fluxforge.mesh._build import dual
from fluxforge.mesh._conditions import fit_conditions
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import check_diffusion, resolve, settings_at, varies_in_time
from fluxforge.scheme._document import named_scheme
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._field import (
    CLOCK,
    Envelope,
    check_reaction,
    check_source,
    data_envelope,
    field_on_cells,
    source_settings,
    unknown_in_source,
    with_source,
)
from fluxforge.stepping._problem import Problem
from fluxforge.stepping._stepper import AbstractMethod, scheme_for_cells


@dataclass(frozen=True)
class Setup:
    """A problem with its scheme, graph, fields and parameters at the start, and the data that change in time."""

    problem: Problem
    scheme: Scheme | AbstractMethod
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
        """A bound on the field; unlimited if data change in time."""
        if self.varies:
            return Envelope(np.inf, 0.0)
        return data_envelope(
            self.scheme.equation, self.graph, self.parameters, initial=self.initial, source=self.source
        )

    def notes(self, fourier: float) -> tuple[str, ...]:
        """Remarks for the user on the scheme and its steps, whose length is given in reference steps."""
        scheme, requested, notes = self.scheme, self.problem.scheme.name, []
        if not isinstance(scheme, Scheme):
            return scheme.range_notes(fourier)
        if scheme.name != requested:
            notes.append(
                f"{requested}: the scheme needs lines of cells through opposite faces, which this mesh does not "
                f"have; {scheme.name} was used instead"
            )
        times_matter = self.varies and not scheme.implicit and scheme.claims.time_order != 1
        if times_matter and times_of_stages(scheme) is None:
            notes.append(
                f"{scheme.name}: the times of its stages are not known, so sources and walls are evaluated at the "
                "beginning of each step, which is first order in time"
            )
        return tuple(notes)

    def check_data_at(self, time: float) -> None:
        """Raise InputError, naming place and time, if data that change in time cannot be used at that time."""
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
    """Evaluate a problem on its mesh at the start; InputError, naming the field, for data that cannot be used."""
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
    T = field_on_cells(problem.initial, graph, "the initial field")
    if not isinstance(scheme, Scheme):
        settings = dict(scheme.check_settings(settings))
    timed = varies_in_time(scheme.equation, settings, dimension)
    parameters = settings_at(scheme.equation, settings, begin, dimension) if timed else settings
    if formula is not None:
        check_source(formula, scheme.equation, graph, time=begin, state=T)
        parameters = {**parameters, **source_settings(scheme.equation, graph, begin)}
    elif isinstance(scheme, Scheme):
        check_reaction(scheme.equation, graph, parameters, T)
    check_diffusion(scheme.equation, graph, parameters, T)
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
    if not isinstance(scheme, Scheme) and setup.varies:
        raise InputError("a trained network supports only sources, walls and parameters that do not change in time")
    return setup


def check_robin_walls(scheme: Scheme | AbstractMethod, graph: DualGraph) -> None:
    """Raise InputError for a Robin wall with a scheme that takes the flux along a wall from a tensor.

    That flux would be added to h (u − outside), which is already the whole flux through the wall.
    """
    tensor = scheme.equation.diffusion_tensor
    if graph.transfer is None or tensor is None or not isinstance(scheme, Scheme):
        return
    if scheme.symbols_in_messages() & set(tensor.conormal_names):
        tag = graph.tags[int(graph.tag[np.isfinite(graph.transfer)][0])]
        raise InputError(
            f"the boundary condition of {tag!r}: scheme {scheme.name!r} does not support a robin wall with the tensor "
            f"{tensor.name}; give a value or neumann:Q"
        )


def _source_at(problem: Problem, graph: DualGraph, time: float | None) -> np.ndarray:
    if time is None or isinstance(problem.source, np.ndarray):
        return field_on_cells(problem.source, graph, "the source")
    if problem.end_time is not None:
        evaluate_at(problem.source, graph.x, "the source", problem.end_time)
    return evaluate_at(problem.source, graph.x, "the source", time)


def _scheme_with_source(scheme: Scheme | AbstractMethod, source: Any, dimension: int) -> Scheme:
    """The scheme of the same name for the equation with the source added to its reaction."""
    known = None if not isinstance(scheme, Scheme) else named_scheme(scheme.name, scheme.equation, dimension)
    if known is None or known != scheme:
        name = scheme.equation.unknown
        raise InputError(
            f"the source contains {name}: this needs a built-in scheme, given by its name, that is made from the "
            "equation"
        )
    rebuilt = named_scheme(scheme.name, with_source(scheme.equation, source, dimension), dimension)
    assert rebuilt is not None
    return rebuilt


def times_of_stages(scheme: Scheme) -> tuple[float, ...] | None:
    """The c of every stage, whose time is t + c Δt; None if the scheme is not that of a known time integrator.

    A scheme read from a file has no times; if it equals the built-in scheme of its name, it has the times of that one.
    """
    if any(stage.time is None for stage in scheme.stages):
        try:
            known = named_scheme(scheme.name, scheme.equation, scheme.dimension or 2)
        except SchemeError:
            return None
        if known is None or known != scheme or any(stage.time is None for stage in known.stages):
            return None
        scheme = known
    return tuple(float(stage.time) for stage in scheme.stages if stage.time is not None)
