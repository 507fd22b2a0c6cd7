"""The limit Δt → 0 of a scheme: whether operator G, boundary data r and source s are the equation's.

For a scheme that is not linear: whether its rate of change over a short step is the equation's.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from fluxforge.certify._equations import LEAST_DECREASE, SAME_RATE, SAME_SYSTEM, SMOOTH, Rate, SemiDiscrete
from fluxforge.certify._evidence import Line, verdict_of
from fluxforge.certify._families import Levels
from fluxforge.certify._problems import (
    Problem,
    has_varying_parameters,
    problems_of,
    scale_parameter,
    with_study_walls,
)
from fluxforge.certify._studies import PatchTest
from fluxforge.certify._systems import source_error
from fluxforge.certify.effective import lattice_equation, own_equation, relative_to_own, smooth_equation
from fluxforge.certify.flux import has_flux_of_equation
from fluxforge.errors import NumericalError
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import Settings, reference_step
from fluxforge.pde._equation import HEAT
from fluxforge.pde._words import Words
from fluxforge.scheme._document import find
from fluxforge.scheme._scheme import Scheme, check_scheme
from fluxforge.stepping._assemble import Operator, generator
from fluxforge.stepping._stepper import general_stepper

# All parameters of the equation are multiplied by each of these: with 1 alone, a missing factor would not be noticed.
FACTORS = (1.0, 0.37, 2.9)
# The least size by which differences of r are divided, as a share of max|L|: L's own r may be 0. r is a sum of entries
# of the size of L's, so its round-off, 1e-16 of them, stays far below `SAME_SYSTEM`. TINY keeps quotients finite.
NO_DATA, TINY = 1e-3, 1e-300


def compare_system(
    scheme: Scheme, graph: DualGraph, patch: PatchTest, *, parameters: Settings | None = None
) -> SemiDiscrete:
    """Compare G, r and s with those of the plain flux on one mesh; `patch` is the patch test on an irregular one.

    This is done with the walls of the graph, and once more with ∂T/∂n prescribed on those to the right and below.
    """
    parameters = scheme.equation.example(graph.dimension) if parameters is None else parameters
    plain_flux = find("euler", scheme.equation)
    graphs = (graph, with_study_walls(graph))
    plain = walls = source = proportional = 0.0
    for walled in graphs:
        first, plain_first = (generator(one, walled, parameters=parameters) for one in (scheme, plain_flux))
        for factor in FACTORS:
            values = {name: scale_parameter(value, factor) for name, value in parameters.items()}
            system = generator(scheme, walled, parameters=values)
            wanted = generator(plain_flux, walled, parameters=values)
            size = max(abs(wanted.M).max(), TINY)
            plain = _worse(plain, abs(system.M - wanted.M).max() / size)
            walls = _worse(walls, np.abs(system.b - wanted.b).max() / max(np.abs(wanted.b).max(), NO_DATA * size))
            source = _worse(source, abs(system.N - wanted.N).max())
            if _proportion_defect(plain_first, wanted, factor) <= SAME_SYSTEM:
                proportional = _worse(proportional, _proportion_defect(first, system, factor))
    lattice = "cubes" if graph.dimension == 3 else "squares"
    varying = falls_with_size(scheme, lattice) if has_varying_parameters(scheme.equation) else True
    result = SemiDiscrete(plain, walls, source, proportional, patch.exact(1), varying, lattice)
    if not scheme.equation.only_diffuses:
        own = own_equation(scheme.equation, graph.dimension, parameters)
        smooth = smooth_equation(scheme, lattice, parameters=parameters).distance_from(own)
        return replace(result, smooth=smooth, two_point=has_flux_of_equation(scheme))
    on_squares = lattice_equation(scheme, lattice, parameters=parameters)
    relative = relative_to_own(on_squares.K, scheme.equation, parameters)
    eigenvalues = np.linalg.eigvalsh(relative)
    # The eigenvalue farthest from 1 is reported.
    farthest = float(eigenvalues[np.abs(eigenvalues - 1.0).argmax()])
    return replace(result, diffusion=farthest, drift=math.hypot(*on_squares.drift))


def falls_with_size(scheme: Scheme, lattice: str) -> bool:
    """Whether |G u + r + s S| away from the walls falls with h, for a smooth u and smoothly varying parameters.

    S is the source that makes u steady. A flux that reads a parameter on one side only omits its gradient, an error
    that does not fall. A first-order flux halves the residual from one size to the next.
    """
    problem = _align_with_axes(problems_of(scheme.equation, 3 if lattice == "cubes" else 2)[-1])
    residuals = []
    for n in (5, 10) if lattice == "cubes" else (10, 20):
        graph = problem.graph(Levels(lattice, (n,)).graph(n))
        system = generator(scheme, graph, parameters=problem.settings(graph.dimension))
        S = system.N @ problem.source(graph)
        off = np.abs(system.M @ problem.solution(graph) + system.b + S)
        inside = _is_inside(graph)
        residuals.append(float(off[inside].max() / np.abs(S).max()))
    return bool(residuals[1] <= max(LEAST_DECREASE * residuals[0], SAME_SYSTEM))


def _is_inside(graph: DualGraph) -> np.ndarray:
    """The cells of the unit square or cube that are away from its walls."""
    return np.all(np.abs(graph.x - 0.5) < 0.31, axis=1)


def _align_with_axes(problem: Problem) -> Problem:
    """The problem with a diagonal tensor, for which n and K n are parallel on squares, as a two-point flux needs."""
    tensor = problem.equation.diffusion_tensor
    if tensor is None or problem.parameters is None:
        return problem
    rows: Any = problem.parameters[tensor.name]
    along = tuple(tuple(entry if i == j else 0.0 for j, entry in enumerate(row)) for i, row in enumerate(rows))
    return replace(problem, parameters={**problem.parameters, tensor.name: along})


def _worse(one: float, other: float) -> float:
    """The larger of two numbers; NaN counts as infinite."""
    return max(one, float(other) if np.isfinite(other) else float("inf"))


def _proportion_defect(first: Operator, system: Operator, factor: float) -> float:
    """The relative difference of G and r from `factor` times those of `first`, the larger of the two."""
    scale = max(abs(system.M).max(), factor * abs(first.M).max(), TINY)
    of_walls = max(np.abs(system.b).max(), factor * np.abs(first.b).max(), TINY)
    return max(
        float(abs(system.M - factor * first.M).max() / scale),
        float(np.abs(system.b - factor * first.b).max() / of_walls),
    )


def other_equation(scheme: Scheme) -> str | None:
    """A phrase on how the equation that a linear scheme solves on squares differs from its own; None if it does not.

    On squares every consistent flux is exact for quadratic fields, so a wrong diffusivity, drift, rate, source or
    factor shows there without any error of the mesh. A tensor is taken diagonal, so that n and K n are parallel.
    """
    check_scheme(scheme)
    equation = scheme.equation
    parameters = equation.example(2, FACTORS[-1])
    tensor = equation.diffusion_tensor
    if tensor is not None:
        parameters[tensor.name] = np.diag(np.diag(np.asarray(parameters[tensor.name], float))).tolist()
    describe = _describe_other_diffusion if equation.only_diffuses else _describe_other_equation
    if (wrong := describe(scheme, parameters)) is not None:
        return wrong
    off = source_error(scheme, parameters)
    return None if off <= SAME_SYSTEM else f"the source enters with an error of {off:.2g}"


def _describe_other_diffusion(scheme: Scheme, parameters: Settings) -> str | None:
    letter = scheme.equation.words.diffusion
    on_squares = lattice_equation(scheme, "squares", parameters=parameters)
    if on_squares.drift.any():
        return f"smooth fields drift with {np.hypot(*on_squares.drift):.3g} {letter}"
    K = relative_to_own(on_squares.K, scheme.equation, parameters)
    if np.abs(K - np.eye(2)).max() <= 1e-6:
        return None
    xx, xy, yy = (round(float(K[k]), 4) + 0.0 for k in ((0, 0), (0, 1), (1, 1)))
    return f"on squares its diffusivity is [[{xx:g}, {xy:g}], [{xy:g}, {yy:g}]] times {letter}"


def _describe_other_equation(scheme: Scheme, parameters: Settings) -> str | None:
    smooth = smooth_equation(scheme, "squares", parameters=parameters)
    own = own_equation(scheme.equation, 2, parameters)
    if smooth.distance_from(own) <= SMOOTH:
        return None
    return f"on squares smooth fields obey {smooth}, and the equation is {own}"


def generator_line(system: SemiDiscrete, words: Words = HEAT.words) -> Line:
    """The line on G, r and s."""
    letter = words.diffusion
    if system.plain:
        operator = "G and the boundary data are the plain flux's to round-off"
    else:
        operator = (
            f"G differs from the plain flux by {system.plain_flux:.1e}, the boundary data by {system.walls:.1e}; "
            + ("another flux of the equation; " if system.two_point else "")
            + f"linear fields are {'exact' if system.linear_exact else 'not exact'}"
        )
        if system.smooth is not None:
            operator += f", and smooth fields obey the equation to {system.smooth:.1e} on {system.lattice}"
        else:
            operator += f", K/{letter} = {system.diffusion:.4g} on {system.lattice}"
        operator += f", a drift of {system.drift:.1e} {letter}" if system.drift else ""
    if system.proportional > 1e-10:
        operator += f"; G is not proportional to {words.parameters}: off by {system.proportional:.1e}"
    source = (
        "S enters unchanged"
        if system.source <= 1e-10
        else f"S has a wrong coefficient: |∂N/∂Δt − I| = {system.source:.2g}"
    )
    tried = words.parameters if words == HEAT.words else "sizes of the parameters"
    method = f"complex-step ∂/∂Δt at Δt = 0, three {tried}, Dirichlet and Neumann walls"
    return Line("small-step limit is L, source is S", verdict_of(system.holds), f"{operator}; {source}", method)


# Steps of this part of the reference step: (T' − T)/Δt at Δt and Δt/2 extrapolate to 0 with an error of the order of
# its square, 1e-10, and of round-off, 2ε/SHORT_STEP = 1e-10 of T over the reference step.
SHORT_STEP = 1e-5


def compare_rate(scheme: Scheme, graph: DualGraph, *, parameters: Settings) -> Rate:
    """Compare ∂T'/∂Δt at Δt = 0 with that of Euler's scheme for the same equation.

    States are one in (0, 1), one of both signs and a constant one. Raises NumericalError if none has finite rates.
    """
    rng = np.random.default_rng(0)
    states = (rng.random(graph.cells), rng.standard_normal(graph.cells), np.full(graph.cells, 0.3))
    source = rng.standard_normal(graph.cells)
    apart = [_rate_difference(scheme, graph, T=T, source=source, parameters=parameters) for T in states]
    worst = max((value for value in apart if np.isfinite(value)), default=math.inf)
    if math.isinf(worst):
        raise NumericalError("the equation has no finite rate of change on any of the states tried")
    if worst <= SAME_RATE:
        return Rate(worst)
    lattice = "cubes" if graph.dimension == 3 else "squares"
    return Rate(worst, measure_remaining_rates(scheme, lattice), lattice)


def measure_remaining_rates(scheme: Scheme, lattice: str) -> tuple[float, ...]:
    """|∂T'/∂Δt| of a smooth steady solution away from the walls, relative to its source, on finer and finer lattices.

    Parameters vary if they may. The 90 % quantile over cells is taken, not the maximum, since limited fluxes are of
    lower order in single cells.
    """
    problem = replace(problems_of(scheme.equation, 3 if lattice == "cubes" else 2)[-1], mixed=False)
    rates = []
    for n in (5, 10) if lattice == "cubes" else (8, 16, 32):
        graph = problem.graph(Levels(lattice, (n,)).graph(n))
        T, S, settings = problem.solution(graph), problem.source(graph), problem.settings(graph.dimension)
        dt = SHORT_STEP * reference_step(scheme.equation, graph, settings, T)
        off = np.abs(_slope(scheme, graph, T=T, source=S, dt=dt, parameters=settings))
        inside = _is_inside(graph)
        rates.append(float(np.quantile(off[inside], 0.9) / np.abs(S).max()))
    return tuple(rates)


def _rate_difference(
    scheme: Scheme, graph: DualGraph, *, T: np.ndarray, source: np.ndarray, parameters: Settings
) -> float:
    unit = reference_step(scheme.equation, graph, parameters, T)
    # An equation whose fields only grow has no reference step; then the unit of time is used.
    unit = unit if np.isfinite(unit) else 1.0
    own, wanted = (
        _slope(one, graph, T=T, source=source, dt=SHORT_STEP * unit, parameters=parameters)
        for one in (scheme, find("euler", scheme.equation))
    )
    size = max(np.abs(wanted).max(), np.abs(own).max(), np.abs(T).max() / unit)
    return float(np.abs(own - wanted).max() / size)


def _slope(
    scheme: Scheme, graph: DualGraph, *, T: np.ndarray, source: np.ndarray, dt: float, parameters: Settings
) -> np.ndarray:
    """(T' − T)/Δt extrapolated from Δt and Δt/2 to 0."""
    slopes = []
    for step in (dt, dt / 2):
        stepper = general_stepper(scheme, graph, dt=step, parameters=parameters, source=source, dtype="float64")
        slopes.append((np.asarray(stepper(T)) - T) / step)
    return np.asarray(2.0 * slopes[1] - slopes[0])


def rate_line(rate: Rate) -> Line:
    """The line on the rate of change over a short step, for a scheme that is not linear."""
    evidence = f"∂T'/∂Δt at Δt = 0 differs from the equation's own flux, reaction and source by {rate.apart:.1e}"
    method = "steps of 1e-5 and 0.5e-5 of the reference step, extrapolated, from three states"
    if rate.left:
        falls = "falls" if rate.falls else "does not fall"
        shares = " ".join(f"{share:.2e}" for share in rate.left)
        evidence = f"a flux other than the equation's two-point one; its residual on a smooth steady field {falls}"
        evidence += f" with the size of the {rate.lattice}: {shares} of the source"
        method = "short steps from a manufactured solution, on three sizes of lattice"
    return Line("small-step limit is the equation's", verdict_of(rate.holds), evidence, method)
