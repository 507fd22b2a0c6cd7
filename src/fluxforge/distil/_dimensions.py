"""The units of a scheme's symbols, and the candidates of a search that respect them."""

from collections.abc import Mapping

from fluxforge.distil._front import Front
from fluxforge.pde import HEAT, Clash, Equation, Unit, dimensions
from fluxforge.scheme import symbol_units


def units_of(names: tuple[str, ...], equation: Equation = HEAT) -> dict[str, Unit]:
    """The units of the names that we know, such as T_N or delta_PQ; those of sums of messages depend on the gauge."""
    known = symbol_units(equation)
    return {name: found for name in names if (found := known.get(name)) is not None}


def consistent(front: Front, units: Mapping[str, Unit]) -> Front:
    """The candidates of a front whose units do not clash."""
    kept = tuple(c for c in front if not isinstance(dimensions(c.expression, units), Clash))
    return Front(kept, front.ended_by_clock)
