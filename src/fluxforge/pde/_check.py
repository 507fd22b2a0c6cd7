"""What an equation is refused for: names, the symbols of its formulas, and units."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import sympy as sp

from fluxforge.errors import EquationError
from fluxforge.expression import COORDINATES, TIME, WORDS, symbol
from fluxforge.pde._parameter import PLACES, Rank, Where
from fluxforge.pde._units import Clash, Unit, dimensions, multiply_units, unit

if TYPE_CHECKING:
    from fluxforge.pde._equation import Equation

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_TAKEN = frozenset((*WORDS, *COORDINATES, TIME, "A", "V", "S", "T", "delta", "chi", "dt", "n", "d", "theta", "f"))


def check_names(equation: "Equation") -> None:
    where = f"equation {equation.name!r:.60}"
    names = [equation.unknown, *(p.name for p in equation.parameters)]
    for name in names:
        if not _NAME.fullmatch(name) or len(name) > 40:
            raise EquationError(f"{where}: {name!r:.60} is not a usable name (letters and digits, at most 40)")
        if (name in _TAKEN and name != "T") or names.count(name) > 1 or name == "T" != equation.unknown:
            raise EquationError(f"{where}: the name {name!r} is taken")
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
            raise EquationError(f"equation {equation.name!r}: {field!r} contains {stray[0]}, which it may not")
    for field, least in (("capacity", "positive"), ("diffusion", "nonnegative")):
        number = getattr(equation, field)
        if not number.free_symbols and not getattr(number, f"is_{least}"):
            words = "positive" if field == "capacity" else "positive, or 0 for none"
            raise EquationError(f"equation {equation.name!r}: the {field} should be {words}, got {number!s:.40}")


def check_units(equation: "Equation") -> None:
    """Every term has the unit of c ∂u/∂t, where all parameters have one, and a flux that times a length."""
    if any(p.unit is None for p in equation.parameters):
        return
    units = {p.name: p.unit for p in equation.parameters if p.unit is not None}
    units[equation.unknown] = equation.unknown_unit
    per_time = _in_units(equation, "capacity", equation.capacity, units, equation.unknown_unit, unit(time=-1))
    terms = {
        "diffusion": _in_units(equation, "diffusion", equation.diffusion, units, equation.unknown_unit, unit(-2)),
        "reaction": _in_units(equation, "reaction", equation.reaction, units),
    }
    if equation.velocity is not None:
        terms["transported"] = _in_units(
            equation, "transported", equation.transported, units, units[equation.velocity], unit(-1)
        )
    for field, found in terms.items():
        if getattr(equation, field) != 0 and None not in (found, per_time) and found != per_time:
            raise EquationError(
                f"equation {equation.name!r}: the term of {field!r} has the unit {found}, and c ∂u/∂t has {per_time}"
            )
    if equation.two_point is not None and equation.two_point != 0 and per_time is not None:
        _check_flux_unit(equation, units, multiply_units(per_time, unit(1)))


def _check_flux_unit(equation: "Equation", units: Mapping[str, Unit], wanted: Unit) -> None:
    on_edge = {"delta": unit(1)} | {f"{equation.unknown}_{end}": equation.unknown_unit for end in ("P", "N")}
    on_edge |= {name: units[p.name] for p in equation.parameters for name in p.edge_names()}
    assert equation.two_point is not None
    found = _in_units(equation, "two_point", equation.two_point, on_edge)
    if found is not None and found != wanted:
        raise EquationError(f"equation {equation.name!r}: 'two_point' has the unit {found}, and a flux has {wanted}")


def _in_units(
    equation: "Equation", field: str, formula: sp.Expr, units: Mapping[str, Unit], *others: Unit
) -> Unit | None:
    found = dimensions(formula, units)
    if isinstance(found, Clash):
        raise EquationError(f"equation {equation.name!r}: {field!r}: {found}")
    return None if found is None else multiply_units(found, *others)
