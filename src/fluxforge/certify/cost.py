"""The stencil and the cost of a step: linearity, hops read, operations and bytes moved, error against cost."""

from collections.abc import Callable

import jax
import numpy as np
from scipy.sparse import csr_array, eye_array

from fluxforge.certify._evidence import Line, Verdict
from fluxforge.certify._problems import diffusion_strength
from fluxforge.certify._properties import Cost, CostCurve, Linearity
from fluxforge.certify._systems import exact_solution, march, study_step
from fluxforge.errors import NumericalError
from fluxforge.mesh._boundary import Dirichlet
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._generate import jittered
from fluxforge.mesh._parameters import Settings
from fluxforge.scheme._document import find
from fluxforge.scheme._linear import linear_stages
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._assemble import Operator, generator, operator, sides, step_matrix
from fluxforge.stepping._build import stepper
from fluxforge.stepping._linear import LinearStepper
from fluxforge.stepping._solvers import factorise
from fluxforge.stepping._stepper import general_stepper


def measure_linearity(scheme: Scheme, graph: DualGraph, *, parameters: Settings | None = None) -> Linearity:
    """Linearity and hops: from the algebra where the scheme is linear, from automatic differentiation otherwise."""
    dt = 0.1 * study_step(scheme, graph, parameters)
    if linear_stages(scheme) is not None:
        M = step_matrix(scheme, graph, dt, parameters=parameters)
        return _describe_linearity(graph, M, (0.0, 0.0), linear=True, implicit=scheme.implicit)
    zero = np.zeros(graph.cells)
    step = general_stepper(scheme, graph, dt=dt, parameters=parameters, source=zero, dtype="float64")
    T = np.random.default_rng(0).random(graph.cells)
    M = csr_array(np.asarray(jax.jacfwd(step.advance)(step.enter(T))))
    defects = linearity_defects(lambda T: np.asarray(step(T)), graph.cells)
    return _describe_linearity(graph, M, defects, linear=False, implicit=scheme.implicit)


def _describe_linearity(
    graph: DualGraph, M: csr_array, defects: tuple[float, float], *, linear: bool, implicit: bool
) -> Linearity:
    used = csr_array(abs(M) > 1e-14 * max(abs(M).max(), 1e-300))
    hops = None if implicit else hops_used(graph, used)
    return Linearity(linear, hops, used.nnz / graph.cells, *defects)


# The numbers k with which f(kT) is compared with k f(T).
MULTIPLES = (-1.0, 2.0, 1e3, 1e-3, 1e-6)


def linearity_defects(step: Callable[[np.ndarray], np.ndarray], cells: int) -> tuple[float, float]:
    """The defects (homogeneity, additivity) of a step, the worst of a few signed states; see `Linearity`.

    Of small multiples kT the defect is relative to |f(T)|: a step that contains constants, such as the biases of a
    network, has round-off of that size whatever k is.
    """
    rng = np.random.default_rng(0)
    T, U = rng.standard_normal(cells), rng.standard_normal(cells)
    with np.errstate(all="ignore"):
        origin = step(np.zeros(cells))

        def f(state: np.ndarray) -> np.ndarray:
            return step(state) - origin

        at_T, at_U = f(T), f(U)
        homogeneity = max(_relative_size(f(k * T) - k * at_T, at_T, k * at_T, f(k * T)) for k in MULTIPLES)
        additivity = max(
            _relative_size(f(T + U) - at_T - at_U, at_T, at_U), _relative_size(f(T - U) - at_T + at_U, at_T, at_U)
        )
    return homogeneity, additivity


def _relative_size(apart: np.ndarray, *sizes: np.ndarray) -> float:
    """The largest entry of `apart` over the largest entry of `sizes`; infinite if it is not a number."""
    value = np.abs(apart).max() / max(*(np.abs(size).max() for size in sizes), 1e-300)
    return float(value) if np.isfinite(value) else float("inf")


def hops_used(graph: DualGraph, used: csr_array) -> int:
    """The smallest number of hops within which each cell reaches all cells that it reads: those in its row of `used`.

    `used` is a matrix of booleans, with a row and a column per cell.
    """
    inside = slice(graph.interior)
    i, j = graph.owner[inside], graph.neighbour[inside]
    both = (np.concatenate([i, j]), np.concatenate([j, i]))
    near = csr_array((np.ones(2 * graph.interior, bool), both), shape=used.shape)
    near = csr_array(near + eye_array(graph.cells, dtype=bool))
    reach = csr_array(eye_array(graph.cells, dtype=bool))
    for hops in range(graph.cells):
        if (used > reach).nnz == 0:
            return hops
        reach = csr_array(reach @ near)
    return graph.cells


def linearity_line(linearity: Linearity, where: str, unknown: str = "T") -> Line:
    """The line on linearity and the stencil; `unknown` is the letter of the unknown."""
    name, u = f"linear in {unknown}, S and boundary data", unknown
    hops = linearity.hops
    reach = "the whole mesh" if hops is None else f"{hops} hop{'s' * (hops != 1)}"
    stencil = f"reads {reach}, {linearity.entries_per_row:.1f} cells a row"
    if linearity.linear:
        return Line(name, Verdict.HOLDS, f"{stencil}, {where}", "from the algebra")
    defects = (
        f"f(k{u}) differs from k f({u}) by {linearity.homogeneity:.1e}, f({u} + w) from f({u}) + f(w) by "
        f"{linearity.additivity:.1e} of the largest, f({u}) = F({u}) − F(0)"
    )
    method = "from the algebra; signed, small and large states; automatic differentiation"
    return Line(name, Verdict.FAILS, f"{defects}; {stencil}, {where}", method)


# The built-in methods with which the cost of a scheme is compared.
PEERS = ("euler", "crank-nicolson", "rkl2-8")
# The relative error in time at which costs are compared.
TARGET_ERROR = 1e-4


def measure_cost(scheme: Scheme, graph: DualGraph, *, parameters: Settings | None = None) -> Cost:
    """The cost of the assembled stepper: arrays held, bytes read and written in a step, and operations.

    Raises NumericalError for a scheme that is not linear.
    """
    if linear_stages(scheme) is None:
        raise NumericalError("counted from the arrays of an assembled stepper, which a nonlinear scheme does not have")
    dt = 0.5 * study_step(scheme, graph, parameters)
    n = graph.cells
    if scheme.implicit:
        return _implicit_cost(operator(scheme, graph, dt=dt, parameters=parameters), len(scheme.stages), n)
    with jax.enable_x64(True):
        # A source, so that its term is counted.
        step = stepper(scheme, graph, dt, parameters=parameters, source=1.0)
    assert isinstance(step, LinearStepper)
    terms = [term for stage in step.stages for output_terms in stage.terms.values() for term in output_terms]
    flops = sum(2 * len(term.off) + 2 * (term.diagonal is not None) for term in terms)
    held = sum(array.nbytes for array in jax.tree.leaves(step.stages)) / n
    moved = step.bytes_per_cell(n)
    assert moved is not None
    # Besides the coefficients: T before and after, and a field per earlier output.
    fields = 1 + sum(len(stage.terms) for stage in step.stages)
    return Cost(len(scheme.stages), float(flops), moved, held + 8 * fields)


def _implicit_cost(step: Operator, stages: int, n: int) -> Cost:
    left, right = sides(step)
    factors = factorise(left, symmetric_pattern=True)
    entries = factors.L.nnz + factors.U.nnz + right.nnz
    return Cost(stages, 2 * entries / n, (12 * entries + 40 * n) / n, (12 * entries + 24 * n) / n)


def compare_costs(scheme: Scheme, *, parameters: Settings | None = None) -> tuple[CostCurve, ...]:
    """Error in time against cost, of a scheme and its peers on one smooth problem.

    Errors are relative to the exact solution of each scheme's own semi-discrete system.
    """
    graph = dual(jittered(8, 0.2, 2), Dirichlet("x"))
    peers = (find(name, scheme.equation) for name in PEERS)
    named = {scheme.name: scheme} | {peer.name: peer for peer in peers}
    return tuple(_curve(one, graph, parameters) for one in named.values())


def _curve(scheme: Scheme, graph: DualGraph, parameters: Settings | None) -> CostCurve:
    fourier = study_step(scheme, graph, parameters)
    x, y = graph.x.T
    T0 = x + np.sin(np.pi * x) * np.sin(2 * np.pi * y)
    S = 20 * diffusion_strength(scheme.equation, parameters) * np.exp(-20 * ((x - 0.4) ** 2 + (y - 0.6) ** 2))
    end = 64 * fourier
    exact = exact_solution(generator(scheme, graph, parameters=parameters), T0, S, end)
    per_step = measure_cost(scheme, graph, parameters=parameters).bytes
    fractions, errors, moved = [], [], []
    for count in (8, 16, 32, 64, 128, 256, 512, 1024):
        step = operator(scheme, graph, dt=end / count, parameters=parameters)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.abs(march(step, T0, S, count) - exact).max() / np.abs(exact).max()
        if np.isfinite(apart) and 1e-13 < apart < 1.0:
            fractions.append(64.0 / count)
            errors.append(float(apart))
            moved.append(per_step * count)
    return CostCurve(scheme.name, tuple(fractions), tuple(errors), tuple(moved))


def cost_line(cost: Cost, curves: tuple[CostCurve, ...], scheme: str) -> Line:
    """The line on the cost of a step, and on costs at equal accuracy."""
    at_target = {curve.scheme: curve.bytes_at(TARGET_ERROR) for curve in curves}
    mine = at_target.pop(scheme, None)
    others = [f"{name} {value / mine:.2g}×" for name, value in at_target.items() if mine and value]
    evidence = (
        f"{cost.stages} stage{'s' * (cost.stages != 1)}, {cost.flops:.0f} flops, {cost.bytes:.0f} bytes moved and "
        f"{cost.memory:.0f} bytes stored per cell"
    )
    if others:
        evidence += f"; bytes to an error of {TARGET_ERROR:g} in time, relative to this scheme: {', '.join(others)}"
    method = "read off the stepper's arrays; sparse LU factors if implicit"
    return Line("cost of a step", Verdict.MEASURED, evidence, method)
