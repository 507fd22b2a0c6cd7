"""Checks of an equation: names, the symbols of formulas, units, and a two-point flux given as a formula.

The flux is tested at random points, since SymPy may not decide whether it belongs to its equation. Each check raises
EquationError, which names the equation and the field.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from fluxforge.errors import EquationError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import COORDINATES, TIME, WORDS, symbol
from fluxforge.pde._parameter import PLACES, Clash, Rank, Unit, Where, dimensions, multiply_units, unit

if TYPE_CHECKING:
    from fluxforge.pde._equation import Equation

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_RESERVED_NAMES = frozenset(
    (*WORDS, *COORDINATES, TIME, "A", "V", "S", "T", "delta", "chi", "dt", "n", "d", "theta", "f")
)


def check_names(equation: "Equation") -> None:
    """Refuse names that are unusable or given twice, places that a rank cannot have, and a velocity without f(u)."""
    where = f"equation {equation.name!r:.60}"
    names = [equation.unknown, *(p.name for p in equation.parameters)]
    for name in names:
        if not _NAME.fullmatch(name) or len(name) > 40:
            raise EquationError(f"{where}: {name!r:.60} is not a usable name (letters and digits, at most 40)")
        if (name in _RESERVED_NAMES and name != "T") or names.count(name) > 1 or name == "T" != equation.unknown:
            raise EquationError(f"{where}: the name {name!r} is already used: choose another")
    for each in equation.parameters:
        if each.where not in PLACES[each.rank]:
            places = " or ".join(sorted(PLACES[each.rank]))
            raise EquationError(
                f"{where}: parameter {each.name!r}, a {each.rank}, should be {places}, not {each.where}"
            )
    if equation.velocity is not None and equation.parameter(equation.velocity).rank is not Rank.VECTOR:
        raise EquationError(f"{where}: the velocity {equation.velocity!r} should be a vector parameter")
    if (equation.velocity is None) != (equation.transported == 0):
        raise EquationError(f"{where}: 'transported' and 'velocity' belong together; one of them is missing")


def check_formulas(equation: "Equation") -> None:
    """Refuse formulas with symbols that their field may not contain, and constants c ≤ 0 or K < 0."""
    scalars = [p for p in equation.parameters if p.rank is Rank.SCALAR]
    in_cells = {symbol(p.name) for p in scalars if p.where is not Where.FACE}
    constant = {symbol(p.name) for p in scalars if p.where is Where.CONSTANT}
    tensor = set() if equation.diffusion_tensor is None else {equation.diffusion}
    allowed = {
        "capacity": in_cells,
        "transported": {*constant, equation.u},
        "diffusion": {*(symbol(p.name) for p in scalars), equation.u, *tensor},
        "reaction": {*in_cells, equation.u},
    }
    if equation.two_point is not None:
        ends = {symbol(f"{equation.unknown}_{end}") for end in ("P", "N")}
        faces = {symbol(name) for p in equation.parameters for name in p.edge_names()}
        allowed["two_point"] = {*ends, *faces, symbol("delta")}
    for field, known in allowed.items():
        if stray := sorted(map(str, getattr(equation, field).free_symbols - known)):
            raise EquationError(
                f"equation {equation.name!r}: {field!r} contains {stray[0]}, which is not allowed there"
            )
    c, K = equation.capacity, equation.diffusion
    if not c.free_symbols and not c.is_positive:
        raise EquationError(f"equation {equation.name!r}: the capacity should be positive, got {c!s:.40}")
    if not K.free_symbols and not K.is_nonnegative:
        raise EquationError(
            f"equation {equation.name!r}: the diffusion should be positive, or 0 for none, got {K!s:.40}"
        )


def check_units(equation: "Equation") -> None:
    """Refuse terms whose unit is not that of c ∂u/∂t, and a `two_point` whose unit is not that times a length.

    An equation with a parameter of unknown unit is not checked. A reaction without parameters, such as u - u**3, is
    understood per unit of time: only its own terms must agree with each other.
    """
    if any(p.unit is None for p in equation.parameters):
        return
    units = {p.name: p.unit for p in equation.parameters if p.unit is not None}
    units[equation.unknown] = equation.unknown_unit
    per_time = _unit_of_term(equation, "capacity", equation.capacity, units, equation.unknown_unit, unit(time=-1))
    terms = {
        "diffusion": _unit_of_term(equation, "diffusion", equation.diffusion, units, equation.unknown_unit, unit(-2)),
        "reaction": _unit_of_term(equation, "reaction", equation.reaction, units),
    }
    if equation.velocity is not None:
        terms["transported"] = _unit_of_term(
            equation, "transported", equation.transported, units, units[equation.velocity], unit(-1)
        )
    for field, term in terms.items():
        alone = field == "reaction" and equation.reaction.free_symbols <= {equation.u}
        if getattr(equation, field) != 0 and not alone and None not in (term, per_time) and term != per_time:
            raise EquationError(
                f"equation {equation.name!r}: the term of {field!r} has the unit {term}, but c ∂u/∂t has {per_time}"
            )
    if equation.two_point is not None and equation.two_point != 0 and per_time is not None:
        _check_flux_unit(equation, units, multiply_units(per_time, unit(1)))


def _check_flux_unit(equation: "Equation", units: Mapping[str, Unit], wanted: Unit) -> None:
    on_edge = {"delta": unit(1)} | {f"{equation.unknown}_{end}": equation.unknown_unit for end in ("P", "N")}
    on_edge |= {name: units[p.name] for p in equation.parameters for name in p.edge_names()}
    assert equation.two_point is not None
    flux = _unit_of_term(equation, "two_point", equation.two_point, on_edge)
    if flux is not None and flux != wanted:
        raise EquationError(
            f"equation {equation.name!r}: 'two_point' has the unit {flux}, but a flux should have {wanted}"
        )


def _unit_of_term(
    equation: "Equation", field: str, formula: sp.Expr, units: Mapping[str, Unit], *others: Unit
) -> Unit | None:
    dimension = dimensions(formula, units)
    if isinstance(dimension, Clash):
        raise EquationError(f"equation {equation.name!r}: {field!r}: {dimension}")
    return None if dimension is None else multiply_units(dimension, *others)


# Points at which a given flux is evaluated; half of them have unknowns in (0, 1).
_POINTS = 12
# The distance δ of the test of the gradient: (u_P - u_N)/δ still has ten digits, and transport differs from f(u) a·n
# by about 1e-6 only.
_SHORT_DISTANCE = 1e-6
# Tolerance for what is equal in exact arithmetic: a million times the round-off of numbers near 1.
_ROUND_OFF = 1e-9
# A hundred times _SHORT_DISTANCE: beside its limit, a flux may have terms of order δ.
_GRADIENT_TOLERANCE = 100 * _SHORT_DISTANCE


def check_two_point(equation: "Equation") -> None:
    """Refuse a `two_point` F that is not a flux of the equation; raises EquationError.

    F(u, u) = f(u) a·n; F changes its sign when the ends are exchanged and the normal is reversed; and over a short
    distance δ with the slope s, F(u, u + s δ) → f(u) a·n − K s. Points where F is not finite are ignored.
    """
    if equation.two_point is None:
        return
    trial = _Trial(equation)
    trial.check_equal_values()
    trial.check_turned()
    trial.check_gradient()


class _Trial:
    """The flux at random points: parameters from 0.5 to 2; velocities, and half of the unknowns, of either sign."""

    def __init__(self, equation: "Equation") -> None:
        self.equation = equation
        draw = np.random.default_rng(0)
        # Formulas such as log(u) and sqrt(1 - u) are real in (0, 1) only.
        inside, outside = draw.uniform(0.2, 0.9, (2, _POINTS // 2)), draw.uniform(-2.0, 2.0, (2, _POINTS // 2))
        self.u, self.v = np.concatenate([inside, outside], axis=1)
        self.slope = draw.uniform(0.5, 2.0, _POINTS) * draw.choice([-1.0, 1.0], _POINTS)
        self.delta = draw.uniform(0.3, 2.0, _POINTS)
        self.here, self.there, self.turned = {}, {}, {}
        for p in equation.parameters:
            one, other = draw.uniform(0.5, 2.0, (2, _POINTS))
            if p.rank is Rank.VECTOR:
                one = one * draw.choice([-1.0, 1.0], _POINTS)
            self.here[p.name], self.there[p.name] = one, other if p.in_cells else one
            self.turned[p.name] = -one if p.rank is Rank.VECTOR else one

    def check_equal_values(self) -> None:
        """F(u, u) = f(u) a·n, whatever the parameters are on either side."""
        u, carried = self.u, self._transport_flux()
        # Round-off is relative to terms of the size ∂F/∂u · u, for which the flux at unequal values is an estimate.
        size = np.abs(carried) + np.abs(self._flux(u, self.v)) + np.abs(self._flux(self.v, u))
        self._require(self._flux(u, u), carried, _ROUND_OFF * size, "of equal values should be f(u) a·n")

    def check_turned(self) -> None:
        """F(P, N) = −F(N, P) with the normal reversed: what leaves P enters N."""
        ends = self._flux(self.u, self.v)
        back = -self._flux(self.v, self.u, turned=True)
        size = np.abs(ends) + np.abs(back)
        words = "should become its negative when P and N are exchanged and the normal is reversed"
        self._require(ends, back, _ROUND_OFF * size, words)

    def check_gradient(self) -> None:
        """F(u, u + s δ) → f(u) a·n − K s with the same parameters on both sides."""
        self.there = self.here
        u, s = self.u, self.slope
        wanted = self._transport_flux() - self._diffusion() * s
        size = np.abs(wanted) + np.abs(self._flux(u, self.v, np.ones(_POINTS)))
        flux = self._flux(u, u + s * _SHORT_DISTANCE, np.full(_POINTS, _SHORT_DISTANCE))
        words = "should tend to f(u) a·n − K ∂u/∂n as delta tends to 0"
        self._require(flux, wanted, _GRADIENT_TOLERANCE * size, words)

    def _require(self, values: np.ndarray, wanted: np.ndarray, tolerance: np.ndarray, words: str) -> None:
        where = f"equation {self.equation.name!r}: 'two_point'"
        real = np.isfinite(values) & np.isfinite(wanted) & np.isfinite(tolerance)
        if not real.any():
            raise EquationError(f"{where} has no finite value at any of {_POINTS} points that were tried")
        wrong = real & (np.abs(values - wanted) > tolerance)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise EquationError(f"{where} {words}: at a point it is {values[at]:.6g}, not {wanted[at]:.6g}")

    def _flux(self, P: np.ndarray, N: np.ndarray, delta: np.ndarray | None = None, turned: bool = False) -> np.ndarray:
        here, there = (self.there, self.here) if turned else (self.here, self.there)
        name = self.equation.unknown
        values = {f"{name}_P": P, f"{name}_N": N, "delta": self.delta if delta is None else delta}
        for p in self.equation.parameters:
            if p.in_cells:
                values |= {f"{p.name}_P": here[p.name], f"{p.name}_N": there[p.name]}
            else:
                values[p.edge_names()[0]] = (self.turned if turned else self.here)[p.name]
        assert self.equation.two_point is not None
        return _evaluate(self.equation.two_point, values)

    def _transport_flux(self) -> np.ndarray:
        """f(u) a·n."""
        velocity = self.equation.velocity
        along = 0.0 if velocity is None else self.here[velocity]
        return along * _evaluate(self.equation.transported, {**self.here, self.equation.unknown: self.u})

    def _diffusion(self) -> np.ndarray:
        return _evaluate(self.equation.diffusion, {**self.here, self.equation.unknown: self.u})


def _evaluate(formula: sp.Expr, values: dict[str, np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        result = evaluate(formula, {symbol(name): value for name, value in values.items()}, np)
    return np.broadcast_to(np.asarray(result, float), (_POINTS,))
