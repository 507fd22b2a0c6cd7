"""What a step costs, and what accuracy that buys."""

from dataclasses import dataclass

import jax
import numpy as np

from fluxforge.certify._problems import strength, study_step
from fluxforge.certify.time_order import exact_solution, march
from fluxforge.mesh import Dirichlet, DualGraph, Settings, dual, jittered
from fluxforge.scheme import Scheme, find
from fluxforge.stepping import LinearStepper, Operator, bytes_per_cell, factorise, generator, operator, sides, stepper

PEERS = ("euler", "crank-nicolson", "rkl2-8")
TARGET = 1e-4


@dataclass(frozen=True)
class Cost:
    """Per cell and step: multiplications and additions, bytes moved, bytes held; and how many rounds of messages."""

    stages: int
    flops: float
    bytes: float
    memory: float


def cost(scheme: Scheme, graph: DualGraph, *, parameters: Settings | None = None) -> Cost:
    """Read off the stepper itself: the arrays it holds, what a step reads and writes of them, and its operations."""
    dt = 0.5 * study_step(scheme, graph, parameters)
    n = graph.cells
    if scheme.implicit:
        return _implicit_cost(operator(scheme, graph, dt=dt, parameters=parameters), len(scheme.stages), n)
    with jax.enable_x64(True):
        # A source, so that its term is counted.
        step = stepper(scheme, graph, dt, parameters=parameters, source=1.0)
    assert isinstance(step, LinearStepper)
    terms = [term for stage in step.stages for found in stage.terms.values() for term in found]
    flops = sum(2 * len(term.off) + 2 * (term.diagonal is not None) for term in terms)
    held = sum(array.nbytes for array in jax.tree.leaves(step.stages)) / n
    moved = bytes_per_cell(step, n)
    assert moved is not None
    # Besides the coefficients: T before and after, and a field per earlier output.
    fields = 1 + sum(len(stage.terms) for stage in step.stages)
    return Cost(len(scheme.stages), float(flops), moved, held + 8 * fields)


def _implicit_cost(step: Operator, stages: int, n: int) -> Cost:
    left, right = sides(step)
    factors = factorise(left, symmetric_pattern=True)
    entries = factors.L.nnz + factors.U.nnz + right.nnz
    return Cost(stages, 2 * entries / n, (12 * entries + 40 * n) / n, (12 * entries + 24 * n) / n)


@dataclass(frozen=True)
class CostCurve:
    """Error in time against bytes moved per cell, for one scheme at several steps."""

    scheme: str
    dt_over_fourier: tuple[float, ...]
    error: tuple[float, ...]
    bytes: tuple[float, ...]

    def bytes_at(self, error: float) -> float | None:
        """Bytes per cell to reach that error: between the points, or beyond the finest along the last slope.

        Never less than at the coarsest stable step. None where the scheme reached no usable error.
        """
        if len(self.error) < 2:
            return None
        e, b = np.log(self.error), np.log(self.bytes)
        wanted = np.log(error)
        if wanted >= e[0]:
            return float(self.bytes[0])
        if wanted < e[-1]:
            slope = (b[-1] - b[-2]) / (e[-1] - e[-2])
            return float(np.exp(b[-1] + slope * (wanted - e[-1]))) if slope < 0 else None
        order = np.argsort(e)
        return float(np.exp(np.interp(wanted, e[order], b[order])))


def error_against_cost(scheme: Scheme, *, parameters: Settings | None = None) -> tuple[CostCurve, ...]:
    """The scheme and its peers on one smooth problem, against the exact solution of the same semi-discrete system."""
    graph = dual(jittered(8, 0.2, 2), Dirichlet("x"))
    peers = (find(name, scheme.equation) for name in PEERS)
    named = {scheme.name: scheme} | {peer.name: peer for peer in peers}
    return tuple(_curve(one, graph, parameters) for one in named.values())


def _curve(scheme: Scheme, graph: DualGraph, parameters: Settings | None) -> CostCurve:
    fourier = study_step(scheme, graph, parameters)
    x, y = graph.x.T
    T0 = x + np.sin(np.pi * x) * np.sin(2 * np.pi * y)
    S = 20 * strength(scheme.equation, parameters) * np.exp(-20 * ((x - 0.4) ** 2 + (y - 0.6) ** 2))
    end = 64 * fourier
    exact = exact_solution(generator(scheme, graph, parameters=parameters), T0, S, end)
    per_step = cost(scheme, graph, parameters=parameters).bytes
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
