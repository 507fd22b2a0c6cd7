"""Units: other units of length, time and temperature, and another zero of temperature, must change nothing.

Every quantity is multiplied by the factor of its unit: lengths by λ with times by λ², in which a diffusivity keeps its
value; times by 1/λ; the unknown, its sources and boundary data by any factor. If constants solve the equation, one is
added to the unknown. A scheme whose step changes contains a number with a unit, or solves another equation.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import sympy as sp

from fluxforge.certify._evidence import Line, verdict_of
from fluxforge.certify._families import study_graph
from fluxforge.certify._problems import scale_parameter, with_study_walls, with_walls
from fluxforge.certify._properties import SAME_UNITS, Units
from fluxforge.certify._systems import study_step
from fluxforge.errors import EquationError
from fluxforge.expression._parse import parse
from fluxforge.expression._symbols import symbol
from fluxforge.graph._pad import pad_graph
from fluxforge.graph._stages import evaluate_stages
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import Settings, resolve
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.pde._parameter import NUMBER, Unit
from fluxforge.pde._words import Words
from fluxforge.scheme._linear import linear_stages
from fluxforge.scheme._scheme import Scheme, message_symbols, output_symbols, symbol_units
from fluxforge.stepping._assemble import apply, assemble

# Factors λ of lengths and times, factors of the unknown, and constants added to it: small and large ones, and no powers
# of two but −1, since these would scale without rounding.
FACTORS = (1e-3, 0.37, 2.9, 1e3)
TEMPERATURES = (-1.0, 1e-3, 2.9, 1e3)
SHIFTS = (-300.0, 0.7, 1e3)

# The powers of λ by which lengths, times and the unknown are multiplied in each of the three changes of units.
_UNIT_CHANGES = {"lengths": (1, 2, 0), "times": (0, -1, 0), "temperatures": (0, 0, 1)}


def measure_units(scheme: Scheme, graph: DualGraph | None = None) -> Units:
    """Repeat one step in other units, on a small irregular mesh or the given one, with Dirichlet and Neumann walls.

    Raises EquationError if the equation does not state the units of its parameters.
    """
    equation = scheme.equation
    if any(p.unit is None for p in equation.parameters):
        raise EquationError(f"equation {equation.name!r} does not state the units of its parameters")
    graph = with_study_walls(study_graph() if graph is None else graph)
    rng = np.random.default_rng(0)
    T, S = rng.standard_normal(graph.cells), 10 * rng.standard_normal(graph.cells)
    parameters = equation.example(graph.dimension, 1.3)
    case = _Case(scheme, graph, T, S, parameters, 0.3 * study_step(scheme, graph, parameters, T))
    wanted = case.step() - T
    worst: dict[str, float] = {}
    # Without a power of Θ the unknown is a number, or in units of length and time: there is nothing to multiply it by.
    unscaled = () if equation.unknown_unit.unknown else ("temperatures",)
    for name, powers in _UNIT_CHANGES.items():
        if name in unscaled:
            continue
        factors = FACTORS if name != "temperatures" else TEMPERATURES if equation.linear else TEMPERATURES[1:]
        changes = (case.scale_units(*(k**power for power in powers)).step() - T - wanted for k in factors)
        worst[name] = _largest_change(changes) / _size(wanted)
    shift = None
    if _admits_constants(equation):
        changes = (case.shift_unknown(c).step() - c - T - wanted for c in SHIFTS)
        shift = _largest_change(changes) / _size(wanted)
    algebra = tuple(name for name in list_homogeneous_units(scheme, graph.dimension) if name not in unscaled)
    return Units(worst["lengths"], worst["times"], worst.get("temperatures"), shift, algebra)


def _admits_constants(equation: Equation) -> bool:
    """Whether u + c is a solution whenever u is, for constant parameters; tested with one polynomial u."""
    u, c = parse("x**2*y + x*t", ("x", "y", "t")), symbol("c")
    return bool(sp.simplify(equation.strong(u + c, 2) - equation.strong(u, 2)) == 0)


@dataclass(frozen=True)
class _Case:
    """The data of one step, in units in which the unknown is `scale` times that of the first case."""

    scheme: Scheme
    graph: DualGraph
    T: np.ndarray
    S: np.ndarray
    parameters: Settings
    dt: float
    scale: float = 1.0

    def step(self) -> np.ndarray:
        """T' in the units of the first case; for an implicit scheme, the F(T) to which its θ-formula refers.

        A linear scheme is assembled, any other is evaluated stage by stage. Needs JAX's 64-bit mode.
        """
        scheme, graph = self.scheme, self.graph
        with np.errstate(all="ignore"):
            if linear_stages(scheme) is not None:
                stages = assemble(scheme, graph, dt=self.dt, parameters=self.parameters)
                return np.asarray(apply(stages, self.T, self.S)) / self.scale
            fields = resolve(scheme.equation, graph, self.parameters)
            around = pad_graph(graph, scheme.hops(), parameters=fields, dtype="float64")
            T, S, constants = jnp.asarray(self.T), jnp.asarray(self.S), {"dt": self.dt, **fields.constants}
            return np.asarray(evaluate_stages(scheme.stages, around, T, S, parameters=constants)) / self.scale

    def scale_units(self, length: float, time: float, unknown: float) -> "_Case":
        """The same case in other units: every quantity times the factor of its unit."""
        g, equation = self.graph, self.scheme.equation
        known = symbol_units(equation, g.dimension)

        def factor(unit: Unit) -> float:
            return float(length ** int(unit.length) * time ** int(unit.time) * unknown ** int(unit.unknown))

        geometry = {name: factor(known[name]) for name in ("V", "A", "delta")}
        scale = factor(known["T"])
        value = g.value * np.where(g.neumann, scale / length, scale)
        delta = geometry["delta"]
        parts = (g.V * geometry["V"], g.x * delta, g.A * geometry["A"], g.d * delta, g.delta * delta, g.centre * delta)
        scaled = eqx.tree_at(lambda m: (m.V, m.x, m.A, m.d, m.delta, m.centre, m.value), g, (*parts, value))
        factors = {p.name: factor(p.unit or NUMBER) for p in equation.parameters}
        parameters = {name: scale_parameter(parameter, factors[name]) for name, parameter in self.parameters.items()}
        T, S = self.T * scale, self.S * factor(known["S"])
        return replace(self, graph=scaled, T=T, S=S, parameters=parameters, dt=self.dt * time, scale=scale)

    def shift_unknown(self, c: float) -> "_Case":
        """The same case with c added to the unknown and its boundary values."""
        value = np.where(self.graph.neumann, self.graph.value, self.graph.value + c)
        return replace(self, graph=with_walls(self.graph, value=value), T=self.T + c)


def _size(change: np.ndarray) -> float:
    return float(max(np.abs(change).max(), 1e-300))


def _largest_change(differences: Iterable[np.ndarray]) -> float:
    """The largest entry of all differences; NaN counts as infinite."""
    largest = [float(np.abs(difference).max()) for difference in differences]
    return max(value if np.isfinite(value) else float("inf") for value in largest)


@lru_cache(maxsize=256)
def list_homogeneous_units(scheme: Scheme, dimension: int = 2) -> tuple[str, ...]:
    """Those of lengths, times and temperatures in which all formulas are homogeneous, by Euler's theorem.

    For those listed a step is unchanged for every factor λ > 0. Others may be, too: formulas that are not rational
    functions, and sums of parts with different dimensions that cancel, are not decided.
    """
    return tuple(name for name, powers in _UNIT_CHANGES.items() if _keeps_degree(scheme, powers, dimension))


def _keeps_degree(scheme: Scheme, change: tuple[int, int, int], dimension: int) -> bool:
    """Whether T' is multiplied by the same power of λ as T."""
    known_units = symbol_units(scheme.equation, dimension)
    degrees = {name: sum(a * b for a, b in zip(unit, change, strict=True)) for name, unit in known_units.items()}
    powers: dict[str, sp.Expr] = {name: sp.Rational(power) for name, power in degrees.items()}
    for name, expression, known in _list_formulas(scheme):
        degree = _degree(expression, {known[key]: _power_of(key, powers) for key in known})
        if degree is None:
            return False
        powers[name] = degree
    return bool(powers["T_new"] == powers["T"])


def _list_formulas(scheme: Scheme) -> Iterator[tuple[str, sp.Expr, Mapping[str, sp.Symbol]]]:
    """Every message and output in the order of evaluation: its name, its formula, and the symbols that it may read."""
    for _, stage, earlier in scheme.walk():
        for name, message in stage.messages.items():
            yield name, message.expression, message_symbols(message.hop, earlier, scheme.equation)
        known = output_symbols(stage.messages, earlier, scheme.equation)
        for name, output in stage.outputs.items():
            yield name, output.expression, known


def _power_of(name: str, powers: Mapping[str, sp.Expr]) -> sp.Expr:
    """The power of λ of a symbol, which is that of its name without an end or leg (_P, _NQ, …); 0 if unknown."""
    if name in powers:
        return powers[name]
    for part in ("_P", "_N", "_Q", "_PN", "_NQ", "_PQ"):
        if name.endswith(part) and name.removesuffix(part) in powers:
            return powers[name.removesuffix(part)]
    return sp.Integer(0)


def _degree(expression: sp.Expr, powers: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr | None:
    """The w with Σ w_s s ∂e/∂s = w e, for a rational function e; None if there is none, or e is not rational."""
    present = [s for s in expression.free_symbols if powers[s] != 0]
    if not present:
        return sp.Integer(0)
    if not expression.is_rational_function(*expression.free_symbols):
        return None
    if (plain := _degree_term_by_term(expression, powers)) is not None:
        return plain
    slope = sp.Add(*(powers[s] * s * sp.diff(expression, s) for s in present))
    ratio = sp.cancel(slope / expression)
    return sp.nsimplify(ratio) if ratio.is_number else None


def _degree_term_by_term(expression: sp.Expr, powers: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr | None:
    """The degree if every sum, as written, has terms of one degree; None if that does not decide.

    This is tried first: cancelling long quotients of sums takes minutes, and most formulas do not need it.
    """
    if expression.is_Symbol:
        return powers[expression]
    if expression.is_Number:
        return sp.Integer(0)
    parts = [_degree_term_by_term(part, powers) for part in expression.args]
    if expression.is_Pow:
        return parts[0] * expression.exp if parts[0] is not None and expression.exp.is_Rational else None
    if None in parts or not (expression.is_Mul or expression.is_Add):
        return None
    if expression.is_Mul:
        return sp.Add(*parts)
    return parts[0] if len(set(parts)) == 1 else None


def units_line(units: Units, words: Words = HEAT.words) -> Line:
    """The line on whether a step changes in other units."""
    scaled = f"{words.diffusion} × λ with " if words == HEAT.words else ""
    parts: dict[str, float | None] = {
        "lengths × λ with times × λ²": units.lengths,
        f"{scaled}times / λ": units.times,
        f"{words.unknowns} × anything": units.temperatures,
        "a constant added to all": units.shift,
    }
    told = {name: _describe_change(value) for name, value in parts.items()}
    if units.temperatures is None:
        told[f"{words.unknowns} × anything"] = f"not tested, since {words.unknown} has no unit of its own"
    changes = "; ".join(f"{name}: {change}" for name, change in told.items())
    algebra = f"; from the algebra for every λ: {', '.join(units.algebra)}" if units.algebra else ""
    method = "one step with Dirichlet and Neumann walls, again in other units, λ from 0.001 to 1000; dimensions"
    return Line("unchanged by units", verdict_of(units.holds), changes + algebra, method)


def _describe_change(value: float | None) -> str:
    if value is None:
        return "not tested"
    return (
        "T' is not finite" if math.isinf(value) else "same" if value <= SAME_UNITS else f"T' − T changes by {value:.1e}"
    )
