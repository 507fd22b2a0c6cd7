"""What a step costs, and what accuracy that buys."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

from fluxforge.mesh import Dirichlet, DualGraph, dual, fourier_step, jittered
from fluxforge.scheme import Scheme
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.simulate import Operator, assemble, generator, operator, sides
from fluxforge.verify.time_order import exact_solution, march

PEERS = ("euler", "crank-nicolson", "rkl2-8")
TARGET = 1e-4


@dataclass(frozen=True)
class Cost:
    """Per cell and step: multiplications and additions, bytes moved, bytes held; and how many rounds of messages."""

    stages: int
    flops: float
    bytes: float
    memory: float


def cost(scheme: Scheme, graph: DualGraph, *, diffusivity: float = 1.0) -> Cost:
    """Counted from the assembled matrices: each entry an index of 4 bytes (none on the diagonal) and a value of 8."""
    dt = 0.5 * fourier_step(graph, diffusivity)
    n = graph.cells
    if scheme.implicit:
        return _implicit_cost(operator(scheme, graph, dt=dt, diffusivity=diffusivity), len(scheme.stages), n)
    flops = moved = held = 0.0
    for stage in assemble(scheme, graph, dt=dt, diffusivity=diffusivity):
        fields = {name for affine in stage.values() for name in affine.matrices} - {"S"}
        entries = sum(m.nnz for affine in stage.values() for name, m in affine.matrices.items() if name != "S")
        shared = max((m.nnz for affine in stage.values() for m in affine.matrices.values()), default=n) - n
        flops += 2 * entries + n * len(stage)
        held += 8 * entries + 4 * shared + 8 * n * len(stage)
        moved += 8 * entries + 4 * shared + 8 * n * (len(fields) + 2 * len(stage))
    return Cost(len(scheme.stages), flops / n, moved / n, (held + 16 * n) / n)


def _implicit_cost(step: Operator, stages: int, n: int) -> Cost:
    left, right = sides(step)
    factors = splu(csc_array(left), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
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


def error_against_cost(scheme: Scheme, *, diffusivity: float = 1.0) -> tuple[CostCurve, ...]:
    """The scheme and its peers on one smooth problem, against the exact solution of the same semi-discrete system."""
    graph = dual(jittered(8, 0.2, 2), Dirichlet("x"))
    named = {scheme.name: scheme} | {name: BUILT_IN[name] for name in PEERS}
    return tuple(_curve(one, graph, diffusivity) for one in named.values())


def _curve(scheme: Scheme, graph: DualGraph, diffusivity: float) -> CostCurve:
    fourier = fourier_step(graph, diffusivity)
    x, y = graph.x.T
    T0 = x + np.sin(np.pi * x) * np.sin(2 * np.pi * y)
    S = 20 * diffusivity * np.exp(-20 * ((x - 0.4) ** 2 + (y - 0.6) ** 2))
    end = 64 * fourier
    exact = exact_solution(generator(scheme, graph, diffusivity=diffusivity), T0, S, end)
    per_step = cost(scheme, graph, diffusivity=diffusivity).bytes
    fractions, errors, moved = [], [], []
    for count in (8, 16, 32, 64, 128, 256, 512, 1024):
        step = operator(scheme, graph, dt=end / count, diffusivity=diffusivity)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.abs(march(step, T0, S, count) - exact).max() / np.abs(exact).max()
        if np.isfinite(apart) and 1e-13 < apart < 1.0:
            fractions.append(64.0 / count)
            errors.append(float(apart))
            moved.append(per_step * count)
    return CostCurve(scheme.name, tuple(fractions), tuple(errors), tuple(moved))
