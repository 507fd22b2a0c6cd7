"""Units: other units of length, time and temperature, and another zero of temperature, must change nothing.

The heat equation is unchanged if lengths are multiplied by λ and times by λ²; if α is multiplied by λ and times are
divided by it; if temperatures, sources and boundary data are multiplied by anything; and if a constant is added to all
temperatures. A scheme that is not unchanged has a number with a unit in it, or solves another equation.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import equinox as eqx
import numpy as np
import sympy as sp

from fluxforge.mesh import DualGraph, fourier_step
from fluxforge.scheme import Scheme, message_symbols, output_symbols
from fluxforge.verify._problems import functions, with_mixed_walls
from fluxforge.verify._step import make_step
from fluxforge.verify.time_order import study_graph

FACTORS = (1e-3, 0.37, 2.9, 1e3)
TEMPERATURES = (-1.0, 1e-3, 2.9, 1e3)
SHIFTS = (-300.0, 0.7, 1e3)
# Of the largest change in a step: round-off is about 1e-16 times the largest shift over that change, which is near 1.
SAME = 1e-9

# By which power of λ each symbol is multiplied.
_LENGTHS = {"A": 1, "delta": 1, "d_x": 1, "d_y": 1, "V": 2, "dt": 2, "S": -2}
_TIMES = {"alpha": 1, "dt": -1, "S": 1}
_TEMPERATURES = {"T": 1, "S": 1}


@dataclass(frozen=True)
class Units:
    """By how much T' − T changes, relative to its largest entry, the worst of several factors.

    `lengths`: lengths × λ, times × λ²; `times`: α × λ, times / λ; `temperatures`: × anything, −1 among them; `shift`: a
    constant added. `algebra` lists which of the first three follow from the dimensions of the formulas, for every λ.
    """

    lengths: float
    times: float
    temperatures: float
    shift: float
    algebra: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing changes beyond round-off."""
        return max(self.lengths, self.times, self.temperatures, self.shift) <= SAME


def units(scheme: Scheme) -> Units:
    """One step on a small irregular mesh with Dirichlet and Neumann walls, again in other units."""
    graph = with_mixed_walls(study_graph(), functions("1 + 2*x - 3*y + x*y").gradient)
    rng = np.random.default_rng(0)
    T, S = rng.standard_normal(graph.cells), 10 * rng.standard_normal(graph.cells)
    alpha = 1.3
    case = _Case(scheme, graph, T, S, alpha, 0.3 * fourier_step(graph, alpha))
    wanted = case.step() - T
    return Units(
        lengths=_worst(case.lengths(k).step() - T - wanted for k in FACTORS) / _size(wanted),
        times=_worst(case.times(k).step() - T - wanted for k in FACTORS) / _size(wanted),
        temperatures=_worst(case.temperatures(k).step() / k - T - wanted for k in TEMPERATURES) / _size(wanted),
        shift=_worst(case.shifted(c).step() - c - T - wanted for c in SHIFTS) / _size(wanted),
        algebra=dimensions(scheme),
    )


@dataclass(frozen=True)
class _Case:
    scheme: Scheme
    graph: DualGraph
    T: np.ndarray
    S: np.ndarray
    alpha: float
    dt: float

    def step(self) -> np.ndarray:
        with np.errstate(all="ignore"):
            return make_step(self.scheme, self.graph, dt=self.dt, diffusivity=self.alpha)(self.T, self.S)

    def lengths(self, k: float) -> "_Case":
        g = self.graph
        value = np.where(g.neumann, g.value / k, g.value)
        parts = (g.V * k**2, g.x * k, g.A * k, g.d * k, g.delta * k, g.centre * k, value)
        scaled = eqx.tree_at(lambda m: (m.V, m.x, m.A, m.d, m.delta, m.centre, m.value), g, parts)
        return _Case(self.scheme, scaled, self.T, self.S / k**2, self.alpha, self.dt * k**2)

    def times(self, k: float) -> "_Case":
        return _Case(self.scheme, self.graph, self.T, self.S * k, self.alpha * k, self.dt / k)

    def temperatures(self, k: float) -> "_Case":
        scaled = eqx.tree_at(lambda m: m.value, self.graph, self.graph.value * k)
        return _Case(self.scheme, scaled, self.T * k, self.S * k, self.alpha, self.dt)

    def shifted(self, c: float) -> "_Case":
        value = np.where(self.graph.neumann, self.graph.value, self.graph.value + c)
        moved = eqx.tree_at(lambda m: m.value, self.graph, value)
        return _Case(self.scheme, moved, self.T + c, self.S, self.alpha, self.dt)


def _size(change: np.ndarray) -> float:
    return float(max(np.abs(change).max(), 1e-300))


def _worst(differences: Iterable[np.ndarray]) -> float:
    """The largest entry; not a number counts as infinite."""
    largest = [float(np.abs(one).max()) for one in differences]
    return max(value if np.isfinite(value) else float("inf") for value in largest)


@lru_cache(maxsize=256)
def dimensions(scheme: Scheme) -> tuple[str, ...]:
    """Which of lengths, times and temperatures the formulas are homogeneous in, by Euler's theorem on each of them.

    What is listed holds for every factor λ > 0. What is not may still hold: formulas that are not rational functions,
    and sums of parts with different dimensions that cancel, are not decided.
    """
    asked = {"lengths": (_LENGTHS, 0), "times": (_TIMES, 0), "temperatures": (_TEMPERATURES, 1)}
    return tuple(name for name, (powers, wanted) in asked.items() if _degree_of_step(scheme, powers) == wanted)


def _degree_of_step(scheme: Scheme, base: Mapping[str, int]) -> sp.Expr | None:
    """The power of λ that T' is multiplied by; None where it is none."""
    powers: dict[str, sp.Expr] = {name: sp.Integer(power) for name, power in base.items()}
    for _, stage, earlier in scheme.walk():
        for name, message in stage.messages.items():
            known = message_symbols(message.hop, earlier)
            degree = _degree(message.expression, {known[key]: _power_of(key, powers) for key in known})
            if degree is None:
                return None
            powers[name] = degree
        known = output_symbols(stage.messages, earlier)
        for name, output in stage.outputs.items():
            degree = _degree(output.expression, {known[key]: _power_of(key, powers) for key in known})
            if degree is None:
                return None
            powers[name] = degree
    return powers["T_new"]


def _power_of(name: str, powers: Mapping[str, sp.Expr]) -> sp.Expr:
    """The power of a symbol, its end or leg (_P, _NQ, _PQ_x, …) set aside."""
    if name in powers:
        return powers[name]
    for part in ("_P", "_N", "_Q", "_PN", "_NQ", "_PQ"):
        if name.endswith(part) and name.removesuffix(part) in powers:
            return powers[name.removesuffix(part)]
    return powers.get("d_x", sp.Integer(0)) if name.startswith("d_PQ_") else sp.Integer(0)


def _degree(expression: sp.Expr, powers: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr | None:
    """The w with Σ w_s s ∂e/∂s = w e, for a rational function e; None where there is none."""
    present = [s for s in expression.free_symbols if powers[s] != 0]
    if not present:
        return sp.Integer(0)
    if not expression.is_rational_function(*expression.free_symbols):
        return None
    slope = sp.Add(*(powers[s] * s * sp.diff(expression, s) for s in present))
    ratio = sp.cancel(slope / expression)
    return sp.nsimplify(ratio) if ratio.is_number else None
