"""Rows of cells under transport: Riemann problems against the entropy solution, and the steady boundary layer.

The exact solution for any f is given by Osher's formula: u(x/t = ξ) is the u between the two states at which f(u) − ξu
is least if u_left < u_right, and largest otherwise.
"""

from typing import Any

import jax
import numpy as np
import sympy as sp

from fluxforge.certify._evidence import Line, verdict_of
from fluxforge.certify._problems import carried_flux
from fluxforge.certify.transport import BoundaryLayer, Range, RiemannProblem, RiemannStudy
from fluxforge.errors import InputError, NumericalError
from fluxforge.expression._evaluate import evaluate
from fluxforge.mesh._boundary import Dirichlet, Neumann
from fluxforge.mesh._build import dual
from fluxforge.mesh._conditions import Conditions
from fluxforge.mesh._mesh import Mesh
from fluxforge.pde._equation import Equation, differentiate
from fluxforge.pde._parameter import Rank
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._assemble import generator
from fluxforge.stepping._build import stepper

# The jump is in the middle of a row of unit length, and no wave comes nearer to an end than a tenth of it.
MIDDLE, REACH = 0.5, 0.4
# Points per cell at which the exact solution is averaged, and states among which its extremum is searched.
SAMPLES, STATES = 8, 4001
# Overshoots beyond the states up to this are not reported: steps are rounded, and limited slopes guard a division.
OVERSHOOT = 1e-6
# The Courant number of the runs, for the largest |f′(u)|.
COURANT = 0.4


def list_riemann_problems(equation: Equation, states: Range) -> tuple[RiemannProblem, ...]:
    """Jumps in both directions between the ends of the range; for f not linear, also to and from a state between them.

    That state is the sonic point, where f′ = 0, if there is one, and otherwise the middle of the range. Raises
    InputError for an f that is neither linear nor convex nor concave over the range.
    """
    f, u = carried_flux(equation), equation.u
    at = np.linspace(*states, STATES)
    bend = np.broadcast_to(evaluate(sp.diff(f, u, 2), {u: at}, np), at.shape)
    if (bend > 0).any() and (bend < 0).any():
        raise InputError("Riemann problems need a convex or a concave f")
    low, high = states
    if not bend.any():
        return (_make_problem(equation, low, high), _make_problem(equation, high, low))
    slope = np.broadcast_to(evaluate(differentiate(f, u), {u: at}, np), at.shape)
    sonic = float(at[np.argmin(np.abs(slope))]) if slope.min() < 0 < slope.max() else 0.5 * (low + high)
    pairs = ((high, low), (low, high), (high, sonic), (sonic, high))
    return tuple(_make_problem(equation, *pair) for pair in pairs)


def _make_problem(equation: Equation, left: float, right: float) -> RiemannProblem:
    f, u = carried_flux(equation), equation.u
    slopes = [float(evaluate(differentiate(f, u), {u: state}, np)) for state in (left, right)]
    values = [float(evaluate(f, {u: state}, np)) for state in (left, right)]
    speed = (values[1] - values[0]) / (right - left) + 0.0
    if slopes[0] > slopes[1]:
        return RiemannProblem("shock", left, right, speed)
    if slopes[0] == slopes[1]:
        return RiemannProblem("contact", left, right, speed)
    return RiemannProblem("transonic rarefaction" if slopes[0] < 0 < slopes[1] else "rarefaction", left, right, None)


def exact_solution(equation: Equation, problem: RiemannProblem, ratio: np.ndarray) -> np.ndarray:
    """The entropy solution u at x/t = `ratio`, with a jump at x = 0, by Osher's formula."""
    states = np.linspace(problem.left, problem.right, STATES)
    f = np.broadcast_to(evaluate(carried_flux(equation), {equation.u: states}, np), states.shape)
    turn = 1.0 if problem.left < problem.right else -1.0
    # Chunks of ratios, so that the table of states × ratios fits into the cache.
    return np.concatenate(
        [states[np.argmin(turn * (f - part[:, None] * states), axis=1)] for part in np.array_split(ratio, 64)]
    )


def row_mesh(count: int, cells: int) -> Mesh:
    """`count` separate rows of unit length, of `cells` squares each; boundary tags are `left`, `right` and `sides`."""
    h = 1.0 / cells
    x = np.arange(cells + 1) * h
    points, quads = [], []
    edges: dict[str, list[Any]] = {"left": [], "right": [], "sides": []}
    for k in range(count):
        base = 2 * k * (cells + 1)
        for y in (3 * k * h, (3 * k + 1) * h):
            points.append(np.stack([x, np.full(cells + 1, y)], axis=1))
        i = base + np.arange(cells)
        up = i + cells + 1
        quads.append(np.stack([i, i + 1, up + 1, up], axis=1))
        edges["left"].append([[base, base + cells + 1]])
        edges["right"].append([[base + cells, base + 2 * cells + 1]])
        edges["sides"] += [np.stack([i, i + 1], axis=1).tolist(), np.stack([up, up + 1], axis=1).tolist()]
    tagged = {tag: np.array([edge for part in parts for edge in part]) for tag, parts in edges.items()}
    return Mesh(np.concatenate(points), np.concatenate(quads), tagged, origin=f"{count} rows of {cells} squares")


def solve_riemann(scheme: Scheme, states: Range, *, sizes: tuple[int, ...] = (40, 80, 160)) -> tuple[RiemannStudy, ...]:
    """Run every Riemann problem of the scheme's equation at several sizes, to the same time and Courant number.

    Raises InputError for an f without known problems, or a scheme that cannot be used on rows of squares.
    """
    equation = scheme.equation
    problems = list_riemann_problems(equation, states)
    u = np.linspace(*states, STATES)
    top = float(np.abs(evaluate(differentiate(carried_flux(equation), equation.u), {equation.u: u}, np)).max())
    end = REACH / top
    results = [_run(scheme, problems, n=n, end=end, steps=int(np.ceil(end * top * n / COURANT))) for n in sizes]
    studies = []
    for k, problem in enumerate(problems):
        errors, speeds, beyond = zip(*(result[k] for result in results), strict=True)
        speed = speeds[-1] if problem.speed is not None else None
        studies.append(RiemannStudy(problem, sizes, errors, speed, max(beyond)))
    return tuple(studies)


def _run(
    scheme: Scheme, problems: tuple[RiemannProblem, ...], *, n: int, end: float, steps: int
) -> list[tuple[float, float, float]]:
    """For each problem the L1 error, the speed of the middle value, and the largest overshoot beyond the two states."""
    left, right = (np.array([getattr(one, side) for one in problems]) for side in ("left", "right"))

    def initial(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        row = np.clip(np.round(y * n - 0.5) // 3, 0, len(problems) - 1).astype(int)
        return np.where(x < MIDDLE, left[row], right[row])

    vector = {p.name: (1.0, 0.0) for p in scheme.equation.parameters if p.rank is Rank.VECTOR}
    walls: Conditions = {"left": Dirichlet(initial), "right": Dirichlet(initial), "sides": Neumann()}
    graph = dual(row_mesh(len(problems), n), walls, equation=scheme.equation)
    parameters = {**scheme.equation.example(2), **vector}
    with jax.enable_x64(True):
        march = stepper(scheme, graph, end / steps, parameters=parameters)
        fields = np.asarray(march.rollout(initial(*graph.x.T), steps)).reshape(len(problems), n)
    fine = (np.arange(n * SAMPLES) + 0.5) / (n * SAMPLES)
    results = []
    for u, problem in zip(fields, problems, strict=True):
        exact = exact_solution(scheme.equation, problem, (fine - MIDDLE) / end).reshape(n, SAMPLES).mean(axis=1)
        low, high = sorted((problem.left, problem.right))
        beyond = float(np.maximum(u - high, low - u).max())
        results.append((float(np.abs(u - exact).mean()), _front_speed(u, problem, end), max(0.0, beyond)))
    return results


def _front_speed(u: np.ndarray, problem: RiemannProblem, end: float) -> float:
    """The mean speed of the point where u is the mean of both states, interpolated between cells."""
    share = (u - problem.right) / (problem.left - problem.right)
    behind = int(np.argmax(share < 0.5))
    if behind == 0:
        return float("nan")
    part = (share[behind - 1] - 0.5) / (share[behind - 1] - share[behind])
    return float(((behind - 0.5 + part) / len(u) - MIDDLE) / end)


def riemann_line(studies: tuple[RiemannStudy, ...]) -> Line:
    """The line on whether the errors of all Riemann problems fall; problems whose errors do not are listed first."""
    wrong = [study for study in studies if not study.falls]
    parts = [_describe_study(study) for study in (*wrong, *(study for study in studies if study not in wrong))]
    kinds = {study.problem.kind for study in wrong}
    name = "Riemann problems tend to the entropy solution"
    if any("rarefaction" in kind for kind in kinds):
        parts.insert(0, "a rarefaction is not resolved: an entropy violation")
    method = f"L1 error on rows of {', '.join(map(str, studies[0].cells))} squares against Osher's formula"
    return Line(name, verdict_of(not wrong), "; ".join(parts), method)


def _describe_study(study: RiemannStudy) -> str:
    text = f"{study.problem}: L1 " + " ".join(f"{error:.2e}" for error in study.errors)
    if study.speed is not None and study.problem.kind == "shock":
        text += f", speed {study.speed + 0.0:.3f} (exact {(study.problem.speed or 0.0) + 0.0:g})"
    return text + (
        f", outside the range of the two states by {study.overshoot:.2g}" if study.overshoot > OVERSHOOT else ""
    )


def layer_line(layer: BoundaryLayer) -> Line:
    """The line on whether a steady boundary layer oscillates, and at which cell Péclet numbers."""
    parts = [
        f"{peclet:g}: {'outside the values of the walls by ' + format(off, '.2g') if off > 1e-9 else 'none'}"
        for peclet, off in zip(layer.peclet, layer.overshoot, strict=True)
    ]
    verdict = verdict_of(max(layer.overshoot) <= 1e-9)
    evidence = "overshoot by cell Péclet number, " + "; ".join(parts)
    return Line("steady boundary layer without oscillation", verdict, evidence, "steady state on a row of 24 squares")


# The row of cells, and the cell Péclet numbers tried: central differences oscillate beyond 2.
CELLS = 24
PECLET = (1.0, 1.9, 2.5, 10.0, 100.0)


def solve_boundary_layer(scheme: Scheme) -> BoundaryLayer:
    """Solve a ∂u/∂x = K ∂²u/∂x², u = 0 on the left and 1 on the right, with flow to the right.

    Raises NumericalError if the system has no solution, or if K is not a formula of scalars.
    """
    equation = scheme.equation
    conducting = {v.name for v in equation.diffusion.free_symbols}
    if equation.diffusion_tensor is not None or not conducting:
        raise NumericalError("solved for a scalar diffusion only")
    walls: Conditions = {"left": Dirichlet(0.0), "right": Dirichlet(1.0), "sides": Neumann()}
    graph = dual(row_mesh(1, CELLS), walls)
    overshoots = []
    for peclet in PECLET:
        values = dict(equation.example(2))
        for p in equation.parameters:
            if p.rank is Rank.VECTOR:
                values[p.name] = (1.0, 0.0)
            elif p.name in conducting:
                values[p.name] = 1.0 / (CELLS * peclet)
        system = generator(scheme, graph, parameters=values)
        u = np.linalg.solve(system.M.toarray(), -system.b)
        if not np.isfinite(u).all():
            raise NumericalError(f"no steady state at a cell Péclet number of {peclet:g}")
        overshoots.append(float(max(u.max() - 1.0, -u.min(), 0.0)))
    return BoundaryLayer(PECLET, tuple(overshoots))
